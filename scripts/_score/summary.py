"""The summary of a scored file: the numbers of the whole, with the interval of the mean of the scores."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from metrics._core.core_results import MergedResult, confidence_interval
from scripts._score.store import State, Store

# The interval is a bootstrap for at most this many scores, and normal for more, when the two hardly differ.
_BOOTSTRAP_ITEMS = 100_000


def summarize(store: Store, score_key: str, level: float, state: State) -> dict[str, Any]:
    """Merge the results of all batches, and find the interval of the mean of the scores."""
    kept: list[float] = []
    n, mean, squares = 0, 0.0, 0.0
    for _, rows in store.batches():
        scores = np.array([score for row in rows for score in _flat(row[score_key]) if score is not None])
        if not len(scores):
            continue
        if n + len(scores) <= _BOOTSTRAP_ITEMS:
            kept += scores.tolist()
        # The parallel form of Welford's sums (Chan, Golub & LeVeque 1979).
        shift = float(scores.mean()) - mean
        squares += float(((scores - scores.mean()) ** 2).sum()) + shift**2 * n * len(scores) / (n + len(scores))
        n += len(scores)
        mean += shift * len(scores) / n
    interval, method = None, None
    if 1 < n <= _BOOTSTRAP_ITEMS:
        interval, method = confidence_interval(level, np.array(kept)), "bootstrap"
    elif n > 1:
        half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(squares / (n - 1) / n)
        interval, method = [mean - half, mean + half], "normal"
    return {
        **MergedResult(state.merged).result(),
        "n_scores": n,
        "n_texts": state.n_texts,
        "n_bad": state.n_bad,
        "n_incomplete": state.n_incomplete,
        "n_dropped": state.n_dropped,
        "confidence": level,
        "confidence_interval": interval,
        "confidence_method": method,
        "command": state.command,
    }


def _flat(score: Any) -> list[Any]:
    return score if isinstance(score, list) else [score]
