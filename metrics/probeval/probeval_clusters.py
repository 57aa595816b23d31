"""Clusters of answers from their embeddings."""

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import log_ndtr

LINKAGES = ("average", "complete", "single", "weighted", "ward", "centroid", "median")
# Under parity, distances between all answers, repeated ones included, take 8 n(n - 1) / 2 bytes.
_MOST_REPEATED = 20_000
_MAX_CLUSTERS = 20  # as in the original
# Anderson-Darling's statistic at significance 0.0001, the level of the paper of G-means.
_GMEANS_CRITICAL = 1.8692


def hac(embeddings: np.ndarray, method: str, distance: float, times: np.ndarray | None = None) -> np.ndarray:
    """Cluster agglomeratively: cut scipy's linkage of Euclidean distances at `distance`.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), unit rows
    method : one of LINKAGES
    distance : two unit vectors are at most 2 apart
    times : ndarray of shape (n,), how often each row is repeated in the linkage; once if None

    Returns
    -------
    ndarray of shape (n,), cluster numbers from 0

    Raises
    ------
    ValueError
        If there are more than 20,000 rows with their repetitions.
    """
    counts = np.ones(len(embeddings), dtype=np.int64) if times is None else times.astype(np.int64)
    total = int(counts.sum())
    if times is not None and total > _MOST_REPEATED:
        raise ValueError(f"parity with clustering='hac' takes at most {_MOST_REPEATED:,} answers. Got {total:,}.")
    if total == 1:
        return np.zeros(1, dtype=np.int64)
    tree = linkage(np.repeat(embeddings, counts, axis=0), method)
    # Rows that are equal have one label: that of the last of them.
    return fcluster(tree, distance, criterion="distance")[np.cumsum(counts) - 1] - 1


def xmeans(embeddings: np.ndarray, seed: int) -> np.ndarray:
    """Cluster by X-means: split a cluster in two if that raises the Bayesian information criterion.

    Returns cluster numbers from 0: (n,). Pelleg and Moore, X-means, ICML 2000.
    """
    return _split(embeddings, seed, _raises_bic)


def gmeans(embeddings: np.ndarray, seed: int) -> np.ndarray:
    """Cluster by G-means: split a cluster in two unless its points look normal along the axis of the split.

    Returns cluster numbers from 0: (n,). Hamerly and Elkan, Learning the k in k-means, NIPS 2003.
    """
    return _split(embeddings, seed, _is_not_normal)


def _split(
    embeddings: np.ndarray, seed: int, is_better: Callable[[np.ndarray, np.ndarray, np.ndarray], bool]
) -> np.ndarray:
    """Split clusters while it is better; after each round, all points move to the nearest center."""
    from sklearn.cluster import KMeans

    labels = np.zeros(len(embeddings), dtype=np.int64)
    centers = embeddings.mean(axis=0, keepdims=True)
    while True:
        next_centers: list[np.ndarray] = []
        for k in range(len(centers)):
            points, halves = embeddings[labels == k], centers[k : k + 1]
            # Each split adds one to the clusters so far and to those still to be tested.
            has_room = len(next_centers) + len(centers) - k < _MAX_CLUSTERS
            if has_room and not np.allclose(points, points[0]):
                pair = KMeans(2, n_init=4, random_state=seed).fit(points)
                if is_better(points, pair.labels_, pair.cluster_centers_):
                    halves = pair.cluster_centers_
            next_centers += [*halves]
        if len(next_centers) == len(centers):
            return labels
        means = KMeans(len(next_centers), init=np.array(next_centers), n_init=1).fit(embeddings)
        used = np.unique(means.labels_)
        labels, centers = np.searchsorted(used, means.labels_), means.cluster_centers_[used]


def _raises_bic(points: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> bool:
    whole = np.zeros_like(labels), points.mean(axis=0, keepdims=True)
    return _bic(points, labels, centers) > _bic(points, *whole)


def _bic(points: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> float:
    """Bayesian information criterion of spherical Gaussians with one variance, by Pelleg and Moore."""
    n, d, k = len(points), points.shape[1], len(centers)
    if n <= k:
        return -np.inf
    sizes = np.bincount(labels, minlength=k)
    variance = ((points - centers[labels]) ** 2).sum() / (d * (n - k))
    if variance <= 0:
        return np.inf
    log_likelihood = (sizes * np.log(sizes / n)).sum()
    log_likelihood -= n * d / 2 * np.log(2 * np.pi * variance) + d * (n - k) / 2
    return float(log_likelihood - (k - 1 + k * d + 1) / 2 * np.log(n))


def _is_not_normal(points: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> bool:
    """Anderson and Darling's test between two centers, corrected for an estimated mean and variance."""
    n, values = len(points), points @ (centers[0] - centers[1])
    scaled = np.sort((values - values.mean()) / values.std(ddof=1))
    ranks = 2 * np.arange(1, n + 1) - 1
    square = -n - (ranks * (log_ndtr(scaled) + log_ndtr(-scaled[::-1]))).sum() / n
    return not square * (1 + 4 / n - 25 / n**2) <= _GMEANS_CRITICAL
