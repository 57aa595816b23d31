"""The command lines of the workshop's scripts, and the folder of the data that they read."""

import argparse
import os
from pathlib import Path

DATA = "METRICS_TEST_DATA"


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help shows a script's docstring as it stands."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def data_folder(parser: argparse.ArgumentParser) -> Path:
    """Return the folder `data` of $METRICS_TEST_DATA, or end with a message if it is not set."""
    if not os.environ.get(DATA):
        parser.error(f"{DATA} is not set: it names the folder that holds data/")
    return Path(os.environ[DATA]) / "data"
