"""The settings of self_bleu."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core_ngrams import SMOOTHINGS
from .core_results import confidence_level
from .core_settings import SET, Settings, choice, count, flag, setting

# Each order is a pass over all tokens, and three numbers of the result.
_LONGEST = 100


@dataclass(frozen=True, kw_only=True)
class SelfBleuSettings(Settings):
    """The settings of a call, as the help explains them."""

    max_order: int = setting(4, count(high=_LONGEST))
    aggregate: str = setting("set", choice("set", "corpus", "sentence"))
    smoothing: str | None = setting(None, choice(*SMOOTHINGS))
    tokenizer: str | Callable[[str], Any] = setting("whitespace")
    set_size: int | None = setting(None, count())
    singletons: str = setting("error", choice("error", "skip"))
    vocabulary_size: int | None = setting(None, count(2))
    repetition: bool = setting(False, flag)
    homogenization: bool = setting(False, flag)
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=SET)
    details: bool = setting(False, flag)

    def check_batches(self) -> None:
        """Raise a ValueError for aggregate="corpus", which pools all sets."""
        if self.aggregate == "corpus":
            raise ValueError("aggregate='corpus' cannot be scored in batches: it pools all sets.")

    @property
    def smoothed_by(self) -> str:
        """The smoothing of BLEU, by default that of the aggregate."""
        return self.smoothing or ("method1" if self.aggregate == "sentence" else "nlg-eval")
