"""Distances within sets: to the nearest neighbour of each text, and of all pairs.

Sets of equal size make one batch of small matrices, and a large set is computed in blocks of rows, so that memory does
not grow with the square of a set.
"""

import math
from typing import NamedTuple

import numpy as np

from .chamfer_diversity_settings import ChamferSettings
from .core import (
    LIMITS,
    TIE,
    TextSets,
    batches_by_size,
    embed_sets,
    find_similarities,
    first_maximum,
    matrix_device,
    unit_rows,
)

_TILE_ROWS = 512  # of the similarities of one large set


class Distances(NamedTuple):
    """Distances, 1 - similarity, within m sets of n texts in all.

    nearest : ndarray of shape (n,), the distance of each text to its nearest neighbour, in [0, 2]
    neighbours : ndarray of shape (n,), the index within the set of the first text that is as near, to within TIE
    pairwise : ndarray of shape (m,), the mean over all pairs of a set, in [0, 2]
    """

    nearest: np.ndarray
    neighbours: np.ndarray
    pairwise: np.ndarray

    @classmethod
    def empty(cls, sizes: np.ndarray) -> "Distances":
        """Allocate the distances within sets of these sizes, (m,)."""
        n = int(sizes.sum())
        return cls(np.empty(n), np.empty(n, dtype=np.int64), np.empty(len(sizes)))

    def fill(self, members: np.ndarray, rows: np.ndarray, similarities: np.ndarray) -> None:
        """Set the distances of a batch of `batches_by_size` from the similarities of its texts, (b, k, k)."""
        distances = np.clip(1.0 - similarities, 0.0, 2.0)
        size = rows.shape[1]
        self.pairwise[members] = distances.sum(axis=(1, 2)) / (size * (size - 1))
        distances[:, np.arange(size), np.arange(size)] = np.inf
        self.nearest[rows] = distances.min(axis=2)
        self.neighbours[rows] = first_maximum(-distances)


def measure(sets: TextSets, scored: np.ndarray, settings: ChamferSettings) -> tuple[Distances, dict[str, str]]:
    """Measure the distances within the scored sets; returns the entries of a signature, too."""
    sizes = sets.sizes[scored]
    if settings.similarity is not None:
        matrices, signed = find_similarities(sets, settings)
        scored_matrices = [matrices[i] for i in np.flatnonzero(scored)]
        distances = Distances.empty(sizes)
        for members, rows in batches_by_size(sizes, LIMITS.block_rows):
            distances.fill(members, rows, np.stack([scored_matrices[i] for i in members]))
        return distances, signed
    vectors, signed, _ = embed_sets(sets, settings)
    if not scored.all():
        vectors = vectors[np.repeat(scored, sets.sizes)]
    return measure_embeddings(vectors, sizes, matrix_device(settings.device)), signed


def measure_embeddings(embeddings: np.ndarray, sizes: np.ndarray, device: str = "cpu") -> Distances:
    """Measure the cosine distances of embeddings (n, d), rows non-zero, set after set, for sizes (m,), all >= 2."""
    distances = Distances.empty(sizes)
    for members, rows in batches_by_size(sizes, LIMITS.block_rows):
        if rows.size > LIMITS.block_rows:
            nearest, neighbours, pairwise = _measure_large_set(embeddings, rows[0], device)
            distances.nearest[rows[0]] = nearest
            distances.neighbours[rows[0]] = neighbours
            distances.pairwise[members] = pairwise
        else:
            vectors = unit_rows(embeddings, rows, device)
            distances.fill(members, rows, (vectors @ vectors.mT).cpu().numpy())
    return distances


def _measure_large_set(embeddings: np.ndarray, rows: np.ndarray, device: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Measure the distances within one set, of n rows of the embeddings, block by block.

    The neighbours are found in float32. The cosine of unit vectors u and v is 1 - |u - v|² / 2, which a shift of both
    by c, the mean, does not change: cos - 1 = (u - c)·(v - c) - |u - c|²/2 - |v - c|²/2. So float32 keeps the digits of
    the differences, even if all texts are nearly alike. Two more columns include the last two terms in the product. The
    similarities of all pairs add up to the squared length of the sum of the unit vectors.
    """
    import torch

    n = len(rows)
    d = embeddings.shape[1]
    blocks = np.split(np.arange(n), range(LIMITS.block_rows, n, LIMITS.block_rows))
    center = torch.stack([unit_rows(embeddings, rows[block], device).sum(0) for block in blocks]).sum(0) / n
    left = torch.ones((n, d + 2), dtype=torch.float32, device=device)
    for block in blocks:
        left[block, :d] = (unit_rows(embeddings, rows[block], device) - center).float()
    left[:, d + 1] = -left[:, :d].square().sum(1) / 2
    right = left[:, [*range(d), d + 1, d]].T
    # Each tile serves its rows and its columns. Only the tile of the nearest row is saved, since amax is several
    # times as fast as argmax, and a tile before which none is tied with it. A row meets its tiles in order.
    best = torch.full((n,), -math.inf, device=device)
    tile_of, first_tile = torch.zeros((2, n), dtype=torch.int64, device=device)
    step = min(_TILE_ROWS, LIMITS.block_rows)
    tiles = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    for i, part in enumerate(tiles):
        for j, tile in enumerate(tiles[i:], i):
            similarities = left[part] @ right[:, tile]
            if i == j:
                similarities.fill_diagonal_(-math.inf)
            for place, values, other in ((part, similarities.amax(1), j), (tile, similarities.amax(0), i)):
                tile_of[place].masked_fill_(values > best[place], other)
                first_tile[place].masked_fill_(values > best[place] + TIE, other)
                best[place] = torch.maximum(best[place], values)
    cosines = np.empty(n)
    nearest = torch.full((n,), -1, dtype=torch.int64, device=device)
    first = torch.full((n,), -1, dtype=torch.int64, device=device)
    for j, tile in enumerate(tiles):
        is_due = (tile_of == j) | ((first_tile <= j) & (first < 0))
        for some in is_due.nonzero().squeeze(1).split(LIMITS.block_rows):
            similarities = left[some] @ right[:, tile]
            similarities[some[:, None] == torch.arange(tile.start, tile.stop, device=device)] = -math.inf
            has_best = tile_of[some] == j
            is_tied = similarities >= best[some, None] - TIE
            nearest[some[has_best]] = similarities[has_best].argmax(1) + tile.start
            is_first = (first[some] < 0) & is_tied.any(1)
            first[some[is_first]] = is_tied[is_first].to(torch.int8).argmax(1) + tile.start
    for block in blocks:
        nearest_rows = unit_rows(embeddings, rows[nearest[block].cpu().numpy()], device)
        cosines[block] = (unit_rows(embeddings, rows[block], device) * nearest_rows).sum(-1).cpu().numpy()
    neighbours = torch.where(first < 0, nearest, first).cpu().numpy()
    pairwise = 1 - (n * float(center.square().sum()) - 1) / (n - 1)
    return np.clip(1.0 - cosines, 0.0, 2.0), neighbours, min(max(pairwise, 0.0), 2.0)
