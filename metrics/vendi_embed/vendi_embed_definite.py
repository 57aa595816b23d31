"""Similarities made positive semi-definite, which the eigenvalues of the Vendi score require."""

from typing import Any

import numpy as np

from .core import EPSILONS, ROUNDED_ENTRY, ROUNDING, TIE, TextSets, find_similarities, float_type, split_matrices
from .vendi_embed_settings import VendiSettings

# Of `nearest_correlation`: it converges linearly, mostly within 100.
_MOST_PROJECTIONS = 500
# Decimal digits that similarities may have been rounded to, and the error that float32 adds.
_DIGITS = (3, 4, 5, 6)
_LAST_DIGIT = 1e-7


def definite_similarities(
    sets: TextSets, settings: VendiSettings
) -> tuple[list[np.ndarray], dict[str, Any], float | None]:
    """Find similarities by `find_similarities`, and make them positive semi-definite.

    Also returns the largest change of the similarities of a model. Raises a ValueError for given similarities that are
    far from it.
    """
    matrices, signed = find_similarities(sets, settings)
    if settings.by_pair_model:
        definite = [_repaired(nearest_correlation(matrix), "float32", "similarity") for matrix in matrices]
        changes = [float(np.abs(new - old).max()) for new, old in zip(definite, matrices, strict=True)]
        return definite, signed, max(changes)
    given = split_matrices(settings.similarity, sets)
    kinds = [float_type(matrix) for matrix in given.values()]
    return list(map(_repaired, matrices, kinds, given)), signed, None


def nearest_correlation(matrix: np.ndarray) -> np.ndarray:
    """Find the positive semi-definite matrix with unit diagonal that is nearest in the Frobenius norm.

    Alternating projections with Dykstra's correction; a matrix (k, k), symmetric, that is one to within rounding is
    returned unchanged. See Higham, N. J. (2002). Computing the nearest correlation matrix: a problem from finance.
    IMA J. Numer. Anal. 22, 329-343.
    """
    if np.linalg.eigvalsh(matrix)[0] >= -2 * np.sqrt(len(matrix)) * EPSILONS["float32"]:
        return matrix
    nearest = matrix
    correction = np.zeros_like(matrix)
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


def _repaired(kernel: np.ndarray, kind: str, name: str) -> np.ndarray:
    """Make a slightly indefinite kernel (k, k) positive semi-definite, without the eigenvalues that are noise.

    A kernel that was computed with an error e of each entry loses the eigenvalues up to 2e√k, for e of its type, of
    float32 at most. One with negative eigenvalues, which show that its entries were rounded, loses those up to twice
    the magnitude of the most negative one, or up to `_noise_of_rounding` if that is enough. The rest is scaled to unit
    diagonal. A kernel without such eigenvalues is left as it is.

    Raises a ValueError for a negative eigenvalue that is neither within 1e-4 of the largest nor caused by rounding.
    """
    type_error = 2 * np.sqrt(len(kernel)) * min(EPSILONS[kind], EPSILONS["float32"])
    try:
        # Takes a fraction of the time of the eigenvalues.
        np.linalg.cholesky(kernel + (ROUNDING - type_error) * np.eye(len(kernel)))
        return kernel
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(kernel)
    rounding_noise = _noise_of_rounding(rounding_errors(kernel, kind))
    # Without the root of 3 in it, no error is larger.
    tolerance = max(ROUNDED_ENTRY * values[-1], np.sqrt(3) * rounding_noise)
    shown = max(-values[0], 0.0)
    if shown > tolerance:
        raise ValueError(
            f"{name} must be positive semi-definite, to within {tolerance:.3g}, which is {ROUNDED_ENTRY:g} of its "
            f"largest eigenvalue, or what rounding can cause. Got an eigenvalue of {values[0]:.3g}."
        )
    limit = max(type_error, 2 * shown)
    if shown <= rounding_noise:
        limit = min(limit, type_error + rounding_noise)
    # No text must vanish: at most half of its similarity with itself is lost.
    limit = min(limit, 0.5)
    rest = (vectors * np.where(values > limit, values, 0.0)) @ vectors.T
    roots = np.sqrt(rest.diagonal())
    return rest / np.outer(roots, roots)


def rounding_errors(kernel: np.ndarray, kind: str) -> np.ndarray:
    """Return the largest error that rounding to 16 bits, or to three to six digits, can have caused: (k, k).

    It is half a unit in the last place; 0 on the diagonal, and if the entries have more digits. Entries of 16 bits that
    were cast to a wider type are rounded, too.
    """
    import torch

    errors = np.zeros_like(kernel)
    for narrow in (torch.bfloat16, torch.float16):
        name = str(narrow).removeprefix("torch.")
        entries = torch.from_numpy(kernel)
        if name == kind or torch.equal(entries.to(narrow).double(), entries):
            # An entry is in [2^(e - 1), 2^e) for its exponent e.
            _, exponents = np.frexp(kernel)
            errors = np.ldexp(EPSILONS[name] / 4, exponents)
            break
    for digits in _DIGITS:
        if (np.abs(kernel - kernel.round(digits)) <= errors + _LAST_DIGIT).all():
            errors = np.maximum(errors, 0.5 * 10.0**-digits)
            break
    np.fill_diagonal(errors, 0.0)
    return errors


def _noise_of_rounding(errors: np.ndarray) -> float:
    """Bound the eigenvalues of a symmetric matrix (k, k) of independent errors, each uniform up to one of `errors`.

    Their spectrum is, for large k, within twice the root of the largest sum over a row of their variances, e² / 3. See
    Bandeira, A. S., & van Handel, R. (2016). Sharp nonasymptotic bounds on the norm of random matrices with independent
    entries. Annals of Probability 44, 2479-2506.
    """
    return 2 * float(np.sqrt((errors**2).sum(axis=1).max() / 3))
