"""The settings of vendi_embed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .core_classes import GROUPINGS
from .core_numbers import describe, parse_number, show
from .core_rarefaction import subset_size, whole_sets_only
from .core_results import confidence_level
from .core_settings import SET, TEXT, choice, count, flag, never, number, setting
from .core_similarity import SourceSettings
from .core_spectra import parse_orders
from .vendi_embed_pairs import PAIR_RULES, PairRule

KERNELS = ("embedding", "ngram", "classes")
# Of `same`; chosen by scripts/training/calibrate_classes.py for the default model.
DEFAULT_SAME = 0.83
NLI, PAIRS = "nli:", "pairs:"
# The settings of kernel="classes".
_OF_CLASSES = (
    "log_probs",
    "classes",
    "same",
    "same_threshold",
    "same_rule",
    "grouping",
    "contexts",
    "patience",
    "semantic_entropy",
)


def _orders(value: Any, name: str) -> Any:
    parse_orders(value)
    return value


def _kernel(value: Any, name: str) -> Any:
    if callable(value) or (isinstance(value, str) and value in KERNELS):
        return value
    raise ValueError(f"{name} must be 'embedding', 'ngram', 'classes' or a callable. Got {describe(value)}.")


def _same(value: Any, name: str) -> Any:
    if callable(value) or (isinstance(value, str) and value.startswith((NLI, PAIRS)) and value not in (NLI, PAIRS)):
        return value
    if isinstance(value, str):
        raise ValueError(
            f"{name} must be a number, a callable, 'nli:<model>' or 'pairs:<model>'. Got {describe(value)}."
        )
    return parse_number(value, name, -1, 1)


def _at_order_one(settings: Any) -> None:
    if settings.orders != [1.0]:
        raise ValueError(
            "q must be 1 with groups: only at order 1 does the score of a set follow from those within and between its "
            f"groups. Got {show(settings.q)}."
        )
    if settings.quality is not None:
        raise ValueError(
            "quality cannot be combined with groups, which compare what the texts say: leave one out, or pass the "
            "texts of sufficient quality only."
        )


@dataclass(frozen=True, kw_only=True)
class VendiSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    q: Any = setting(1.0, _orders)
    kernel: str | Callable[[np.ndarray], Any] = setting("embedding", _kernel, merges_parts=never)
    set_size: int | None = setting(None, count())
    weights: Any = setting(None, given=TEXT, numbers=(0, 1))
    log_probs: Any = setting(None, given=TEXT, numbers=(-math.inf, 0))
    quality: Any = setting(None, given=TEXT, numbers=(0, 1))
    min_quality: float | None = setting(None, number(0, 1), needs="quality")
    classes: Any = setting(None, given=TEXT)
    same: Any = setting(None, _same)
    same_threshold: float | None = setting(None, number(0, 1))
    same_rule: str | None = setting(None, choice(*PAIR_RULES))
    grouping: str | None = setting(None, choice(*GROUPINGS))
    contexts: Any = setting(None, given=SET)
    patience: float | None = setting(None, number(0, 1), needs="quality")
    semantic_entropy: bool = setting(False, flag)
    groups: Any = setting(None, given=TEXT, conflicts=_at_order_one, merges_batches=never)
    permutations: int = setting(200, count(), needs="groups")
    contributions: bool = setting(False, flag, finer=True)
    rarefy: int | None = setting(
        None,
        subset_size(),
        conflicts=whole_sets_only("weights", "log_probs", "contributions", "patience", "semantic_entropy", "groups"),
        merges_parts=never,
        of_mean=True,
    )
    confidence: float | None = setting(None, confidence_level, of_mean=True)
    confidence_by: Any = setting(None, given=SET, needs="confidence")
    details: bool = setting(False, flag, finer=True)

    def check(self) -> None:
        """Raise an error for settings that do not go together."""
        super().check()
        if self.kernel == "classes":
            self._check_classes()
            return
        for name in _OF_CLASSES:
            if name in self.passed():
                raise ValueError(f"{name} has no effect without kernel='classes'. Got kernel={describe(self.kernel)}.")
        if self.kernel == "embedding":
            return
        if self.similarity is not None:
            raise ValueError(
                f"similarity is given, but kernel={describe(self.kernel)} makes similarities of its own: pass one or "
                "the other."
            )
        if self.kernel == "ngram":
            self.check_unused("kernel='ngram' compares words")
            if self.embeddings is not None:
                raise ValueError("embeddings are given, but kernel='ngram' compares words: pass one or the other.")

    def _check_classes(self) -> None:
        if self.log_probs is not None and self.weights is not None:
            raise ValueError("log_probs cannot be combined with weights: they are the weights of the texts.")
        for name in ("same", "grouping"):
            if self.classes is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} has no effect where classes are given: leave one of them out.")
        if self.contexts is not None and not self.by_model:
            raise ValueError(
                "contexts has no effect without same='nli:<model>' or 'pairs:<model>': add one, or leave contexts out."
            )
        self._check_pairs()
        given = {"embeddings": self.embeddings, "similarity": self.similarity}
        if not self.by_cosine:
            reason = "classes are given" if self.classes is not None else "same says which texts are the same"
            self.check_unused(reason, but=("precision",) if self.by_model else ())
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"{name} has no effect where {reason}: leave one of the two out.")
        elif self.same is None:
            other = [name for name, value in given.items() if value is not None]
            if other or not self.is_default:
                raise ValueError(
                    f"{(other or ['model'])[0]} with kernel='classes' needs same: its default, {DEFAULT_SAME}, is for "
                    "cosines of the default model."
                )

    def _check_pairs(self) -> None:
        for name in ("same_threshold", "same_rule"):
            if getattr(self, name) is not None and not (self.by_model and self.same.startswith(PAIRS)):
                raise ValueError(f"{name} has no effect without same='pairs:<model>'. Got same={describe(self.same)}.")
        for name in ("same_threshold", "contexts"):
            if self.same_rule is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} cannot be combined with same_rule, which says what the model compares.")

    @property
    def orders(self) -> list[float]:
        """The orders of the score, the main one first."""
        return parse_orders(self.q)

    @property
    def has_orders(self) -> bool:
        """Whether the orders are a list."""
        return isinstance(self.q, (list, tuple, np.ndarray))

    @property
    def by_model(self) -> bool:
        """Whether a classifier of pairs compares the texts."""
        return isinstance(self.same, str)

    @property
    def pair_rule(self) -> PairRule:
        """When a classifier of two classes makes two texts the same."""
        if self.same_rule is not None:
            return PAIR_RULES[self.same_rule]
        return PairRule() if self.same_threshold is None else PairRule(self.same_threshold)

    @property
    def by_cosine(self) -> bool:
        """Whether similarities decide which texts are the same."""
        return self.classes is None and not self.by_model and not callable(self.same)
