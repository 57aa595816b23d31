"""Embeddings to distances: nearest neighbours in a large set, and the mean distance of all pairs of a set.

All sets of a call are computed together: sets of equal size as one batch of small matrices, a large set in blocks
of rows, so that memory is bounded by the block and does not grow with the square of a set.
"""

import math

import numpy as np
import torch

from .core_inputs import batches_by_size

# Rows held in float64 at a time: 6 MB at 384 dimensions.
BLOCK_ROWS = 2048
# Rows of a tile of similarities of one large set: its products stay in the processor's cache.
_TILE_ROWS = 768


def to_tensor(array: np.ndarray, device: str) -> torch.Tensor:
    """Bring an array to a device, in float64."""
    # torch shares memory with numpy, and warns if the array is read-only, such as a memory map.
    return torch.from_numpy(np.require(array, requirements=("C", "W"))).to(device=device, dtype=torch.float64)


def unit_rows(embeddings: np.ndarray, rows: np.ndarray, device: str) -> torch.Tensor:
    """Take rows (b, k) of the embeddings at unit length: (b, k, d), float64."""
    wanted, first = rows.ravel(), int(rows.flat[0])
    # Sets of one size are mostly consecutive: a view of the array avoids a copy.
    together = np.array_equal(wanted, np.arange(first, first + len(wanted)))
    block = embeddings[first : first + len(wanted)] if together else embeddings[wanted]
    vectors = to_tensor(block, device)
    # float64 rows may be the caller's array, which must not change; others are already copies.
    out = torch.empty_like(vectors) if block.dtype == np.float64 else vectors
    torch.div(vectors, torch.linalg.vector_norm(vectors, dim=1, keepdim=True), out=out)
    return out.reshape(*rows.shape, -1)


def nearest_in_large_set(embeddings: np.ndarray, rows: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Find the largest similarity of each row to another row: (n,) similarities in float64, (n,) indices."""
    blocks = [rows[None, start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]
    center = torch.stack([unit_rows(embeddings, part, device)[0].sum(0) for part in blocks]).sum(0) / len(rows)
    shifted = _shifted_rows(embeddings, rows, center, device)
    tiles, _ = _best_tiles(shifted, shifted)
    places = _best_rows(shifted, shifted, tiles)
    return _similarity_of_pairs(embeddings, rows, embeddings, rows[places], device), places


def nearest_between(
    left: np.ndarray, right: np.ndarray | None, center: np.ndarray, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Find the largest cosine of each row of two parts of a set with the rows of the other part.

    The nearest neighbours in the set are the maxima over all pairs of its parts, and over each part with itself.

    Parameters
    ----------
    left : ndarray of shape (a, d), rows non-zero
    right : ndarray of shape (b, d); None for `left` with itself, where a row is not its own neighbour
    center : ndarray of shape (d,), the mean of the unit vectors of the whole set, or an approximation

    Returns
    -------
    ndarrays of shape (a,) and (b,), float64, in [-1, 1]; -inf if there is no other row
    """
    middle = to_tensor(center, device)
    parts = [left] if right is None else [left, right]
    rows = [np.arange(len(part)) for part in parts]
    if right is None and len(left) == 1:
        return np.full(1, -math.inf), np.full(1, -math.inf)
    shifted = [_shifted_rows(part, rows[i], middle, device) for i, part in enumerate(parts)]
    tiles = _best_tiles(shifted[0], shifted[-1])
    similarities = []
    for i, j in ((0, -1), (-1, 0))[: len(parts)]:
        places = _best_rows(shifted[i], shifted[j], tiles[i])
        similarities.append(_similarity_of_pairs(parts[i], rows[i], parts[j], places, device))
    return similarities[0], similarities[-1]


def _shifted_rows(embeddings: np.ndarray, rows: np.ndarray, center: torch.Tensor, device: str) -> torch.Tensor:
    """Shift unit vectors by the mean, in float32: (n, d + 2), of which `_turned` gives the other factor.

    The cosine of unit vectors u and v is 1 - |u - v|² / 2, which a shift of both by c, the mean, does not change:
    cos - 1 = (u - c)·(v - c) - |u - c|²/2 - |v - c|²/2. So float32 keeps the digits of the differences, even if
    all texts are nearly alike. Two more columns include the last two terms in the product.
    """
    d = embeddings.shape[1]
    augmented = torch.ones((len(rows), d + 2), dtype=torch.float32, device=device)
    for start in range(0, len(rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        shifted = unit_rows(embeddings, rows[None, part], device)[0] - center
        augmented[part, :d] = shifted
        augmented[part, d + 1] = -shifted.square().sum(1) / 2
    return augmented


def _turned(shifted: torch.Tensor) -> torch.Tensor:
    d = shifted.shape[1] - 2
    return shifted[:, [*range(d), d + 1, d]]


def _best_tiles(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Find for each row of `left` the tile of `right` that holds its nearest row, and vice versa.

    Each tile of the matrix is used for its rows and its columns. If both are one tensor, only the upper half is
    computed, and a row is not its own neighbour.
    """
    same = left is right

    def begin(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        best = torch.full((n,), -math.inf, dtype=torch.float32, device=left.device)
        return best, torch.zeros(n, dtype=torch.int64, device=left.device)

    def improve(best: torch.Tensor, tiles: torch.Tensor, start: int, values: torch.Tensor, tile: int) -> None:
        stop = start + len(values)
        tiles[start:stop].masked_fill_(values > best[start:stop], tile)
        torch.maximum(best[start:stop], values, out=best[start:stop])

    best_left, tiles_left = begin(len(left))
    best_right, tiles_right = (best_left, tiles_left) if same else begin(len(right))
    right_starts = list(range(0, len(right), _TILE_ROWS))
    for i, start in enumerate(range(0, len(left), _TILE_ROWS)):
        above = _turned(left[start : start + _TILE_ROWS])
        for j in range(i if same else 0, len(right_starts)):
            similarities = above @ right[right_starts[j] : right_starts[j] + _TILE_ROWS].T
            if same and i == j:
                similarities.fill_diagonal_(-math.inf)
            else:
                improve(best_right, tiles_right, right_starts[j], similarities.amax(0), i)
            improve(best_left, tiles_left, start, similarities.amax(1), j)
    return tiles_left, tiles_right


def _best_rows(left: torch.Tensor, right: torch.Tensor, tiles: torch.Tensor) -> np.ndarray:
    """Find the nearest row of `right` to each row of `left`, whose tile is known: (n,) indices."""
    nearest = torch.empty(len(left), dtype=torch.int64, device=left.device)
    for j, start in enumerate(range(0, len(right), _TILE_ROWS)):
        asking = torch.nonzero(tiles == j).squeeze(1)
        for few in asking.split(BLOCK_ROWS):
            similarities = _turned(left[few]) @ right[start : start + _TILE_ROWS].T
            if left is right:
                itself = (few >= start) & (few < start + _TILE_ROWS)
                similarities[itself, few[itself] - start] = -math.inf
            nearest[few] = similarities.argmax(1) + start
    return nearest.cpu().numpy()


def _similarity_of_pairs(
    left: np.ndarray, left_rows: np.ndarray, right: np.ndarray, right_rows: np.ndarray, device: str
) -> np.ndarray:
    """Cosine of each pair of rows, in float64: (n,)."""
    similarity = np.empty(len(left_rows))
    for start in range(0, len(left_rows), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        left_vectors = unit_rows(left, left_rows[None, part], device)[0]
        right_vectors = unit_rows(right, right_rows[None, part], device)[0]
        similarity[part] = (left_vectors * right_vectors).sum(1).cpu().numpy()
    return similarity


def mean_pairwise_distances(embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Mean cosine distance over all pairs of different texts of a set: 1 - self-CosSim, in linear time.

    The similarities of all pairs add up to the squared length of the sum of the unit vectors.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), all >= 2

    Returns
    -------
    ndarray of shape (m,), in [0, 2]; higher is more diverse
    """
    means = np.empty(len(sizes))
    for members, rows in batches_by_size(sizes, BLOCK_ROWS):
        n = rows.shape[1]
        total = torch.zeros((len(rows), embeddings.shape[1]), dtype=torch.float64, device=device)
        for start in range(0, n, BLOCK_ROWS):
            total += unit_rows(embeddings, rows[:, start : start + BLOCK_ROWS], device).sum(1)
        similarity = (total.square().sum(1) - n) / (n * (n - 1))
        means[members] = (1.0 - similarity).clamp(0.0, 2.0).cpu().numpy()
    return means


def unit_sum(embeddings: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Sum of the unit vectors of n texts: ndarray of shape (d,), float64; the sums of parts of a set add up."""
    rows = np.arange(len(embeddings))[None]
    starts = range(0, len(embeddings), BLOCK_ROWS)
    parts = [unit_rows(embeddings, rows[:, start : start + BLOCK_ROWS], device)[0].sum(0) for start in starts]
    return torch.stack(parts).sum(0).cpu().numpy()


def mean_pairwise_from_sum(total: np.ndarray, n: int) -> float:
    """Mean pairwise distance of a set of n texts, as in `mean_pairwise_distances`, from its `unit_sum`."""
    return min(max(1.0 - float(total @ total - n) / (n * (n - 1)), 0.0), 2.0)
