"""Embeddings to distances: nearest neighbours, and the mean distance of all pairs of a set.

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


def nearest_neighbours(
    embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other text of the same set.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), all >= 2

    Returns
    -------
    distances : ndarray of shape (n,), 1 - cosine, in [0, 2]
    neighbours : ndarray of shape (n,), the neighbour's index within the set
    """
    nearest, neighbours = np.empty(len(embeddings)), np.empty(len(embeddings), dtype=np.int64)
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        if rows.size > BLOCK_ROWS:
            neighbours[rows[0]] = _nearest_in_large_set(embeddings, rows, device)
            nearest[rows[0]] = _cosines_of_pairs(embeddings, rows[0], rows[0][neighbours[rows[0]]], device)
            continue
        vectors = unit_rows(embeddings, rows, device)
        similarities = vectors @ vectors.mT
        torch.diagonal(similarities, dim1=-2, dim2=-1).fill_(-math.inf)
        nearest[rows], neighbours[rows] = (values.cpu().numpy() for values in similarities.max(dim=-1))
    return np.clip(1.0 - nearest, 0.0, 2.0), neighbours


def _nearest_in_large_set(embeddings: np.ndarray, rows: np.ndarray, device: str) -> np.ndarray:
    """Find the index of the nearest other row of one set, rows (1, n), in float32: (n,).

    The cosine of unit vectors u and v is 1 - |u - v|² / 2, which a shift of both by c, the mean, does not change:
    cos - 1 = (u - c)·(v - c) - |u - c|²/2 - |v - c|²/2. So float32 keeps the digits of the differences, even if
    all texts are nearly alike. Two more columns include the last two terms in the product.
    """
    n, d = rows.size, embeddings.shape[1]
    blocks = [rows[:, start : start + BLOCK_ROWS] for start in range(0, n, BLOCK_ROWS)]
    center = torch.stack([unit_rows(embeddings, block, device)[0].sum(0) for block in blocks]).sum(0) / n
    left = torch.ones((n, d + 2), dtype=torch.float32, device=device)
    for i, block in enumerate(blocks):
        left[i * BLOCK_ROWS : (i + 1) * BLOCK_ROWS, :d] = unit_rows(embeddings, block, device)[0] - center
    left[:, d + 1] = -left[:, :d].square().sum(1) / 2
    right = left[:, [*range(d), d + 1, d]]

    # Each tile is used for its rows and its columns. What is kept is which tile has the nearest row, since amax is
    # several times as fast as argmax.
    best = torch.full((n,), -math.inf, device=device)
    tile_of = torch.zeros(n, dtype=torch.int64, device=device)
    tiles = [slice(start, min(start + _TILE_ROWS, n)) for start in range(0, n, _TILE_ROWS)]
    for i, part in enumerate(tiles):
        for j in range(i, len(tiles)):
            similarities = left[part] @ right[tiles[j]].T
            if i == j:
                similarities.fill_diagonal_(-math.inf)
            for place, values, other in ((part, similarities.amax(1), j), (tiles[j], similarities.amax(0), i)):
                tile_of[place].masked_fill_(values > best[place], other)
                best[place] = torch.maximum(best[place], values)

    nearest = torch.empty(n, dtype=torch.int64, device=device)
    for j, tile in enumerate(tiles):
        for some in torch.nonzero(tile_of == j).squeeze(1).split(BLOCK_ROWS):
            similarities = left[some] @ right[tile].T
            itself = some[:, None] == torch.arange(tile.start, tile.stop, device=device)
            nearest[some] = similarities.masked_fill_(itself, -math.inf).argmax(1) + tile.start
    return nearest.cpu().numpy()


def _cosines_of_pairs(embeddings: np.ndarray, left: np.ndarray, right: np.ndarray, device: str) -> np.ndarray:
    """Cosine of each pair of rows, in float64: (n,)."""
    cosines = np.empty(len(left))
    for start in range(0, len(left), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        pairs = [unit_rows(embeddings, rows[None, part], device)[0] for rows in (left, right)]
        cosines[part] = (pairs[0] * pairs[1]).sum(1).cpu().numpy()
    return cosines


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
        blocks = (rows[:, start : start + BLOCK_ROWS] for start in range(0, n, BLOCK_ROWS))
        total = sum(unit_rows(embeddings, block, device).sum(1) for block in blocks)
        assert isinstance(total, torch.Tensor)
        similarity = (total.square().sum(1) - n) / (n * (n - 1))
        means[members] = (1.0 - similarity).clamp(0.0, 2.0).cpu().numpy()
    return means
