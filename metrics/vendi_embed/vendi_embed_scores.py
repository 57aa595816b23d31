"""Weights, quality and contributions in the scores of vendi_embed."""

from typing import Any, NamedTuple

import numpy as np

from .core_inputs import TextSets, lists_by_set, parse_min_quality, parse_probabilities, parse_values, sum_by_set
from .vendi_embed_kernels import Kernel


class Weighting(NamedTuple):
    """Weights and quality of n texts.

    given : ndarray of shape (n,), the probabilities that the caller gave; None for uniform ones
    shares : ndarray of shape (n,), probabilities shared out among the texts that count
    qualities : ndarray of shape (n,), in [0, 1], or None
    counted : ndarray of shape (n,), bool, the texts of at least `min_quality`; None where all count
    empty : ndarray of shape (m,), bool: sets of which no text counts; their shares are as they were
    """

    given: np.ndarray | None
    shares: np.ndarray
    qualities: np.ndarray | None
    counted: np.ndarray | None
    empty: np.ndarray

    @property
    def probabilities(self) -> np.ndarray | None:
        """None where all texts of a set are alike."""
        return None if self.given is None and self.counted is None else self.shares

    def sizes(self, sizes: np.ndarray) -> np.ndarray:
        """Return the number of texts of each set that count: (m,)."""
        return sizes if self.counted is None else sum_by_set(self.counted.astype(np.int64), sizes)

    def present(self, sizes: np.ndarray) -> np.ndarray:
        """Find the texts that have some probability: ndarray of indices."""
        return np.flatnonzero((self.shares > 0) & ~np.repeat(self.empty, sizes))


def parse_weighting(sets: TextSets, weights: Any, quality: Any, min_quality: Any) -> Weighting:
    """Read weights, quality and min_quality.

    A text of probability 0 adds an eigenvalue of 0: the score is that of the set without it.
    """
    given = None if weights is None else parse_probabilities(weights, sets, "weights")
    qualities = None if quality is None else parse_values(quality, sets, "quality")
    counted = parse_min_quality(min_quality, qualities)
    shares = 1 / np.repeat(sets.sizes, sets.sizes) if given is None else given
    empty = np.zeros(len(sets.sizes), dtype=bool)
    if counted is not None:
        left = sum_by_set(shares * counted, sets.sizes)
        empty = left == 0
        scale = np.repeat(np.where(empty, 1.0, left), sets.sizes)
        shares = np.where(np.repeat(empty, sets.sizes), shares, shares * counted / scale)
    return Weighting(given, shares, qualities, counted, empty)


def mean_quality(weighting: Weighting, sizes: np.ndarray) -> np.ndarray:
    """Average the quality of the texts that count: (m,)."""
    assert weighting.qualities is not None
    return sum_by_set(weighting.qualities * weighting.shares, sizes)


def text_contributions(
    kernel: Kernel, order: float, scores: np.ndarray, weighting: Weighting
) -> tuple[np.ndarray, np.ndarray | None]:
    """Find what each text adds: the score of its set less that of the set without it.

    Parameters
    ----------
    scores : ndarray of shape (m,), at this order

    Returns
    -------
    ndarray of shape (n,), to the Vendi score; NaN for a text alone, or with all the weight of its set
    ndarray of shape (n,), to quality times Vendi score; None without quality
    """
    sizes, shares = kernel.sizes, weighting.shares
    whole = np.repeat(scores, sizes)
    without = kernel.score_without(order, weighting.probabilities)
    if weighting.counted is not None:
        # Without a text that counts, the score of a set is 0.
        without = np.where(np.isnan(without) | np.repeat(weighting.empty, sizes), 0.0, without)
    only = np.repeat(sizes == 1, sizes)
    undefined = only if weighting.given is None else only | (weighting.given == 1)
    added = np.where(undefined, np.nan, whole - without)
    if weighting.qualities is None:
        return added, None
    products = weighting.qualities * shares
    rest = _sums_of_others(products, sizes) / _positive(_sums_of_others(shares, sizes))
    before = np.repeat(mean_quality(weighting, sizes) * scores, sizes)
    return added, np.where(undefined, np.nan, before - rest * without)


def _sums_of_others(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sum the values (n,) of the other texts of the set of each text: (n,)."""
    totals = np.repeat(sum_by_set(values, sizes), sizes)
    # If one value is most of the sum, the difference loses digits.
    largest = values > totals / 2
    small = np.repeat(sum_by_set(np.where(largest, 0.0, values), sizes), sizes)
    return np.where(largest, small, totals - values)


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, 1.0)


def by_set(values: np.ndarray, sizes: np.ndarray) -> list[list[float | None]]:
    """List the values of the texts of each set, with None for NaN."""
    is_number = ~np.isnan(values)
    return lists_by_set(values[is_number], sizes, is_number)
