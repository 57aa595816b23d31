"""The settings of vendi_embed."""

import math
from dataclasses import dataclass
from typing import Any

from .core import TEXT, SourceSettings, format_order, parse_choice, parse_flag, parse_number, setting


def _order(value: Any, name: str) -> float:
    return math.inf if value in ("inf", math.inf) else parse_number(value, name, 0)


def _orders(value: Any, name: str) -> float | list[float]:
    """Read one order of the Rényi entropy or a list of them: numbers in [0, inf], or "inf"."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return _order(value, name)
    if not value:
        raise ValueError(f"{name} is an empty list: it must hold at least one order.")
    return [_order(order, f"{name}[{i}]") for i, order in enumerate(value)]


@dataclass(frozen=True, kw_only=True)
class VendiSettings(SourceSettings):
    """The settings of a call, as the help explains them."""

    q: Any = setting(
        1.0,
        _orders,
        help='`float`, `"inf"` or a list of them: order of the Rényi entropy, from 0 to infinity. 1 is Shannon '
        "entropy. Lower orders give more weight to rare texts: order 0 is the rank of the similarity matrix. "
        "Higher orders give more weight to common texts: order infinity depends on the largest eigenvalue "
        "only. Eigenvalues that rounding can cause count as 0 at every order. The first order of a list is "
        "the main one.",
    )
    kernel: str = setting(
        "embedding",
        parse_choice,
        choices=("embedding", "ngram"),
        help='`"embedding"` or `"ngram"`: similarity of two texts. `"embedding"` is the cosine of their '
        'embeddings. `"ngram"` is the mean of the cosines of their 1- to 4-gram counts: it compares form only '
        "and loads no model.",
    )
    weights: Any = setting(
        None,
        given=TEXT,
        numbers=(0, 1),
        are_shares=True,
        help="flat, or nested like `predictions`: probability of each text within its set. Each set sums to 1. "
        "Default: uniform.",
    )
    pairs: bool = setting(
        False,
        parse_flag,
        help="`bool`: also return the diversity of pairs, which does not depend on the number of texts.",
    )

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined."""
        super().check()
        for source in ("embeddings", "similarity", "contexts"):
            self.check_exclusive(source, "kernel")
        self.check_exclusive("pairs", "weights")

    @property
    def pooled_by(self) -> str | None:
        """The setting whose result is pooled over all sets."""
        return "pairs" if self.pairs else None

    @property
    def undivided_by(self) -> str | None:
        """Name of the setting under which entropies of groups of a set do not add up to its own; None without one."""
        if self.has_orders or self.q != 1:
            return "q"
        return None if self.quality is None else "quality"

    @property
    def orders(self) -> list[float]:
        """The orders of the score, the main one first."""
        return self.q if self.has_orders else [self.q]

    def signed_score(self, source: dict[str, Any]) -> dict[str, Any]:
        """Return the entries of a signature; those of the source of similarities, such as the encoder, are given."""
        kernel = {} if self.similarity is not None else {"kernel": self.kernel}
        weights = "uniform" if self.weights is None else "given"
        return {"q": ",".join(map(format_order, self.orders)), **kernel, **source, "weights": weights}

    @property
    def has_orders(self) -> bool:
        """True if the orders are a list."""
        return isinstance(self.q, list)
