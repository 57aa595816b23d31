"""The settings of self_bleu."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core import SMOOTHINGS, Settings, parse_choice, parse_count, parse_flag, setting

# Each order is a pass over all tokens, and three numbers of the result.
_LONGEST = 100


@dataclass(frozen=True, kw_only=True)
class SelfBleuSettings(Settings):
    """The settings of a call, as the help explains them."""

    max_order: int = setting(4, parse_count, high=_LONGEST)
    aggregate: str = setting("set", parse_choice, choices=("set", "corpus", "sentence"))
    smoothing: str | None = setting(None, parse_choice, choices=SMOOTHINGS)
    tokenizer: str | Callable[[str], Any] = setting("whitespace")
    set_size: int | None = setting(None, parse_count)
    singletons: str = setting("error", parse_choice, choices=("error", "skip"))
    vocabulary_size: int | None = setting(None, parse_count, low=2)
    repetition: bool = setting(False, parse_flag)
    homogenization: bool = setting(False, parse_flag)

    @property
    def pooled_by(self) -> str | None:
        """The setting that pools all sets."""
        return "aggregate" if self.aggregate == "corpus" else None

    @property
    def smoothed_by(self) -> str:
        """The smoothing of BLEU, by default that of the aggregate."""
        return self.smoothing or ("method1" if self.aggregate == "sentence" else "nlg-eval")
