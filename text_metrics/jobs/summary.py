"""The summary of a scored file, from the records of its pieces."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from text_metrics.core_api import Estimate, Signature, format_sizes, ratio_estimate, result_numbers
from text_metrics.jobs.scoring import RowScorer, result_lists

# Entries of a signature that give the amount of data.
_SIZES = ("set_size", "n_answers")


def merge_signatures(first: str, second: str) -> str:
    """Merge the signatures of two pieces of the data; the first one is empty if there is no piece yet.

    Raises a ValueError if they differ in anything but the sizes of their sets; it names what differs.
    """
    if not first or first == second:
        return second
    signature = Signature.parse(first)
    sizes = {}
    for name, values in signature.difference(Signature.parse(second)).items():
        if name not in _SIZES or None in values:
            raise ValueError(f"parts of the data were scored under different settings: {name} is {list(values)}.")
        # A size is a number, or a range such as 2-5.
        bounds = "-".join(map(str, values)).split("-")
        sizes[name] = format_sizes(np.array(list(map(int, bounds))))
    return str(signature.merge(**sizes))


def summarize(pieces: Iterable[Mapping[str, Any]], scorer: RowScorer) -> dict[str, Any]:
    """Merge the results of all pieces, in order, and estimate the means over items.

    Counts are added up, maxima of a metric are the largest of all pieces, and means are weighted by their numbers of
    items; a mean that a piece lacks is None. Estimates are over units or their labels, because the texts of a unit are
    not independent. One set is one piece, and its lists are in the summary.

    Raises a ValueError if the signatures of pieces differ.
    """
    # For each result an array of shape (n, 2) of each piece: the sums of n units, and their numbers of values.
    sums: dict[str, Any] = {name: [np.empty((0, 2))] for name in scorer.bounds}
    counts = Counter[str]()
    # For each mean, its sum over items, the number of items, and the number of pieces that name it.
    totals: dict[str, float] = defaultdict(float)
    n_items = Counter[str]()
    n_naming = Counter[str]()
    maxima: dict[str, float] = {}
    lists: dict[str, Any] = {}
    # The label of each unit as an integer.
    labels: list[int] = []
    codes: dict[str, int] = {}
    signature = ""
    n_pieces = 0
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
                n_naming[name] += 1
                if value is not None:
                    totals[name] += value * facts["n_items"][name]
                    n_items[name] += facts["n_items"][name]
        for name, arrays in sums.items():
            arrays.append(np.reshape(facts["sums"][name], (-1, 2)))
    n_scores = int(np.vstack(sums["scores"])[:, 1].sum())
    estimates: dict[str, Estimate] = {}
    for name, arrays in sums.items():
        unit_sums, n_values = np.vstack(arrays).T
        if labels:
            unit_sums = np.bincount(labels, unit_sums)
            n_values = np.bincount(labels, n_values)
        has_values = n_values > 0
        estimates[name] = ratio_estimate(unit_sums[has_values], n_values[has_values])
    means: dict[str, float | None] = {}
    for name, n in n_naming.items():
        is_complete = n == n_pieces and n_items[name] > 0
        means[name] = float(totals[name] / n_items[name]) if is_complete else None
    about = {
        "signature": signature,
        "n_scores": n_scores,
        "n_units": estimates["scores"].n,
        "estimates": {name: list(each) if each.error >= 0 else None for name, each in estimates.items()},
    }
    return means | maxima | counts | lists | about


def summarize_sums(pieces: Iterable[Mapping[str, Any]], scorer: RowScorer) -> dict[str, Any]:
    """Score a set from the sums of its pieces; returns the result."""
    total = np.zeros(())
    n = 0
    signature = ""
    for facts in pieces:
        total = total + facts["sums"]
        n += facts["n"]
        signature = merge_signatures(signature, facts["signature"])
    result = scorer.metric.score_sums(total, n, scorer.settings)
    signed = str(Signature.parse(signature).merge(set_size=n))
    return dict(result_numbers(result)) | result_lists(result) | {"n_scores": 1, "signature": signed}


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
