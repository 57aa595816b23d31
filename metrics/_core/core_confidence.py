"""How far a score may be from that of other items of the same kind: a seeded bootstrap over what was scored."""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from .core_inputs import describe

# As many as sacreBLEU draws.
_RESAMPLES = 1000
_SEED = 0
# Values drawn at a time, which bounds the memory whatever the number of items.
_DRAWN_AT_ONCE = 1_000_000


def parse_confidence(value: Any) -> float | None:
    """Read the level of a confidence interval: a number between 0 and 1, or None for no interval."""
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"confidence must be a number between 0 and 1, such as 0.95. Got {describe(value)}.")
    level = float(value)
    if not 0 < level < 1:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95. Got {value}.")
    return level


def confidence_settings(level: float | None) -> dict[str, object]:
    """Say what of an interval belongs in a signature: nothing, where there is none."""
    if level is None:
        return {}
    return {"confidence": level, "resamples": _RESAMPLES, "resampling_seed": _SEED}


def confidence_interval(
    level: float, *samples: np.ndarray, statistic: Callable[..., Any] = np.mean
) -> list[float] | None:
    """Percentile interval of a statistic of m items, by a bootstrap over the items.

    Parameters
    ----------
    level : in (0, 1)
    samples : ndarrays of shape (m,): what the statistic needs of each item
    statistic : a function of as many arrays of shape (..., m), and of `axis`, which it reduces; by default the mean

    Returns
    -------
    [low, high]; None for fewer than two items, which do not tell how much items differ
    """
    from scipy.stats import bootstrap

    n_items = len(samples[0])
    if n_items < 2:
        return None
    low, high = bootstrap(
        samples,
        statistic,
        n_resamples=_RESAMPLES,
        batch=max(1, _DRAWN_AT_ONCE // (n_items * len(samples))),
        vectorized=True,
        paired=True,
        confidence_level=level,
        method="percentile",
        rng=_SEED,
    ).confidence_interval
    return [float(low), float(high)]
