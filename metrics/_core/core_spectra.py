"""Vendi scores of sets, from the eigenvalues of the similarities of their texts.

Sets of equal size make one batch of small matrices. A large set of embeddings is summed up in blocks of rows, so that
memory does not grow with the square of a set.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from .core_encoder import unit_rows
from .core_inputs import LIMITS, batches_by_size, starts_of
from .core_numbers import ROW_ERRORS

if TYPE_CHECKING:
    import torch

# Strips in which the lower half of a Gram matrix is computed.
_GRAM_STRIPS = 8
# Closer than this to q = 1, the general formula divides two small numbers.
_NEAR_ONE = 0.01
# Of b sets of equal size: their indices (b,), and the eigenvalues (b, r) of their probability-weighted kernels,
# ascending and scaled to sum to 1; noise is 0.
Spectra = tuple[np.ndarray, "torch.Tensor"]


def embedding_spectra(
    embeddings: np.ndarray,
    sizes: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
    error: float = ROW_ERRORS["float32"],
) -> Iterator[Spectra]:
    """Find the eigenvalues of the cosine kernel of each set.

    The kernel of n texts and the d by d matrix of their weighted second moments have the same non-zero eigenvalues, so
    the smaller of the two is computed.

    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), the number of rows of each set
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None
    error : the error of the unit rows, of ROW_ERRORS
    """
    import torch

    n, d = embeddings.shape
    buffer = torch.empty((min(n, max(LIMITS.block_rows, d)), d), dtype=torch.float64, device=device)
    for members, rows in batches_by_size(sizes, LIMITS.block_rows):
        if rows.shape[1] > d:
            matrices = second_moments(embeddings, rows, weights, device, buffer)
        else:
            vectors = unit_rows(embeddings, rows, device, buffer)
            roots = _root_weights(weights, rows, device)
            matrices = vectors @ vectors.mT * roots * roots.mT
        yield members, eigenvalue_shares(matrices, error)


def kernel_spectra(
    batches: Iterable[tuple[np.ndarray, np.ndarray]],
    sizes: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
) -> Iterator[Spectra]:
    """Find the eigenvalues of sets from their kernels.

    Batches are the indices (b,) of sets of equal size k with their kernels (b, k, k); sizes and weights are as for
    `embedding_spectra`.
    """
    import torch

    starts = starts_of(sizes)
    for members, kernels in batches:
        size = kernels.shape[-1]
        roots = _root_weights(weights, starts[members, None] + np.arange(size), device)
        yield members, eigenvalue_shares(torch.as_tensor(kernels, device=device) * roots * roots.mT)


def vendi_scores(spectra: Iterable[Spectra], n_sets: int, orders: list[float]) -> np.ndarray:
    """Vendi score of each set (Friedman & Dieng 2023; of any order q: Pasarkar & Dieng 2024).

    Returns an ndarray of shape (n_sets, len(orders)), each in [1, size of the set]; higher is more diverse.
    """
    import torch

    scores = np.empty((n_sets, len(orders)))
    for members, shares in spectra:
        by_order = torch.stack([vendi_score(shares, q) for q in orders], dim=-1)
        scores[members] = by_order.clamp(1.0, shares.shape[-1]).cpu().numpy()
    return scores


def _root_weights(weights: np.ndarray | None, rows: np.ndarray, device: str) -> "torch.Tensor":
    """Square roots of the probabilities of the texts: (b, k, 1), or (1, 1, 1) if uniform."""
    import torch

    if weights is None:
        return torch.full((1, 1, 1), rows.shape[1] ** -0.5, dtype=torch.float64, device=device)
    return torch.as_tensor(weights[rows], device=device).sqrt().unsqueeze(-1)


def second_moments(
    embeddings: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray | None,
    device: str,
    buffer: "torch.Tensor | None" = None,
) -> "torch.Tensor":
    """Sum over texts of probability times the outer product of the unit vector with itself: (b, d, d), lower half."""
    import torch

    d = embeddings.shape[1]
    moments = torch.zeros((len(rows), d, d), dtype=torch.float64, device=device)
    edges = np.linspace(0, d, min(_GRAM_STRIPS, d) + 1).astype(int).tolist()
    for part in np.split(rows, range(LIMITS.block_rows, rows.shape[1], LIMITS.block_rows), axis=1):
        vectors = unit_rows(embeddings, part, device, buffer)
        if weights is not None:
            vectors *= _root_weights(weights, part, device)
        for low, high in itertools.pairwise(edges):
            moments[:, low:high, :high] += vectors[:, :, low:high].mT @ vectors[:, :, :high]
    return moments if weights is not None else moments / rows.shape[1]


def gram_sums(embeddings: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Sum over texts of the outer product of the unit vector with itself.

    The sums of the parts of a set add up: so a set that does not fit into memory is scored by `spectra_from_sums`. Maps
    embeddings, ndarray of shape (n, d), rows non-zero, to (d, d), float64; only the lower half is valid.
    """
    moments = second_moments(embeddings, np.arange(len(embeddings))[None], None, device)
    return moments[0].cpu().numpy() * len(embeddings)


def spectra_from_sums(sums: np.ndarray, n: int) -> list[Spectra]:
    """Find the eigenvalues of a set of n texts from its `gram_sums`: the spectra of one set."""
    import torch

    rank = min(n, len(sums))
    shares = eigenvalue_shares(torch.from_numpy(sums[None] / n), rank=rank)
    return [(np.arange(1), shares[:, len(sums) - rank :])]


def vendi_score(shares: "torch.Tensor", q: float) -> "torch.Tensor":
    """Exponential of the Rényi entropy of order q in [0, inf]; 1 is the Shannon limit.

    Maps shares, (..., r), that sum to 1 to (...), which never rises with q.
    """
    import torch

    if q == 0:
        return (shares > 0).sum(-1).to(shares.dtype)
    if q == math.inf:
        return 1 / shares.amax(-1)
    if q == 1:
        return torch.exp(-torch.xlogy(shares, shares).sum(-1))
    logs = torch.log(shares)
    if abs(q - 1) < _NEAR_ONE:
        # sum(p^q) = 1 + sum(p * (p^(q-1) - 1)), without cancellation.
        excess = torch.where(shares > 0, shares * torch.expm1((q - 1) * logs), 0.0).sum(-1)
        return torch.exp(torch.log1p(excess) / (1 - q))
    # Without the largest factored out, q * logs overflows at a huge q.
    top = logs.amax(-1, keepdim=True)
    return torch.exp(q / (1 - q) * top.squeeze(-1) + torch.logsumexp(q * (logs - top), dim=-1) / (1 - q))


def eigenvalue_shares(
    matrices: "torch.Tensor", error: float = ROW_ERRORS["float32"], rank: int | None = None
) -> "torch.Tensor":
    """Return the eigenvalues of (..., r, r), ascending and scaled to sum to 1; only the lower half is read.

    Those that rounding can cause, and negative ones, are 0. Independent errors of the rows spread their squares over
    all r eigenvalues: those up to error² / r are noise, and each would add 1 at q = 0. `error` leaves room for
    errors that are all in one direction, and for the rounding of the eigenvalues in float64. `rank`, the smaller of the
    numbers of rows and of dimensions, replaces r where the matrix is the larger one of the two.
    """
    import torch

    eigenvalues = torch.linalg.eigvalsh(matrices)
    signal = torch.where(eigenvalues > error**2 / (rank or eigenvalues.shape[-1]), eigenvalues, 0.0)
    return signal / signal.sum(-1, keepdim=True)
