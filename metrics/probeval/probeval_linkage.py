"""Linkage of rows that stand for several equal ones, without repeating them."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

# Equal rows are merged first, at a distance of 0. In the other methods of scipy their number changes nothing after.
WEIGHTED = ("average", "centroid", "ward")


def weighted_linkage(embeddings: np.ndarray, times: np.ndarray, method: str) -> np.ndarray:
    """Link as `scipy.cluster.hierarchy.linkage` links rows that are repeated, after it has merged equal ones.

    By the formula of Lance and Williams (1967), in O(n^2) memory and O(n^3) vectorized time.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), n > 1
    times : ndarray of shape (n,), how often each row counts
    method : one of WEIGHTED

    Returns
    -------
    ndarray of shape (n - 1, 4), as scipy's
    """
    n = len(embeddings)
    sizes = times.astype(np.float64)
    names, rows = np.arange(n), np.ones(n)
    apart = squareform(pdist(embeddings))
    if method != "average":
        apart **= 2
    if method == "ward":
        # The distance of two clusters of equal rows, as Ward defines it.
        apart *= 2 * np.outer(sizes, sizes) / np.add.outer(sizes, sizes)
    np.fill_diagonal(apart, np.inf)
    tree = np.empty((n - 1, 4))
    for step in range(n - 1):
        i, j = divmod(int(apart.argmin()), n)
        i, j = min(i, j), max(i, j)
        height, a, b = apart[i, j], sizes[i], sizes[j]
        rows[i] += rows[j]
        tree[step] = *sorted((names[i], names[j])), height if method == "average" else np.sqrt(height), rows[i]
        left, right = apart[i], apart[j]
        if method == "average":
            merged = (a * left + b * right) / (a + b)
        elif method == "centroid":
            merged = (a * left + b * right) / (a + b) - a * b * height / (a + b) ** 2
        else:
            merged = ((a + sizes) * left + (b + sizes) * right - sizes * height) / (a + b + sizes)
        apart[i] = apart[:, i] = np.maximum(merged, 0.0)
        # A row that is merged into another one is infinitely far from all.
        apart[j] = apart[:, j] = np.inf
        apart[i, i] = np.inf
        sizes[i], names[i] = a + b, n + step
    return tree
