"""The folder of the data that scripts read."""

import argparse
import os
from pathlib import Path

DATA = "METRICS_TEST_DATA"


def data_folder(parser: argparse.ArgumentParser) -> Path:
    """Return the folder `data` of $METRICS_TEST_DATA, or end with a message if it is not set."""
    if not os.environ.get(DATA):
        parser.error(f"{DATA} is not set: it names the folder that holds data/")
    return Path(os.environ[DATA]) / "data"
