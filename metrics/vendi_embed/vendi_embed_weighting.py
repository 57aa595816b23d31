"""Weights and quality of the texts of vendi_embed."""

from typing import NamedTuple

import numpy as np

from .core_inputs import TextSets, parse_probabilities, parse_values, sum_by_set
from .vendi_embed_settings import VendiSettings


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


def read_weighting(sets: TextSets, settings: VendiSettings) -> Weighting:
    """Read weights, quality and min_quality.

    A text of probability 0 adds an eigenvalue of 0: the score is that of the set without it.
    """
    given = None if settings.weights is None else parse_probabilities(settings.weights, sets, "weights")
    qualities = None if settings.quality is None else parse_values(settings.quality, sets, "quality")
    counted = None if qualities is None or settings.min_quality is None else qualities >= settings.min_quality
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
