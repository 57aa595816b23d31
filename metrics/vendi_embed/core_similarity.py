"""Similarities of the texts of each set: matrices that the caller computed, in place of an encoder."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .core_encoder import EncoderSettings
from .core_inputs import TextSets, as_list
from .core_numbers import EPSILONS, float_type, parse_matrix
from .core_results import UNBOUNDED
from .core_settings import PAIR, TEXT, setting

# How far a matrix may be from a symmetric, positive semi-definite one with unit diagonal.
_TOLERANCE = 1e-4
# Rounding of eigenvalues in float64.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class SourceSettings(EncoderSettings):
    """Where similarities come from: an encoder, or embeddings or similarities that the caller gives."""

    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED)
    similarity: Any = setting(None, given=PAIR, numbers=UNBOUNDED)

    def check(self) -> None:
        """Raise an error if both embeddings and similarities are given."""
        super().check()
        if self.embeddings is not None and self.similarity is not None:
            raise ValueError("embeddings and similarity are both given: pass one of them.")


def parse_similarity(values: Any, sets: TextSets, *, repair: bool = False) -> list[np.ndarray]:
    """Read a matrix for each set; one matrix where the predictions are one flat set.

    Parameters
    ----------
    repair : whether slightly indefinite matrices are made positive semi-definite, as by `_repaired`

    Returns
    -------
    list of m ndarrays of shape (k, k), float64, with equal halves and a diagonal of 1

    Raises
    ------
    TypeError
        If it is not a list, or a matrix is not of numbers.
    ValueError
        If a matrix is not of shape (k, k) for the k texts of its set, finite, in [-1, 1], symmetric and positive
        semi-definite, with unit diagonal, to within 1e-4. The message names the set and the entry.
    """
    is_one = not sets.nested and len(sets.sizes) == 1
    matrices = [values] if is_one else as_list(values, "similarity", "a list of matrices, one for each set")
    if len(matrices) != len(sets.sizes):
        raise ValueError(
            f"similarity must have one matrix for each of the {len(sets.sizes)} sets. Got {len(matrices)}."
        )
    names = ["similarity" if is_one else f"similarity[{i}]" for i in range(len(matrices))]
    kernels = []
    for matrix, size, name in zip(matrices, sets.sizes.tolist(), names, strict=True):
        kernel = _parse_kernel(matrix, size, name)
        repaired = _repaired(kernel, EPSILONS[float_type(matrix)], name)
        kernels.append(repaired if repair else kernel)
    return kernels


def _parse_kernel(values: Any, size: int, name: str) -> np.ndarray:
    matrix = parse_matrix(values, size, name).astype(np.float64)
    if matrix.shape != (size, size):
        raise ValueError(f"{name} must have shape ({size}, {size}). Got shape {matrix.shape}.")
    apart = np.abs(matrix - matrix.T)
    rules = (
        (~np.isfinite(matrix), "be finite"),
        (
            np.diag(np.abs(matrix.diagonal() - 1) > _TOLERANCE),
            f"be 1, the similarity of a text with itself, to within {_TOLERANCE:g}",
        ),
        (np.abs(matrix) > 1 + _TOLERANCE, "be in [-1, 1]"),
        (apart > _TOLERANCE, f"equal its mirror image, to within {_TOLERANCE:g}: the matrix must be symmetric"),
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
        np.linalg.cholesky(kernel + (_ROUNDING - level) * np.eye(len(kernel)))
        return kernel
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(kernel)
    if values[0] < -_TOLERANCE * values[-1]:
        raise ValueError(
            f"{name} must be positive semi-definite, to within {_TOLERANCE:g} of its largest eigenvalue, "
            f"{values[-1]:.3g}. Got an eigenvalue of {values[0]:.3g}."
        )
    # No text must vanish: at most half of its similarity with itself is lost.
    limit = min(max(level, -2 * values[0]), 0.5)
    rest = (vectors * np.where(values > limit, values, 0.0)) @ vectors.T
    roots = np.sqrt(rest.diagonal())
    return rest / np.outer(roots, roots)
