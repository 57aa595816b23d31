"""Similarity of embeddings to scores of a set: Vendi scores, nearest neighbours, mean pairwise distance.

All sets of a call are served together: sets of equal size as one batch of small matrices, a large set in blocks
of rows, so that memory is bounded by the block and never by the square of a large set.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_inputs import batches_by_size, describe

# Rows held in float64 at a time: 12 MB at 384 dimensions.
BLOCK_ROWS = 4096
# Rows of a tile of similarities of one large set: its products stay in the processor's cache.
_TILE_ROWS = 512
# A product of a matrix with itself is symmetric: in strips, less than half of it is computed twice.
_GRAM_STRIPS = 4
# How far a caller's kernel may be from a symmetric, positive semi-definite matrix with unit diagonal.
_KERNEL_TOLERANCE = 1e-4
# So near to q = 1, the general formula divides two small numbers.
_NEAR_ONE = 0.01


def parse_orders(q: Any) -> list[float]:
    """Read one order q of the Rényi entropy or a list of them: numbers in [0, inf], or "inf".

    Raises
    ------
    TypeError
        If one is no number.
    ValueError
        If one is negative or NaN, or the list is empty.
    """
    many = isinstance(q, (list, tuple, np.ndarray))
    orders = [_parse_order(item, f"q[{i}]" if many else "q") for i, item in enumerate(q if many else [q])]
    if not orders:
        raise ValueError("q is an empty list: it must hold at least one order.")
    return orders


def _parse_order(value: Any, name: str) -> float:
    if isinstance(value, str) and value == "inf":
        return math.inf
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number in [0, inf], or 'inf'. Got {describe(value)}.")
    if not value >= 0:
        raise ValueError(f"{name} must be in [0, inf]. Got {value}.")
    return float(value)


class Matrices(NamedTuple):
    """Matrices whose eigenvalues are those of the kernels, weighted by probability, of some sets of equal size.

    members : ndarray of shape (b,), indices of the sets
    size : the number of texts in each
    matrices : tensor of shape (b, r, r), symmetric; the lower half is to be read
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
    eigenvalues: the smaller of the two is made.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, all sets in turn
    sizes : ndarray of shape (m,), the number of rows of each set
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None
    """
    for members, rows in batches_by_size(sizes, block_rows):
        size = rows.shape[1]
        if size > embeddings.shape[1]:
            yield Matrices(members, size, _second_moments(embeddings, rows, weights, device, block_rows))
        else:
            vectors = _unit_rows(embeddings, rows, device)
            vectors *= _root_weights(weights, rows, device)
            yield Matrices(members, size, vectors @ vectors.mT)


def kernel_matrices(
    batches: Iterable[tuple[np.ndarray, np.ndarray]],
    sizes: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    device: str = "cpu",
) -> Iterator[Matrices]:
    """Make the matrices of sets whose kernels are known.

    Parameters
    ----------
    batches : pairs of the indices (b,) of sets of equal size k, and their kernels (b, k, k)
    sizes, weights : as for `embedding_matrices`
    """
    starts = np.cumsum(sizes) - sizes
    for members, kernels in batches:
        size = kernels.shape[-1]
        roots = _root_weights(weights, starts[members, None] + np.arange(size), device)
        yield Matrices(members, size, _tensor(kernels, device) * roots * roots.mT)


def vendi_scores(batches: Iterable[Matrices], n_sets: int, orders: list[float]) -> np.ndarray:
    """Vendi score of each set (Friedman & Dieng 2023; of any order q: Pasarkar & Dieng 2024).

    Returns
    -------
    ndarray of shape (n_sets, len(orders)), each in [1, size of the set]; higher is more diverse
    """
    scores = np.empty((n_sets, len(orders)))
    for members, size, matrices in batches:
        scores[members] = _vendi_from_matrices(matrices, size, orders)
    return scores


def spectra(batches: Iterable[Matrices], n_sets: int) -> list[np.ndarray]:
    """Eigenvalues of the kernel of each set, weighted by probability: the largest first, summing to 1."""
    found: list[np.ndarray] = [np.empty(0)] * n_sets
    for members, _, matrices in batches:
        eigenvalues = torch.linalg.eigvalsh(matrices).flip(-1).clamp(min=0.0).cpu().numpy()
        for member, values in zip(members.tolist(), eigenvalues, strict=True):
            found[member] = values
    return found


def _tensor(array: np.ndarray, device: str) -> torch.Tensor:
    # torch shares memory with numpy, and warns of an array that is not to be written to, such as a memory map.
    return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(device=device, dtype=torch.float64)


def _unit_rows(embeddings: np.ndarray, rows: np.ndarray, device: str) -> torch.Tensor:
    """Take rows (b, k) of the embeddings at unit length: (b, k, d), float64."""
    wanted, first = rows.ravel(), int(rows.flat[0])
    # Sets of one size mostly stand side by side: then a view of the array serves, without a copy.
    together = np.array_equal(wanted, np.arange(first, first + len(wanted)))
    block = embeddings[first : first + len(wanted)] if together else embeddings[wanted]
    vectors = _tensor(block, device)
    vectors = vectors / torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return vectors.reshape(*rows.shape, -1)


def _root_weights(weights: np.ndarray | None, rows: np.ndarray, device: str) -> torch.Tensor:
    """Square roots of the probabilities of the texts: (b, k, 1), or (1, 1, 1) where all are alike."""
    if weights is None:
        return torch.full((1, 1, 1), rows.shape[1] ** -0.5, dtype=torch.float64, device=device)
    return _tensor(weights[rows], device).sqrt().unsqueeze(-1)


def _second_moments(
    embeddings: np.ndarray, rows: np.ndarray, weights: np.ndarray | None, device: str, block_rows: int
) -> torch.Tensor:
    """Sum over texts of probability times the outer product of the unit vector with itself: (b, d, d), lower half.

    The sum adds up over blocks of texts, wherever they are computed.
    """
    d = embeddings.shape[1]
    moments = torch.zeros((len(rows), d, d), dtype=torch.float64, device=device)
    edges = np.linspace(0, d, min(_GRAM_STRIPS, d) + 1).astype(int)
    for start in range(0, rows.shape[1], block_rows):
        part = rows[:, start : start + block_rows]
        vectors = _unit_rows(embeddings, part, device)
        if weights is not None:
            vectors *= _root_weights(weights, part, device)
        for low, high in itertools.pairwise(edges.tolist()):
            moments[:, low:, low:high] += vectors[:, :, low:].mT @ vectors[:, :, low:high]
    return moments if weights is not None else moments / rows.shape[1]


def _vendi_from_matrices(matrices: torch.Tensor, n: int, orders: list[float]) -> np.ndarray:
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

    Eigenvalues below n * eps * the largest are rounding noise and count as zero: at q = 0 each would count as
    a whole further meaning.

    Parameters
    ----------
    eigenvalues : tensor of shape (..., r)
    n : the size of the set
    q : order in [0, inf]; 1 is the Shannon limit

    Returns
    -------
    tensor of shape (...)
    """
    largest = eigenvalues.amax(-1, keepdim=True)
    noise = n * torch.finfo(eigenvalues.dtype).eps * largest
    shares = torch.where(eigenvalues < noise, 0.0, eigenvalues)
    if q == 0:
        return (shares > 0).sum(-1).to(shares.dtype)
    if q == math.inf:
        return 1 / largest.squeeze(-1)
    if q == 1:
        return torch.exp(-torch.xlogy(shares, shares).sum(-1))
    logs = torch.log(shares)
    if abs(q - 1) < _NEAR_ONE:
        # sum(p^q) = 1 + sum(p * (p^(q-1) - 1)), without the loss of digits.
        excess = torch.where(shares > 0, shares * torch.expm1((q - 1) * logs), 0.0).sum(-1)
        return torch.exp(torch.log1p(excess) / (1 - q))
    return torch.exp(torch.logsumexp(q * logs, dim=-1) / (1 - q))


def check_kernel(kernel: Any, n: int, set_index: int) -> np.ndarray:
    """Make sure that what a caller's kernel function returned is a kernel.

    Returns
    -------
    ndarray of shape (n, n), float64, symmetric

    Raises
    ------
    TypeError
        If it is no array of numbers.
    ValueError
        If its shape is not (n, n), or it is not finite, symmetric, positive semi-definite, with unit diagonal.
    """
    name = f"kernel (set {set_index})"
    if hasattr(kernel, "detach"):
        kernel = kernel.detach().cpu()
    try:
        matrix = np.asarray(kernel, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must return an (n, n) array of numbers. Got {describe(kernel)}.") from None
    if matrix.shape != (n, n):
        raise ValueError(f"{name} must return an array of shape ({n}, {n}). Got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must return finite numbers. Got NaN or infinity.")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > _KERNEL_TOLERANCE:
        raise ValueError(f"{name} must return a symmetric matrix. Got entries that differ by {asymmetry:.3g}.")
    diagonal = np.diagonal(matrix)
    worst = int(np.argmax(np.abs(diagonal - 1)))
    if abs(diagonal[worst] - 1) > _KERNEL_TOLERANCE:
        raise ValueError(f"{name} must return a matrix with unit diagonal. Got {diagonal[worst]:.6g} at {worst}.")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -_KERNEL_TOLERANCE * n:
        raise ValueError(f"{name} must return a positive semi-definite matrix. Got an eigenvalue of {smallest:.3g}.")
    return matrix


def nearest_neighbours(
    embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu", block_rows: int = BLOCK_ROWS
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other text of the same set, by cosine.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, all sets in turn
    sizes : ndarray of shape (m,), all >= 2

    Returns
    -------
    distances : ndarray of shape (n,), cosine distance in [0, 2]
    neighbours : ndarray of shape (n,), the neighbour's place within the set
    """
    distances = np.empty(len(embeddings))
    neighbours = np.empty(len(embeddings), dtype=np.int64)
    for _, rows in batches_by_size(sizes, block_rows):
        if rows.size > block_rows:
            similarity, nearest = _nearest_in_large_set(embeddings, rows[0], device, block_rows)
        else:
            vectors = _unit_rows(embeddings, rows, device)
            similarities = vectors @ vectors.mT
            torch.diagonal(similarities, dim1=-2, dim2=-1).fill_(-math.inf)
            similarity, nearest = (part.cpu().numpy() for part in similarities.max(dim=-1))
        distances[rows] = np.clip(1.0 - similarity, 0.0, 2.0)
        neighbours[rows] = nearest
    return distances, neighbours


def _nearest_in_large_set(
    embeddings: np.ndarray, rows: np.ndarray, device: str, block_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the largest similarity of each row to another row: (n,) similarities in float64, (n,) places.

    Tiles of the upper half of the matrix serve rows and columns at once, in float32, and keep for each row only
    the best tile; then one tile for each row finds the place, and float64 the value.
    """
    n = len(rows)
    unit = torch.empty((n, embeddings.shape[1]), dtype=torch.float32, device=device)
    for start in range(0, n, block_rows):
        unit[start : start + block_rows] = _unit_rows(embeddings, rows[None, start : start + block_rows], device)[0]
    best = torch.full((n,), -math.inf, dtype=torch.float32, device=device)
    tile_of_best = torch.zeros(n, dtype=torch.int64, device=device)

    def improve(start: int, values: torch.Tensor, tile: int) -> None:
        stop = start + len(values)
        tile_of_best[start:stop].masked_fill_(values > best[start:stop], tile)
        torch.maximum(best[start:stop], values, out=best[start:stop])

    tiles = list(range(0, n, _TILE_ROWS))
    for i, start in enumerate(tiles):
        above = unit[start : start + _TILE_ROWS]
        for j in range(i, len(tiles)):
            similarities = above @ unit[tiles[j] : tiles[j] + _TILE_ROWS].T
            if i == j:
                similarities.fill_diagonal_(-math.inf)
            else:
                improve(tiles[j], similarities.amax(0), i)
            improve(start, similarities.amax(1), j)

    nearest = torch.empty(n, dtype=torch.int64, device=device)
    for j, start in enumerate(tiles):
        asking = torch.nonzero(tile_of_best == j).squeeze(1)
        for few in asking.split(block_rows):
            similarities = unit[few] @ unit[start : start + _TILE_ROWS].T
            itself = (few >= start) & (few < start + _TILE_ROWS)
            similarities[itself, few[itself] - start] = -math.inf
            nearest[few] = similarities.argmax(1) + start

    places = nearest.cpu().numpy()
    similarity = np.empty(n)
    for start in range(0, n, block_rows):
        part = slice(start, start + block_rows)
        own = _unit_rows(embeddings, rows[None, part], device)[0]
        other = _unit_rows(embeddings, rows[None, places[part]], device)[0]
        similarity[part] = (own * other).sum(1).cpu().numpy()
    return similarity, places


def mean_pairwise_distances(
    embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu", block_rows: int = BLOCK_ROWS
) -> np.ndarray:
    """Mean cosine distance over all pairs of different texts of a set: 1 - self-CosSim, in linear time.

    The similarities of all pairs add up to the squared length of the sum of the unit vectors.

    Parameters
    ----------
    embeddings, sizes : as for `nearest_neighbours`

    Returns
    -------
    ndarray of shape (m,), in [0, 2]; higher is more diverse
    """
    means = np.empty(len(sizes))
    for members, rows in batches_by_size(sizes, block_rows):
        n = rows.shape[1]
        total = torch.zeros((len(rows), embeddings.shape[1]), dtype=torch.float64, device=device)
        for start in range(0, n, block_rows):
            total += _unit_rows(embeddings, rows[:, start : start + block_rows], device).sum(1)
        similarity = (total.square().sum(1) - n) / (n * (n - 1))
        means[members] = (1.0 - similarity).clamp(0.0, 2.0).cpu().numpy()
    return means


def kernels_from_function(
    function: Any, embeddings: np.ndarray, sizes: np.ndarray, block_rows: int = BLOCK_ROWS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Call a caller's kernel on the embeddings of each set, and check what it returns.

    Yields
    ------
    members : ndarray of shape (b,), indices of sets
    kernels : ndarray of shape (b, k, k)
    """
    for members, rows in batches_by_size(sizes, block_rows):
        k = rows.shape[1]
        kernels = np.empty((len(members), k, k))
        for i, (member, row) in enumerate(zip(members.tolist(), rows, strict=True)):
            kernels[i] = check_kernel(function(embeddings[row]), k, member)
        yield members, kernels
