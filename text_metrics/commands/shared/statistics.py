"""Significance tests of the difference of two paired scores."""

import numpy as np

from text_metrics.metrics._core.core_results import Estimate

RESAMPLES = 9999
_SEED = 0
_DRAWN_AT_ONCE = 4_000_000


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

    It is below 1 - level exactly if `difference.interval(level)` does not contain 0. The larger of two p-values: of
    Student's t test, and of the same after Hall's transformation, which removes the skewness of t.

    Returns
    -------
    float in [0, 1]; None if there are fewer than two units, or if they are equal and not 0
    """
    if difference.error > 0:
        from scipy.stats import t

        statistics = (difference.value / difference.error, difference.transformed_t())
        return float(max(2 * t.sf(np.abs(statistics), difference.n - 1)))
    return 1.0 if difference.error == 0 and difference.value == 0 else None
