"""The summary of a scored file, from the records of its pieces."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from text_metrics.core_api import Estimate, ScoreSummary, Signature, format_sizes, ratio_estimate, result_numbers
from text_metrics.jobs.scoring import RowScorer, result_lists

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

    Counts add up, of the maxima of a metric the largest counts, and means are weighted by their numbers of items; one
    that a piece lacks is None. Estimates are over units or their labels, because the texts of a unit are not
    independent. One set is one piece, whose lists are in the summary.

    Raises a ValueError if the signatures of pieces differ.
    """
    sums: dict[str, Any] = {name: [np.empty((0, 2))] for name in scorer.bounds}
    counts, codes, labels = Counter[str](), dict[str, int](), list[int]()
    # The sum of each number over items, the number of items, and that of pieces.
    totals: dict[str, Any] = defaultdict(lambda: np.zeros(3))
    maxima: dict[str, float] = {}
    lists: dict[str, Any] = {}
    signature, n_pieces = "", 0
    for facts in pieces:
        n_pieces += 1
        lists |= facts["lists"]
        labels += [codes.setdefault(label, len(codes)) for label in facts["labels"]]
        signature = merge_signatures(signature, facts["signature"])
        for name, value in facts["numbers"].items():
            if isinstance(value, int):
                counts[name] += value
            elif name in scorer.metric.maxima:
                maxima[name] = max(value, maxima.get(name, value))
            else:
                weight = 0 if value is None else facts["n_items"][name]
                totals[name] += ((value or 0.0) * weight, weight, 1)
        for name, of_items in sums.items():
            of_items.append(np.reshape(facts["sums"][name], (-1, 2)))
    by_unit = {name: np.vstack(of_items) for name, of_items in sums.items()}
    if labels:
        for name, of_items in by_unit.items():
            by_unit[name] = np.stack([np.bincount(labels, column) for column in of_items.T], axis=1)
    estimates = {name: ratio_estimate(*of_units[of_units[:, 1] > 0].T) for name, of_units in by_unit.items()}
    return {
        **{name: float(total / n) if n and k == n_pieces else None for name, (total, n, k) in totals.items()},
        **maxima,
        **counts,
        **lists,
        "signature": signature,
        "n_scores": int(by_unit["scores"][:, 1].sum()),
        "n_units": estimates["scores"].n,
        "estimates": {name: [*of] if of.error > 0 else None for name, of in estimates.items()},
    }


def summarize_sums(pieces: Iterable[Mapping[str, Any]], scorer: RowScorer) -> dict[str, Any]:
    """Score a set from the sums of its pieces; returns the result."""
    from text_metrics.core_api import name_results, spectra_from_sums

    total, signature, n = np.zeros(()), "", 0
    for facts in pieces:
        total, n = total + facts["sums"], n + facts["n"]
        signature = merge_signatures(signature, facts["signature"])
    sizes = np.array([n])
    summary = ScoreSummary(np.arange(1), None, scorer.metric.bounds, sizes)
    result = name_results(spectra_from_sums(total, n), sizes, scorer.settings, summary)
    return {
        **dict(result_numbers(result)),
        **result_lists(result),
        "n_scores": 1,
        "signature": str(Signature.parse(signature).merge(set_size=n)),
    }


def intervals(summary: Mapping[str, Any], scorer: RowScorer, level: float) -> dict[str, Any]:
    """Return the intervals of the estimates of a summary at a level, and the level."""
    # A score may be bounded by the size of its set.
    size = summary["n_texts"] / summary["n_scores"] if summary["n_scores"] else math.inf
    entries: dict[str, Any] = {"confidence": level}
    for name, bounds in scorer.bounds.items():
        estimate = summary["estimates"][name]
        interval = None if estimate is None else Estimate(*estimate).interval(level, bounds, size)
        entries[f"{name.removesuffix('scores')}confidence_interval"] = interval
    return entries
