"""The summary of a scored file: the numbers of the whole, with the interval of the mean of the scores."""

from typing import Any

import numpy as np

from text_metrics.commands.jobs.store import State, Store
from text_metrics.metrics._core.core_results import MergedResult, UnitSums


def summarize(store: Store, score_key: str, level: float, bounds: tuple[float, float], state: State) -> dict[str, Any]:
    """Merge the results of all batches, and find the interval of the mean of the scores.

    The texts of a row, or of rows that make a set, are not independent of each other: the interval is over rows.

    Parameters
    ----------
    level : of the interval
    bounds : range of the score
    """
    n_scores, sums = 0, UnitSums()
    for _, rows in store.batches():
        units = [[score for score in _flat(row[score_key]) if score is not None] for row in rows]
        counts = np.array([len(scores) for scores in units if scores])
        sums.add(np.array([sum(scores) for scores in units if scores]), counts)
        n_scores += int(counts.sum())
    estimate = sums.estimate()
    return {
        **MergedResult(state.merged).result(),
        "n_scores": n_scores,
        "n_texts": state.n_texts,
        "n_bad": state.n_bad,
        "n_incomplete": state.n_incomplete,
        "n_dropped": state.n_dropped,
        "confidence": level,
        "confidence_interval": estimate.interval(level, bounds),
        "n_units": estimate.n,
        "command": state.command,
    }


def _flat(score: Any) -> list[Any]:
    return score if isinstance(score, list) else [score]
