"""The command lines of the workshop's scripts, the folder of the data that they read, and where their tables go."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from text_metrics.commands.shared.pages import put_between

DATA = "METRICS_TEST_DATA"


def data_folder(parser: argparse.ArgumentParser) -> Path:
    """Return the folder `data` of $METRICS_TEST_DATA, or end with a message if it is not set."""
    if not os.environ.get(DATA):
        parser.error(f"{DATA} is not set: it names the folder that holds data/")
    return Path(os.environ[DATA]) / "data"


def publish(lines: Sequence[str], page: Path | None, name: str) -> None:
    """Print lines, and put them between the markers of this name in a page, if one is given."""
    written = "\n".join(lines) + "\n"
    print(written)
    if page is not None:
        put_between(page, name, written)
