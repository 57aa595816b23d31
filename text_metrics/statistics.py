"""Significance tests of paired and unpaired scores, Holm's adjustment of several, and drift over time."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from text_metrics.core_api import ROUNDING, TIE, UNBOUNDED, Bounds, Estimate, mean_estimate

RESAMPLES = 9999
_SEED = 0
_DRAWN_AT_ONCE = 4_000_000
POWER = 0.8
# Simulated studies, by which a power of 80 % is known to 0.9 points.
_STUDIES = 2000
MOST_PROMPTS = 2**24


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


def difference_bounds(bounds: Bounds, sizes: Sequence[float]) -> Bounds:
    """Return the range of the difference of two scores of this range, of sets with these two numbers of texts."""
    low, high = bounds
    first, second = (high(size) if callable(high) else high for size in sizes)
    return low - second, first - low


def paired_test(
    first: np.ndarray,
    second: np.ndarray,
    level: float,
    units: np.ndarray | None = None,
    n_tests: int = 1,
    bounds: Bounds = UNBOUNDED,
) -> dict[str, Any]:
    """Test the mean difference of paired scores; differences below `TIE` count as 0.

    Parameters
    ----------
    first, second : ndarrays of shape (n,)
    units : ndarray of shape (n,), int: equal for scores that are not independent
    n_tests : number of tests for which Holm's procedure adjusts p, for `smallest_difference`
    bounds : range of a difference, as `difference_bounds` gives it

    Returns
    -------
    dict with n_units, difference, and its interval and p, which are None for fewer than two units or equal ones;
    smallest_difference is the true mean difference that the test finds with a probability of 80 %, by Student's t, if
    there is no other difference among n_tests
    """
    differences = np.where(np.abs(first - second) < TIE, 0.0, first - second)
    mean = mean_estimate(differences, units)
    return {"n_units": mean.n, **_test(mean, level, bounds, n_tests)}


def unpaired_test(first: Estimate, second: Estimate, level: float, bounds: Bounds = UNBOUNDED) -> dict[str, Any]:
    """Test the difference of the means of two independent samples by Welch's t test after Hall's transformation.

    Returns
    -------
    dict with the entries of `paired_test`; n_units is the number of both samples
    """
    return {"n_units": first.n + second.n, **_test(contrast([first, second], [1, -1]), level, bounds)}


def contrast(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """Estimate the weighted sum of independent estimates, such as a difference of means (weights 1 and -1).

    Its degrees of freedom, `n` - 1, are those of Welch and Satterthwaite. Hall's transformation holds for it as for a
    mean: the covariance of a sum with the estimate of its variance is its third cumulant, in both cases.

    Returns
    -------
    Estimate, whose error is NaN if one of the estimates has fewer than two units

    References
    ----------
    Zhou, X.-H. and Dinh, P. (2005). Nonparametric confidence intervals for the one- and two-sample problems.
    Biostatistics 6, 187-200.
    """
    n, values, errors, skewness = np.array(estimates, dtype=np.float64).T
    factors = np.array(weights, dtype=np.float64)
    value = float(factors @ values)
    variances = (factors * errors) ** 2
    variance = float(variances.sum())
    if n.min() < 2 or not variance > 0:
        error = 0.0 if variance == 0 else math.nan
        return Estimate(n.sum(), value, error, error)
    freedom = float(variance**2 / (variances**2 / (n - 1)).sum())
    third_cumulant = float((factors**3 * errors**3 * skewness / np.sqrt(n)).sum())
    asymmetry = third_cumulant / variance**1.5
    return Estimate(freedom + 1, value, math.sqrt(variance), asymmetry * math.sqrt(freedom + 1))


def drift(latest: Estimate, earlier: Sequence[Estimate], level: float, bounds: Bounds = UNBOUNDED) -> dict[str, Any]:
    """Compare the latest mean with the average of earlier ones.

    Means vary because each is over a sample of items, and because times differ. The interval covers both: it is the
    union of the one of `contrast`, over items, and, of two means or more, of Student's prediction interval of another
    one, over times. `bounds` are the range of a difference.

    Returns
    -------
    dict with the mean of the earlier ones, and the difference of the latest one with its interval, None if unknown
    """
    n = len(earlier)
    over_items = contrast([latest, *earlier], [1.0, *[-1 / n] * n])
    over_times = mean_estimate(np.array([each.value for each in earlier]))
    # The error of the mean is s / sqrt(n), that of a prediction s * sqrt(1 + 1 / n).
    predicted = Estimate(n, over_items.value, over_times.error * math.sqrt(n + 1), 0.0)
    ends: list[float] = []
    for each in (over_items, predicted):
        if each.error >= 0:
            # What does not vary is exact.
            ends += each.interval(level, bounds) or [each.value]
    interval = [min(ends), max(ends)] if ends else None
    return {"mean": over_times.value, "difference": {"mean": over_items.value, "interval": interval}}


def _test(difference: Estimate, level: float, bounds: Bounds, n_tests: int = 1) -> dict[str, Any]:
    p = mean_p(difference)
    smallest = None
    if difference.error > 0:
        quantiles = [1 - (1 - level) / (2 * n_tests), POWER]
        smallest = float(difference.error * stdtrit(difference.n - 1, quantiles).sum())
    return {
        "difference": difference.value,
        "interval": difference.interval(level, bounds),
        # A mean difference below `TIE` is 0.
        "p": 1.0 if p is not None and abs(difference.value) < TIE else p,
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


class Leads:
    """The power of finding the first of k systems, which is found if its adjusted tests against all others hold.

    Its lead over every other one is the same, and the others do not differ, so that Holm's procedure rejects no other
    hypothesis. Studies are simulated by resampling units, whose differences are shifted to the lead.

    Parameters
    ----------
    differences : ndarray of shape (n, k - 1), the lead of the first system over every other one on each of n units
    level : a test holds if its adjusted p is below 1 - level
    """

    def __init__(self, differences: np.ndarray, level: float) -> None:
        n, n_others = differences.shape
        # Resampled units have a smaller variance.
        self._deviations = (differences - differences.mean(axis=0)) * np.sqrt(n / max(1, n - 1))
        # Without a spread, the test is undefined.
        self.is_defined = n > 2 and bool(np.all(self._deviations.std(axis=0) > TIE))
        n_pairs = n_others * (n_others + 1) // 2
        # The largest t is compared first, with the adjustment for all pairs.
        self._tails = (1 - level) / 2 / (n_pairs - np.arange(n_others))

    def smallest(self) -> float | None:
        """Return the lead that is found on as many units with a power of 80 %; None if a test is undefined."""
        return self._smallest_on(len(self._deviations)) if self.is_defined else None

    def n_needed(self, lead: float) -> int | None:
        """Return the number of units, to 1 %, on which a lead has a power of 80 %.

        None if a test is undefined, or if more than `MOST_PROMPTS` are needed.
        """
        smallest = self.smallest()
        if smallest is None:
            return None
        expected = len(self._deviations) * (smallest / lead) ** 2
        high = max(3, min(round(expected), MOST_PROMPTS))
        while self._smallest_on(high) > lead:
            if high == MOST_PROMPTS:
                return None
            high = min(2 * high, MOST_PROMPTS)
        low = 2
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            if self._smallest_on(middle) > lead:
                low = middle
            else:
                high = middle
        return high

    def _smallest_on(self, n: int) -> float:
        return float(np.quantile(self._least_found(n), POWER, method="inverted_cdf"))

    def _least_found(self, n: int) -> np.ndarray:
        """Simulate studies of n units, and return the least lead that is found in each: (studies,)."""
        mean, square, cube = self._simulate(n)
        variance = (square - mean**2).clip(min=TIE**2)
        skewness = (cube - 3 * mean * square + 2 * mean**3) / variance**1.5 / np.sqrt(n)
        error = np.sqrt(variance / (n - 1))
        # For each adjustment, the inverse of Hall's transformation, t + s t^2 / 3 + s^2 t^3 / 27 + s / 6.
        critical = -stdtrit(n - 1, self._tails)
        excess = critical - skewness[..., None] / 6
        root = np.cbrt(1 + skewness[..., None] * excess)
        t = 3 * excess / (root**2 + root + 1)
        leads = t * error[..., None] - mean[..., None]
        # By the j-th adjustment, it has to beat j others.
        ranks = np.arange(len(critical))
        return np.sort(leads, axis=1)[:, ranks, ranks].max(axis=1)

    def _simulate(self, n: int) -> np.ndarray:
        """Return the first three moments of the differences on n resampled units: (3, studies, k - 1)."""
        rng = np.random.default_rng(_SEED)
        n_units = len(self._deviations)
        powers = np.hstack([self._deviations**power for power in (1, 2, 3)])
        step = max(1, _DRAWN_AT_ONCE // n_units)
        moments = []
        for start in range(0, _STUDIES, step):
            count = min(step, _STUDIES - start)
            drawn = rng.multinomial(n, np.full(n_units, 1 / n_units), count)
            moments.append(drawn @ powers / n)
        return np.concatenate(moments).reshape(_STUDIES, 3, -1).swapaxes(0, 1)
