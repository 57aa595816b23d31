"""The command line of text-metrics choose as one typed object, parsed and checked once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from text_metrics.commands.jobs.options import Command, UsageError, add_arguments, as_usage
from text_metrics.commands.shared.columns import Column, add_columns, parse_columns
from text_metrics.commands.shared.command import make_parser
from text_metrics.commands.shared.settings import ENCODER, add_settings, check_names, parse_settings
from text_metrics.metrics._core.core_encoder import EncoderSettings
from text_metrics.metrics._core.core_results import SETS

_CHOICE = ("keep", "share", "min_quality", "one_set")


@dataclass(frozen=True)
class ChooseCommand:
    """What was asked for.

    Parameters
    ----------
    reading : how the file is read and written, as text-metrics score does
    keep, share : how many texts of each group to choose, or which share of them: one of both
    min_quality : texts below this quality are not chosen
    one_set : all rows are one group
    encoder : how texts are embedded
    """

    reading: Command
    keep: int | None = None
    share: float | None = None
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
            if self.quality is None:
                raise UsageError("--min-quality needs --column quality=COLUMN.")
            if not 0 <= self.min_quality <= 1:
                raise UsageError(f"--min-quality must be in [0, 1]. Got {self.min_quality}.")

    @property
    def quality(self) -> Column | None:
        """The column of the quality of each text, in [0, 1]; None if all are alike."""
        from text_metrics.metrics.vendi_embed.vendi_embed_settings import VendiSettings

        name = self.reading.columns.get("quality")
        return None if name is None else Column.of("quality", name, VendiSettings.declared()["quality"], SETS)

    def wanted(self, n: int) -> int:
        """Return how many to choose of n texts."""
        return min(n, self.keep) if self.keep is not None else math.ceil(n * (self.share or 0))

    def decisive(self) -> dict[str, Any]:
        """Return what decides the choice, as JSON: a job continues only under an equal command."""
        choice = {name: getattr(self, name) for name in _CHOICE}
        return {**self.reading.decisive("choose", ""), **choice}


def parse_command(words: Sequence[str] | None = None, description: str | None = None) -> ChooseCommand:
    """Read the command line; exits with 2 where argparse cannot read it."""
    parser = make_parser(description)
    add_arguments(parser, "group", "chosen")
    parser.add_argument("--keep", type=int, metavar="K", help="choose K texts of each group")
    parser.add_argument("--share", type=float, metavar="S", help="choose this share of each group, rounded up")
    add_columns(parser, "quality, of each text, in [0, 1],")
    parser.add_argument("--min-quality", type=float, help="choose no text below this quality")
    add_settings(parser, f"a setting of the encoder: {', '.join(ENCODER)}")
    options = vars(parser.parse_args(words))
    choice = {name: options.pop(name) for name in _CHOICE}
    with as_usage(TypeError):
        settings = parse_settings(options.pop("setting"))
        check_names(settings, ENCODER, "the encoder")
        encoder = EncoderSettings(**settings, progress=not options["quiet"])
        columns = parse_columns(options.pop("column"))
        for argument in columns:
            if argument != "quality":
                raise ValueError(f"--column {argument}: a column may give quality only.")
        reading = Command(metric="choose", settings=settings, columns=columns, **options)
        return ChooseCommand(reading, **choice, encoder=encoder)
