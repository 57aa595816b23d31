"""The summary of a scored file, from the records of its pieces."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from text_metrics.commands.score.scoring import RowScorer
from text_metrics.metrics._core.core_results import Estimate, ItemResult, Signature, format_sizes, ratio_estimate

# Entries of a signature that give the amount of data.
_SIZES = ("set_size", "n_answers")


def merge_signatures(first: str, second: str) -> str:
    """Merge the signatures of two pieces of the data; an empty one is that of no piece.

    Raises a ValueError if they differ in anything but the sizes of their sets; it names what differs.
    """
    if not first or first == second:
        return second
    ours, theirs = Signature.parse(first), Signature.parse(second)
    sizes = {}
    for name, values in ours.difference(theirs).items():
        if name not in _SIZES or None in values:
            raise ValueError(f"parts of the data were scored under different settings: {name} is {list(values)}.")
        sizes[name] = format_sizes(np.array([int(bound) for value in values for bound in str(value).split("-")]))
    return str(ours.merge(**sizes))


def summarize(pieces: Iterable[Mapping[str, Any]], scorer: RowScorer) -> dict[str, Any]:
    """Merge the results of all pieces, in order, and estimate the means over items.

    Counts add up, and means are weighted by their numbers of items; one that a piece lacks is None. The texts of a
    row, or of rows that make a set, are not independent of each other: the estimates are over rows, or over the labels
    of rows.

    Raises a ValueError if the signatures of pieces differ.
    """
    names = [result.name for result in scorer.results]
    # The sum and the number of the values of each unit, by label if units have one.
    units: dict[str, list[np.ndarray]] = {name: [np.empty((0, 2))] for name in names}
    labelled: dict[str, Any] = {name: defaultdict(lambda: np.zeros(2)) for name in names}
    counts = Counter[str]()
    # The sum of each number over items, the number of items, and that of pieces.
    totals: dict[str, Any] = defaultdict(lambda: np.zeros(3))
    signature, n_pieces, n_scores = "", 0, 0
    for facts in pieces:
        n_pieces += 1
        of_units = {name: np.reshape(facts["sums"][name], (-1, 2)) for name in names}
        n_scores += int(of_units[names[0]][:, 1].sum())
        signature = merge_signatures(signature, facts["signature"])
        for name, value in facts["numbers"].items():
            if isinstance(value, int):
                counts[name] += value
            else:
                weight = 0 if value is None else facts["n_items"][name]
                totals[name] += ((value or 0.0) * weight, weight, 1)
        for name in names:
            if not facts["labels"]:
                units[name].append(of_units[name])
            for label, sums in zip(facts["labels"], of_units[name], strict=False):
                labelled[name][label] += sums
    estimates = {name: _estimate([*units[name], *labelled[name].values()]) for name in names}
    return {
        **{name: float(total / n) if n and k == n_pieces else None for name, (total, n, k) in totals.items()},
        **counts,
        "signature": signature,
        "n_scores": n_scores,
        "n_units": estimates[names[0]].n,
        "estimates": {name: [*of] if of.error > 0 else None for name, of in estimates.items()},
    }


def _estimate(units: Sequence[np.ndarray]) -> Estimate:
    sums, counts = np.vstack(units).T
    has_values = counts > 0
    return ratio_estimate(sums[has_values], counts[has_values])


def intervals(summary: Mapping[str, Any], results: Sequence[ItemResult], level: float) -> dict[str, Any]:
    """Return the intervals of the estimates of a summary at a level, and the level."""
    # A score may be bounded by the size of its set.
    size = summary["n_texts"] / summary["n_scores"] if summary["n_scores"] else math.inf
    entries: dict[str, Any] = {"confidence": level}
    for result in results:
        estimate = summary["estimates"][result.name]
        assert result.bounds is not None
        entries[f"{result.name.removesuffix('scores')}confidence_interval"] = (
            None if estimate is None else Estimate(*estimate).interval(level, result.bounds, size)
        )
    return entries
