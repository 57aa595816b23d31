"""The command line of text-metrics choose as one typed object, parsed and checked once."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from text_metrics.commands.score.command import Command, UsageError
from text_metrics.commands.shared.settings import ENCODER, parse_settings
from text_metrics.metrics._core.core_encoder import EncoderSettings

_OWN = ("keep", "share", "quality_key", "min_quality", "one_set")


@dataclass(frozen=True)
class ChooseCommand:
    """What was asked for.

    Parameters
    ----------
    reading : how the file is read and written, as text-metrics score does
    keep, share : how many texts of each group to choose, or which share of them: one of both
    quality_key : column of the quality of each text, in [0, 1]; all are alike if None
    min_quality : texts below this quality are not chosen
    one_set : all rows are one group
    encoder : how texts are embedded

    Raises
    ------
    UsageError
        If options are out of range or exclude each other.
    """

    reading: Command
    keep: int | None = None
    share: float | None = None
    quality_key: str | None = None
    min_quality: float | None = None
    one_set: bool = False
    encoder: EncoderSettings = field(default_factory=EncoderSettings)

    def __post_init__(self) -> None:
        """Check what can be checked without the file."""
        if (self.keep is None) == (self.share is None):
            raise UsageError("pass one of --keep and --share.")
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep must be at least 1. Got {self.keep}.")
        if self.share is not None and not 0 < self.share <= 1:
            raise UsageError(f"--share must be above 0, and at most 1. Got {self.share}.")
        if self.min_quality is not None:
            if self.quality_key is None:
                raise UsageError("--min-quality needs --quality-key.")
            if not 0 <= self.min_quality <= 1:
                raise UsageError(f"--min-quality must be in [0, 1]. Got {self.min_quality}.")

    def wanted(self, n: int) -> int:
        """Return how many to choose of n texts."""
        return min(n, self.keep) if self.keep is not None else math.ceil(n * (self.share or 0))

    def decisive(self) -> dict[str, Any]:
        """Return what decides the choice, as JSON: a job continues only under an equal command."""
        own = {name: getattr(self, name) for name in _OWN}
        return {**self.reading.decisive("choose", ""), **own}


def parse_command(words: Sequence[str] | None = None, description: str | None = None) -> ChooseCommand:
    """Read the command line; exits with 2 where argparse cannot read it.

    Raises
    ------
    UsageError
        As `ChooseCommand` does, or if a setting is invalid.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help=".jsonl, .csv, .parquet, or a folder of `datasets`")
    parser.add_argument("--text-key", required=True, help="column of the text, or of the list of texts")
    parser.add_argument("--keep", type=int, metavar="K", help="choose K texts of each group")
    parser.add_argument("--share", type=float, metavar="S", help="choose this share of each group, rounded up")
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument("--group-key", help="the rows with one value in this column, next to each other, make a group")
    groups.add_argument("--set-size", type=int, help="this many consecutive rows make a group")
    groups.add_argument("--one-set", action="store_true", help="all rows of the file make one group")
    parser.add_argument("--quality-key", help="column of the quality of each text, in [0, 1], or of a list of them")
    parser.add_argument("--min-quality", type=float, help="choose no text below this quality")
    parser.add_argument("--split", help="of a folder of `datasets`")
    parser.add_argument(
        "--setting",
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the encoder: model, precision, long_texts, batch_size, device or cache_dir",
    )
    parser.add_argument("--out", type=Path, help=".parquet, .jsonl or .csv; by default <data>.chosen.parquet")
    parser.add_argument("--batch-size", type=int, default=4096, help="texts embedded and kept at a time")
    parser.add_argument(
        "--drop-incomplete",
        action="store_true",
        help="leave out groups that lack a row, because it is bad or because the file ends",
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad row")
    parser.add_argument("--restart", action="store_true", help="discard what was done, and write --out anew")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = vars(parser.parse_args(words))
    own = {name: options.pop(name) for name in _OWN}
    try:
        settings = parse_settings(options.pop("setting"), "--setting")
        for name in settings:
            if name not in ENCODER:
                raise UsageError(f"--setting {name}: the encoder has no such setting. It has {', '.join(ENCODER)}.")
        encoder = EncoderSettings(**settings, progress=False)
        return ChooseCommand(Command(metric="choose", settings=settings, **options), **own, encoder=encoder)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
