"""Expected scores of subsets of k texts drawn without replacement, to compare sets of different sizes.

Where there is a formula, the expectation is exact. Elsewhere all different subsets are scored if there are few, else a
random sample of them. Each set is sampled by a seed from its own texts, so that the errors of different sets are
independent: they average out over sets, and the spread of the scores over sets includes them.

Subsets are made and scored in blocks, so that memory does not grow with the number of subsets times k.
"""

import hashlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import gather
from .core_numbers import parse_count
from .core_settings import Check, Settings

# Subsets drawn if there are more different ones, and the entries of a signature that say so.
DRAWS = 200
DRAWN = {"draws": DRAWS, "draw_seed": "content"}
# Texts of subsets scored at a time, and random numbers drawn at a time, to bound the memory.
_TEXTS_AT_ONCE = 2**13
_NUMBERS_AT_ONCE = 2**20
# Multiplicities whose subsets, and parts of their positions, are kept for the next set with the same.
_LISTS_KEPT = 32


class Expected(NamedTuple):
    """Expected scores, with their standard errors.

    means : ndarray of shape (m, c); NaN for a set of fewer than k texts
    errors : ndarray of shape (m, c), the standard error of the mean; 0 where all subsets are scored
    """

    means: np.ndarray
    errors: np.ndarray


def subset_size(least: int = 1) -> Check:
    """Return the check of the size of subsets: an integer, at least `least`."""

    def check(value: Any, name: str) -> int:
        k = parse_count(value, name)
        if k < least:
            raise ValueError(f"{name} must be at least {least}: the score is undefined for fewer texts. Got {k}.")
        return k

    return check


def whole_sets_only(*names: str) -> Callable[[Settings], None]:
    """Return the check that none of these settings is given with `rarefy`."""

    def check(settings: Settings) -> None:
        passed = settings.passed()
        for name in names:
            if name in passed:
                raise ValueError(
                    f"{name} cannot be combined with rarefy, which scores subsets drawn at random: leave one out."
                )

    return check


def large_enough(k: int, sizes: np.ndarray) -> np.ndarray:
    """Find the sets of at least k texts that count, of sizes (m,): ndarray of shape (m,), bool.

    Warns
    -----
    UserWarning
        If sets are smaller, with their number.
    """
    large = sizes >= k
    if not large.all():
        warnings.warn(
            f"{int((~large).sum())} of {len(sizes)} sets have fewer than rarefy={k} texts: they have no score.",
            stacklevel=4,
        )
    return large


class _Subsets(NamedTuple):
    """Subsets of one set.

    parts : of their rows (r, k), flat indices of texts, in order; made when they are read
    chances : ndarray of shape (r,), the probability of each, summing to 1
    complete : whether these are all different subsets, or else a sample
    """

    parts: Iterable[np.ndarray]
    chances: np.ndarray
    complete: bool


def expected_distinct(holders: np.ndarray, owners: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Compute the expected number of classes in a subset of k texts (Hurlbert 1971).

    The probability that none of the h texts of a class is among k of n texts is C(n - h, k) / C(n, k).

    Parameters
    ----------
    holders : ndarray of shape (c,), h: the number of texts in each class, or that hold each n-gram
    owners : ndarray of shape (c,), the set of each class
    sizes : ndarray of shape (m,), n: the number of texts of each set, >= k

    Returns
    -------
    ndarray of shape (m,)
    """
    n, none = sizes[owners], np.ones(len(holders))
    for i in range(k if len(holders) else 0):
        none *= np.maximum(n - holders - i, 0) / (n - i)
    return np.bincount(owners, weights=1 - none, minlength=len(sizes))


def nearest_chances(n: int, k: int) -> np.ndarray:
    """Probability of each of the other n - 1 texts, nearest first, to be the nearest in a subset of k with one text.

    The r-th is the nearest if it is drawn and no nearer one is: C(n - 1 - r, k - 2) / C(n - 1, k - 1). They sum to 1.
    """
    left = n - 1 - np.arange(n - 1)
    # For each text: none of the nearer ones is drawn, and it is drawn itself.
    passed = np.cumprod(np.maximum(left - (k - 1), 0) / left)
    return np.concatenate([[1.0], passed[:-1]]) * np.minimum((k - 1) / left, 1.0)


def content_keys(texts: list[str], vectors: np.ndarray | None = None) -> np.ndarray:
    """Digest each text, with its row of `vectors` (n, d), the caller's own, if there are any: (n,), uint64.

    Digests are equal for equal texts, on any machine. The embeddings of an encoder are not used: their last digits
    depend on the batch.
    """
    keys = np.empty(len(texts), dtype=np.uint64)
    for i, text in enumerate(texts):
        content = text.encode()
        if vectors is not None:
            # No text in UTF-8 holds the byte between them; the sum turns -0 to 0.
            content += b"\xff" + (vectors[i].astype("<f8") + 0.0).tobytes()
        keys[i] = to_key(content)
    return keys


def to_key(content: bytes) -> int:
    """Digest bytes to 64 bits, the same on any machine."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def different_subsets(multiplicities: tuple[int, ...], k: int) -> tuple[np.ndarray, np.ndarray] | None:
    """List the different subsets of k texts of a set in which some are equal; None if there are more than `DRAWS`.

    Parameters
    ----------
    multiplicities : the number of texts of each group of equal ones
    k : in [1, number of texts]

    Returns
    -------
    taken : ndarray of shape (r, number of groups), the number of texts of each group in each subset
    chances : ndarray of shape (r,), the probability of each to be drawn; they sum to 1
    """
    from scipy.special import gammaln

    n_groups, n = len(multiplicities), sum(multiplicities)
    fewer = min(k, n - k)
    if not fewer:
        return np.array([multiplicities]), np.ones(1)
    # There are at least as many as groups, and as subsets of one text of each group.
    if n_groups > DRAWS or (fewer <= n_groups and math.comb(n_groups, fewer) > DRAWS):
        return None
    taken, left, rest = np.empty((1, 0), dtype=np.int64), np.array([k]), n
    for size in multiplicities:
        rest -= size
        low = np.maximum(left - rest, 0)
        choices = np.minimum(left, size) - low + 1
        if choices.sum() > DRAWS:
            return None
        before = np.repeat(np.arange(len(left)), choices)
        count = low[before] + _places(choices)
        taken, left = np.column_stack([taken[before], count]), left[before] - count
    sizes = np.array(multiplicities)
    logs = (gammaln(sizes + 1) - gammaln(taken + 1) - gammaln(sizes - taken + 1)).sum(axis=1)
    chances = np.exp(logs - logs.max())
    return taken, chances / chances.sum()


def subset_positions(taken: np.ndarray, multiplicities: np.ndarray) -> np.ndarray:
    """Return the positions of the texts of subsets, group after group, from the numbers of each group: (r, k)."""
    firsts = np.tile(np.cumsum(multiplicities) - multiplicities, len(taken))
    return (np.repeat(firsts, taken.ravel()) + _places(taken.ravel())).reshape(len(taken), -1)


def _places(counts: np.ndarray) -> np.ndarray:
    """Count up from 0 in each of consecutive groups of these sizes."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def draw_subsets(seed: bytes, n: int, k: int) -> Iterator[np.ndarray]:
    """Draw `DRAWS` subsets of k of n positions, independently, in parts: (r, k), each in ascending order."""
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    step = max(1, _NUMBERS_AT_ONCE // n)
    for start in range(0, DRAWS, step):
        # The k smallest of n independent numbers are at positions drawn without replacement.
        numbers = rng.random((min(step, DRAWS - start), n))
        yield np.sort(numbers.argpartition(k - 1, axis=1)[:, :k], axis=1)


def expected_over_subsets(
    score: Callable[[np.ndarray], np.ndarray],
    contents: np.ndarray,
    sizes: np.ndarray,
    k: int,
    groups: np.ndarray | None = None,
) -> Expected:
    """Average scores over subsets of k texts of each set.

    The result for a set depends neither on the order of its texts nor on other sets.

    Parameters
    ----------
    score : a function of the rows (b, k) of b subsets to their scores (b, c)
    contents : ndarray of shape (n,), as by `content_keys`: what the seed of a set is made from
    sizes : ndarray of shape (m,), the number of texts of each set
    groups : ndarray of shape (n,), equal for texts of a set that can take each other's place in any subset, as equal
        texts can; `contents` if None. Their order is that in which texts are drawn.
    """
    step = max(1, _TEXTS_AT_ONCE // k)
    means: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    chosen = _subsets(contents, contents if groups is None else groups, sizes, k)
    for batch in gather(chosen, lambda subsets: len(subsets.chances) * k, _TEXTS_AT_ONCE):
        parts = itertools.chain.from_iterable(subsets.parts for subsets in batch)
        values = np.concatenate([score(rows) for rows in _blocks(parts, step)])
        ends = np.cumsum([len(subsets.chances) for subsets in batch])
        for subsets, scores in zip(batch, np.split(values, ends[:-1]), strict=True):
            means.append(subsets.chances @ scores)
            deviations = np.zeros(scores.shape[1]) if subsets.complete else scores.std(axis=0, ddof=1)
            errors.append(deviations / math.sqrt(len(scores)))
    expected = np.full((2, len(sizes), means[0].size if means else 1), np.nan)
    if means:
        expected[:, sizes >= k] = means, errors
    return Expected(*expected)


def _subsets(contents: np.ndarray, groups: np.ndarray, sizes: np.ndarray, k: int) -> Iterator[_Subsets]:
    """Choose the subsets of each set of at least k texts, in order."""
    listed = lru_cache(_LISTS_KEPT)(different_subsets)
    step = max(1, _TEXTS_AT_ONCE // k)

    @lru_cache(_LISTS_KEPT)
    def listed_positions(multiplicities: tuple[int, ...], start: int) -> np.ndarray:
        subsets = listed(multiplicities, k)
        assert subsets is not None
        return subset_positions(subsets[0][start : start + step], np.array(multiplicities))

    order = np.lexsort((groups, np.repeat(np.arange(len(sizes)), sizes)))
    ends = np.cumsum(sizes)
    for i in np.flatnonzero(sizes >= k).tolist():
        rows = order[ends[i] - sizes[i] : ends[i]]
        set_groups = groups[rows]
        counts = np.diff(np.flatnonzero(np.concatenate([[True], set_groups[1:] != set_groups[:-1], [True]])))
        multiplicities = tuple(counts.tolist())
        different = listed(multiplicities, k)
        if different is None:
            # The groups tell sets of classes apart whose texts are mere names.
            content = np.sort(contents[rows]).astype("<u8").tobytes() + counts.astype("<u8").tobytes()
            drawn = draw_subsets(hashlib.blake2b(content, digest_size=16).digest(), len(rows), k)
            yield _Subsets(map(rows.__getitem__, drawn), np.full(DRAWS, 1 / DRAWS), complete=False)
        else:
            _, chances = different
            positions = map(partial(listed_positions, multiplicities), range(0, len(chances), step))
            yield _Subsets(map(rows.__getitem__, positions), chances, complete=True)


def _blocks(parts: Iterable[np.ndarray], step: int) -> Iterator[np.ndarray]:
    """Concatenate and split parts of rows (r, k), so that each but the last has `step` rows."""
    pending: list[np.ndarray] = []
    n_rows = 0
    for part in parts:
        start = 0
        while n_rows + len(part) - start >= step:
            end = start + step - n_rows
            yield np.concatenate([*pending, part[start:end]])
            pending, n_rows, start = [], 0, end
        if start < len(part):
            pending.append(part[start:])
            n_rows += len(part) - start
    if pending:
        yield np.concatenate(pending)
