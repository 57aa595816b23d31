"""The settings of semantic_entropy."""

import math
from dataclasses import dataclass
from typing import Any

from .core import ITEM, TEXT, UNBOUNDED, EncoderSettings, describe, parse_choice, parse_count, parse_number, setting

# Cosine from which on two texts say the same, calibrated for the default model on labelled pairs.
DEFAULT_SAME = 0.83
NLI, PAIRS = "nli:", "pairs:"


def _same(value: Any, name: str) -> Any:
    if callable(value) or (isinstance(value, str) and value.startswith((NLI, PAIRS)) and value not in (NLI, PAIRS)):
        return value
    if isinstance(value, str):
        forms = "a number, a callable, 'nli:<model>' or 'pairs:<model>'"
        raise ValueError(f"{name} must be {forms}. Got {describe(value)}.")
    return parse_number(value, name, -1, 1)


@dataclass(frozen=True, kw_only=True)
class SemanticEntropySettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    set_size: int | None = setting(None, parse_count)
    same: Any = setting(None, _same)
    classes: Any = setting(None, given=TEXT)
    grouping: str = setting("complete", parse_choice, choices=("complete", "greedy"))
    contexts: Any = setting(None, given=ITEM)
    weights: Any = setting(None, given=TEXT, numbers=(0, 1))
    log_probs: Any = setting(None, given=TEXT, numbers=(-math.inf, 0))
    estimator: str = setting("plugin", parse_choice, choices=("plugin", "chao_shen"))
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    patience: float = setting(0.8, parse_number, low=0, high=1)
    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined."""
        self.pass_one("weights", "log_probs", "estimator")
        self.pass_one("classes", "same")
        if self.contexts is not None and not self.by_model:
            raise ValueError("contexts needs same='nli:<model>' or 'pairs:<model>'.")
        if self.by_cosine and self.same is None and not (self.is_default and self.embeddings is None):
            other = "model" if self.embeddings is None else "embeddings"
            raise ValueError(f"{other} needs same: its default is for the default model.")

    @property
    def by_model(self) -> bool:
        """Whether a classifier of pairs compares the texts."""
        return isinstance(self.same, str)

    @property
    def by_cosine(self) -> bool:
        """Whether cosines of embeddings decide which texts say the same."""
        return self.classes is None and not self.by_model and not callable(self.same)
