"""Diversity from pairs of different texts, which does not grow with the number of texts."""

from typing import Any

import numpy as np

from .core import TIE, ratio_estimate


def pair_similarities(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Compute the mean squared similarity of two different texts of each set: (m,), in [0, 1]; NaN for one text.

    With k_ii = 1, the mean over all pairs is 1 / V, for the Vendi score V at order 2, and 1 / n of it is that of a text
    with itself. The mean over the others is unbiased at any number of texts: it is a U-statistic. `scores`, (m,), are
    Vendi scores at order 2 without weights.
    """
    n_rest = np.where(sizes > 1, sizes - 1, np.nan)
    similarities = np.clip((sizes / scores - 1) / n_rest, 0, 1)
    return np.where(similarities < TIE**2, 0, similarities)


def pooled_diversity(similarities: np.ndarray, units: np.ndarray, level: float | None) -> dict[str, Any]:
    """Return `pairs`, 1 over the mean over sets of the squared similarities, and `pairs_scores`, 1 over that of a set.

    Parameters
    ----------
    similarities : ndarray of shape (m,), of `pair_similarities`
    units : ndarray of shape (m,), equal for sets that are not independent
    level : of the interval; None for none
    """
    known = ~np.isnan(similarities)
    _, index = np.unique(units[known], return_inverse=True)
    sums, counts = np.bincount(index, similarities[known]), np.bincount(index)
    estimate = ratio_estimate(counts, sums) if sums.sum() > 0 else None
    result: dict[str, Any] = {
        "pairs": None if estimate is None else estimate.value,
        "pairs_scores": [1 / value if value > 0 else None for value in similarities.tolist()],
    }
    if level is not None:
        interval = None if estimate is None else estimate.interval(level, (1.0, np.inf))
        result["pairs_confidence_interval"] = interval
    return result
