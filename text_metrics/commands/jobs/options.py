"""The options of a command on the rows of a file."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.columns import add_keys, parse_columns
from text_metrics.commands.shared.files import data_files, file_format, parse_path, without_secrets
from text_metrics.commands.shared.sets import Keys
from text_metrics.commands.shared.settings import parse_settings

# What changes neither a score nor which rows it is for: a job continues whatever these are.
_WITHOUT_EFFECT = ("out", "engine", "address", "workers", "restart", "quiet", "fail_under", "fail_over", "confidence")
_FORMATS = (".jsonl", ".parquet", ".csv")


class Command(argparse.Namespace):
    """What was asked for; each attribute is the option of its name."""

    @property
    def keys(self) -> Keys:
        """What makes a set of rows."""
        return Keys(self.text_key, self.id_key, self.system_key, self.set_size, self.one_set)

    def output(self, result: str, formats: Sequence[str] = _FORMATS) -> Path:
        """Return the file that is written last: by default, in the format of what is read."""
        if self.out is None and not isinstance(self.data, Path):
            raise ValueError(f"--out is needed: {self.data} is not in a folder of this machine.")
        ending = ".parquet" if self.data.is_dir() else file_format(self.data)
        if ending not in formats:
            ending = formats[0]
        out = self.out or self.data.with_name(f"{self.data.name}.{result}{ending}")
        if out.suffix not in formats or out.is_dir():
            raise ValueError(f"--out must be a file that ends in {', '.join(formats)}. Got {out}.")
        return out

    def decisive(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON: a job continues only under an equal command.

        Raises a ValueError for a pipe or another special file: a job reads its file more than once.
        """
        if isinstance(self.data, Path) and self.data.exists() and not (self.data.is_file() or self.data.is_dir()):
            raise ValueError(f"{self.data} is a pipe, which cannot be read twice: write its content to a file first.")
        stats = [path.stat() for path in data_files(self.data)]
        return {
            **{name: value for name, value in vars(self).items() if name not in _WITHOUT_EFFECT},
            "data": without_secrets(str(self.data)),
            "size": sum(stat.st_size for stat in stats),
            "modified": max(stat.st_mtime_ns for stat in stats),
        }


def add_arguments(parser: argparse.ArgumentParser, group: str, result: str, clusters: bool = True) -> None:
    """Add the options of all commands on the rows of a file.

    `group` names what rows make together, such as a set, and `result` the end of the default output, before its suffix;
    `clusters` says whether sets may be dependent.
    """
    parser.add_argument(
        "data",
        type=parse_path,
        help=".jsonl, .ndjson, .json, .csv, .tsv or .txt, also .gz or .zst, .parquet, or a folder of `datasets`, of "
        "Parquet or of JSON files; a path, a pattern of paths, or a URL of fsspec",
    )
    add_keys(parser, clusters=clusters)
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument("--id-key", metavar="KEY", help=f"which prompt a row belongs to: its rows make a {group}")
    groups.add_argument("--set-size", type=int, help=f"this many consecutive rows make a {group}")
    groups.add_argument("--one-set", action="store_true", help=f"all rows of the file make one {group}")
    parser.add_argument(
        "--out",
        type=Path,
        help=f".parquet, .jsonl or .csv; by default <data>.{result} in the format of the data",
    )
    parser.add_argument("--batch-size", type=int, default=4096, help="texts processed at a time")
    parser.add_argument("--restart", action="store_true", help="discard saved results, and start again")
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def parse(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> Command:
    """Read the command line; exits with 2 where argparse cannot read it, and raises a ValueError for invalid values."""
    command = parser.parse_args(words, Command())
    options = vars(command)
    options["columns"] = parse_columns(command)
    del options["column"]
    options["settings"] = parse_settings(options.pop("setting"), command.metric)
    if command.system_key is not None and command.id_key is None:
        raise ValueError("--system-key requires --id-key.")
    for name in ("batch_size", "set_size", "workers", "keep"):
        value = options.get(name)
        if isinstance(value, int) and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Got {value}.")
    return command
