"""The summary of a scored file, from the records of its pieces."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from text_metrics.commands.shared.merging import merge_results
from text_metrics.metrics._core.core_results import Estimate, ItemResult, UnitSums


def summarize(records: Iterable[Mapping[str, Any]], results: Sequence[ItemResult]) -> dict[str, Any]:
    """Merge the results of all pieces, in order, and estimate the means over items.

    The texts of a row, or of rows that make a set, are not independent of each other: the estimates are over rows, or
    over the labels of rows. `results` are those with an interval, that of the scores first.
    """
    names = [result.name for result in results]
    means = {name: UnitSums() for name in names}
    # The sum and the number of the values of each label.
    labelled: dict[str, Any] = {name: defaultdict(lambda: np.zeros(2)) for name in names}
    n_scores = 0

    def parts() -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
        nonlocal n_scores
        for facts in (record["facts"] for record in records if record["facts"] is not None):
            for name in names:
                sums = np.array(facts["sums"][name], dtype=np.float64).reshape(-1, 2)
                n_scores += int(sums[:, 1].sum()) if name == names[0] else 0
                for label, of_row in zip(facts["labels"], sums, strict=False):
                    labelled[name][label] += of_row
                if not facts["labels"]:
                    _add(means[name], sums)
            yield facts["numbers"], facts["n_items"]

    try:
        merged = merge_results(parts())
    except ValueError as error:
        raise ValueError(f"{error} Pass the setting that differs with --setting.") from None
    for name in names:
        _add(means[name], np.array(list(labelled[name].values())).reshape(-1, 2))
    estimates = {name: mean.estimate() for name, mean in means.items()}
    kept = {name: [*of[:4]] if of.error > 0 else None for name, of in estimates.items()}
    return {**merged, "n_scores": n_scores, "n_units": estimates[names[0]].n, "estimates": kept}


def _add(mean: UnitSums, sums: np.ndarray) -> None:
    has_values = sums[:, 1] > 0
    mean.add(sums[has_values, 0], sums[has_values, 1])


def intervals(summary: Mapping[str, Any], results: Sequence[ItemResult], level: float) -> dict[str, Any]:
    """Return the intervals of the estimates of a summary at a level, and the level."""
    # A score may be bounded by the size of its set.
    size = summary["n_texts"] / summary["n_scores"] if summary["n_scores"] else math.inf
    found: dict[str, Any] = {"confidence": level}
    for result in results:
        estimate = summary["estimates"][result.name]
        assert result.bounds is not None
        found[f"{result.name.removesuffix('scores')}confidence_interval"] = (
            None if estimate is None else Estimate(*estimate).interval(level, result.bounds, size)
        )
    return found
