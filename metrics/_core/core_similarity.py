"""Similarities of the texts of each set: matrices that the caller computed, in place of an encoder."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .core_distances import BLOCK_ROWS, to_tensor, unit_rows
from .core_encoder import EncoderSettings
from .core_inputs import TextSets, batches_by_size, content_ranks, parse_embeddings
from .core_numbers import EPSILONS, describe, float_type, parse_matrix
from .core_rarefaction import content_keys, to_key
from .core_results import UNBOUNDED, given_digest
from .core_settings import PAIR, TEXT, setting

# How far a matrix may be from a symmetric, positive semi-definite one with unit diagonal.
_TOLERANCE = 1e-4
# Rounding of eigenvalues in float64, which `ROW_ERROR` of core_spectra covers.
_ROUNDING = 1e-9

Kernels = Iterable[tuple[np.ndarray, np.ndarray]]


class Similarities:
    """The similarities of the n texts of m sets, each with the texts of its own set.

    Parameters
    ----------
    batches : pairs of the indices (b,) of sets of equal size k, and their matrices (b, k, k)
    sizes : ndarray of shape (m,), the number of texts of each set
    types : the floating-point types in which the m matrices were given; float64 if None
    """

    def __init__(self, batches: Kernels, sizes: np.ndarray, types: list[str] | None = None) -> None:
        self.sizes, self._types = sizes, types or ["float64"] * len(sizes)
        self._ends = np.cumsum(sizes)
        self._corners = np.cumsum(sizes**2) - sizes**2
        self._entries = np.empty(int((sizes**2).sum()))
        for members, matrices in batches:
            places = self._corners[members, None] + np.arange(matrices[0].size)
            self._entries[places] = matrices.reshape(len(members), -1)

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def __getitem__(self, rows: np.ndarray) -> "Similarities":
        """Keep the texts at some flat indices, in order, and the sets that have any."""
        counts = np.bincount(np.searchsorted(self._ends, rows, side="right"), minlength=len(self.sizes))
        sizes = counts[counts > 0]
        batches = batches_by_size(sizes, BLOCK_ROWS)
        return Similarities(
            ((members, self.between(rows[positions], rows[positions])) for members, positions in batches), sizes
        )

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Look up the similarities (b, p, k) of texts (b, p) with texts (b, k), flat indices in one set each."""
        sets = np.searchsorted(self._ends, rows[:, :1], side="right")
        sizes, first = self.sizes[sets], (self._ends - self.sizes)[sets]
        lines = self._corners[sets] + (rows - first) * sizes
        return self._entries[lines[:, :, None] + (columns - first)[:, None]]

    def kernels(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices (b,) of sets of equal size k, and their matrices (b, k, k)."""
        for members, rows in batches_by_size(self.sizes, BLOCK_ROWS):
            yield members, self.between(rows, rows)

    def repaired(self) -> "Similarities":
        """Return positive semi-definite matrices, as by `repair_kernels`."""
        batches = self.kernels()
        return Similarities(
            ((members, repair_kernels(kernels, [self._types[i] for i in members])) for members, kernels in batches),
            self.sizes,
        )

    def signed(self) -> dict[str, str]:
        """Return the entry of a signature: a digest of the matrices and of the types in which they were given."""
        matrices = zip(np.split(self._entries, self._corners[1:]), self._types, strict=True)
        return {"similarity": given_digest(matrix * EPSILONS[kind] for matrix, kind in matrices)}

    def mean_pairwise_distances(self) -> np.ndarray:
        """Mean of 1 - similarity over all pairs of different texts of a set: (m,), for sets of at least two."""
        sums = np.add.reduceat(self._entries, self._corners) - self.sizes
        return np.clip(1.0 - sums / (self.sizes * (self.sizes - 1)), 0.0, 2.0)

    def ranks(self, texts: list[str], qualities: np.ndarray | None = None) -> np.ndarray:
        """Rank the texts of each set by content, whatever the order of the set: (n,), int64, from 0 in each set.

        Texts of equal names are distinguished by their similarities, then by their qualities (n,).
        """
        names = np.split(content_ranks(texts), self._ends[:-1])
        ties = np.split(np.zeros(len(self)) if qualities is None else qualities, self._ends[:-1])
        return np.concatenate([_canonical_ranks(*keys) for keys in zip(names, ties, self._squares(), strict=True)])

    def content_keys(self, texts: list[str], qualities: np.ndarray | None = None) -> np.ndarray:
        """Digest each text with its similarities, as `content_keys` of core_rarefaction does with an embedding: (n,).

        The digests of two texts of a set are equal if their names and all their similarities are.
        """
        keys = np.empty(len(self), dtype=np.uint64)
        ranks = np.split(self.ranks(texts, qualities), self._ends[:-1])
        for end, set_ranks, square in zip(self._ends.tolist(), ranks, self._squares(), strict=True):
            order = np.argsort(set_ranks)
            start = end - len(order)
            rows = [texts[start + i].encode() + b"\xff" + square[i, order].astype("<f8").tobytes() for i in order]
            whole = hashlib.blake2b(b"".join(rows), digest_size=16).digest()
            keys[start + order] = [to_key(whole + row) for row in rows]
        return keys

    def _squares(self) -> Iterator[np.ndarray]:
        """Yield the matrix of each set, in order; 0 has no sign."""
        for size, entries in zip(self.sizes.tolist(), np.split(self._entries, self._corners[1:]), strict=True):
            yield entries.reshape(size, size) + 0.0


def _canonical_ranks(names: np.ndarray, ties: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Rank the k texts of a set by name, then by their similarities (k, k), then by `ties`: a permutation.

    Of texts that none of these distinguishes, one is put first, and the others are compared with it. Texts that colour
    refinement (Weisfeiler and Leman) does not distinguish are treated as equal.
    """
    if len(np.unique(names)) == len(names):
        return np.argsort(np.argsort(names))
    # Texts that are equal in all respects may be in any order.
    _, first, equal, counts = np.unique(
        _ranks(ties, _digests(matrix), names), return_index=True, return_inverse=True, return_counts=True
    )
    ranks = _ranks(ties[first], counts, _digests(np.sort(matrix, axis=1))[first], names[first])
    matrix = matrix[np.ix_(first, first)]
    n_ranks = 0
    while (now := len(np.unique(ranks))) < len(ranks):
        if now == n_ranks:
            values, sharing = np.unique(ranks, return_counts=True)
            tied = np.flatnonzero(ranks == values[sharing > 1][0])
            ranks[tied[1:]] += 1
        order = np.lexsort((matrix, np.broadcast_to(ranks, matrix.shape)))
        n_ranks, ranks = now, _ranks(_digests(np.take_along_axis(matrix, order, axis=1)), ranks)
    return np.argsort(np.argsort(ranks[equal], kind="stable"))


def _digests(rows: np.ndarray) -> np.ndarray:
    return np.array([to_key(row.tobytes()) for row in rows], dtype=np.uint64)


def _ranks(*keys: np.ndarray) -> np.ndarray:
    """Rank by the last key, then by the one before: the number of smaller items, equal for equal ones."""
    order = np.lexsort(keys)
    new = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(np.where(np.concatenate([[True], new]), np.arange(len(order)), 0))
    return ranks


def parse_similarity(values: Any, sets: TextSets) -> Similarities:
    """Read a matrix for each set; one matrix where the predictions are one flat set.

    Within the tolerance, the mean of both halves is taken, and a diagonal of 1.

    Raises
    ------
    TypeError
        If it is not a list, or a matrix is not of numbers.
    ValueError
        If a matrix is not of shape (k, k) for the k texts of its set, finite, in [-1, 1], symmetric and positive
        semi-definite, with unit diagonal. The message names the set and the entry.
    """
    is_one = not sets.nested and len(sets.sizes) == 1
    try:
        matrices = [values] if is_one else list(values)
    except TypeError:
        raise TypeError(f"similarity must be a list of matrices, one for each set. Got {describe(values)}.") from None
    if len(matrices) != len(sets.sizes):
        raise ValueError(
            f"similarity must have one matrix for each of the {len(sets.sizes)} sets. Got {len(matrices)}."
        )
    names = ["similarity" if is_one else f"similarity[{i}]" for i in range(len(matrices))]
    squares = []
    for matrix, size, name in zip(matrices, sets.sizes.tolist(), names, strict=True):
        squares.append(parse_matrix(matrix, size, name))
        if squares[-1].shape != (size, size):
            raise ValueError(f"{name} must have shape ({size}, {size}). Got shape {squares[-1].shape}.")

    def checked() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for members, _ in batches_by_size(sets.sizes, BLOCK_ROWS):
            stack = np.stack([squares[i] for i in members]).astype(np.float64)
            yield members, check_kernels(stack, [names[i] for i in members])

    return Similarities(checked(), sets.sizes, [float_type(matrix) for matrix in matrices])


def check_kernels(matrices: np.ndarray, names: list[str]) -> np.ndarray:
    """Check matrices (b, k, k), and return them with equal halves and a diagonal of 1.

    Raises a ValueError if one is not, to within the tolerance, symmetric and positive semi-definite with unit diagonal.
    """

    def refuse(bad: np.ndarray, must: str) -> None:
        if bad.any():
            which, i, j = np.argwhere(bad)[0].tolist()
            got = float(matrices[which, i, j])
            raise ValueError(f"{names[which]}[{i}][{j}] must {must.format(i=i, j=j)}. Got {got:.6g}.")

    turned = matrices.transpose(0, 2, 1)
    diagonal = np.arange(matrices.shape[1])
    refuse(~np.isfinite(matrices), "be finite")
    off = np.zeros(matrices.shape, dtype=bool)
    off[:, diagonal, diagonal] = np.abs(matrices[:, diagonal, diagonal] - 1) > _TOLERANCE
    refuse(off, f"be 1, the similarity of a text with itself, to within {_TOLERANCE:g}")
    refuse(np.abs(matrices) > 1 + _TOLERANCE, "be in [-1, 1]")
    refuse(np.abs(matrices - turned) > _TOLERANCE, f"equal entry [{{j}}][{{i}}], to within {_TOLERANCE:g}")
    even = (matrices + turned) / 2
    even[:, diagonal, diagonal] = 1.0
    if not _is_definite(even, np.full(len(even), _TOLERANCE)):
        eigenvalues = np.linalg.eigvalsh(even)
        bad = eigenvalues[:, 0] < -_TOLERANCE * eigenvalues[:, -1]
        if bad.any():
            which = int(np.argmax(bad))
            raise ValueError(
                f"{names[which]} must be positive semi-definite, to within {_TOLERANCE:g} of its largest eigenvalue, "
                f"{eigenvalues[which, -1]:.3g}. Got an eigenvalue of {eigenvalues[which, 0]:.3g}."
            )
    return even


def _is_definite(kernels: np.ndarray, shifts: np.ndarray) -> bool:
    """Whether all kernels (b, k, k), plus `shifts` (b,) on the diagonal, are positive definite."""
    try:
        # Takes a fraction of the time of the eigenvalues.
        np.linalg.cholesky(kernels + shifts[:, None, None] * np.eye(kernels.shape[1]))
    except np.linalg.LinAlgError:
        return False
    return True


def repair_kernels(kernels: np.ndarray, types: list[str]) -> np.ndarray:
    """Make slightly indefinite kernels (b, k, k) positive semi-definite, without the eigenvalues that are noise.

    Independent errors of the entries, of size e, give eigenvalues between about -2e√k and 2e√k. So a kernel loses the
    eigenvalues up to that, for the rounding of its type, and those up to twice its most negative one, which shows the
    errors of numbers that were rounded before. The rest is scaled to unit diagonal. A kernel without such eigenvalues
    is left as it is.

    Parameters
    ----------
    kernels : with equal halves and unit diagonal
    types : the b floating-point types in which they were given, as by `float_type`
    """
    levels = 2 * np.sqrt(kernels.shape[1]) * np.array([EPSILONS[kind] for kind in types])
    if _is_definite(kernels, _ROUNDING - levels):
        return kernels
    values, vectors = np.linalg.eigh(kernels)
    is_noisy = values[:, 0] < levels - _ROUNDING
    # No text must vanish: at most half of its similarity with itself is lost.
    limits = np.minimum(np.maximum(levels, -2 * values[:, 0]), 0.5)
    signal = np.where(values > limits[:, None], values, 0.0)
    rest = (vectors * signal[:, None]) @ vectors.transpose(0, 2, 1)
    roots = np.sqrt(np.einsum("bii->bi", rest))
    rest /= roots[:, :, None] * roots[:, None]
    return np.where(is_noisy[:, None, None], rest, kernels)


def _in_place_of_encoder(settings: EncoderSettings) -> None:
    """Raise an error if embeddings or settings of an encoder are given beside similarities."""
    if settings.passed().get("embeddings") is not None:
        raise ValueError("embeddings and similarity are both given: pass one of them.")
    settings.check_unused("similarity is given")


@dataclass(frozen=True, kw_only=True)
class SourceSettings(EncoderSettings):
    """Where similarities come from: an encoder, or embeddings or similarities that the caller gives."""

    embeddings: Any = setting(None, given=TEXT, numbers=UNBOUNDED, concatenated=True)
    similarity: Any = setting(None, given=PAIR, numbers=UNBOUNDED, conflicts=_in_place_of_encoder)


def source_keys(
    sets: TextSets, similarities: Similarities | None, embeddings: Any, qualities: np.ndarray | None
) -> np.ndarray:
    """Digest each text with what the caller gave for it: (n,), as `content_keys` of core_rarefaction.

    Parameters
    ----------
    similarities, embeddings : those that the caller gave, or None
    qualities : ndarray of shape (n,), or None, for the order of texts that similarities do not tell apart
    """
    if similarities is not None:
        return similarities.content_keys(sets.texts, qualities)
    return content_keys(sets.texts, None if embeddings is None else parse_embeddings(embeddings, sets))


def comparison(
    compared: np.ndarray | Similarities, rows: np.ndarray, device: str
) -> Callable[[slice, slice], torch.Tensor]:
    """Return a function from two slices of the positions 0 to k - 1 to the similarities of the texts there.

    Parameters
    ----------
    compared : ndarray of shape (n, d), embeddings, whose cosine is taken; or similarities
    rows : ndarray of shape (b, k), flat indices of texts of one set each

    Returns
    -------
    function from slices of p and of q positions to a new tensor of shape (b, p, q), float64
    """
    if isinstance(compared, Similarities):
        return lambda left, right: to_tensor(compared.between(rows[:, left], rows[:, right]), device)
    vectors = unit_rows(compared, rows, device)
    return lambda left, right: vectors[:, left] @ vectors[:, right].mT
