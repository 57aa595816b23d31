"""Signatures, and means of scores with their confidence intervals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import as_list
from .core_numbers import describe

VERSION = "0.8.0"

# What a metric scores: sets of texts, single texts, or the answers to a question against people's answers.
SETS, TEXTS, QUESTIONS = "sets", "texts", "questions"

# Range of a score of a set: its ends, of which the upper one may be a function of the number of texts.
Bounds = tuple[float, float | Callable[[float], float]]
# The range of a score that has none.
UNBOUNDED = (-math.inf, math.inf)
# Units whose values differ by less, relative to their mean, differ by rounding only.
_ROUNDING = 1e-9
# Skewness below this does not change an interval, and the inverse of its correction divides by it.
_LEAST_SKEWNESS = 1e-6


class ItemResult(NamedTuple):
    """A result of `compute` that is a list with an entry for each item.

    name : in the result
    needs : the settings that it comes with
    of_texts : whether an entry is a list with a value for each text of the item
    is_count : whether the values are integers
    bounds : range of the values, if their mean has a confidence interval; None if it has none
    """

    name: str
    needs: tuple[str, ...] = ()
    of_texts: bool = False
    is_count: bool = False
    bounds: Bounds | None = None


def format_order(q: float) -> str:
    """Format an order q of the Rényi entropy as a short exact string: 1, 0.5, inf."""
    return str(int(q)) if float(q).is_integer() and q < 1e16 else repr(float(q))


def format_sizes(sizes: np.ndarray) -> str:
    """Format the sizes of sets: 4, or 2-5 if they differ."""
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low}-{high}"


def caller_name(thing: Any, default: str) -> str:
    """Return the name that a caller gave to a function or an encoder, by an attribute `signature_name`, or a default.

    What the function or the encoder computes is for the caller to report.
    """
    name = getattr(thing, "signature_name", None)
    if name is None:
        return default
    if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set("|()"):
        raise ValueError(f"signature_name must be a string without '|', '(' and ')'. Got {describe(name)}.")
    return name


def format_callable(function: Any) -> str:
    """Format the name of a caller's function."""
    return f"custom({caller_name(function, getattr(function, '__qualname__', type(function).__qualname__))})"


def signature(metric: str, **settings: object) -> str:
    """Join the settings, as sacreBLEU does: `vendi_embed|q:1|kernel:embedding|...|version:0.8.0`.

    A setting belongs here if it can change the number, and only then: no batch size, no device.
    """
    return "|".join([metric, *(f"{name}:{value}" for name, value in settings.items()), f"version:{VERSION}"])


def parse_confidence_by(labels: Any, n_items: int, noun: str) -> np.ndarray:
    """Read which items belong together, and number these units.

    Raises a TypeError or ValueError if it is not a list with a string or an integer for each item.

    Parameters
    ----------
    labels : list of n_items strings or integers; None if each item is a unit
    noun : what an item is, for errors

    Returns
    -------
    ndarray of shape (n_items,), int64: equal for items of one unit
    """
    if labels is None:
        return np.arange(n_items)
    rows = as_list(labels, "confidence_by", f"a list with a label for each {noun}")
    if len(rows) != n_items:
        raise ValueError(f"confidence_by must have a label for each of the {n_items} {noun}s. Got {len(rows)}.")
    for i, label in enumerate(rows):
        if not isinstance(label, (str, int)) or isinstance(label, bool):
            raise TypeError(f"confidence_by[{i}] must be a string or an integer. Got {describe(label)}.")
    units = {label: i for i, label in enumerate(dict.fromkeys(rows))}
    return np.array([units[label] for label in rows], dtype=np.int64)


class Estimate(NamedTuple):
    """An estimate from independent units.

    n : number of units
    value : the estimate
    error : its standard error; NaN for fewer than two units, 0 if the units do not differ
    skewness : of the units
    effective_degrees : effective degrees of freedom of the standard error, if they are fewer than n - 1
    """

    n: int
    value: float
    error: float
    skewness: float
    effective_degrees: float | None = None

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error."""
        return self.n - 1 if self.effective_degrees is None else self.effective_degrees

    def interval(self, level: float, bounds: Bounds = UNBOUNDED, size: float = math.inf) -> list[float] | None:
        """Compute Hall's confidence interval, whose cubic transformation removes the skewness of the t statistic.

        For units without skewness it is Student's. It covers the truth in this
        share of samples, measured at level 0.95, with Student's in parentheses:

        ==========================  ===========  ===========  ===========
        units                       10           40           200
        ==========================  ===========  ===========  ===========
        normal                      .948 (.951)  .951 (.950)  .949 (.950)
        exponential                 .940 (.902)  .950 (.933)  .949 (.944)
        lognormal, sigma 1          .903 (.838)  .927 (.892)  .942 (.929)
        beta(8, 1), such as 1 - d   .946 (.915)  .954 (.940)  .952 (.948)
        beta(.5, .5), at both ends  .983 (.947)  .961 (.948)  .955 (.953)
        ==========================  ===========  ===========  ===========

        Parameters
        ----------
        level : in (0, 1)
        bounds : range of the score; an end outside it is moved to it, but not past the estimate
        size : mean number of texts of the sets, for an upper bound that is a function of it

        Returns
        -------
        [low, high]; None for fewer than two units, and if the units do not differ, since nothing is then known of how
        they vary

        References
        ----------
        Hall, P. (1992). On the removal of skewness by transformation. J. R. Stat. Soc. B 54, 221-228.
        """
        if not self.error > 0:
            return None
        from scipy.special import stdtrit

        t = float(stdtrit(self.degrees, (1 + level) / 2))
        low, high = (self.value - self._untransformed(end) * self.error for end in (t, -t))
        lowest, highest = bounds[0], bounds[1](size) if callable(bounds[1]) else bounds[1]
        return [min(max(low, lowest), self.value), max(min(high, highest), self.value)]

    def transformed_t(self) -> float:
        """Return the t statistic of the null hypothesis that the truth is 0, by Hall's transformation."""
        a = self.skewness / math.sqrt(self.n)
        t = self.value / self.error
        return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6

    def _untransformed(self, y: float) -> float:
        a = self.skewness / math.sqrt(self.n)
        if abs(a) < _LEAST_SKEWNESS:
            return y
        return 3 / a * (math.cbrt(1 + a * (y - a / 6)) - 1)


class UnitSums:
    """The sums of the values of independent units, added in batches.

    A unit is an item, or several that belong together, such as the samples of a prompt.
    """

    def __init__(self) -> None:
        self._parts = [np.empty((2, 0))]

    def add(self, sums: np.ndarray, counts: np.ndarray) -> None:
        """Add units: the sum of the values of each, and their number, at least 1: ndarrays of shape (u,)."""
        self._parts.append(np.stack([sums, counts]))

    def estimate(self) -> Estimate:
        """Estimate the mean over all items; NaN without any. The error is that of a ratio of two sums."""
        sums, counts = np.concatenate(self._parts, axis=1)
        if not len(sums):
            return Estimate(0, math.nan, math.nan, math.nan)
        mean = float(sums.sum() / counts.sum())
        return _estimate(mean, (sums - mean * counts) / counts.mean())


def _estimate(value: float, deviations: np.ndarray) -> Estimate:
    """Make an estimate from the deviations of its n units: ndarray of shape (n,)."""
    n, square = len(deviations), float((deviations**2).sum())
    if n < 2:
        return Estimate(n, value, math.nan, math.nan)
    if square <= n * (_ROUNDING * value) ** 2:
        return Estimate(n, value, 0.0, 0.0)
    cube = float((deviations**3).sum())
    return Estimate(n, value, math.sqrt(square / n / (n - 1)), cube / n / (square / n) ** 1.5)


def mean_estimate(values: np.ndarray, units: np.ndarray | None = None) -> Estimate:
    """Estimate the mean of values, ndarray of shape (m,), with the unit of each; each is a unit by default."""
    sums = UnitSums()
    if units is None or not len(values):
        sums.add(values, np.ones(len(values)))
    else:
        index = np.unique(units, return_inverse=True)[1]
        sums.add(np.bincount(index, values), np.bincount(index))
    return sums.estimate()


def jackknife_estimate(value: float, left_out: np.ndarray) -> Estimate:
    """Estimate a statistic that is not a mean from its values without each unit in turn (Tukey's jackknife).

    The standard error has fewer than n - 1 degrees of freedom if the pseudo-values
    have heavier tails than the normal distribution, as those of ratios often have.
    Their number is estimated from the kurtosis of the pseudo-values: it is that of
    the chi-squared distribution whose coefficient of variation is that of the
    variance.

    Parameters
    ----------
    value : the statistic of all units
    left_out : ndarray of shape (n,), the statistic without each unit

    References
    ----------
    Hinkley, D. V. (1977). Jackknife confidence limits using Student t approximations. Biometrika 64, 21-28.
    """
    n = len(left_out)
    deviations = (n - 1) * (left_out.mean() - left_out)
    estimate = _estimate(value, deviations)
    if not estimate.error > 0:
        return estimate
    kurtosis = float(((deviations**2 / (deviations**2).mean()) ** 2).mean())
    # The variance of n normal values has a squared coefficient of variation of 2 / (n - 1).
    return estimate._replace(effective_degrees=min(n - 1, 2 * n / (kurtosis - (n - 3) / (n - 1))))


class ScoreSummary(NamedTuple):
    """How the scores of a call are summed up.

    scored : ndarray of shape (m,), bool, the items that have a score
    units : ndarray of shape (m,), equal for items that are not independent
    level : of the confidence intervals; None for none
    bounds : range of the score
    sizes : ndarray of shape (m,), the number of texts of each set, for bounds that depend on it
    """

    scored: np.ndarray
    units: np.ndarray
    level: float | None
    bounds: Bounds
    sizes: np.ndarray | None = None

    def of(self, name: str, values: np.ndarray, prefix: str = "", bounds: Bounds | None = None) -> dict[str, Any]:
        """Return the mean of the scores under a name, with `scores` and `confidence_interval`.

        Parameters
        ----------
        values : ndarray of shape (m,)
        prefix : of the names of the last two
        bounds : range of these values, if it is not that of the score
        """
        scores = values[self.scored]
        result = {name: mean_over_sets(scores), f"{prefix}scores": spread(scores.tolist(), self.scored)}
        if self.level is not None:
            size = math.inf if self.sizes is None or not len(scores) else float(self.sizes[self.scored].mean())
            estimate = mean_estimate(scores, self.units[self.scored])
            result[f"{prefix}confidence_interval"] = estimate.interval(self.level, bounds or self.bounds, size)
        return result


def mean_over_sets(scores: np.ndarray) -> float | None:
    """Average the scores of sets; None if there is no score."""
    return float(scores.mean()) if scores.size else None


def spread(values: list, scored: np.ndarray) -> list:
    """Expand the values of the scored sets to a list over all sets, with None for the others."""
    if scored.all():
        return values
    remaining = iter(values)
    return [next(remaining) if has_score else None for has_score in scored.tolist()]


def rows_of(columns: Mapping[str, Sequence[Any]], kept: np.ndarray | None = None) -> list[Any]:
    """Turn columns of equal length into rows: dicts from the names of the columns to a value of each.

    kept : ndarray of bool; a row is None where it is False
    """
    rows: list[Any] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows if kept is None else [row if is_kept else None for row, is_kept in zip(rows, kept, strict=True)]


def result_numbers(result: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float | int | None]]:
    """Yield the names and numbers of a result; the names of inner dicts are joined by underscores."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from result_numbers(value, f"{prefix}{name}_")
        elif isinstance(value, (int, float)) or (value is None and not name.endswith("confidence_interval")):
            yield prefix + name, value
