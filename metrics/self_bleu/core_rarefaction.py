"""Expected scores of subsets of k texts drawn without replacement, to compare sets of different sizes.

Where there is a formula, the expectation is exact. Elsewhere all subsets are scored if there are few, else a seeded
sample of them.
"""

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .core_numbers import parse_count

# Subsets drawn if there are more.
DRAWS = 200
_SEED = 0
# Texts of subsets scored at a time, to bound the memory.
_TEXTS_AT_ONCE = 2**15


class Expected(NamedTuple):
    """Expected scores, with their standard errors.

    means : ndarray of shape (m, c); NaN for a set of fewer than k texts
    errors : ndarray of shape (m, c), the standard error of the mean; 0 where all subsets are scored
    """

    means: np.ndarray
    errors: np.ndarray


def parse_rarefy(value: Any, sizes: np.ndarray, least: int = 1) -> int | None:
    """Read the size of the subsets: an integer, at least `least`; None for the whole sets.

    Parameters
    ----------
    sizes : ndarray of shape (m,), the number of texts of each set that count

    Warns
    -----
    UserWarning
        If sets are smaller, with their number.
    """
    if value is None:
        return None
    k = parse_count(value, "rarefy")
    if k < least:
        raise ValueError(f"rarefy must be at least {least}: the score is undefined for fewer texts. Got {k}.")
    n_small = int((sizes < k).sum())
    if n_small:
        warnings.warn(
            f"{n_small} of {len(sizes)} sets have fewer than rarefy={k} texts: they have no score.", stacklevel=4
        )
    return k


def check_rarefy(rarefy: Any, **others: Any) -> None:
    """Raise an error if the size is none, or a setting is given that has no meaning for subsets drawn at random."""
    if rarefy is not None:
        parse_count(rarefy, "rarefy")
    for name, value in others.items():
        if rarefy is not None and value is not None and value is not False:
            raise ValueError(
                f"{name} cannot be given with rarefy, which scores subsets drawn at random: leave one out."
            )


def rarefaction_settings(k: int | None) -> dict[str, object]:
    """Return the entries of a signature; none for whole sets."""
    return {} if k is None else {"rarefy": k, "draws": DRAWS, "draw_seed": _SEED}


def chance_of_none(holders: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Probability that a subset of k texts holds none of some texts: C(n - h, k) / C(n, k).

    Parameters
    ----------
    holders : ndarray of shape (c,), h: the number of these texts in the set
    sizes : ndarray of shape (c,), n: the number of texts of the set, >= k

    Returns
    -------
    ndarray of shape (c,), in [0, 1]
    """
    chance = np.ones(len(holders))
    for i in range(k if len(holders) else 0):
        chance *= np.maximum(sizes - holders - i, 0) / (sizes - i)
    return chance


def expected_distinct(holders: np.ndarray, owners: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Compute the expected number of classes in a subset of k texts (Hurlbert 1971).

    Parameters
    ----------
    holders : ndarray of shape (c,), the number of texts in each class, or that hold each n-gram
    owners : ndarray of shape (c,), the set of each class
    sizes : ndarray of shape (m,), the number of texts of each set, >= k

    Returns
    -------
    ndarray of shape (m,)
    """
    found = 1 - chance_of_none(holders, sizes[owners], k)
    return np.bincount(owners, weights=found, minlength=len(sizes))


def nearest_chances(n: int, k: int) -> np.ndarray:
    """Probability of each of the other n - 1 texts, nearest first, to be the nearest in a subset of k with one text.

    The r-th is the nearest if it is drawn and no nearer one is: C(n - 1 - r, k - 2) / C(n - 1, k - 1).

    Returns
    -------
    ndarray of shape (n - 1,), summing to 1
    """
    left = n - 1 - np.arange(n - 1)
    # For each text: none of the nearer ones is drawn, and it is drawn itself.
    passed = np.cumprod(np.maximum(left - (k - 1), 0) / left)
    return np.concatenate([[1.0], passed[:-1]]) * np.minimum((k - 1) / left, 1.0)


def subsets(n: int, k: int) -> tuple[np.ndarray, bool]:
    """Choose subsets of k of n positions: all of them, or a seeded sample of `DRAWS` if there are more.

    Returns
    -------
    positions : ndarray of shape (r, k)
    complete : whether these are all
    """
    if math.comb(n, k) <= DRAWS:
        return np.array(list(itertools.combinations(range(n), k)), dtype=np.int64), True
    rng = np.random.default_rng((_SEED, n, k))
    return np.stack([rng.choice(n, k, replace=False) for _ in range(DRAWS)]), False


def expected_over_subsets(
    score: Callable[[np.ndarray], np.ndarray], ranks: np.ndarray, sizes: np.ndarray, k: int
) -> Expected:
    """Average scores over subsets of k texts of each set.

    Parameters
    ----------
    score : a function of the rows (b, k) of b subsets to their scores (b, c)
    ranks : ndarray of shape (n,), as by `content_ranks`: positions are drawn in this order, so that the draw depends
        neither on the order of the texts nor on other sets
    sizes : ndarray of shape (m,), the number of texts of each set
    """
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes >= k]).tolist():
        positions, complete = subsets(size, k)
        same = np.flatnonzero(sizes == size)
        step = max(1, _TEXTS_AT_ONCE // positions.size)
        for start in range(0, len(same), step):
            members = same[start : start + step]
            rows = starts[members, None] + np.arange(size)
            rows = np.take_along_axis(rows, np.argsort(ranks[rows], axis=1, kind="stable"), axis=1)
            values = score(rows[:, positions].reshape(-1, k)).reshape(len(members), len(positions), -1)
            spread = np.zeros_like(values[:, 0]) if complete else values.std(axis=1, ddof=1) / math.sqrt(len(positions))
            found.append((members, values.mean(axis=1), spread))
    width = found[0][1].shape[1] if found else 1
    means, errors = np.full((len(sizes), width), np.nan), np.full((len(sizes), width), np.nan)
    for members, mean, error in found:
        means[members], errors[members] = mean, error
    return Expected(means, errors)
