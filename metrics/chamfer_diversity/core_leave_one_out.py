"""Nearest neighbours, and Chamfer diversity of a set without each of its texts and over its subsets."""

from collections.abc import Iterator

import numpy as np
import torch

from .core_distances import BLOCK_ROWS, nearest_in_large_set
from .core_inputs import batches_by_size
from .core_rarefaction import nearest_chances
from .core_similarity import Similarities, comparison

# Similarities held at a time, of one large set.
_ENTRIES = 2**22


def nearest_neighbours(
    compared: np.ndarray | Similarities, sizes: np.ndarray, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other text of the same set.

    Parameters
    ----------
    compared : ndarray of shape (n, d), embeddings, whose cosine is taken, rows non-zero, set after set; or similarities
    sizes : ndarray of shape (m,), all >= 2

    Returns
    -------
    distances : ndarray of shape (n,), 1 - similarity, in [0, 2]
    neighbours : ndarray of shape (n,), the neighbour's index within the set
    """
    distances = np.empty(len(compared))
    neighbours = np.empty(len(compared), dtype=np.int64)
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        if rows.size > BLOCK_ROWS and not isinstance(compared, Similarities):
            nearest, neighbours[rows[0]] = nearest_in_large_set(compared, rows[0], device)
            distances[rows[0]] = np.clip(1.0 - nearest, 0.0, 2.0)
            continue
        for part, block in _similarities(compared, rows, device):
            nearest, places = (values.cpu().numpy() for values in block.max(dim=-1))
            distances[part], neighbours[part] = np.clip(1.0 - nearest, 0.0, 2.0), places
    return distances, neighbours


def nearest_without(
    compared: np.ndarray | Similarities, sizes: np.ndarray, factors: np.ndarray | None = None, *, device: str = "cpu"
) -> np.ndarray:
    """Chamfer diversity of each set without each of its texts.

    Where the nearest neighbour of a text is taken out, its second nearest takes its place.

    Parameters
    ----------
    compared : ndarray of shape (n, d), embeddings, rows non-zero, set after set; or similarities
    sizes : ndarray of shape (m,)
    factors : ndarray of shape (n,), by which the distance of each text is multiplied, such as its quality; 1 if None

    Returns
    -------
    ndarray of shape (n,), in [0, 2]; NaN in a set of fewer than three texts
    """
    scores = np.full(len(compared), np.nan)
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        size = rows.shape[1]
        if size < 3:
            continue
        blocks = [block.topk(2) for _, block in _similarities(compared, rows, device)]
        distances = np.clip(1.0 - np.concatenate([nearest.cpu().numpy() for nearest, _ in blocks], axis=1), 0.0, 2.0)
        neighbours = np.concatenate([places[:, :, 0].cpu().numpy() for _, places in blocks], axis=1)
        row_factors = np.ones(rows.shape) if factors is None else factors[rows]
        first, second = row_factors * distances[:, :, 0], row_factors * distances[:, :, 1]
        slots = neighbours + np.arange(len(rows))[:, None] * size
        lost = np.bincount(slots.ravel(), weights=(second - first).ravel(), minlength=rows.size).reshape(rows.shape)
        scores[rows] = (first.sum(axis=1, keepdims=True) - first + lost) / (size - 1)
    return scores


def expected_nearest(
    compared: np.ndarray | Similarities, sizes: np.ndarray, k: int, *, device: str = "cpu"
) -> np.ndarray:
    """Find the expected distance of each text to its nearest neighbour, in the subsets of k texts that it is in.

    Its mean over the texts of a set is the expected Chamfer diversity of k texts drawn without replacement.

    Parameters
    ----------
    compared : ndarray of shape (n, d), embeddings, rows non-zero, set after set; or similarities
    sizes : ndarray of shape (m,), all >= k
    k : at least 2

    Returns
    -------
    ndarray of shape (n,), in [0, 2]
    """
    expected = np.empty(len(compared))
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        chances = torch.from_numpy(nearest_chances(rows.shape[1], k)).to(device)
        for part, similarities in _similarities(compared, rows, device):
            # A text comes last in its own row.
            nearest = similarities.sort(dim=-1, descending=True).values[..., :-1]
            expected[part] = ((1.0 - nearest).clamp(0.0, 2.0) @ chances).cpu().numpy()
    return expected


def _similarities(
    compared: np.ndarray | Similarities, rows: np.ndarray, device: str
) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    """Compare texts with all texts of their set, in blocks of rows of a large one.

    Yields
    ------
    part : ndarray of shape (b, p), some of `rows`
    similarities : tensor of shape (b, p, k); -inf for a text with itself
    """
    size = rows.shape[1]
    step = size if rows.size <= BLOCK_ROWS else max(1, _ENTRIES // size)
    compare = comparison(compared, rows, device)
    for start in range(0, size, step):
        similarities = compare(slice(start, start + step), slice(None))
        torch.diagonal(similarities, offset=start, dim1=-2, dim2=-1).fill_(-torch.inf)
        yield rows[:, start : start + step], similarities
