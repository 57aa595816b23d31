"""Clusters of answers from their embeddings."""

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist
from scipy.special import log_ndtr

from .core import ROUNDING, ROW_ERRORS, TIE, first_maximum

LINKAGES = ("average", "complete", "single", "weighted", "ward", "centroid", "median")
# Under parity, distances between all answers, repeated ones included, take 8 n(n - 1) / 2 bytes.
_MOST_REPEATED = 20_000
_MAX_CLUSTERS = 20  # as in the original
_DIGITS = 6  # of a distance, as TIE
# Anderson-Darling's statistic at significance 0.0001, the level of the paper of G-means.
_GMEANS_CRITICAL = 1.8692


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


def xmeans(embeddings: np.ndarray, times: np.ndarray, seed: int) -> np.ndarray:
    """Cluster rows (n, d) by X-means: split a cluster in two if that raises the Bayesian information criterion.

    `times`, of shape (n,), says how often each row is repeated. Returns cluster numbers from 0: (n,). Pelleg and Moore,
    X-means, ICML 2000.
    """
    return _split(embeddings, times, seed, _raises_bic)


def gmeans(embeddings: np.ndarray, times: np.ndarray, seed: int) -> np.ndarray:
    """Cluster as `xmeans`, by G-means: split a cluster in two unless its rows look normal along the axis of the split.

    Hamerly and Elkan, Learning the k in k-means, NIPS 2003.
    """
    return _split(embeddings, times, seed, _is_not_normal)


def _split(embeddings: np.ndarray, times: np.ndarray, seed: int, is_better: Callable[..., bool]) -> np.ndarray:
    """Split clusters while a criterion improves; after each round, points move to the nearest center."""
    labels = np.zeros(len(embeddings), dtype=np.int64)
    centers = np.average(embeddings, axis=0, weights=times)[None]
    while True:
        next_centers: list[np.ndarray] = []
        for k in range(len(centers)):
            is_member = labels == k
            halves = centers[k : k + 1]
            points = embeddings[is_member]
            weights = times[is_member]
            # Each split adds one to the clusters so far and to those still to be tested.
            has_room = len(next_centers) + len(centers) - k < _MAX_CLUSTERS
            if has_room and cdist(points, points[:1]).max() > ROW_ERRORS["float32"]:
                pair = _k_means(points, weights, 2, seed)
                if len(pair[1]) == 2 and is_better(points, weights, *pair):
                    halves = pair[1]
            next_centers += [*halves]
        if len(next_centers) == len(centers):
            return labels
        labels, centers = _k_means(embeddings, times, np.array(next_centers))


def _k_means(
    points: np.ndarray, weights: np.ndarray, start: int | np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster by k-means from given centers, or the best of four times from k drawn ones: labels, and centers (k, d).

    A point that is as near to several centers belongs to the first; clusters without a point are dropped.
    """
    from sklearn.cluster import KMeans

    if isinstance(start, int):
        seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=4).tolist()
        runs = [KMeans(start, n_init=1, random_state=s).fit(points, sample_weight=weights) for s in seeds]
        best = runs[int(first_maximum([-run.inertia_ / weights.sum() for run in runs]))]
    else:
        best = KMeans(len(start), init=start, n_init=1).fit(points, sample_weight=weights)
    used, labels = np.unique(first_maximum(-cdist(points, best.cluster_centers_)), return_inverse=True)
    return labels, best.cluster_centers_[used]


def _raises_bic(points: np.ndarray, weights: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> bool:
    whole = np.zeros_like(labels), np.average(points, axis=0, weights=weights)[None]
    gain = _bic(points, weights, labels, centers) - _bic(points, weights, *whole)
    return bool(gain > ROUNDING * weights.sum())


def _bic(points: np.ndarray, weights: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> float:
    """Bayesian information criterion of spherical Gaussians with one variance, by Pelleg and Moore."""
    n = float(weights.sum())
    d = points.shape[1]
    k = len(centers)
    if n <= k:
        return -np.inf
    sizes = np.bincount(labels, weights=weights, minlength=k)
    variance = (weights @ (points - centers[labels]) ** 2).sum() / (d * (n - k))
    if variance <= ROUNDING:
        return np.inf
    log_likelihood = (sizes * np.log(sizes / n)).sum()
    log_likelihood -= n * d / 2 * np.log(2 * np.pi * variance) + d * (n - k) / 2
    return float(log_likelihood - (k - 1 + k * d + 1) / 2 * np.log(n))


def _is_not_normal(points: np.ndarray, weights: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> bool:
    """Anderson and Darling's test between two centers, corrected for an estimated mean and variance."""
    n = float(weights.sum())
    values = points @ (centers[0] - centers[1])
    mean = np.average(values, weights=weights)
    deviation = np.sqrt(weights @ (values - mean) ** 2 / max(n - 1, 1))
    order = np.argsort(values)
    scaled = (values[order] - mean) / deviation
    # A row that is repeated has the sum of the factors 2 i - 1 of its ranks i, from below and from above.
    high = np.cumsum(weights[order])
    low = high - weights[order]
    terms = (high**2 - low**2) * log_ndtr(scaled) + ((n - low) ** 2 - (n - high) ** 2) * log_ndtr(-scaled)
    square = -n - terms.sum() / n
    return bool(square * (1 + 4 / n - 25 / n**2) > _GMEANS_CRITICAL + TIE)
