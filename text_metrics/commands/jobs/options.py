"""The options of a command on the rows of a file, as one typed object that is checked once."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.outputs import Folder, parse_output
from text_metrics.commands.shared.remote import Remote, parquet_files, parse_path
from text_metrics.metrics._core.core_results import confidence_level

# What changes neither a score nor which rows it is for: a job continues whatever these are.
_WITHOUT_EFFECT = {"out", "engine", "address", "workers", "strict", "restart", "quiet", "fail_under", "fail_over"}


class UsageError(Exception):
    """The command, its settings or the file are invalid."""


@contextmanager
def as_usage(*errors: type[Exception], prefix: str = "") -> Iterator[None]:
    """Raise a UsageError for a ValueError, or for one of other errors; its message begins with the prefix."""
    kinds: tuple[type[Exception], ...] = (ValueError, *errors)
    try:
        yield
    except kinds as error:
        raise UsageError(f"{prefix}{error}") from None


@dataclass(frozen=True)
class Command:
    """What was asked for; each attribute is the option of its name. Raises a UsageError if one is invalid."""

    data: Path
    metric: str
    text_key: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group_key: str | None = None
    set_size: int | None = None
    one_set: bool = False
    reference_key: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    split: str | None = None
    score_key: str | None = None
    out: Path | None = None
    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    batch_size: int = 4096
    drop_incomplete: bool = False
    fail_under: Mapping[str, float] = field(default_factory=dict)
    fail_over: Mapping[str, float] = field(default_factory=dict)
    confidence: float | None = None
    strict: bool = False
    restart: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without the metric and the file."""
        if self.confidence is not None:
            with as_usage(prefix="--"):
                confidence_level(self.confidence)
        for name in ("batch_size", "set_size", "workers"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"--{_option(name)} must be at least 1. Got {value}.")
        for name in ("score_key", "confidence"):
            if self.one_set and getattr(self, name) is not None:
                raise UsageError(f"--{_option(name)} cannot be combined with --one-set: single texts have no scores.")
        if self.drop_incomplete and self.group_key is None and self.set_size is None:
            raise UsageError("--drop-incomplete requires --group-key or --set-size.")
        if self.one_set and self.columns:
            why = "the statistics of parts hold no values of single texts"
            raise UsageError(f"--column cannot be combined with --one-set: {why}.")
        for name in ("address", "workers"):
            if getattr(self, name) is not None and self.engine != "ray":
                raise UsageError(f"--{name} requires --engine ray.")

    def output(self, metric_name: str) -> Path:
        """Return the file, or the folder, that is written last."""
        if self.out is None and isinstance(self.data, Remote):
            raise UsageError(f"--out is needed: {self.data} is not in a folder of this machine.")
        endings = (".json",) if self.one_set else (".parquet", ".jsonl", ".csv")
        out = self.out or self.data.with_name(f"{self.data.name}.{metric_name}{endings[0]}")
        if isinstance(out, Folder) and not self.one_set:
            return out
        if out.suffix not in endings:
            expected = ".json with --one-set" if self.one_set else ".parquet, .jsonl or .csv"
            raise UsageError(f"--out must end in {expected}. Got {out}.")
        return out

    def decisive(self, metric_name: str, score_key: str) -> dict[str, Any]:
        """Return what decides the numbers, as JSON: a job continues only under an equal command."""
        files = [self.data]
        if self.data.is_dir():
            files = parquet_files(self.data) or [self.data / (self.split or "") / "state.json"]
        stats = [path.stat() for path in files]
        options = {name: value for name, value in vars(self).items() if name not in _WITHOUT_EFFECT}
        return {
            **options,
            "data": str(self.data),
            "size": sum(stat.st_size for stat in stats),
            "modified": max(stat.st_mtime_ns for stat in stats),
            "metric": metric_name,
            "score_key": score_key,
        }

    def for_other_folders(self) -> "Command":
        """Return the same command for processes that run in another folder: its paths are absolute."""
        settings = {name: _absolute(name, value) for name, value in self.settings.items()}
        return replace(self, data=self.data.resolve(), metric=_absolute("metric", self.metric), settings=settings)


def _option(name: str) -> str:
    return name.replace("_", "-")


def _absolute(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return value
    # The folder of a cache need not exist yet.
    is_path = name == "cache_dir" or (os.sep in value and os.path.exists(value))
    return os.path.abspath(os.path.expanduser(value)) if is_path else value


def add_arguments(parser: argparse.ArgumentParser, group: str, result: str) -> None:
    """Add the options of all commands on the rows of a file.

    `group` names what rows make together, such as a set, and `result` the end of the default output, before its suffix.
    """
    parser.add_argument(
        "data",
        type=parse_path,
        help=".jsonl, .json or .csv, also .gz or .zst, .parquet, or a folder of `datasets` or of Parquet files; a path "
        "or a URL of fsspec",
    )
    parser.add_argument("--text-key", required=True, help="column of the text, or of the list of texts")
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument(
        "--group-key", help=f"the rows with one value in this column, next to each other, make a {group}"
    )
    groups.add_argument("--set-size", type=int, help=f"this many consecutive rows make a {group}")
    groups.add_argument("--one-set", action="store_true", help=f"all rows of the file make one {group}")
    parser.add_argument("--split", help="of a folder of `datasets`")
    parser.add_argument(
        "--out",
        type=parse_output,
        help=f".parquet, .jsonl or .csv, or folder/ for a folder of Parquet files; by default <data>.{result}.parquet",
    )
    parser.add_argument("--batch-size", type=int, default=4096, help="texts processed and saved at a time")
    parser.add_argument(
        "--drop-incomplete",
        action="store_true",
        help=f"leave out each {group} that lacks a row, because it is bad or because the file ends, without counting "
        "its other rows as bad",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad row")
    parser.add_argument("--restart", action="store_true", help="discard saved results, and start again")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
