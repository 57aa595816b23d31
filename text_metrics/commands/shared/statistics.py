"""Significance tests of the difference of two paired scores, and what many tests and their power require."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from text_metrics.metrics._core.core_results import UNBOUNDED, Estimate

# Scores that differ by less are equal: smoothing and rounding leave such differences.
TIE = 1e-6
RESAMPLES = 9999
_SEED = 0
_DRAWN_AT_ONCE = 4_000_000
POWER = 0.8


def randomization_p(differences: np.ndarray, resamples: int = RESAMPLES) -> float:
    """Two-sided p-value of paired approximate randomization (Noreen 1989), that the mean difference is 0.

    If the two sides are exchangeable, each difference could as well have the other sign. p is the share of random signs
    whose sum is at least as far from 0, including the observed signs; of all signs, if there are at most that many.
    `scipy.stats.permutation_test` computes the same, and takes about a hundred times as long.

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
    # What rounding makes of equal sums must not decide.
    reached = abs(differences.sum()) - 1e-9 * moving.sum()
    if len(moving) < resamples.bit_length():
        every = np.arange(2 ** len(moving))[:, None] >> np.arange(len(moving)) & 1
        return float((np.abs(2.0 * (every @ moving) - moving.sum()) >= reached).mean())
    rng = np.random.default_rng(_SEED)
    step = max(1, _DRAWN_AT_ONCE // len(moving))
    as_far = 0
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        flipped = rng.integers(0, 2, (count, len(moving)), dtype=np.int8)
        as_far += int((np.abs(2.0 * (flipped @ moving) - moving.sum()) >= reached).sum())
    return (as_far + 1) / (resamples + 1)


def mean_p(difference: Estimate) -> float | None:
    """Two-sided p-value of the hypothesis that a mean difference is 0, whatever the shape of its distribution.

    It is that of Student's t test after Hall's transformation, which removes the skewness of t: below 1 - level exactly
    if `difference.interval(level)` does not contain 0.

    Returns
    -------
    float in [0, 1]; None if there are fewer than two units, or if they are equal and not 0
    """
    if difference.error > 0:
        from scipy.stats import t

        return float(2 * t.sf(abs(difference.transformed_t()), difference.degrees))
    return 1.0 if difference.error == 0 and difference.value == 0 else None


def mean_test(difference: Estimate, level: float) -> dict[str, Any]:
    """Return a mean difference with its confidence interval and the p-value of the hypothesis that it is 0."""
    interval = difference.interval(level, UNBOUNDED)
    return {"mean": difference.value, "interval": interval, "p": mean_p(difference)}


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests, so that a true hypothesis is seldom rejected in any of them.

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
    known = [i for i, value in enumerate(values) if value is not None]
    ordered = sorted(known, key=lambda i: (values[i], i))
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, i in enumerate(ordered):
        largest = max(largest, min(1.0, (len(known) - rank) * float(values[i] or 0.0)))
        adjusted[i] = largest
    return adjusted


def smallest_difference(difference: Estimate, level: float) -> float:
    """Return the smallest true mean difference that the test of this many units rejects with a probability of 80 %.

    It is (t_(1 + level)/2 + t_0.8) standard errors, with Student's t: an approximation of the noncentral t that is
    slightly too large for few units.
    """
    # Its import takes a second.
    from scipy.stats import t

    degrees = difference.degrees
    return float((t.ppf((1 + level) / 2, degrees) + t.ppf(POWER, degrees)) * difference.error)
