"""Merge the results of pieces of a file."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from text_metrics.metrics._core.core_results import format_sizes, result_numbers

# Entries of a signature that give the amount of data.
_SIZES = ("set_size", "n_answers")


def merge_signatures(first: str, second: str) -> str:
    """Merge the signatures of two pieces of the data.

    Raises a ValueError if they differ in anything but the sizes of their sets.
    """
    ours, theirs = (line.split("|") for line in (first, second))
    merged = [_merge_entries(*pair) for pair in zip(ours, theirs, strict=False)]
    if len(ours) != len(theirs) or None in merged:
        raise ValueError(f"parts of the data were scored under different settings: {first!r} and {second!r}.")
    return "|".join(filter(None, merged))


def _merge_entries(first: str, second: str) -> str | None:
    if first == second:
        return first
    name = first.partition(":")[0]
    if name not in _SIZES or second.partition(":")[0] != name:
        return None
    bounds = [int(bound) for entry in (first, second) for bound in entry.partition(":")[2].split("-")]
    return f"{name}:{format_sizes(np.array(bounds))}"


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
