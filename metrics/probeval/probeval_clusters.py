"""Clusters of answers from their embeddings."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from .core import TIE

LINKAGES = ("average", "complete", "single", "weighted", "ward", "centroid", "median")
# Under parity, distances between all answers, repeated ones included, take 8 n(n - 1) / 2 bytes.
_MOST_REPEATED = 20_000
_DIGITS = 6  # of a distance, as TIE


def cut_tree(distances: np.ndarray, method: str, cut: float) -> np.ndarray:
    """Cluster by scipy's linkage of the condensed distances of n points, cut at a distance: numbers from 0, (n,).

    Distances are rounded, so that equal ones stay equal however they were summed up.
    """
    if not len(distances):
        return np.zeros(1, dtype=np.int64)
    tree = linkage(np.round(distances, _DIGITS), method)
    return fcluster(tree, cut + TIE, criterion="distance") - 1


def hac(embeddings: np.ndarray, method: str, distance: float, times: np.ndarray | None = None) -> np.ndarray:
    """Cluster agglomeratively: cut scipy's linkage of Euclidean distances, by one of LINKAGES, at `distance`.

    Maps unit rows (n, d) to cluster numbers from 0, (n,). `times`, (n,), says how often each row is repeated in the
    linkage, once if None; raises a ValueError for more than 20,000 rows with their repetitions.
    """
    counts = np.ones(len(embeddings), dtype=np.int64) if times is None else times.astype(np.int64)
    total = int(counts.sum())
    if times is not None and total > _MOST_REPEATED:
        raise ValueError(f"parity with clustering='hac' takes at most {_MOST_REPEATED:,} answers. Got {total:,}.")
    # Equal rows have one label: the label of the last of them.
    return cut_tree(pdist(np.repeat(embeddings, counts, axis=0)), method, distance)[np.cumsum(counts) - 1]
