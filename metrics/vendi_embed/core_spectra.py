"""Vendi scores of sets, from the eigenvalues of the similarities of their texts.

Sets of equal size make one batch of small matrices. A large set of embeddings is summed up in blocks of rows, so that
memory does not grow with the square of a set.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_distances import BLOCK_ROWS, to_tensor, unit_rows
from .core_inputs import batches_by_size
from .core_numbers import describe, show, to_array, to_float

# Strips in which the lower half of a Gram matrix is computed.
_GRAM_STRIPS = 4
# How far a caller's kernel may be from a symmetric, positive semi-definite matrix with unit diagonal.
_KERNEL_TOLERANCE = 1e-4
# Closer than this to q = 1, the general formula divides two small numbers.
_NEAR_ONE = 0.01


def parse_orders(q: Any) -> list[float]:
    """Read one order q of the Rényi entropy or a list of them: numbers in [0, inf], or "inf".

    Raises
    ------
    TypeError
        If one is not a number.
    ValueError
        If one is negative or NaN, or the list is empty.
    """
    if isinstance(q, np.ndarray):
        q = q.tolist()
    many = isinstance(q, (list, tuple))
    orders = [_parse_order(item, f"q[{i}]" if many else "q") for i, item in enumerate(q if many else [q])]
    if not orders:
        raise ValueError("q is an empty list: it must hold at least one order.")
    return orders


def _parse_order(value: Any, name: str) -> float:
    if isinstance(value, str) and value == "inf":
        return math.inf
    try:
        order = to_float(value)
    except TypeError:
        raise TypeError(f"{name} must be a number in [0, inf], or 'inf'. Got {describe(value)}.") from None
    if not order >= 0:
        raise ValueError(f"{name} must be in [0, inf]. Got {show(value)}.")
    if math.isinf(order) and not isinstance(value, (float, np.floating)):
        raise ValueError(f"{name} is too large: pass 'inf' for the limit. Got {describe(value)}.")
    return order


class Matrices(NamedTuple):
    """Matrices with the eigenvalues of the probability-weighted kernels of sets of equal size.

    members : ndarray of shape (b,), indices of the sets
    size : the number of texts in each
    matrices : tensor of shape (b, r, r), symmetric; only the lower half is valid
    """

    members: np.ndarray
    size: int
    matrices: torch.Tensor


def embedding_matrices(
    embeddings: np.ndarray,
    sizes: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
    block_rows: int = BLOCK_ROWS,
) -> Iterator[Matrices]:
    """Make the matrices of the cosine kernel of each set.

    The kernel of n texts and the d by d matrix of their weighted second moments have the same non-zero
    eigenvalues, so the smaller of the two is computed.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), the number of rows of each set
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None
    """
    for members, rows in batches_by_size(sizes, block_rows):
        size = rows.shape[1]
        if size > embeddings.shape[1]:
            yield Matrices(members, size, second_moments(embeddings, rows, weights, device, block_rows))
        else:
            vectors = unit_rows(embeddings, rows, device)
            vectors *= _root_weights(weights, rows, device)
            yield Matrices(members, size, vectors @ vectors.mT)


def kernel_matrices(
    batches: Iterable[tuple[np.ndarray, np.ndarray]],
    sizes: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
) -> Iterator[Matrices]:
    """Make the matrices of sets from their kernels.

    Parameters
    ----------
    batches : pairs of the indices (b,) of sets of equal size k, and their kernels (b, k, k)
    sizes, weights : as for `embedding_matrices`
    """
    starts = np.cumsum(sizes) - sizes
    for members, kernels in batches:
        size = kernels.shape[-1]
        roots = _root_weights(weights, starts[members, None] + np.arange(size), device)
        yield Matrices(members, size, to_tensor(kernels, device) * roots * roots.mT)


def vendi_scores(batches: Iterable[Matrices], n_sets: int, orders: list[float]) -> np.ndarray:
    """Vendi score of each set (Friedman & Dieng 2023; of any order q: Pasarkar & Dieng 2024).

    Returns
    -------
    ndarray of shape (n_sets, len(orders)), each in [1, size of the set]; higher is more diverse
    """
    scores = np.empty((n_sets, len(orders)))
    for members, size, matrices in batches:
        scores[members] = vendi_from_matrices(matrices, size, orders)
    return scores


def spectra(batches: Iterable[Matrices], n_sets: int) -> list[np.ndarray]:
    """Eigenvalues of the kernel of each set, weighted by probability: the largest first, summing to 1."""
    found: list[np.ndarray] = [np.empty(0)] * n_sets
    for members, size, matrices in batches:
        eigenvalues = _without_noise(torch.linalg.eigvalsh(matrices), size).flip(-1).cpu().numpy()
        for member, values in zip(members.tolist(), eigenvalues, strict=True):
            found[member] = values
    return found


def _root_weights(weights: np.ndarray | None, rows: np.ndarray, device: str) -> torch.Tensor:
    """Square roots of the probabilities of the texts: (b, k, 1), or (1, 1, 1) if uniform."""
    if weights is None:
        return torch.full((1, 1, 1), rows.shape[1] ** -0.5, dtype=torch.float64, device=device)
    return to_tensor(weights[rows], device).sqrt().unsqueeze(-1)


def second_moments(
    embeddings: np.ndarray, rows: np.ndarray, weights: np.ndarray | None, device: str, block_rows: int
) -> torch.Tensor:
    """Sum over texts of probability times the outer product of the unit vector with itself: (b, d, d), lower half."""
    d = embeddings.shape[1]
    moments = torch.zeros((len(rows), d, d), dtype=torch.float64, device=device)
    edges = np.linspace(0, d, min(_GRAM_STRIPS, d) + 1).astype(int)
    for start in range(0, rows.shape[1], block_rows):
        part = rows[:, start : start + block_rows]
        vectors = unit_rows(embeddings, part, device)
        if weights is not None:
            vectors *= _root_weights(weights, part, device)
        for low, high in itertools.pairwise(edges.tolist()):
            moments[:, low:, low:high] += vectors[:, :, low:].mT @ vectors[:, :, low:high]
    return moments if weights is not None else moments / rows.shape[1]


def gram_sums(embeddings: np.ndarray, *, device: str = "cpu", block_rows: int = BLOCK_ROWS) -> np.ndarray:
    """Sum over texts of the outer product of the unit vector with itself; the sums of parts of a set add up.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero

    Returns
    -------
    ndarray of shape (d, d), float64; only the lower half is valid
    """
    rows = np.arange(len(embeddings))[None]
    return second_moments(embeddings, rows, None, device, block_rows)[0].cpu().numpy() * len(embeddings)


def vendi_from_sums(sums: np.ndarray, n: int, orders: list[float]) -> np.ndarray:
    """Vendi score of a set of n texts from its `gram_sums`, at each order: ndarray of shape (len(orders),)."""
    return vendi_scores([Matrices(np.arange(1), n, to_tensor(sums[None] / n, "cpu"))], 1, orders)[0]


def vendi_from_matrices(matrices: torch.Tensor, n: int, orders: list[float]) -> np.ndarray:
    """Vendi scores from matrices (b, r, r) with the eigenvalues of K/n; only the lower half is read."""
    eigenvalues = torch.linalg.eigvalsh(matrices, UPLO="L") if any(q != 2 for q in orders) else None
    scores = []
    for q in orders:
        if q == 2:
            # The sum of the squared eigenvalues of a symmetric matrix is the sum of its squared entries.
            strict = torch.tril(matrices, diagonal=-1)
            diagonal = torch.diagonal(matrices, dim1=-2, dim2=-1)
            scores.append(1 / (2 * strict.square().sum((-2, -1)) + diagonal.square().sum(-1)))
        else:
            assert eigenvalues is not None
            scores.append(vendi_from_eigenvalues(eigenvalues, n, q))
    return torch.stack(scores, dim=-1).clamp(1.0, n).cpu().numpy()


def vendi_from_eigenvalues(eigenvalues: torch.Tensor, n: int, q: float) -> torch.Tensor:
    """Exponential of the Rényi entropy of order q of eigenvalues that sum to 1.

    Eigenvalues below n * eps * the largest are rounding noise and count as zero: at q = 0 each would add 1.

    Parameters
    ----------
    eigenvalues : tensor of shape (..., r)
    n : the size of the set
    q : order in [0, inf]; 1 is the Shannon limit

    Returns
    -------
    tensor of shape (...)
    """
    shares = _without_noise(eigenvalues, n)
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


def _without_noise(eigenvalues: torch.Tensor, n: int) -> torch.Tensor:
    noise = n * torch.finfo(eigenvalues.dtype).eps * eigenvalues.amax(-1, keepdim=True)
    return torch.where(eigenvalues < noise, 0.0, eigenvalues)


def kernels_from_function(
    function: Any, embeddings: np.ndarray, sizes: np.ndarray, block_rows: int = BLOCK_ROWS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Call a caller's kernel on the embeddings of each set, and check that it returns a kernel.

    Yields
    ------
    members : ndarray of shape (b,), indices of sets
    kernels : ndarray of shape (b, k, k), float64

    Raises
    ------
    TypeError
        If it does not return an array of numbers.
    ValueError
        If the array is not of shape (k, k), finite, symmetric and positive semi-definite, with unit diagonal.
    """
    for members, rows in batches_by_size(sizes, block_rows):
        kernels = np.stack(
            [_square(function(embeddings[row]), len(row), i) for i, row in zip(members.tolist(), rows, strict=True)]
        )
        _check_kernels(kernels, members)
        yield members, kernels


def _square(kernel: Any, n: int, set_index: int) -> np.ndarray:
    try:
        matrix = to_array(kernel)
        if matrix.dtype.kind not in "biuf":
            raise TypeError
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"kernel (set {set_index}) must return an (n, n) array of numbers. Got {describe(kernel)}."
        ) from None
    if matrix.shape != (n, n):
        raise ValueError(
            f"kernel (set {set_index}) must return an array of shape ({n}, {n}). Got shape {matrix.shape}."
        )
    return matrix


def _check_kernels(kernels: np.ndarray, members: np.ndarray) -> None:
    def refuse(bad: np.ndarray, must: str, got: Callable[[int], str]) -> None:
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(f"kernel (set {members[i]}) must return {must}. Got {got(i)}.")

    refuse(~np.isfinite(kernels).all(axis=(1, 2)), "finite numbers", lambda i: "NaN or infinity")
    asymmetry = np.abs(kernels - kernels.transpose(0, 2, 1)).max(axis=(1, 2))
    refuse(asymmetry > _KERNEL_TOLERANCE, "a symmetric matrix", lambda i: f"entries that differ by {asymmetry[i]:.3g}")
    diagonals = np.diagonal(kernels, axis1=1, axis2=2)
    worst = np.take_along_axis(diagonals, np.abs(diagonals - 1).argmax(axis=1)[:, None], axis=1)[:, 0]
    refuse(np.abs(worst - 1) > _KERNEL_TOLERANCE, "a matrix with unit diagonal", lambda i: f"{worst[i]:.6g} on it")
    eigenvalues = np.linalg.eigvalsh(kernels)
    refuse(
        eigenvalues[:, 0] < -_KERNEL_TOLERANCE * np.maximum(eigenvalues[:, -1], 1.0),
        "a positive semi-definite matrix",
        lambda i: f"an eigenvalue of {eigenvalues[i, 0]:.3g}",
    )
