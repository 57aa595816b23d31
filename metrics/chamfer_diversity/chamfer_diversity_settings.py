"""The settings of chamfer_diversity."""

from dataclasses import dataclass
from typing import Any

from .core_rarefaction import subset_size, whole_sets_only
from .core_results import confidence_level
from .core_settings import SET, TEXT, choice, count, flag, never, number, setting
from .core_similarity import SourceSettings


@dataclass(frozen=True, kw_only=True)
class ChamferSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    set_size: int | None = setting(None, count())
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    min_quality: float | None = setting(None, number(0, 1), needs="quality")
    singletons: str = setting("error", choice("error", "skip"), merges_parts=never)
    contributions: bool = setting(False, flag, finer=True)
    rarefy: int | None = setting(
        None, subset_size(least=2), conflicts=whole_sets_only("contributions"), merges_parts=never, of_mean=True
    )
    confidence: float | None = setting(None, confidence_level, of_mean=True)
    confidence_by: Any = setting(None, given=SET, needs="confidence")
    details: bool = setting(False, flag, finer=True)
