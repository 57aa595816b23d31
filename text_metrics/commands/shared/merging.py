"""Merge the results of pieces of a file."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from text_metrics.metrics._core.core_results import format_sizes

# Entries of a signature that give the amount of data.
_SIZES = ("set_size", "n_answers")


def merge_signatures(first: str, second: str) -> str:
    """Merge the signatures of two pieces of the data.

    Raises a ValueError if they differ in anything but the sizes of their sets; it names what differs.
    """
    ours, theirs = (dict(entry.partition(":")[::2] for entry in line.split("|")) for line in (first, second))
    merged = {}
    for name in ours | theirs:
        values = [entries.get(name) for entries in (ours, theirs)]
        if values[0] != values[1]:
            if name not in _SIZES or None in values:
                raise ValueError(f"parts of the data were scored under different settings: {name} is {values}.")
            bounds = [int(bound) for value in values for bound in str(value).split("-")]
            values[0] = format_sizes(np.array(bounds))
        merged[name] = values[0]
    return "|".join(f"{name}:{value}" if value else name for name, value in merged.items())


def merge_results(parts: Iterable[tuple[Mapping[str, Any], Mapping[str, int]]]) -> dict[str, Any]:
    """Merge the results of parts of the data: counts add up, and means are weighted by their numbers of items.

    Parameters
    ----------
    parts : of each its numbers by name, with the signature, and the number of items that each mean is over

    Returns
    -------
    The merged numbers, without the means that a part lacks, and the signature

    Raises
    ------
    ValueError
        If the signatures do not match.
    """
    counts: dict[str, int] = {}
    means: dict[str, tuple[float, int, int]] = {}
    merged, n_parts = "", 0
    for numbers, n_items in parts:
        n_parts += 1
        for name, value in numbers.items():
            if name == "signature":
                merged = merge_signatures(merged, value) if merged else value
            elif isinstance(value, int):
                counts[name] = counts.get(name, 0) + value
            else:
                total, weight, n = means.get(name, (0.0, 0, 0))
                if value is not None:
                    total, weight = total + value * n_items[name], weight + n_items[name]
                means[name] = total, weight, n + 1
    values = {name: total / weight if weight else None for name, (total, weight, n) in means.items() if n == n_parts}
    return {**values, **counts, "signature": merged}
