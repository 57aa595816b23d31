"""The names and the signature of a result."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .core_intervals import Bounds
from .core_numbers import describe
from .core_settings import wrap_entry

VERSION = "0.10.0"

# Items of a metric: sets of texts, texts, or the answers to a question against people's.
SETS, TEXTS, QUESTIONS = "sets", "texts", "questions"


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
