"""Metrics as commands load them, their settings on the command line, and other options that several commands have."""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from text_metrics import METRICS, load
from text_metrics.commands.shared.outputs import module_files
from text_metrics.metrics._core.core_settings import suggest

# The settings of the encoder that a command takes.
ENCODER = ("model", "long_texts", "batch_size", "device", "cache_dir")
CONFIDENCE = 0.95
# Optional imports of evaluate, which only its evaluators use: three quarters of its time.
_OF_EVALUATORS = ("transformers", "scipy.stats")


def add_settings(parser: argparse.ArgumentParser, help: str = "a setting of the metric") -> None:
    """Add --setting, which may be given many times."""
    parser.add_argument("--setting", "--set", action="append", default=[], metavar="NAME=VALUE", help=help)


def add_confidence(
    parser: argparse.ArgumentParser, default: float | None = CONFIDENCE, help: str = "level of the intervals"
) -> None:
    """Add --confidence."""
    parser.add_argument("--confidence", type=float, default=default, help=help)


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Read the NAME=VALUE pairs of --setting, where a value is JSON, or else a string."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--setting must be NAME=VALUE. Got {pair!r}.")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


@contextmanager
def settings_checked() -> Iterator[None]:
    """Raise a ValueError for the TypeError of a setting of a wrong type, so that it ends a command."""
    try:
        yield
    except TypeError as error:
        raise ValueError(str(error)) from None


def check_names(settings: Iterable[str], names: Sequence[str], owner: str) -> None:
    """Raise a ValueError for a setting that is not among the names that the owner has."""
    for name in settings:
        if name not in names:
            hint = suggest(name, names)
            raise ValueError(f"--setting {name}: {owner} has no such setting{hint} It has {', '.join(names)}.")


def paths_of(settings: Mapping[str, Any]) -> list[str | Path]:
    """List the files that settings name, such as those of a model."""
    return [
        path
        for name, value in settings.items()
        # A value that is no path, such as that of kernel="ngram", may be the name of a folder.
        if isinstance(value, str) and name != "cache_dir" and (name.endswith("model") or os.sep in value)
        for path in module_files(value)
    ]


def cache_of(settings: Mapping[str, Any]) -> Path | None:
    """Return the folder of the cache; None if there is none."""
    folder = settings.get("cache_dir")
    return Path(folder).expanduser() if folder and isinstance(folder, str) else None


def load_metric(name: str) -> Any:
    """Load a metric of the package by its name, or any module of `evaluate` by its path or its name on the Hub."""
    evaluate = _import_evaluate()
    if name in METRICS:
        return load(name)
    try:
        return evaluate.load(name)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(
            f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}, and modules of "
            f"`evaluate`: {str(error).splitlines()[0]}"
        ) from error


def _import_evaluate() -> Any:
    modules: dict[str, Any] = sys.modules
    hidden = () if "evaluate" in modules else [name for name in _OF_EVALUATORS if name not in modules]
    # To import them now raises ImportError, as if they were not installed.
    modules.update(dict.fromkeys(hidden))
    try:
        return importlib.import_module("evaluate")
    finally:
        for name in hidden:
            del modules[name]
