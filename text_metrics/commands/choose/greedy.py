"""A diverse subset of good texts, chosen greedily."""

import math

import numpy as np

from text_metrics.metrics._core.core_inputs import batches_by_size

# Rows held in float64 at a time, of groups of equal size.
_BLOCK_ROWS = 8192


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
    embeddings: np.ndarray, quality: np.ndarray, sizes: np.ndarray, keep: np.ndarray, ranks: np.ndarray
) -> list[np.ndarray]:
    """Choose texts of each group, one after the other, each time the one that adds most to `subset_score`.

    Order 2 needs no eigenvalues: its gain follows from the sums of squared cosines with what is chosen already.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, group after group
    quality : ndarray of shape (n,), in [0, 1]
    sizes : ndarray of shape (m,), the number of texts of each group
    keep : ndarray of shape (m,), how many to choose of each, in [0, size]
    ranks : ndarray of shape (n,), of the texts by content: of two that add as much, the first is chosen

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
            picked = _choose_batch(unit_vectors(embeddings[rows]), quality[rows], wanted)
            for member, places in zip(groups[members].tolist(), np.take_along_axis(order, picked, axis=1), strict=True):
                chosen[member] = places
    return chosen


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Divide vectors by their lengths, in float64."""
    vectors = vectors.astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _choose_batch(vectors: np.ndarray, quality: np.ndarray, wanted: int) -> np.ndarray:
    """Choose among unit vectors (b, n, d) of quality (b, n): places (b, wanted), in the order of choice."""
    b, n = quality.shape
    groups = np.arange(b)
    crossed = np.zeros((b, n))
    squares, total = np.zeros((b, 1)), np.zeros((b, 1))
    free = np.ones((b, n), dtype=bool)
    picked = np.empty((b, wanted), dtype=np.int64)
    for step in range(wanted):
        scores = (total + quality) * (step + 1) / (squares + 2 * crossed + 1)
        best = np.where(free, scores, -math.inf).argmax(axis=1)
        picked[:, step] = best
        free[groups, best] = False
        squares += 2 * crossed[groups, best][:, None] + 1
        total += quality[groups, best][:, None]
        crossed += np.square((vectors @ vectors[groups, best][:, :, None])[:, :, 0])
    return picked
