"""The settings of chamfer_diversity."""

from dataclasses import dataclass

from .core import SimilaritySettings, parse_choice, setting


@dataclass(frozen=True, kw_only=True)
class ChamferSettings(SimilaritySettings):
    """The settings of a call, as the help explains them."""

    singletons: str = setting("error", parse_choice, choices=("error", "skip"))
