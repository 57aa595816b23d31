"""Signatures, and means of scores with their confidence intervals."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import as_list, number_labels
from .core_numbers import ROUNDING, describe
from .core_settings import wrap_entry

VERSION = "0.10.0"

# Items of a metric: sets of texts, texts, or the answers to a question against people's.
SETS, TEXTS, QUESTIONS = "sets", "texts", "questions"

# Lower and upper bound of the score of a set; the upper one may be a function of the number of texts.
Bounds = tuple[float, float | Callable[[float], float]]
# The range of a score that has none.
UNBOUNDED = (-math.inf, math.inf)
# Skewness below this does not change an interval, and the inverse of its correction divides by it.
_LEAST_SKEWNESS = 1e-6


class ItemResult(NamedTuple):
    """A result of `compute` that is a list with an entry for each item.

    name : in the result
    needs : the settings that it comes with
    is_count : whether the values are integers
    bounds : range of the values, if their mean has a confidence interval; None if it has none
    is_reciprocal : whether the values are 1 over what is averaged, as `ScoreSummary.of_reciprocals` does
    """

    name: str
    needs: tuple[str, ...] = ()
    is_count: bool = False
    bounds: Bounds | None = None
    is_reciprocal: bool = False


def format_order(q: float) -> str:
    """Format an order q of the Rényi entropy as a short exact string: 1, 0.5, inf."""
    return repr(float(q)).removesuffix(".0")


def format_sizes(sizes: np.ndarray) -> str:
    """Format the sizes of sets: 4, or 2-5 if they differ."""
    low = int(sizes.min())
    high = int(sizes.max())
    return str(low) if low == high else f"{low}-{high}"


def caller_name(thing: Any) -> str:
    """Return the `signature_name` of a user-supplied function or encoder, or else its name.

    Users must report what it computes.
    """
    default = getattr(thing, "__qualname__", type(thing).__name__)
    name = getattr(thing, "signature_name", default)
    if not isinstance(name, str) or "|" in name:
        raise ValueError(f"signature_name must be a string without '|'. Got {describe(name)}.")
    return name


class Signature(NamedTuple):
    """Settings that determine a score, as in sacreBLEU: `vendi_embed|q:1|kernel:embedding|...|version:0.9.0`.

    A setting belongs here if it can change the number, and only then: no batch size, no device.

    metric : name
    entries : value of each setting, in order; the version last, if there is one
    """

    metric: str
    entries: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> "Signature":
        """Read a signature from its text."""
        metric, *entries = text.split("|")
        return cls(metric, dict(entry.partition(":")[::2] for entry in entries))

    def __str__(self) -> str:
        return "|".join([self.metric, *(f"{name}:{value}" for name, value in self.entries.items())])

    def merge(self, **settings: object) -> "Signature":
        """Replace the values of settings, and insert new settings before the version."""
        merged = self.entries | {name: str(value) for name, value in settings.items()}
        version = merged.pop("version", None)
        if version is not None:
            merged["version"] = version
        return Signature(self.metric, merged)

    def difference(self, other: "Signature") -> dict[str, tuple[str | None, str | None]]:
        """Return both values of each setting, and of "metric", that differs; None if one lacks it."""
        mine = {"metric": self.metric, **self.entries}
        theirs = {"metric": other.metric, **other.entries}
        names = mine | theirs
        return {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}


def signature(metric: str, **settings: object) -> str:
    """Return the text of a signature of these settings and this version."""
    return str(Signature(metric, {}).merge(**settings, version=VERSION))


def describe_results(item: str, scores: Mapping[str, str]) -> str:
    """Format the results that all metrics have, intervals and the signature, and the errors, for the help of a metric.

    `item` is what the metric scores: a "set", "text" or "question". `scores` has the names of the means that have an
    interval, by the prefix of the name of the interval.
    """
    intervals = ", ".join(f"{prefix}confidence_interval" for prefix in scores)
    means = ", ".join(f"`{name}`" for name in scores.values())
    results = (
        f"{intervals} (`list[float]`): only with `confidence`. `[low, high]` of {means}. None for fewer than two "
        f"{item}s or labels, and if all score the same.",
        "signature (`str`): all settings that determine the score. Scores with equal signatures are comparable, if "
        "what is reported as `given`, or by a name, is the same.",
    )
    errors = "TypeError, ValueError: for invalid input. The message names the parameter, the item and what was got."
    return "".join(map(wrap_entry, results)) + "\nRaises:\n" + wrap_entry(errors)


def parse_confidence_by(labels: Any, n_items: int, noun: str) -> np.ndarray:
    """Read a string or an integer for each item: ndarray of shape (n_items,), equal for equal ones.

    Without labels, each item is a unit. Errors call an item by the noun.
    """
    if labels is None:
        return np.arange(n_items)
    rows = as_list(labels, "confidence_by", f"a list with a label for each {noun}")
    if len(rows) != n_items:
        raise ValueError(f"confidence_by must have a label for each {noun}. Got {len(rows)} for {n_items}.")
    return number_labels(rows, lambda i: f"confidence_by[{i}]")


class Estimate(NamedTuple):
    """An estimate from independent units.

    n : number of units
    value : the estimate
    error : its standard error; NaN for fewer than two units, 0 if the units do not differ
    skewness : of the units
    """

    n: int
    value: float
    error: float
    skewness: float

    @classmethod
    def of(cls, value: float, deviations: np.ndarray) -> "Estimate":
        """Make an estimate from the deviations of its n units, ndarray of shape (n,).

        For a mean, these are the deviations of its values; for another statistic, of Tukey's pseudo-values.
        """
        n = len(deviations)
        square = float((deviations**2).sum())
        if n < 2:
            return cls(n, value, math.nan, math.nan)
        if square <= n * (ROUNDING * value) ** 2:
            return cls(n, value, 0.0, 0.0)
        cube = float((deviations**3).sum())
        return cls(n, value, math.sqrt(square / n / (n - 1)), cube / n / (square / n) ** 1.5)

    def interval(self, level: float, bounds: Bounds = UNBOUNDED, size: float = math.inf) -> list[float] | None:
        """Compute Hall's confidence interval, whose cubic transformation removes the skewness of t.

        For units without skewness it is Student's; docs/intervals.md has its coverage.

        An end outside the bounds is moved to them, but not past the estimate; `size` is the mean number of texts of the
        sets, for an upper bound that is a function of it. Returns [low, high], or None for fewer than two units, and if
        the units do not differ. See Hall, P. (1992). On the removal of skewness by transformation. J. R. Stat. Soc. B
        54, 221-228.
        """
        if not self.error > 0:
            return None
        from scipy.special import stdtrit

        t = float(stdtrit(self.n - 1, (1 + level) / 2))
        low = self.value - self._untransformed(t) * self.error
        high = self.value - self._untransformed(-t) * self.error
        lowest = bounds[0]
        highest = bounds[1](size) if callable(bounds[1]) else bounds[1]
        return [min(max(low, lowest), self.value), max(min(high, highest), self.value)]

    def transformed_t(self) -> float:
        """Return the t statistic of a truth of 0, by Hall's transformation."""
        a = self.skewness / math.sqrt(self.n)
        t = self.value / self.error
        return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6

    def _untransformed(self, y: float) -> float:
        a = self.skewness / math.sqrt(self.n)
        if abs(a) < _LEAST_SKEWNESS:
            return y
        return 3 / a * (math.cbrt(1 + a * (y - a / 6)) - 1)


def ratio_estimate(sums: np.ndarray, totals: np.ndarray) -> Estimate:
    """Estimate the ratio of two sums over independent units, ndarrays of shape (n,).

    A mean is the ratio of sums of values and their numbers, if units are of several items, such as the samples of a
    prompt. NaN without any unit.
    """
    if not len(sums):
        return Estimate(0, math.nan, math.nan, math.nan)
    ratio = float(sums.sum() / totals.sum())
    return Estimate.of(ratio, (sums - ratio * totals) / totals.mean())


def mean_estimate(values: np.ndarray, units: np.ndarray | None = None) -> Estimate:
    """Estimate the mean of values, ndarray of shape (m,), with the unit of each; by default its own."""
    if units is None or not len(values):
        return ratio_estimate(values, np.ones(len(values)))
    index = np.unique(units, return_inverse=True)[1]
    return ratio_estimate(np.bincount(index, values), np.bincount(index))


class ScoreSummary(NamedTuple):
    """Summary of the scores of a call: their mean, with its confidence interval.

    units : ndarray of shape (m,), equal for items that are not independent
    level : of the confidence intervals; None for none
    bounds : range of the score
    sizes : ndarray of shape (m,), the number of texts of each set, for bounds that depend on it
    """

    units: np.ndarray
    level: float | None
    bounds: Bounds
    sizes: np.ndarray | None = None

    def of(self, name: str, values: np.ndarray, prefix: str = "", bounds: Bounds | None = None) -> dict[str, Any]:
        """Return the mean of values (m,), NaN for an item without a score, under a name, and more results.

        These are `scores` and `confidence_interval`, with a prefix. `bounds` are of the values, if not the score's.
        """
        known = ~np.isnan(values)
        scores = [None if math.isnan(value) else value for value in values.tolist()]
        result: dict[str, Any] = {name: mean_over_sets(values[known]), f"{prefix}scores": scores}
        if self.level is not None:
            sizes = np.empty(0) if self.sizes is None else self.sizes[known]
            size = mean_over_sets(sizes) or math.inf
            estimate = mean_estimate(values[known], self.units[known])
            result[f"{prefix}confidence_interval"] = estimate.interval(self.level, bounds or self.bounds, size)
        return result

    def of_reciprocals(self, name: str, values: np.ndarray, prefix: str) -> dict[str, Any]:
        """Return 1 over the mean of values (m,), in [0, 1], under a name, and more results.

        These are `scores`, 1 over each value, and `confidence_interval`, with a prefix. A value is NaN for an item
        without one. 1 over 0 is None.
        """
        known = ~np.isnan(values)
        _, index = np.unique(self.units[known], return_inverse=True)
        sums = np.bincount(index, values[known])
        counts = np.bincount(index)
        estimate = ratio_estimate(counts, sums) if sums.sum() > 0 else None
        scores = [1 / value if value > 0 else None for value in values.tolist()]
        result: dict[str, Any] = {name: None if estimate is None else estimate.value, f"{prefix}scores": scores}
        if self.level is not None:
            interval = None if estimate is None else estimate.interval(self.level, (1.0, math.inf))
            result[f"{prefix}confidence_interval"] = interval
        return result


def mean_over_sets(scores: np.ndarray) -> float | None:
    """Average the scores of sets; None without scores."""
    return float(scores.mean()) if scores.size else None


def rows_of(columns: Mapping[str, Sequence[Any]], has_row: np.ndarray | None = None) -> list[Any]:
    """Turn columns of equal length into rows: dicts from the names of the columns to a value of each.

    With `has_row`, (m,), bool, the rows are of some of m sets; the others have None.
    """
    rows: list[Any] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if has_row is None:
        return rows
    remaining = iter(rows)
    return [next(remaining) if is_here else None for is_here in has_row.tolist()]


def result_values(result: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the names and values of a result; names of inner dicts are joined by underscores."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from result_values(value, f"{prefix}{name}_")
        else:
            yield prefix + name, value


def result_numbers(result: Mapping[str, Any]) -> Iterable[tuple[str, float | int | None]]:
    """Yield the entries of `result_values` that are numbers, or None in place of a number."""
    for name, value in result_values(result):
        if isinstance(value, (int, float)) or (value is None and not name.endswith("confidence_interval")):
            yield name, value
