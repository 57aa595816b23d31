"""Similarities of the texts of each set: cosines of embeddings, given matrices, or a model of pairs; and distances.

Sets of equal size make one batch of small matrices, and a large set is computed in blocks of rows, so that memory does
not grow with the square of a set.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EmbeddedSetSettings, unit_rows
from .core_inputs import LIMITS, TextSets, as_list, batches_by_size
from .core_models import TRANSFORMER, find_device, find_model
from .core_numbers import EPSILONS, ROUNDED_ENTRY, ROUNDING, TIE, describe, float_type, parse_matrix
from .core_pairs import is_pair_model, model_similarities
from .core_results import UNBOUNDED
from .core_settings import PAIR, setting

# Of `nearest_correlation`: it converges linearly, mostly within 100.
_MOST_PROJECTIONS = 500


def _parse_source(value: Any, name: str) -> Any:
    if isinstance(value, str) and not is_pair_model(value):
        raise ValueError(f"{name} must be matrices, 'nli:<model>' or 'pairs:<model>'. Got {describe(value)}.")
    return value


@dataclass(frozen=True, kw_only=True)
class SourceSettings(EmbeddedSetSettings):
    """How the texts of sets are compared: by embeddings, a model of pairs, or similarities that the user gives."""

    similarity: Any = setting(
        None,
        _parse_source,
        given=PAIR,
        numbers=UNBOUNDED,
        help="`list` of (k, k) matrices, or `str`: in place of an encoder, similarities computed elsewhere: a matrix "
        "for each set, for its k texts in order, or one matrix if `predictions` is one flat set. Each matrix must be "
        'symmetric, with unit diagonal, to within 1e-4. `"pairs:<model>"`: the score of a cross-encoder for duplicates '
        'or semantic similarity, in [0, 1]. `"nli:<model>"`: P(entailment) - P(contradiction) by a '
        "sequence-classification model, at least 0. The model, an id of the Hugging Face Hub or a folder, reads each "
        "pair in both orders, and the mean is taken.",
    )

    def check(self) -> None:
        """Raise a ValueError if two sources of similarities are given, or contexts for given ones."""
        super().check()
        self.check_exclusive("embeddings", "similarity")
        if not self.by_pair_model:
            self.check_exclusive("contexts", "similarity")

    @property
    def by_pair_model(self) -> bool:
        """Whether a model that reads pairs compares the texts."""
        return isinstance(self.similarity, str)

    def check_found(self) -> None:
        """Raise an error if the device or the model that compares texts cannot be found; nothing is loaded."""
        if not self.by_pair_model:
            super().check_found()
            return
        find_device(self.device)
        find_model(self.similarity.partition(":")[2], "similarity", TRANSFORMER)


class Similarities(NamedTuple):
    """Similarities of the texts of each set.

    matrices : list of m ndarrays of shape (k, k), float64, symmetric, with a diagonal of 1
    signed : the entries of a signature
    change : the largest change of an entry that made the matrices of a model positive semi-definite; None if they are
        not of a model, or need not be
    """

    matrices: list[np.ndarray]
    signed: dict[str, str]
    change: float | None


def find_similarities(sets: TextSets, settings: SourceSettings, *, repair: bool = False) -> Similarities:
    """Read the similarities that the user gives, or ask the model that `similarity` names.

    `repair` makes them positive semi-definite. Raises as `parse_similarity` and `model_similarities`.
    """
    if not settings.by_pair_model:
        return Similarities(parse_similarity(settings.similarity, sets, repair=repair), {"similarity": "given"}, None)
    matrices, signed = model_similarities(sets, settings.similarity, settings.contexts, settings)
    if not repair:
        return Similarities(matrices, signed, None)
    definite = [_repaired(nearest_correlation(matrix), EPSILONS["float32"], "similarity") for matrix in matrices]
    change = max(float(np.abs(new - old).max()) for new, old in zip(definite, matrices, strict=True))
    return Similarities(definite, signed, change)


def nearest_correlation(matrix: np.ndarray) -> np.ndarray:
    """Find the positive semi-definite matrix with unit diagonal that is nearest in the Frobenius norm.

    Alternating projections with Dykstra's correction; a matrix (k, k), symmetric, that is one to within rounding is
    returned unchanged. See Higham, N. J. (2002). Computing the nearest correlation matrix: a problem from finance.
    IMA J. Numer. Anal. 22, 329-343.
    """
    if np.linalg.eigvalsh(matrix)[0] >= -2 * np.sqrt(len(matrix)) * EPSILONS["float32"]:
        return matrix
    nearest, correction = matrix, np.zeros_like(matrix)
    for _ in range(_MOST_PROJECTIONS):
        values, vectors = np.linalg.eigh(nearest - correction)
        definite = (vectors * values.clip(min=0)) @ vectors.T
        correction = definite - (nearest - correction)
        nearest = definite.copy()
        np.fill_diagonal(nearest, 1.0)
        if np.linalg.norm(nearest - definite) <= TIE / 10:
            break
    roots = np.sqrt(definite.diagonal())
    return definite / np.outer(roots, roots)


def parse_similarity(values: Any, sets: TextSets, *, repair: bool = False) -> list[np.ndarray]:
    """Read a matrix for each set; one matrix where the predictions are one flat set.

    Returns m ndarrays of shape (k, k), float64, with equal halves and a diagonal of 1. Raises a TypeError if it is not
    a list, or a matrix is not of numbers; and a ValueError that names the set and the entry if a matrix is not of shape
    (k, k) for the k texts of its set, finite, in [-1, 1], and symmetric, with unit diagonal, to within 1e-4. With
    `repair`, it must be positive semi-definite to within that, too, and becomes so.
    """
    is_one = not sets.nested and len(sets.sizes) == 1
    if is_one:
        matrices = [values]
    elif getattr(values, "ndim", 0) == 3:
        matrices = list(values)  # As lists, they would lose their type.
    else:
        matrices = as_list(values, "similarity", "a list of matrices, one for each set")
    if len(matrices) != len(sets.sizes):
        raise ValueError(f"similarity must have a matrix for each of the {len(sets.sizes)} sets. Got {len(matrices)}.")
    kernels = []
    for i, (matrix, size) in enumerate(zip(matrices, sets.sizes.tolist(), strict=True)):
        name = "similarity" if is_one else f"similarity[{i}]"
        kernel = _parse_kernel(matrix, size, name)
        kernels.append(_repaired(kernel, EPSILONS[float_type(matrix)], name) if repair else kernel)
    return kernels


def _parse_kernel(values: Any, size: int, name: str) -> np.ndarray:
    matrix = parse_matrix(values, size, name).astype(np.float64)
    if matrix.shape != (size, size):
        raise ValueError(f"{name} must have shape ({size}, {size}). Got shape {matrix.shape}.")
    off_unit = np.diag(np.abs(matrix.diagonal() - 1) > ROUNDED_ENTRY)
    rules = (
        (~np.isfinite(matrix), "be finite"),
        (off_unit, f"be 1, the similarity of a text with itself, to within {ROUNDED_ENTRY:g}"),
        (np.abs(matrix) > 1 + ROUNDED_ENTRY, "be in [-1, 1]"),
        (
            np.abs(matrix - matrix.T) > ROUNDED_ENTRY,
            f"equal its mirror image, to within {ROUNDED_ENTRY:g}: the matrix must be symmetric",
        ),
    )
    for bad, must in rules:
        if bad.any():
            i, j = np.argwhere(bad)[0].tolist()
            raise ValueError(f"{name}[{i}][{j}] must {must}. Got {matrix[i, j]:.6g}.")
    even = (matrix + matrix.T) / 2
    np.fill_diagonal(even, 1.0)
    return even


def _repaired(kernel: np.ndarray, epsilon: float, name: str) -> np.ndarray:
    """Make a slightly indefinite kernel (k, k) positive semi-definite, without the eigenvalues that are noise.

    Independent errors of the entries, of size e, give eigenvalues between about -2e√k and 2e√k. So a kernel loses the
    eigenvalues up to that, for the rounding of its type, and those up to twice its most negative one, which shows the
    errors of numbers that were rounded before. The rest is scaled to unit diagonal. A kernel without such eigenvalues
    is left as it is.
    """
    level = 2 * np.sqrt(len(kernel)) * epsilon
    try:
        # Takes a fraction of the time of the eigenvalues.
        np.linalg.cholesky(kernel + (ROUNDING - level) * np.eye(len(kernel)))
        return kernel
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(kernel)
    if values[0] < -ROUNDED_ENTRY * values[-1]:
        raise ValueError(
            f"{name} must be positive semi-definite, to within {ROUNDED_ENTRY:g} of its largest eigenvalue, "
            f"{values[-1]:.3g}. Got an eigenvalue of {values[0]:.3g}."
        )
    # No text must vanish: at most half of its similarity with itself is lost.
    limit = min(max(level, -2 * values[0]), 0.5)
    rest = (vectors * np.where(values > limit, values, 0.0)) @ vectors.T
    roots = np.sqrt(rest.diagonal())
    return rest / np.outer(roots, roots)


def nearest_neighbours(
    embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu"
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other text of the same set, of tied ones the first.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), rows non-zero, set after set
    sizes : ndarray of shape (m,), all >= 2

    Returns
    -------
    distances : ndarray of shape (n,), 1 - cosine, in [0, 2]
    neighbours : ndarray of shape (n,), the index within the set of the first text that is as near, to within TIE
    """
    nearest, neighbours = np.empty(len(embeddings)), np.empty(len(embeddings), dtype=np.int64)
    for _, rows in batches_by_size(sizes, LIMITS.block_rows):
        if rows.size > LIMITS.block_rows:
            blocks = _blocks(rows)
            closest, neighbours[rows[0]] = _nearest_in_large_set(embeddings, blocks, device)
            for block in blocks:
                others = unit_rows(embeddings, rows[:, closest[block[0] - rows[0, 0]]], device)
                nearest[block] = (unit_rows(embeddings, block, device) * others).sum(-1).cpu().numpy()
            continue
        vectors = unit_rows(embeddings, rows, device)
        similarities = vectors @ vectors.mT
        torch.diagonal(similarities, dim1=-2, dim2=-1).fill_(-math.inf)
        best = similarities.amax(-1)
        nearest[rows], neighbours[rows] = best.cpu().numpy(), _first_from(similarities, best - TIE).cpu().numpy()
    return np.clip(1.0 - nearest, 0.0, 2.0), neighbours


def _first_from(similarities: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Find the first index along the last axis whose value is at least `least`; 0 if there is none."""
    return (similarities >= least.unsqueeze(-1)).to(torch.int8).argmax(-1)


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    """Split rows (b, k) into blocks (b, at most LIMITS.block_rows)."""
    return np.split(rows, range(LIMITS.block_rows, rows.shape[1], LIMITS.block_rows), axis=1)


def _nearest_in_large_set(
    embeddings: np.ndarray, blocks: list[np.ndarray], device: str
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest other row of one set, whose n rows are in blocks (1, b), in float32.

    Returns the index of the nearest row, and the first of those that are tied with it, (n,) each.

    The cosine of unit vectors u and v is 1 - |u - v|² / 2, which a shift of both by c, the mean, does not change: cos -
    1 = (u - c)·(v - c) - |u - c|²/2 - |v - c|²/2. So float32 keeps the digits of the differences, even if all texts are
    nearly alike. Two more columns include the last two terms in the product.
    """
    n, d = sum(block.size for block in blocks), embeddings.shape[1]
    center = torch.stack([unit_rows(embeddings, block, device)[0].sum(0) for block in blocks]).sum(0) / n
    left = torch.ones((n, d + 2), dtype=torch.float32, device=device)
    for part, block in zip(left.split(LIMITS.block_rows), blocks, strict=True):
        part[:, :d] = unit_rows(embeddings, block, device)[0] - center
    left[:, d + 1] = -left[:, :d].square().sum(1) / 2
    right = left[:, [*range(d), d + 1, d]]

    # Each tile is used for its rows and its columns. What is kept is which tile has the nearest row, since amax is
    # several times as fast as argmax, and a tile before which none is tied with it. A row meets its tiles in order.
    best = torch.full((n,), -math.inf, device=device)
    tile_of, first_tile = torch.zeros((2, n), dtype=torch.int64, device=device)
    step = LIMITS.tile_rows
    tiles = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    for i, part in enumerate(tiles):
        for j in range(i, len(tiles)):
            similarities = left[part] @ right[tiles[j]].T
            if i == j:
                similarities.fill_diagonal_(-math.inf)
            for place, values, other in ((part, similarities.amax(1), j), (tiles[j], similarities.amax(0), i)):
                tile_of[place].masked_fill_(values > best[place], other)
                first_tile[place].masked_fill_(values > best[place] + TIE, other)
                best[place] = torch.maximum(best[place], values)

    nearest, first = torch.full((2, n), -1, dtype=torch.int64, device=device)
    for j, tile in enumerate(tiles):
        is_due = (tile_of == j) | ((first_tile <= j) & (first < 0))
        for some in torch.nonzero(is_due).squeeze(1).split(LIMITS.block_rows):
            similarities = left[some] @ right[tile].T
            itself = some[:, None] == torch.arange(tile.start, tile.stop, device=device)
            similarities.masked_fill_(itself, -math.inf)
            has_best = tile_of[some] == j
            nearest[some[has_best]] = similarities[has_best].argmax(1) + tile.start
            least = best[some] - TIE
            is_first = (first[some] < 0) & (similarities.amax(1) >= least)
            first[some[is_first]] = _first_from(similarities[is_first], least[is_first]) + tile.start
    return nearest.cpu().numpy(), torch.where(first < 0, nearest, first).cpu().numpy()


def mean_pairwise_distances(embeddings: np.ndarray, sizes: np.ndarray, *, device: str = "cpu") -> np.ndarray:
    """Mean cosine distance over all pairs of different texts of a set: 1 - self-CosSim, in linear time.

    The similarities of all pairs add up to the squared length of the sum of the unit vectors. Maps embeddings (n, d),
    rows non-zero, set after set, and sizes (m,), all >= 2, to (m,), in [0, 2]; higher is more diverse.
    """
    means = np.empty(len(sizes))
    for members, rows in batches_by_size(sizes, LIMITS.block_rows):
        n = rows.shape[1]
        total = torch.stack([unit_rows(embeddings, block, device).sum(1) for block in _blocks(rows)]).sum(0)
        similarity = (total.square().sum(1) - n) / (n * (n - 1))
        means[members] = (1.0 - similarity).clamp(0.0, 2.0).cpu().numpy()
    return means
