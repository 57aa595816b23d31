"""Vendi scores of a set without each of its texts."""

import math
from typing import TYPE_CHECKING

import numpy as np

from .core import LIMITS, ROW_ERRORS, batches_by_size, eigenvalue_shares, second_moments, unit_rows, vendi_score

if TYPE_CHECKING:
    import torch

# Up to this number of texts, new eigenvalues without each text are faster than updates of the whole set's.
_FEW = 8
# The integral over resolvents has this many nodes, at equal steps of log t, from e^-37 to e^37.
_NODES, _LARGEST_LOG = 201, 37
# Eigenvalues up to this, for unit rows and over their number, are rounding in float64.
_ZERO = 1e-12
# Each halves the interval of an eigenvalue, which is at most 0.0025 times the number of texts.
_BISECTIONS = 45


def vendi_without_each(
    embeddings: np.ndarray, sizes: np.ndarray, q: float, *, device: str = "cpu", error: float = ROW_ERRORS["float32"]
) -> np.ndarray:
    """Compute the Vendi score, at order 1 or 2, of the set of each text without this text.

    Arguments are as for `embedding_spectra`, and weights uniform. Returns an ndarray of shape (n,), each in [1, size of
    the set - 1]; NaN for a text alone in its set.
    """
    scores = np.full(len(embeddings), np.nan)
    for _, rows in batches_by_size(sizes, LIMITS.block_rows):
        size = rows.shape[1]
        if size == 1:
            continue
        if size <= _FEW:
            rest_scores = _scores_of_few(embeddings, rows, q, device, error)
        else:
            rest_scores = _scores_of_many(embeddings, rows, q, device, error)
        scores[rows] = rest_scores.clamp(1.0, size - 1).cpu().numpy()
    return scores


def _scores_of_few(embeddings: np.ndarray, rows: np.ndarray, q: float, device: str, error: float) -> "torch.Tensor":
    """Find the eigenvalues without each text of sets with the rows (b, k): scores (b, k)."""
    size = rows.shape[1]
    vectors = unit_rows(embeddings, rows, device)
    kernels = vectors @ vectors.mT
    rests = np.array([np.delete(np.arange(size), i) for i in range(size)])
    rest_kernels = kernels[:, rests[:, :, None], rests[:, None]] / (size - 1)
    rank = min(size - 1, embeddings.shape[1])
    return vendi_score(eigenvalue_shares(rest_kernels, error, rank), q)


def _scores_of_many(embeddings: np.ndarray, rows: np.ndarray, q: float, device: str, error: float) -> "torch.Tensor":
    """Update the eigenvalues of sets with the rows (b, k) for the removal of each text: scores (b, k).

    A set of unit rows x has the matrix A, the sum of their outer products, whose eigenvalues equal those of the Gram
    matrix of the rows. Without a text, it is A - xxᵀ.
    """
    import torch

    size = rows.shape[1]
    d = embeddings.shape[1]
    has_gram = size <= d
    if has_gram:
        vectors = unit_rows(embeddings, rows, device)
        matrices = vectors @ vectors.mT
    else:
        matrices = second_moments(embeddings, rows, None, device) * size
    values, basis = torch.linalg.eigh(matrices)
    values = torch.where(values > _ZERO * size, values, 0.0)
    # As of the scores of the rests: see `eigenvalue_shares`.
    noise_level = (size - 1) * error**2 / min(size - 1, d)
    block_starts = [] if has_gram else range(LIMITS.block_rows, size, LIMITS.block_rows)
    scores = []
    for block in np.split(rows, block_starts, axis=1):
        if has_gram:
            leverages = basis.square()
        else:
            components = unit_rows(embeddings, block, device) @ basis
            leverages = components.square() / values.unsqueeze(-2)
        leverages = torch.where(values.unsqueeze(-2) > 0, leverages, 0.0)
        noise = _noise_without_each(values, leverages, noise_level)
        if q == 2:
            scores.append(_order_two_without_each(values, leverages, noise))
        else:
            scores.append(_order_one_without_each(values, leverages, noise))
    return torch.cat(scores, dim=1)


def _order_one_without_each(values: "torch.Tensor", leverages: "torch.Tensor", noise: "torch.Tensor") -> "torch.Tensor":
    """Compute scores of order 1 from the entropy of the eigenvalues of A - xxᵀ: (b, k).

    For f(m) = m log m - m, whose sum over eigenvalues gives the entropy, and h(t) = x·(A + t)⁻¹x, tr f(A) - tr f(A -
    xxᵀ) is the integral of x·x/(1 + t) + log(1 - h(t)) over t > 0: here by the trapezoid rule in log t, to about 1e-13.

    values : (b, r), eigenvalues of A; 0 where they are rounding
    leverages : (b, k, r), (x·v)² / λ for each text x and each eigenvalue λ with its eigenvector v; 0 where λ is 0
    noise : (b, k, m), the eigenvalues of A - xxᵀ that count as 0, and zeros
    """
    import torch

    t = torch.logspace(-_LARGEST_LOG, _LARGEST_LOG, _NODES, math.e, dtype=values.dtype, device=values.device)
    step = 2 * _LARGEST_LOG / (_NODES - 1)
    ratios = values.unsqueeze(-1) / (values.unsqueeze(-1) + t)
    h = leverages @ ratios
    rest = _outside(leverages) + leverages @ (t / (values.unsqueeze(-1) + t))
    squared_lengths = (leverages * values.unsqueeze(-2)).sum(-1)
    change = squared_lengths.unsqueeze(-1) / (1 + t) + torch.where(h < 0.5, torch.log1p(-h), rest.log())
    before = (torch.xlogy(values, values) - values).sum(-1, keepdim=True)
    after = before - (change * t).sum(-1) * step
    total = values.sum(-1, keepdim=True) - squared_lengths
    signal = total - noise.sum(-1)
    logs = after + total - torch.xlogy(noise, noise).sum(-1)
    return torch.exp(signal.log() - logs / signal)


def _order_two_without_each(values: "torch.Tensor", leverages: "torch.Tensor", noise: "torch.Tensor") -> "torch.Tensor":
    """Compute scores of order 2 from the squares of the eigenvalues of A - xxᵀ: as for order 1."""
    squares = leverages * values.unsqueeze(-2)
    squared_lengths = squares.sum(-1)
    signal = values.sum(-1, keepdim=True) - squared_lengths - noise.sum(-1)
    products = (squares * values.unsqueeze(-2)).sum(-1)
    squared_values = values.square().sum(-1, keepdim=True)
    return signal.square() / (squared_values - 2 * products + squared_lengths.square() - noise.square().sum(-1))


def _noise_without_each(values: "torch.Tensor", leverages: "torch.Tensor", level: float) -> "torch.Tensor":
    """Find the eigenvalues of A - xxᵀ up to a level: (b, k, m), padded with 0.

    The eigenvalues of A separate them: in ascending order, the i-th is between those before and at i of A. There they
    are the roots of 1 - x·(A - m)⁻¹x, which falls with m between two eigenvalues of A. Arguments are as for order 1.
    """
    import torch

    n_values = values.shape[-1]
    n_zeros = int((values == 0).sum(-1).min())
    n_low = int((values < level).sum(-1).max())
    outside = _outside(leverages)
    # An eigenvalue of 0 adds nothing to the sum.
    poles = torch.where(values > 0, values, 1.0).unsqueeze(-2)
    roots = [torch.zeros_like(outside)]
    for i in range(n_zeros, min(n_low + 1, n_values)):
        lowest = values[:, i - 1].clamp(max=level) if i else torch.zeros_like(values[:, 0])
        highest = values[:, i].clamp(max=level)
        low = lowest[:, None, None].expand_as(outside)
        high = highest[:, None, None].expand_as(outside)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            is_below_root = outside - (leverages * middle / (poles - middle)).sum(-1, keepdim=True) > 0
            low = torch.where(is_below_root, middle, low)
            high = torch.where(is_below_root, high, middle)
        # Without a root below the level, the search ends at it.
        roots.append(torch.where(high < level, high, 0.0))
    return torch.cat(roots, dim=-1)


def _outside(leverages: "torch.Tensor") -> "torch.Tensor":
    """Return 1 minus the leverage of each text, (b, k, 1): 0 for one that the others do not span."""
    return (1 - leverages.sum(-1, keepdim=True)).clamp(min=0)
