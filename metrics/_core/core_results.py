"""What a result is made of: its signature, its confidence interval, and the merging of the results of parts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .core_numbers import describe, show, to_float

VERSION = "0.3.0"

# What a metric scores: sets of texts, single texts, or the answers to a question against people's answers.
SETS, TEXTS, QUESTIONS = "sets", "texts", "questions"

# Entries of a signature that give the amount of data.
_SIZES = ("set_size", "n_answers")
# Digits of a digest of what the caller gave, and an entry with one.
_DIGITS = 12
_DIGEST = re.compile(rf"(\w+):given\(([0-9a-f]{{{_DIGITS}}})\)")

# The number of resamples of sacreBLEU.
_RESAMPLES = 1000
_SEED = 0
# Values drawn at a time, which bounds the memory for any number of items.
_DRAWN_AT_ONCE = 1_000_000


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


def given_digest(pieces: Iterable[np.ndarray]) -> str:
    """Format what a caller gave for each set: a sum of digests, in which the order of the sets does not matter.

    `merge_signatures` adds up the sums of parts of the data.
    """
    import xxhash

    return _format_digest(sum(xxhash.xxh3_64_intdigest(np.ascontiguousarray(piece).data) for piece in pieces))


def _format_digest(total: int) -> str:
    return f"given({total % 16**_DIGITS:0{_DIGITS}x})"


def signature(metric: str, **settings: object) -> str:
    """Join the settings, as sacreBLEU does: `vendi_embed|q:1|kernel:embedding|...|version:0.3.0`.

    A setting belongs here if it can change the number, and only then: no batch size, no device.
    """
    return "|".join([metric, *(f"{name}:{value}" for name, value in settings.items()), f"version:{VERSION}"])


def merge_signatures(first: str, second: str) -> str:
    """Merge the signatures of two parts of the data.

    Raises
    ------
    ValueError
        If they differ in anything but the sizes of their sets and the digests of what was given for them.
    """
    ours, theirs = (line.split("|") for line in (first, second))
    merged = [_merge_entries(*pair) for pair in zip(ours, theirs, strict=False)]
    if len(ours) != len(theirs) or None in merged:
        raise ValueError(f"parts of the data were scored under different settings: {first!r} and {second!r}.")
    return "|".join(filter(None, merged))


def _merge_entries(one: str, other: str) -> str | None:
    own, their = _DIGEST.fullmatch(one), _DIGEST.fullmatch(other)
    if own and their and own[1] == their[1] and own[1] != "model":
        return f"{own[1]}:{_format_digest(int(own[2], 16) + int(their[2], 16))}"
    if one == other:
        return one
    name = one.partition(":")[0]
    if name not in _SIZES or other.partition(":")[0] != name:
        return None
    bounds = [int(bound) for entry in (one, other) for bound in entry.partition(":")[2].split("-")]
    return f"{name}:{format_sizes(np.array(bounds))}"


def parse_confidence(value: Any) -> float | None:
    """Read the level of a confidence interval, in (0, 1); None for no interval."""
    if value is None:
        return None
    try:
        level = to_float(value)
    except TypeError:
        raise TypeError(f"confidence must be a number between 0 and 1, such as 0.95. Got {describe(value)}.") from None
    if not 0 < level < 1:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95. Got {show(value)}.")
    return level


def confidence_settings(level: float | None) -> dict[str, object]:
    """Return the signature entries of a confidence interval; none without one."""
    if level is None:
        return {}
    return {"confidence": level, "resamples": _RESAMPLES, "resampling_seed": _SEED}


def confidence_interval(
    level: float, *samples: np.ndarray, statistic: Callable[..., Any] = np.mean
) -> list[float] | None:
    """Compute the percentile interval of a statistic of m items, by a bootstrap over the items.

    Parameters
    ----------
    level : in (0, 1)
    samples : ndarrays of shape (m,), the arguments of the statistic
    statistic : a function of as many arrays of shape (..., m) and of `axis`, the axis it reduces; by default the mean

    Returns
    -------
    [low, high]; None for fewer than two items, whose variance is unknown
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


class MergedResult:
    """The merged results of parts of the data: counts add up, and means are weighted by their numbers of items.

    `state` holds plain numbers and strings only, so that it can be written to a file.
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.state: dict[str, Any] = state or {"n_parts": 0, "counts": {}, "means": {}, "signature": ""}

    def add(self, result: Mapping[str, Any], n_items_of: Callable[[Mapping[str, Any], str], int]) -> None:
        """Add the result of one part.

        Parameters
        ----------
        result : as `compute` returns it
        n_items_of : from a result and the name of a mean to the number of items that the mean is over

        Raises
        ------
        ValueError
            If its signature does not match those of the parts before it.
        """
        state = self.state
        signature = result["signature"]
        state["signature"] = merge_signatures(state["signature"], signature) if state["n_parts"] else signature
        for name, value in result_numbers(result):
            if isinstance(value, int):
                state["counts"][name] = state["counts"].get(name, 0) + value
                continue
            n_items = n_items_of(result, name)
            total, weight, n_parts = state["means"].get(name, (0.0, 0, 0))
            if value is not None:
                total, weight = total + value * n_items, weight + n_items
            state["means"][name] = (total, weight, n_parts + 1)
        state["n_parts"] += 1

    def result(self) -> dict[str, Any]:
        """Return the merged result, without the means that a part lacks."""
        state = self.state
        means = {
            name: total / weight if weight else None
            for name, (total, weight, n_parts) in state["means"].items()
            if n_parts == state["n_parts"]
        }
        return {**means, **state["counts"], "signature": state["signature"]}


def mean_over_sets(scores: np.ndarray) -> float | None:
    """Average the scores of sets; None if there is no score."""
    return float(scores.mean()) if scores.size else None


def spread(values: list, scored: np.ndarray) -> list:
    """Expand the values of the scored sets to a list over all sets, with None for the others."""
    remaining = iter(values)
    return [next(remaining) if has_score else None for has_score in scored.tolist()]


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Turn columns of equal length into rows: a dict from the names of the columns to a value of each."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def result_numbers(result: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, float | int | None]]:
    """Yield the names and numbers of a result; the names of inner dicts are joined by underscores."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from result_numbers(value, f"{prefix}{name}_")
        elif isinstance(value, (int, float)) or (value is None and not name.endswith("confidence_interval")):
            yield prefix + name, value
