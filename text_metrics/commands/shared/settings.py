"""Metrics as commands load them, their settings on the command line, and other options that several commands have."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from text_metrics import METRICS, load
from text_metrics.commands.shared.columns import parse_pairs
from text_metrics.commands.shared.files import parse_cell
from text_metrics.imports import import_evaluate
from text_metrics.metrics._core.core_settings import suggest


def add_settings(parser: argparse.ArgumentParser, help: str = "a setting of the metric; `help` lists them") -> None:
    """Add --setting, which may be given many times."""
    parser.add_argument("--setting", "--set", action="append", default=[], metavar="NAME=VALUE", help=help)


def add_confidence(parser: argparse.ArgumentParser, help: str = "level of the intervals") -> None:
    """Add --confidence."""
    parser.add_argument("--confidence", type=float, default=0.95, help=help)


def parse_settings(pairs: Sequence[str], metric: str = "") -> dict[str, Any]:
    """Read the NAME=VALUE pairs of --setting, where a value is JSON, or else a string.

    `help` in place of a pair prints the help of the metric, with all its settings, and exits.
    """
    if "help" in pairs and metric in METRICS:
        print(load_metric(metric).inputs_description)
        raise SystemExit(0)
    return {name: parse_cell(value) for name, value in parse_pairs(pairs, "--setting").items()}


@contextmanager
def settings_checked() -> Iterator[None]:
    """Raise a ValueError for the TypeError of a setting of a wrong type, so that it ends a command."""
    try:
        yield
    except TypeError as error:
        raise ValueError(str(error)) from None


def load_metric(name: str) -> Any:
    """Load a metric of the package by its name, or any module of `evaluate` by its path or its name on the Hub."""
    if name in METRICS:
        return load(name)
    try:
        return import_evaluate().load(name)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(
            f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}, and modules of "
            f"`evaluate`: {str(error).splitlines()[0]}"
        ) from error
