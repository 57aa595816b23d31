"""Leave-one-out Vendi scores: the score of a set without each of its texts, for all texts at once."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .core_distances import BLOCK_ROWS, to_tensor, unit_rows
from .core_inputs import batches_by_size
from .core_spectra import kernels_from_function, second_moments, vendi_from_matrices

# Entries of the matrices held at a time.
_ENTRIES = 2**22


def embedding_without(
    embeddings: np.ndarray,
    sizes: np.ndarray,
    order: float,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
    block_rows: int = BLOCK_ROWS,
) -> np.ndarray:
    """Vendi score of each set without each of its texts, with the cosine kernel.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), the number of rows of each set
    order : q, the order of the Rényi entropy
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None

    Returns
    -------
    ndarray of shape (n,), each in [1, size of the set - 1]: the score without text i, its probability shared out among
        the others in proportion; NaN where nothing is left
    """
    scores = np.full(len(embeddings), np.nan)
    for _, rows in batches_by_size(sizes, block_rows):
        size = rows.shape[1]
        if size == 1:
            continue
        if size <= embeddings.shape[1]:
            vectors = unit_rows(embeddings, rows, device)
            scores[rows] = _without_in_kernels(vectors @ vectors.mT, _shares(weights, rows), order)
            continue
        for row in rows:
            scores[row] = _without_in_moments(embeddings, row, order, weights, device, block_rows)
    return scores


def _shares(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    return np.full(rows.shape, 1 / rows.shape[1]) if weights is None else weights[rows]


def _without_in_kernels(kernels: torch.Tensor, shares: np.ndarray, order: float) -> np.ndarray:
    """Score the kernels (b, k, k) of sets of at least two texts without each text: (b, k)."""
    size = kernels.shape[-1]
    scores = np.empty(shares.shape)
    for i in range(size):
        kept = np.delete(np.arange(size), i)
        scores[:, i] = _score_kernels(kernels[:, kept][:, :, kept], shares[:, kept], order)
    return scores


def _score_kernels(kernels: torch.Tensor, shares: np.ndarray, order: float) -> np.ndarray:
    """Score kernels (b, k, k) of texts whose shares (b, k) need not sum to 1: (b,); NaN if all are 0."""
    rest, total = _renormalized(shares)
    roots = to_tensor(rest, str(kernels.device)).sqrt().unsqueeze(-1)
    found = vendi_from_matrices(kernels * roots * roots.mT, shares.shape[1], [order])[:, 0]
    return np.where(total > 0, found, np.nan)


def _renormalized(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale shares (b, k) to sum to 1, uniform if all are 0; returns their sums (b,), too."""
    total = shares.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total[:, None] > 0, shares / total[:, None], 1 / shares.shape[1]), total


def _without_in_moments(
    embeddings: np.ndarray, row: np.ndarray, order: float, weights: np.ndarray | None, device: str, block_rows: int
) -> np.ndarray:
    """Score one large set (k,) without each text, by subtracting each from the second moments of all."""
    size, d = len(row), embeddings.shape[1]
    shares = _shares(weights, row[None])[0]
    moments = second_moments(embeddings, row[None], weights, device, block_rows)
    scores = np.empty(size)
    step = max(1, _ENTRIES // d**2)
    for start in range(0, size, step):
        part = slice(start, start + step)
        vectors = unit_rows(embeddings, row[None, part], device)[0]
        own = to_tensor(np.minimum(shares[part], 0.5), device)[:, None, None]
        matrices = (moments - own * vectors.unsqueeze(2) * vectors.unsqueeze(1)) / (1 - own)
        scores[part] = vendi_from_matrices(matrices, size - 1, [order])[:, 0]
    # If one text has most of the probability, the difference loses digits.
    for i in np.flatnonzero(shares > 0.5).tolist():
        kept = np.delete(row, i)
        rest, total = _renormalized(shares[None, np.arange(size) != i])
        renewed = np.zeros(len(embeddings))
        renewed[kept] = rest[0]
        matrices = second_moments(embeddings, kept[None], renewed, device, block_rows)
        scores[i] = vendi_from_matrices(matrices, size - 1, [order])[0, 0] if total[0] > 0 else np.nan
    return scores


def kernel_without(
    batches: Iterable[tuple[np.ndarray, np.ndarray]],
    sizes: np.ndarray,
    order: float,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
) -> np.ndarray:
    """Vendi score of each set without each of its texts, from known kernels: as `embedding_without`.

    Parameters
    ----------
    batches : pairs of the indices (b,) of sets of equal size k, and their kernels (b, k, k)
    """
    starts = np.cumsum(sizes) - sizes
    scores = np.full(int(sizes.sum()), np.nan)
    for members, kernels in batches:
        rows = starts[members, None] + np.arange(kernels.shape[-1])
        if rows.shape[1] > 1:
            scores[rows] = _without_in_kernels(to_tensor(kernels, device), _shares(weights, rows), order)
    return scores


def function_without(
    function: Any,
    embeddings: np.ndarray,
    sizes: np.ndarray,
    order: float,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
    block_rows: int = BLOCK_ROWS,
) -> np.ndarray:
    """Vendi score of each set without each of its texts, with a caller's kernel: as `embedding_without`.

    The function is called again on each set without a text, since its similarities may depend on the whole set.
    """
    scores = np.full(len(embeddings), np.nan)
    for _, rows in batches_by_size(sizes, block_rows):
        size = rows.shape[1]
        for i in range(size if size > 1 else 0):
            kept = np.delete(rows, i, axis=1)
            own_sizes = np.full(len(rows), size - 1)
            parts = kernels_from_function(function, embeddings[kept.ravel()], own_sizes, block_rows)
            kernels = to_tensor(np.concatenate([kernel for _, kernel in parts]), device)
            shares = np.delete(_shares(weights, rows), i, axis=1)
            scores[rows[:, i]] = _score_kernels(kernels, shares, order)
    return scores
