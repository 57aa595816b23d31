"""A diverse subset of good texts, chosen greedily."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from text_metrics.core_api import LIMITS, TIE, batches_by_size, first_maximum, unit_vectors

# Texts of a group that are looked at together.
_LAZY_ROWS = 512
# From groups of at most this many texts, texts are chosen for all groups at once, by all cosines of a group.
_SMALL = 64


def subset_score(vectors: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """Score subsets of k texts: mean quality times the Vendi score of order 2.

    The score needs the sum of the squared cosines, which is the sum of the squares of XXᵀ, or of XᵀX: memory grows
    with the smaller of k and d.

    Parameters
    ----------
    vectors : ndarray of shape (..., k, d), rows of length 1
    quality : ndarray of shape (..., k), in [0, 1]

    Returns
    -------
    ndarray of shape (...,), in [0, k]; higher is better
    """
    n, d = vectors.shape[-2:]
    transposed = np.swapaxes(vectors, -2, -1)
    products = vectors @ transposed if n <= d else transposed @ vectors
    return quality.mean(axis=-1) * n**2 / np.square(products).sum(axis=(-2, -1))


def score_subsets(embeddings: np.ndarray, quality: np.ndarray, subsets: Sequence[np.ndarray]) -> np.ndarray:
    """Score subsets of texts, given by their rows, as `subset_score` does: (m,); an empty subset scores 0.

    embeddings : as for `choose_greedily`
    """
    scores = np.zeros(len(subsets))
    sizes = np.array([len(rows) for rows in subsets])
    filled = np.flatnonzero(sizes)
    if not len(filled):
        return scores
    rows_of_subsets = np.concatenate(subsets)
    for members, places in batches_by_size(sizes[filled], LIMITS.block_rows):
        rows = rows_of_subsets[places]
        if embeddings.ndim == 1:
            # Of texts of one class, each of the pairs has a cosine of 1.
            squares = np.array([np.square(np.bincount(classes)).sum() for classes in embeddings[rows]])
            scores[filled[members]] = quality[rows].mean(axis=1) * rows.shape[1] ** 2 / squares
        else:
            scores[filled[members]] = subset_score(unit_vectors(embeddings[rows]), quality[rows])
    return scores


def choose_greedily(
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
    embeddings : ndarray of shape (n, d), rows non-zero, group after group; or of shape (n,), the class of each text as
        an integer of at least 0: cosines are 1 within a class, and 0 otherwise
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
    chosen = [np.empty(0, dtype=np.int64)] * len(sizes)
    largest = 1 - min_distance + TIE
    filled = np.flatnonzero(sizes)
    for members, rows in batches_by_size(sizes[filled], LIMITS.block_rows):
        groups = filled[members]
        order = np.argsort(ranks[rows], axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        if embeddings.ndim == 1:
            picked = _choose_together(_of_classes(embeddings[rows]), quality[rows], keep[groups], largest)
        elif rows.shape[1] <= _SMALL:
            vectors = unit_vectors(embeddings[rows])
            picked = _choose_together(_of_vectors(vectors), quality[rows], keep[groups], largest)
        else:
            arguments = zip(unit_vectors(embeddings[rows]), quality[rows], keep[groups].tolist(), strict=True)
            picked = [_choose(*each, largest) for each in arguments]
        for group, group_order, places in zip(groups.tolist(), order, picked, strict=True):
            chosen[group] = group_order[places]
    return chosen


# Maps the place of a text in each of b groups, (b,), to its cosines with all k texts of its group, (b, k).
_Cosines = Callable[[np.ndarray], np.ndarray]


def _of_vectors(vectors: np.ndarray) -> _Cosines:
    cosines = vectors @ np.swapaxes(vectors, 1, 2)
    groups = np.arange(len(vectors))
    return lambda places: cosines[groups, places]


def _of_classes(classes: np.ndarray) -> _Cosines:
    return lambda places: (classes == np.take_along_axis(classes, places[:, None], axis=1)).astype(float)


def _choose_together(cosines_of: _Cosines, quality: np.ndarray, wanted: np.ndarray, largest: float) -> list[np.ndarray]:
    """Choose in b groups of k texts, as `_choose` does: of quality (b, k) and wanted (b,)."""
    n_groups, n_texts = quality.shape
    groups = np.arange(n_groups)
    crossed = np.zeros((n_groups, n_texts))
    free = np.ones((n_groups, n_texts), dtype=bool)
    squares = np.zeros(n_groups)
    total = np.zeros(n_groups)
    n_steps = int(wanted.max())
    picked = np.empty((n_groups, n_steps), dtype=np.int64)
    n_chosen = np.zeros(n_groups, dtype=np.int64)
    for step in range(n_steps):
        # A group that is complete is followed further, but none of its choices counts.
        is_open = (step < wanted) & free.any(axis=1)
        if not is_open.any():
            break
        n_chosen += is_open
        scores = (total[:, None] + quality) * (step + 1) / (squares[:, None] + 2 * crossed + 1)
        places = first_maximum(np.where(free, scores, -math.inf))
        picked[:, step] = places
        squares += 2 * crossed[groups, places] + 1
        total += quality[groups, places]
        near = cosines_of(places)
        crossed += np.square(near)
        free &= near <= largest
        free[groups, places] = False
    return [places[:n] for places, n in zip(picked, n_chosen.tolist(), strict=True)]


def _choose(vectors: np.ndarray, quality: np.ndarray, wanted: int, largest: float) -> np.ndarray:
    """Choose among unit vectors (n, d) of quality (n,), with cosines up to `largest`: places, in the order of choice.

    In a large group, the sums of squared cosines are computed where they matter. They only grow, so that a score from
    an earlier sum is an upper bound. The texts of the highest scores are followed until the bound of another one is as
    high; then all bounds that are high enough are replaced by scores.
    """
    n, d = vectors.shape
    crossed = np.zeros(n)
    free = np.ones(n, dtype=bool)
    # The number of chosen texts that the sum of each text is over.
    n_summed = np.zeros(n, dtype=np.int64)
    chosen = np.empty((wanted, d))
    picked = np.empty(wanted, dtype=np.int64)
    squares = total = 0.0

    def bounds_of(rows: Any, quality: np.ndarray, crossed: np.ndarray) -> np.ndarray:
        return np.where(free[rows], (total + quality) * (step + 1) / (squares + 2 * crossed + 1), -math.inf)

    step = 0
    while step < wanted:
        bounds = bounds_of(slice(None), quality, crossed)
        if bounds.max() == -math.inf:
            return picked[:step]
        highest = np.partition(bounds, -min(n, _LAZY_ROWS))[-min(n, _LAZY_ROWS)]
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
        rows = np.flatnonzero(is_high)
        rest = np.flatnonzero(free & ~is_high)
        followed = vectors[rows]
        rest_quality = quality[rest]
        # The increase of `squares` if the text is chosen.
        rest_squares = 2 * crossed[rest] + 1
        while step < wanted:
            scores = bounds_of(rows, quality[rows], crossed[rows])
            limit = (scores.max() - TIE) / (step + 1)
            rest_bounds = (total + rest_quality) / (squares + rest_squares)
            if rest_bounds.max(initial=-math.inf) >= limit:
                break
            place = rows[first_maximum(scores)]
            picked[step] = place
            chosen[step] = vectors[place]
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
