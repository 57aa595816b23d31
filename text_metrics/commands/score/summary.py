"""The summary of a scored file: the numbers of the whole, with the intervals of the means."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from text_metrics.commands.jobs.store import State, Store
from text_metrics.metrics._core.core_results import Estimate, ItemResult, MergedResult, UnitSums


def summarize(store: Store, results: Sequence[ItemResult], level: float, state: State) -> dict[str, Any]:
    """Merge the results of all batches, and find the intervals of the means over items.

    The texts of a row, or of rows that make a set, are not independent of each other: the intervals are over rows, or
    over the labels of rows.

    Parameters
    ----------
    results : those whose means have an interval, that of the scores first
    level : of the intervals
    """
    means = [_Mean() for _ in results]
    for part in store.states():
        # A batch in which no row can be scored has no sums.
        for mean, sums in zip(means if part.sums else [], part.sums, strict=True):
            mean.add(np.array(sums, dtype=np.float64).reshape(-1, 2), part.labels)
    estimates = [mean.estimate() for mean in means]
    return {
        **MergedResult(state.merged).result(),
        "n_scores": means[0].n_values,
        "n_texts": state.n_texts,
        "n_bad": state.n_bad,
        "n_incomplete": state.n_incomplete,
        "n_dropped": state.n_dropped,
        "confidence": level,
        **{
            f"{result.name.removesuffix('scores')}confidence_interval": estimate.interval(level, result.bounds)
            for result, estimate in zip(results, estimates, strict=True)
            if result.bounds is not None
        },
        "n_units": estimates[0].n,
        "command": state.command,
    }


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
