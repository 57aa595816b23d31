"""The settings that decide a score, as one line: what another person needs to get the same number."""

from typing import Any

import numpy as np

VERSION = "0.1.0"
# Settings that say how much data there is.
_SIZES = ("set_size", "n_answers")


def format_order(q: float) -> str:
    """Write an order q of the Rényi entropy as a short exact string: 1, 0.5, inf."""
    return str(int(q)) if float(q).is_integer() and q < 1e16 else repr(float(q))


def format_sizes(sizes: np.ndarray) -> str:
    """Write how many texts the sets hold: 4, or 2-5 where they differ."""
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low}-{high}"


def format_callable(function: Any) -> str:
    """Name a caller's own function: what it computes is for the caller to report."""
    return f"custom({getattr(function, '__qualname__', type(function).__qualname__)})"


def signature(metric: str, **settings: object) -> str:
    """Join the settings, as sacreBLEU does: `vendi_embed|q:1|kernel:embedding|...|version:0.1.0`.

    A setting belongs here if it can change the number, and only then: no batch size, no device.
    """
    return "|".join([metric, *(f"{name}:{value}" for name, value in settings.items()), f"version:{VERSION}"])


def merge_signatures(first: str, second: str) -> str:
    """Give the signature of the whole, from those of two parts of the data.

    Raises
    ------
    ValueError
        If they differ in more than how many texts their sets hold.
    """
    if first == second:
        return first
    ours, theirs = (line.split("|") for line in (first, second))
    merged = [_merge_entries(*pair) for pair in zip(ours, theirs, strict=False)]
    if len(ours) != len(theirs) or None in merged:
        raise ValueError(f"parts of the data were scored in different ways: {first!r} and {second!r}.")
    return "|".join(filter(None, merged))


def _merge_entries(one: str, other: str) -> str | None:
    if one == other:
        return one
    name = one.partition(":")[0]
    if name not in _SIZES or other.partition(":")[0] != name:
        return None
    bounds = [int(bound) for entry in (one, other) for bound in entry.partition(":")[2].split("-")]
    return f"{name}:{format_sizes(np.array(bounds))}"
