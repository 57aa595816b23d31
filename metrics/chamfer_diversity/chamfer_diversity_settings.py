"""The settings of chamfer_diversity."""

from dataclasses import dataclass

from .core import SourceSettings, parse_choice, setting


@dataclass(frozen=True, kw_only=True)
class ChamferSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    singletons: str = setting(
        "error",
        parse_choice,
        choices=("error", "skip"),
        help='`"error"` or `"skip"`: a set of one text has no nearest neighbour. Either raise an error, or leave '
        "the set out of the mean and return None as its score.",
    )
