"""Distances to the nearest neighbour, and details."""

from typing import Any, NamedTuple

import numpy as np

from .chamfer_diversity_settings import ChamferSettings
from .core import (
    LIMITS,
    TextSets,
    batches_by_size,
    embed_sets,
    find_similarities,
    first_minimum,
    lists_by_set,
    matrix_device,
    mean_pairwise_distances,
    nearest_neighbours,
    rows_of,
)


class Distances(NamedTuple):
    """Distances within the k sets that have a score, of r texts in all.

    nearest : ndarray of shape (r,), the distance of each text to its nearest neighbour, in [0, 2]
    neighbours : ndarray of shape (r,), the index of that neighbour within the set
    pairwise : ndarray of shape (k,), the mean over all pairs of a set, in [0, 2]
    """

    nearest: np.ndarray
    neighbours: np.ndarray
    pairwise: np.ndarray


def measure(sets: TextSets, scored: np.ndarray, settings: ChamferSettings) -> tuple[Distances, dict[str, str]]:
    """Measure the distances within the scored sets; returns the entries of a signature, too."""
    sizes = sets.sizes[scored]
    if settings.similarity is not None:
        matrices, signed, _ = find_similarities(sets, settings)
        return _of_matrices([matrices[i] for i in np.flatnonzero(scored)], sizes), signed
    device = matrix_device(settings.device)
    vectors, signed, _ = embed_sets(sets, settings)
    if not scored.all():
        vectors = vectors[np.repeat(scored, sets.sizes)]
    nearest, neighbours = nearest_neighbours(vectors, sizes, device=device)
    return Distances(nearest, neighbours, mean_pairwise_distances(vectors, sizes, device=device)), signed


def _of_matrices(squares: list[np.ndarray], sizes: np.ndarray) -> Distances:
    """Read the distances from similarities, a matrix of shape (k, k) for each set."""
    nearest, neighbours = np.empty(sizes.sum()), np.empty(sizes.sum(), dtype=np.int64)
    pairwise = np.empty(len(sizes))
    for members, rows in batches_by_size(sizes, LIMITS.block_rows):
        distances = np.clip(1.0 - np.stack([squares[i] for i in members]), 0.0, 2.0)
        size = rows.shape[1]
        pairwise[members] = distances.sum(axis=(1, 2)) / (size * (size - 1))
        distances[:, np.arange(size), np.arange(size)] = np.inf
        nearest[rows], neighbours[rows] = distances.min(axis=2), first_minimum(distances)
    return Distances(nearest, neighbours, pairwise)


def describe_sets(distances: Distances, scored: np.ndarray, sizes: np.ndarray) -> list[dict[str, Any] | None]:
    """List for each set what `details` shows; None for a set without a score."""
    columns = {
        "mean_pairwise_distance": distances.pairwise.tolist(),
        "distances": lists_by_set(distances.nearest, sizes[scored]),
        "neighbours": lists_by_set(distances.neighbours, sizes[scored]),
    }
    return rows_of(columns, scored)
