"""The settings of chamfer_diversity."""

from dataclasses import dataclass
from typing import Any

from .core_encoder import SourceSettings
from .core_results import confidence_level
from .core_settings import SET, TEXT, choice, count, flag, setting


@dataclass(frozen=True, kw_only=True)
class ChamferSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    set_size: int | None = setting(None, count())
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    singletons: str = setting("error", choice("error", "skip"))
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=SET)
    details: bool = setting(False, flag)
