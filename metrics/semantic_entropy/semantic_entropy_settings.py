"""The settings of semantic_entropy."""

import math
from dataclasses import dataclass
from typing import Any

from .core_encoder import EncoderSettings
from .core_numbers import describe, parse_number
from .core_results import UNBOUNDED, confidence_level
from .core_settings import SET, TEXT, choice, count, flag, number, setting

GROUPINGS = ("complete", "greedy")
ESTIMATORS = ("plugin", "chao_shen")
# Cosine from which on two texts say the same, calibrated for the default model on pairs that were labelled without it.
DEFAULT_SAME = 0.83
NLI, PAIRS = "nli:", "pairs:"


def _same(value: Any, name: str) -> Any:
    if callable(value) or (isinstance(value, str) and value.startswith((NLI, PAIRS)) and value not in (NLI, PAIRS)):
        return value
    if isinstance(value, str):
        raise ValueError(
            f"{name} must be a number, a callable, 'nli:<model>' or 'pairs:<model>'. Got {describe(value)}."
        )
    return parse_number(value, name, -1, 1)


@dataclass(frozen=True, kw_only=True)
class SemanticEntropySettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    set_size: int | None = setting(None, count())
    same: Any = setting(None, _same)
    classes: Any = setting(None, given=TEXT)
    grouping: str = setting(GROUPINGS[0], choice(*GROUPINGS))
    contexts: Any = setting(None, given=SET)
    weights: Any = setting(None, given=TEXT, numbers=(0, 1))
    log_probs: Any = setting(None, given=TEXT, numbers=(-math.inf, 0))
    estimator: str = setting(ESTIMATORS[0], choice(*ESTIMATORS))
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    patience: float | None = setting(None, number(0, 1))
    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=SET)
    details: bool = setting(False, flag)

    def check(self) -> None:
        """Raise an error for settings that do not go together."""
        super().check()
        if self.log_probs is not None and self.weights is not None:
            raise ValueError("log_probs cannot be combined with weights: they are the weights of the texts.")
        if self.estimator != ESTIMATORS[0] and not (self.weights is None and self.log_probs is None):
            raise ValueError(
                f"estimator={self.estimator!r} counts texts: it cannot be combined with weights or log_probs."
            )
        if (self.quality is None) != (self.patience is None):
            missing = "patience" if self.patience is None else "quality"
            raise ValueError(f"quality and patience make the utility together: {missing} is missing.")
        if self.classes is not None and self.same is not None:
            raise ValueError(f"classes and same are both given: pass one of them. Got same={describe(self.same)}.")
        if self.contexts is not None and not self.by_model:
            raise ValueError("contexts needs same='nli:<model>' or 'pairs:<model>', whose model reads them.")
        if self.by_cosine and self.same is None and not (self.is_default and self.embeddings is None):
            other = "model" if self.embeddings is None else "embeddings"
            raise ValueError(f"{other} needs same: its default, {DEFAULT_SAME}, is for cosines of the default model.")

    @property
    def by_model(self) -> bool:
        """Whether a classifier of pairs compares the texts."""
        return isinstance(self.same, str)

    @property
    def by_cosine(self) -> bool:
        """Whether cosines of embeddings decide which texts say the same."""
        return self.classes is None and not self.by_model and not callable(self.same)
