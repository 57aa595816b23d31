"""The settings of vendi_embed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .core_encoder import EncoderSettings
from .core_numbers import describe
from .core_results import UNBOUNDED, confidence_level
from .core_settings import PAIR, SET, TEXT, choice, count, flag, setting
from .core_spectra import parse_orders


def _orders(value: Any, name: str) -> Any:
    parse_orders(value)
    return value


@dataclass(frozen=True, kw_only=True)
class VendiSettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    q: Any = setting(1.0, _orders)
    kernel: str = setting("embedding", choice("embedding", "ngram"))
    set_size: int | None = setting(None, count())
    weights: Any = setting(None, given=TEXT, numbers=(0, 1))
    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)
    similarity: Any = setting(None, given=PAIR, numbers=UNBOUNDED)
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    pairs: bool = setting(False, flag)
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=SET)
    details: bool = setting(False, flag)

    def check(self) -> None:
        """Raise an error for embeddings or similarities that the kernel would not use."""
        if self.embeddings is not None and self.similarity is not None:
            raise ValueError("embeddings and similarity are both given: pass one of them.")
        for name in ("embeddings", "similarity"):
            if self.kernel == "ngram" and (value := getattr(self, name)) is not None:
                raise ValueError(f"{name} and kernel='ngram' are both given: pass one of them. Got {describe(value)}.")

        if self.pairs and self.weights is not None:
            raise ValueError("pairs counts each pair of texts once: pass it without weights.")

    def check_batches(self) -> None:
        """Raise an error for a result that is not a mean over sets."""
        if self.pairs:
            raise ValueError("pairs is pooled over all sets: score them in one call.")

    @property
    def orders(self) -> list[float]:
        """The orders of the score, the main one first."""
        return parse_orders(self.q)

    @property
    def has_orders(self) -> bool:
        """Whether the orders are a list."""
        return isinstance(self.q, (list, tuple, np.ndarray))
