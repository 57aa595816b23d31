"""Leave-one-out Vendi scores: the score of a set without each of its texts, for all texts at once."""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from .core_distances import BLOCK_ROWS, to_tensor, unit_rows
from .core_inputs import batches_by_size
from .core_secular import eigenvalues_without
from .core_spectra import (
    ROW_ERROR,
    embedding_matrices,
    second_moments,
    vendi_from_eigenvalues,
    vendi_from_matrices,
    vendi_scores,
)

# Without a text of more than this share, the spectrum of the rest loses digits, so the rest is scored by itself.
_MOST = 0.5
# From this size on, the spectrum of a set without a text is found from that of the whole set.
_LARGE = 64
# Entries of the matrices held at a time.
_ENTRIES = 2**22


def embedding_without(
    embeddings: np.ndarray,
    sizes: np.ndarray,
    order: float,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
    error: float = ROW_ERROR,
) -> np.ndarray:
    """Vendi score of each set without each of its texts, with the cosine kernel.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), the number of rows of each set
    order : q, the order of the Rényi entropy
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None
    error : the error of the unit rows, as by `row_error`

    Returns
    -------
    ndarray of shape (n,), each in [1, size of the set - 1]: the score without text i, its probability shared out among
        the others in proportion; NaN where nothing is left
    """
    scores = np.full(len(embeddings), np.nan)
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        size = rows.shape[1]
        if size == 1:
            continue
        if size < _LARGE:
            vectors = unit_rows(embeddings, rows, device)
            scores[rows] = _without_in_kernels(vectors @ vectors.mT, text_shares(weights, rows), order, error)
            continue
        for row in rows:
            set_embeddings, shares = embeddings[row[0] : row[-1] + 1], text_shares(weights, row)
            scores[row] = _without_in_embeddings(set_embeddings, shares, order, device, error)
            for i in np.flatnonzero(shares > _MOST).tolist():
                (rest,), (total,) = renormalized(np.delete(shares, i)[None])
                matrices = embedding_matrices(
                    np.delete(set_embeddings, i, axis=0),
                    np.array([size - 1]),
                    rest,
                    device=device,
                    error=error,
                )
                scores[row[i]] = vendi_scores(matrices, 1, [order])[0, 0] if total > 0 else np.nan
    return scores


def text_shares(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Return the probabilities of texts within their sets, uniform by default."""
    return np.full(rows.shape, 1 / rows.shape[-1]) if weights is None else weights[rows]


def _without_in_kernels(
    kernels: torch.Tensor, shares: np.ndarray, order: float, error: float = ROW_ERROR
) -> np.ndarray:
    """Score the kernels (b, k, k) of sets of at least two texts without each text: (b, k)."""
    size = kernels.shape[-1]
    scores = np.empty(shares.shape)
    if size >= _LARGE:
        for set_scores, kernel, row in zip(scores, kernels, shares, strict=True):
            set_scores[:] = _without_in_kernel(kernel, row, order, error)
    for i in range(size) if size < _LARGE else np.flatnonzero((shares > _MOST).any(axis=0)).tolist():
        remaining = np.delete(np.arange(size), i)
        sets = np.arange(len(shares)) if size < _LARGE else np.flatnonzero(shares[:, i] > _MOST)
        rest = shares[sets][:, remaining]
        scores[sets, i] = _score_kernels(kernels[sets][:, remaining][:, :, remaining], rest, order, error)
    return scores


def _score_kernels(kernels: torch.Tensor, shares: np.ndarray, order: float, error: float = ROW_ERROR) -> np.ndarray:
    """Score kernels (b, k, k) of texts whose shares (b, k) need not sum to 1: (b,); NaN if all are 0."""
    rest, total = renormalized(shares)
    roots = to_tensor(rest, str(kernels.device)).sqrt().unsqueeze(-1)
    scores = vendi_from_matrices(kernels * roots * roots.mT, shares.shape[1], [order], error)[:, 0]
    return np.where(total > 0, scores, np.nan)


def renormalized(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale shares (b, k) to sum to 1, uniform if all are 0; returns their sums (b,), too."""
    total = shares.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total[:, None] > 0, shares / total[:, None], 1 / shares.shape[1]), total


def _without_in_kernel(kernel: torch.Tensor, shares: np.ndarray, order: float, error: float) -> np.ndarray:
    """Score one kernel (k, k) of texts with shares (k,) without each text, from its eigenvalues and eigenvectors."""
    roots = to_tensor(shares, str(kernel.device)).sqrt()
    eigenvalues, vectors = torch.linalg.eigh(kernel * roots[:, None] * roots)
    return _score_without(eigenvalues, lambda part: vectors[part].square(), shares, order, error, len(shares) - 1)


def _without_in_embeddings(
    embeddings: np.ndarray, shares: np.ndarray, order: float, device: str, error: float
) -> np.ndarray:
    """Score one large set with the cosine kernel without each text: embeddings (k, d) and shares (k,) to (k,)."""
    size = len(embeddings)
    rows = np.arange(size)[None]
    if size <= embeddings.shape[1]:
        vectors = unit_rows(embeddings, rows, device)[0]
        return _without_in_kernel(vectors @ vectors.mT, shares, order, error)
    moments = second_moments(embeddings, rows, shares, device)[0]
    eigenvalues, axes = torch.linalg.eigh(moments)
    # Of the kernel, these are the eigenvalues that are not 0; a text's entries in its eigenvectors follow from them.
    is_positive = eigenvalues > size * torch.finfo(eigenvalues.dtype).eps * eigenvalues[-1]
    eigenvalues, axes = eigenvalues[is_positive], axes[:, is_positive]

    def squares(part: slice) -> torch.Tensor:
        along = (unit_rows(embeddings, rows[:, part], device)[0] @ axes).square()
        entries = to_tensor(shares[part], device)[:, None] * along / eigenvalues
        return torch.cat([(1 - entries.sum(1, keepdim=True)).clamp(min=0), entries], dim=1)

    return _score_without(
        torch.cat([eigenvalues.new_zeros(1), eigenvalues]), squares, shares, order, error, len(moments)
    )


def _score_without(
    eigenvalues: torch.Tensor,
    squares: Callable[[slice], torch.Tensor],
    shares: np.ndarray,
    order: float,
    error: float,
    rank: int,
) -> np.ndarray:
    """Score a kernel weighted by shares (k,) without each text: (k,); not for a text of more than `_MOST` probability.

    Parameters
    ----------
    eigenvalues : tensor of shape (m,), ascending
    squares : function from some texts to the squares of their entries in the eigenvectors, as for `eigenvalues_without`
    """
    scores = np.empty(len(shares))
    step = max(1, _ENTRIES // len(eigenvalues))
    for start in range(0, len(shares), step):
        part = slice(start, start + step)
        rest = to_tensor(1 - np.minimum(shares[part], _MOST), str(eigenvalues.device))
        spectra = eigenvalues_without(eigenvalues, squares(part)) / rest[:, None]
        part_scores = vendi_from_eigenvalues(spectra, len(shares) - 1, order, error, rank)
        scores[part] = part_scores.clamp(1.0, len(shares) - 1).cpu().numpy()
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
            scores[rows] = _without_in_kernels(to_tensor(kernels, device), text_shares(weights, rows), order)
    return scores
