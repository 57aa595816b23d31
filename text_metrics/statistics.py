"""Significance tests of paired scores, and Holm's adjustment of several."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from text_metrics.core_api import ROUNDING, TIE, UNBOUNDED, Estimate, mean_estimate

RESAMPLES = 9999
_SEED = 0
_DRAWN_AT_ONCE = 4_000_000
POWER = 0.8


def randomization_p(differences: np.ndarray) -> float:
    """Two-sided p-value of paired approximate randomization (Noreen 1989), that the mean difference is 0.

    If the two sides are exchangeable, each difference could as well have the other sign. p is the share of random signs
    whose sum is at least as far from 0, including the observed signs; of all signs, if there are at most that many.

    The null hypothesis is that the distribution of the differences is symmetric about 0. If their mean is 0 and their
    distribution is skewed, the test rejects too often; `mean_p` allows for that.

    Parameters
    ----------
    differences : ndarray of shape (n,)

    Returns
    -------
    float in (0, 1]
    """
    moving = np.abs(differences[differences != 0])
    if not len(moving):
        return 1.0
    # Rounding errors of equal sums must not decide.
    reached = abs(differences.sum()) - ROUNDING * moving.sum()
    if len(moving) < RESAMPLES.bit_length():
        every = np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1
        return float((np.abs(2.0 * (every @ moving) - moving.sum()) >= reached).mean())
    rng = np.random.default_rng(_SEED)
    step = max(1, _DRAWN_AT_ONCE // len(moving))
    as_far = 0
    for start in range(0, RESAMPLES, step):
        count = min(step, RESAMPLES - start)
        flipped = rng.integers(0, 2, (count, len(moving)), dtype=np.int8)
        as_far += int((np.abs(2.0 * (flipped @ moving) - moving.sum()) >= reached).sum())
    return (as_far + 1) / (RESAMPLES + 1)


def mean_p(difference: Estimate) -> float | None:
    """Two-sided p-value of the hypothesis that a mean difference is 0.

    It is from Student's t test after Hall's transformation, which removes the skewness of t: below 1 - level exactly
    if `difference.interval(level)` does not contain 0.

    Returns
    -------
    float in [0, 1]; None if there are fewer than two units, or if they are equal and not 0
    """
    if difference.error > 0:
        return float(2 * stdtr(difference.n - 1, -abs(difference.transformed_t())))
    return 1.0 if difference.error == 0 and difference.value == 0 else None


def paired_test(first: np.ndarray, second: np.ndarray, level: float, units: np.ndarray | None = None) -> dict[str, Any]:
    """Test the mean difference of paired scores; differences below `TIE` count as 0.

    Parameters
    ----------
    first, second : ndarrays of shape (n,)
    units : ndarray of shape (n,), int: equal for scores that are not independent

    Returns
    -------
    dict with n_units, difference, and its interval and p, which are None for fewer than two units or equal ones;
    smallest_difference is the true mean difference that the test finds with a probability of 80 %, by Student's t
    """
    differences = np.where(np.abs(first - second) < TIE, 0.0, first - second)
    mean = mean_estimate(differences, units)
    p = mean_p(mean)
    smallest = None
    if mean.error > 0:
        smallest = float(mean.error * stdtrit(mean.n - 1, [(1 + level) / 2, POWER]).sum())
    return {
        "n_units": mean.n,
        "difference": mean.value,
        "interval": mean.interval(level, UNBOUNDED),
        "p": 1.0 if p is not None and abs(mean.value) < TIE else p,
        "smallest_difference": smallest,
    }


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests by Holm's step-down procedure.

    Parameters
    ----------
    values : p-values; None for a test that is undefined, which does not count

    Returns
    -------
    list of the adjusted p-values, in [0, 1], in order; below a level if Holm's step-down procedure rejects at it

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6, 65-70.
    """
    known = sorted((value, i) for i, value in enumerate(values) if value is not None)
    scaled = [min(1.0, (len(known) - rank) * value) for rank, (value, _) in enumerate(known)]
    adjusted = dict(zip((i for _, i in known), accumulate(scaled, max), strict=True))
    return [adjusted.get(i) for i in range(len(values))]
