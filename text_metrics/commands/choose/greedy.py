"""A diverse subset of good texts, chosen greedily."""

import math
from typing import Any

import numpy as np

from text_metrics.metrics._core.core_inputs import batches_by_size
from text_metrics.metrics._core.core_numbers import TIE, first_maximum, unit_vectors

# Rows held in float64 at a time, of groups of equal size.
_BLOCK_ROWS = 8192
# Of a larger group, the texts that are looked at together.
_LAZY_ROWS = 512


def subset_score(similarities: np.ndarray, quality: np.ndarray) -> float:
    """Score a subset of k texts: mean quality times the Vendi score of order 2.

    Parameters
    ----------
    similarities : ndarray of shape (k, k), cosines
    quality : ndarray of shape (k,), in [0, 1]

    Returns
    -------
    float, in [0, k]; higher is better
    """
    return float(quality.mean() * len(quality) ** 2 / np.square(similarities).sum())


def choose(
    embeddings: np.ndarray,
    quality: np.ndarray,
    sizes: np.ndarray,
    keep: np.ndarray,
    ranks: np.ndarray,
    min_distance: float = 0.0,
) -> list[np.ndarray]:
    """Choose texts of each group, one after the other, each time the one that adds most to `subset_score`.

    Order 2 needs no eigenvalues: its gain follows from the sums of squared cosines with what is chosen already. Scores
    that differ by less than the tolerance of `first_maximum` are equal.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, group after group
    quality : ndarray of shape (n,), in [0, 1]
    sizes : ndarray of shape (m,), the number of texts of each group
    keep : ndarray of shape (m,), how many to choose of each, in [0, size]
    ranks : ndarray of shape (n,), of the texts by content: of two that add as much, the first is chosen
    min_distance : the least cosine distance of two chosen texts, in [0, 2]; fewer are chosen where no other text is
        eligible

    Returns
    -------
    list of m ndarrays: the places of the chosen texts in their group, in the order of choice
    """
    chosen: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(sizes)
    for wanted in np.unique(keep[keep > 0]).tolist():
        groups = np.flatnonzero(keep == wanted)
        starts = (np.cumsum(sizes) - sizes)[groups]
        for members, local in batches_by_size(sizes[groups], _BLOCK_ROWS):
            rows = local - local[:, :1] + starts[members, None]
            order = np.argsort(ranks[rows], axis=1, kind="stable")
            rows = np.take_along_axis(rows, order, axis=1)
            vectors, largest = unit_vectors(embeddings[rows]), 1 - min_distance + TIE
            if len(members) == 1 and len(local[0]) > _LAZY_ROWS:
                picked = [_choose_lazily(vectors[0], quality[rows[0]], wanted, largest)]
            else:
                picked = _choose_batch(vectors, quality[rows], wanted, largest)
            for member, of_group, places in zip(groups[members].tolist(), order, picked, strict=True):
                chosen[member] = of_group[places]
    return chosen


def _choose_batch(vectors: np.ndarray, quality: np.ndarray, wanted: int, largest: float) -> list[np.ndarray]:
    """Choose among unit vectors (b, n, d) of quality (b, n), with cosines up to `largest`: b arrays of places."""
    b, n = quality.shape
    groups = np.arange(b)
    crossed = np.zeros((b, n))
    squares, total = np.zeros((b, 1)), np.zeros((b, 1))
    free = np.ones((b, n), dtype=bool)
    picked = np.empty((b, wanted), dtype=np.int64)
    counts = np.zeros(b, dtype=np.int64)
    for step in range(wanted):
        scores = np.where(free, (total + quality) * (step + 1) / (squares + 2 * crossed + 1), -math.inf)
        counts += free.any(axis=1)
        best = first_maximum(scores, axis=1)
        picked[:, step] = best
        cosines = (vectors @ vectors[groups, best][:, :, None])[:, :, 0]
        free &= cosines <= largest
        free[groups, best] = False
        squares += 2 * crossed[groups, best][:, None] + 1
        total += quality[groups, best][:, None]
        crossed += np.square(cosines)
    return [places[:count] for places, count in zip(picked, counts.tolist(), strict=True)]


def _choose_lazily(vectors: np.ndarray, quality: np.ndarray, wanted: int, largest: float) -> np.ndarray:
    """Choose as `_choose_batch` does, in one large group, whose sums of squared cosines are computed where they matter.

    Sums only grow, so that a score from an earlier sum is an upper bound. The texts of the highest scores are followed
    until the bound of another one is as high; then all bounds that are high enough are replaced by scores.
    """
    n, d = vectors.shape
    crossed, free = np.zeros(n), np.ones(n, dtype=bool)
    # The number of chosen texts that the sum of each text is over.
    n_summed = np.zeros(n, dtype=np.int64)
    chosen, picked = np.empty((wanted, d)), np.empty(wanted, dtype=np.int64)
    squares = total = 0.0

    def bounds_of(rows: Any, quality: np.ndarray, crossed: np.ndarray) -> np.ndarray:
        return np.where(free[rows], (total + quality) * (step + 1) / (squares + 2 * crossed + 1), -math.inf)

    step = 0
    while step < wanted:
        bounds = bounds_of(slice(None), quality, crossed)
        if bounds.max() == -math.inf:
            return picked[:step]
        highest = np.partition(bounds, -_LAZY_ROWS)[-_LAZY_ROWS]
        is_high = free & (bounds >= min(highest, bounds.max() - TIE))
        is_stale = n_summed < step
        if (is_high & is_stale).any():
            # Many at a time, because most of those that come next are stale, too.
            n_updated = min(n, 8 * _LAZY_ROWS)
            is_high |= free & (bounds >= np.partition(bounds, -n_updated)[-n_updated])
        stale = np.flatnonzero(is_high & is_stale)
        for first in np.unique(n_summed[stale]).tolist():
            some = stale[n_summed[stale] == first]
            cosines = vectors[some] @ chosen[first:step].T
            crossed[some] += np.square(cosines).sum(axis=1)
            free[some] &= (cosines <= largest).all(axis=1)
        n_summed[stale] = step
        if len(stale):
            continue
        rows, rest = np.flatnonzero(is_high), np.flatnonzero(free & ~is_high)
        followed, q_rest, norms_rest = vectors[rows], quality[rest], 2 * crossed[rest] + 1
        while step < wanted:
            scores = bounds_of(rows, quality[rows], crossed[rows])
            limit = (scores.max() - TIE) / (step + 1)
            if ((total + q_rest) / (squares + norms_rest)).max(initial=-math.inf) >= limit:
                break
            place = rows[first_maximum(scores)]
            picked[step], chosen[step] = place, vectors[place]
            squares += 2 * crossed[place] + 1
            total += quality[place]
            cosines = followed @ vectors[place]
            crossed[rows] += np.square(cosines)
            free[rows] &= cosines <= largest
            free[place] = False
            step += 1
            n_summed[rows] = step
            if len(rows) > 2 * _LAZY_ROWS:
                break
    return picked
