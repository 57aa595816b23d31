"""The settings of chamfer_diversity."""

from dataclasses import dataclass
from typing import Any

from .core_encoder import EncoderSettings
from .core_results import UNBOUNDED, confidence_level
from .core_settings import PAIR, SET, TEXT, choice, count, flag, setting


@dataclass(frozen=True, kw_only=True)
class ChamferSettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    set_size: int | None = setting(None, count())
    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)
    similarity: Any = setting(None, given=PAIR, numbers=UNBOUNDED)
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    singletons: str = setting("error", choice("error", "skip"))
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=SET)
    details: bool = setting(False, flag)

    def check(self) -> None:
        """Raise an error if both embeddings and similarities are given."""
        if self.embeddings is not None and self.similarity is not None:
            raise ValueError("embeddings and similarity are both given: pass one of them.")
