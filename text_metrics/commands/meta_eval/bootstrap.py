"""The percentile bootstrap over groups of items."""

import numpy as np

LEVEL = 0.95
_RESAMPLES = 1000
_SEED = 0


def percentile_interval(resampled: np.ndarray) -> list[float]:
    """Return the interval that holds `LEVEL` of resampled values, in equal tails."""
    return np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()


def divide(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide elementwise; NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


class Draws:
    """Bootstrap resamples of groups of items: items of one group, which share texts, are drawn together.

    numbers : ndarray of shape (n,), the group of each item
    weights : ndarray of shape (resamples, groups), how often each group is drawn
    """

    def __init__(self, groups: np.ndarray) -> None:
        names, self.numbers = np.unique(groups, return_inverse=True)
        n = len(names)
        self.weights = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), _RESAMPLES).astype(float)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Add values up by group; ndarray of shape (groups,)."""
        return np.bincount(self.numbers, weights=values, minlength=self.weights.shape[1])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of values in each resample; NaN where it has no value."""
        counts = self.weights @ self.sums(np.ones(len(values)))
        return divide(self.weights @ self.sums(values), counts)

    def interval(self, resampled: np.ndarray) -> list[float] | None:
        """Percentile interval; None for fewer than two groups, or no value."""
        known = resampled[np.isfinite(resampled)]
        if self.weights.shape[1] < 2 or not known.size:
            return None
        return percentile_interval(known)
