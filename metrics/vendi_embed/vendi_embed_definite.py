"""Similarities made positive semi-definite, which the eigenvalues of the Vendi score require."""

from typing import Any

import numpy as np

from .core import EPSILONS, ROUNDED_ENTRY, ROUNDING, TIE, TextSets, find_similarities, float_type, split_matrices
from .vendi_embed_settings import VendiSettings

# Of `nearest_correlation`: it converges linearly, mostly within 100.
_MOST_PROJECTIONS = 500


def definite_similarities(
    sets: TextSets, settings: VendiSettings
) -> tuple[list[np.ndarray], dict[str, Any], float | None]:
    """Find similarities by `find_similarities`, and make them positive semi-definite.

    Returns the largest change of those of a model, too. Raises a ValueError for given ones that are far from it.
    """
    matrices, signed = find_similarities(sets, settings)
    if settings.by_pair_model:
        definite = [_repaired(nearest_correlation(matrix), EPSILONS["float32"], "similarity") for matrix in matrices]
        changes = [float(np.abs(new - old).max()) for new, old in zip(definite, matrices, strict=True)]
        return definite, signed, max(changes)
    given = split_matrices(settings.similarity, sets)
    epsilons = [EPSILONS[float_type(matrix)] for matrix in given.values()]
    return list(map(_repaired, matrices, epsilons, given)), signed, None


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
