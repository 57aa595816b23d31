"""The settings of vendi_embed."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .core import TEXT, SourceSettings, parse_choice, parse_flag, parse_number, setting


def _order(value: Any, name: str) -> float:
    return math.inf if value in ("inf", math.inf) else parse_number(value, name, 0)


def _orders(value: Any, name: str) -> float | list[float]:
    """Read one order of the Rényi entropy or a list of them: numbers in [0, inf], or "inf"."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return _order(value, name)
    if not value:
        raise ValueError(f"{name} is an empty list: it must hold at least one order.")
    return [_order(order, f"{name}[{i}]") for i, order in enumerate(value)]


@dataclass(frozen=True, kw_only=True)
class VendiSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    q: Any = setting(1.0, _orders)
    kernel: str = setting("embedding", parse_choice, choices=("embedding", "ngram"))
    weights: Any = setting(None, given=TEXT, numbers=(0, 1))
    pairs: bool = setting(False, parse_flag)

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined."""
        self.pass_one("embeddings", "similarity", "kernel")
        self.pass_one("pairs", "weights")

    @property
    def pooled_by(self) -> str | None:
        """The setting whose result is pooled over all sets."""
        return "pairs" if self.pairs else None

    @property
    def orders(self) -> list[float]:
        """The orders of the score, the main one first."""
        return self.q if self.has_orders else [self.q]

    @property
    def has_orders(self) -> bool:
        """Whether the orders are a list."""
        return isinstance(self.q, list)
