"""The summary of a scored file, from the records of its pieces."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.shared.merging import merge_results
from text_metrics.metrics._core.core_results import Estimate, ItemResult, UnitSums


def summarize(records: Iterable[Mapping[str, Any]], results: Sequence[ItemResult]) -> dict[str, Any]:
    """Merge the results of all pieces, in order, and estimate the means over items.

    The texts of a row, or of rows that make a set, are not independent of each other: the estimates are over rows, or
    over the labels of rows. `results` are those with an interval, that of the scores first.
    """
    means = [_Mean() for _ in results]
    n_texts = 0

    def batches() -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
        nonlocal n_texts
        for record in records:
            n_texts += record["n_texts"]
            for batch in record["batches"]:
                for mean, result in zip(means, results, strict=True):
                    mean.add(np.array(batch["sums"][result.name], dtype=np.float64).reshape(-1, 2), batch["labels"])
                yield batch["numbers"], batch["n_items"]

    try:
        merged = merge_results(batches())
    except ValueError as error:
        raise UsageError(f"{error} Pass the setting that differs with --setting.") from None
    n_scores = means[0].n_values
    # A score may be bounded by the size of its set.
    size = n_texts / n_scores if n_scores else math.inf
    estimates = [mean.estimate() for mean in means]
    kept = {
        f"{result.name.removesuffix('scores')}confidence_interval": _as_json(estimate, result, size)
        for result, estimate in zip(results, estimates, strict=True)
    }
    return {**merged, "n_scores": n_scores, "n_units": estimates[0].n, "estimates": kept}


def intervals(estimates: Mapping[str, Sequence[Any] | None], level: float) -> dict[str, list[float] | None]:
    """Return the intervals of estimates, as `summarize` returns them, at a level."""
    found: dict[str, list[float] | None] = {}
    for name, values in estimates.items():
        if values is None:
            found[name] = None
            continue
        *estimate, low, high = values
        bounds = -math.inf if low is None else low, math.inf if high is None else high
        found[name] = Estimate(*estimate).interval(level, bounds)
    return found


def _as_json(estimate: Estimate, result: ItemResult, size: float) -> list[Any] | None:
    """Return what an interval of any level follows from; None without one."""
    if not estimate.error > 0:
        return None
    assert result.bounds is not None
    low, high = result.bounds
    ends = [low, high(size) if callable(high) else high]
    return [*estimate[:4], *(end if math.isfinite(end) else None for end in ends)]


class _Mean:
    """The mean of the values of all rows, whose units are rows or the labels of rows."""

    def __init__(self) -> None:
        self.n_values = 0
        self._sums = UnitSums()
        # The sum and the number of the values of each label.
        self._of_labels: dict[Any, np.ndarray] = {}

    def add(self, sums: np.ndarray, labels: Sequence[Any]) -> None:
        """Add the sum and the number of the values of each row, (n, 2); `labels` has one for each row, or is empty."""
        self.n_values += int(sums[:, 1].sum())
        if not labels:
            self._add(sums)
        for label, of_row in zip(labels, sums, strict=False):
            self._of_labels[label] = self._of_labels.get(label, 0) + of_row

    def estimate(self) -> Estimate:
        """Return the mean; add nothing later."""
        self._add(np.array(list(self._of_labels.values())).reshape(-1, 2))
        return self._sums.estimate()

    def _add(self, sums: np.ndarray) -> None:
        has_values = sums[:, 1] > 0
        self._sums.add(sums[has_values, 0], sums[has_values, 1])
