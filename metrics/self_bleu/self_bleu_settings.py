"""The settings of self_bleu."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core_ngrams import SMOOTHINGS
from .core_rarefaction import subset_size
from .core_results import confidence_level
from .core_settings import SET, Settings, choice, count, flag, never, setting

# Each order is a pass over all tokens, and three numbers of the result.
_LONGEST = 100


@dataclass(frozen=True, kw_only=True)
class SelfBleuSettings(Settings):
    """The settings of a call, as the help explains them."""

    max_order: int = setting(4, count(high=_LONGEST))
    aggregate: str = setting("set", choice("set", "corpus", "sentence"), merges_batches=lambda value: value != "corpus")
    smoothing: str | None = setting(None, choice(*SMOOTHINGS))
    tokenizer: str | Callable[[str], Any] = setting("whitespace")
    set_size: int | None = setting(None, count())
    singletons: str = setting("error", choice("error", "skip"), merges_parts=never)
    vocabulary_size: int | None = setting(None, count(2))
    repetition: bool = setting(False, flag, merges_parts=never)
    homogenization: bool = setting(False, flag, merges_parts=never)
    rarefy: int | None = setting(None, subset_size(least=2), merges_parts=never, of_mean=True)
    confidence: float | None = setting(None, confidence_level, of_mean=True)
    confidence_by: Any = setting(None, given=SET, needs="confidence")
    details: bool = setting(False, flag, finer=True)

    def check(self) -> None:
        """Raise an error for settings that do not go together."""
        if self.rarefy is not None and self.aggregate == "corpus":
            raise ValueError(
                "rarefy has no effect with aggregate='corpus', which pools all sets: leave one of them out."
            )

        if self.rarefy is not None and self.vocabulary_size is not None:
            raise ValueError(
                "vocabulary_size cannot be combined with rarefy: each adjusts Distinct for the amount of text. Leave "
                "one of them out."
            )

    @property
    def smoothed_by(self) -> str:
        """The smoothing of BLEU, by default that of the aggregate."""
        return self.smoothing or ("method1" if self.aggregate == "sentence" else "nlg-eval")
