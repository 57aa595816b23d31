"""The contribution of each text to the score of its set."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from text_metrics.core_api import batches_by_size, lists_by_set
from text_metrics.questions.subsets import Subsets, SubsetScorer

# Number of texts in a block of sets, which bounds the memory.
_TEXTS_AT_ONCE = 2**12


def contributions(metric: Any, predictions: Any, **settings: Any) -> list[list[float | None]]:
    """Return the score of each set minus its score without each text.

    Parameters
    ----------
    metric : a loaded metric of sets, or its name
    predictions, settings : as for its `compute`; settings given for texts are sliced along, and weights scaled to sum
        to 1 again

    Returns
    -------
    list of m lists, a number for each text, in the unit of the score; None for a text alone in its set, with all the
    weight of its set, or if the rest has no score

    Raises
    ------
    TypeError, ValueError
        If `compute` raises one, or the metric does not score sets.
    """
    return score_contributions(metric, predictions, settings)[1]


def score_contributions(
    metric: Any, predictions: Any, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[list[float | None]]]:
    """Return the result of `compute` for the whole sets too: see `contributions`."""
    scorer = SubsetScorer(metric, predictions, settings)
    with scorer.caching():
        whole = np.array(scorer.whole["scores"], dtype=np.float64)
        rests = None
        if hasattr(scorer.metric, "score_without_each"):
            parsed = scorer.metric.settings.read(scorer.settings, scorer.metric.name)
            rests = scorer.metric.score_without_each(scorer.sets, parsed)
        if rests is None:
            rests = _one_by_one(scorer, whole)
    values = np.repeat(whole, scorer.sets.sizes) - rests
    known = ~np.isnan(values)
    return scorer.whole, lists_by_set(values[known], scorer.sets.sizes, known)


def _one_by_one(scorer: SubsetScorer, whole: np.ndarray) -> np.ndarray:
    """Return the score of its set without each text, (n,); NaN if undefined."""
    scores = np.full(len(scorer.sets.texts), np.nan)
    for members, rows in batches_by_size(scorer.sets.sizes, _TEXTS_AT_ONCE):
        size = rows.shape[1]
        if size == 1:
            continue
        without_each = np.array([np.delete(np.arange(size), j) for j in range(size)])
        rests = rows[:, without_each].reshape(-1, size - 1)
        owners = np.repeat(members, size)
        left_out = rows.ravel()
        scored = scorer.has_weight(rests) & ~np.isnan(whole[owners])
        subsets = Subsets(owners[scored], rests[scored])
        scores[left_out[scored]] = scorer.scores(subsets, **scorer.singletons_skipped)
    return scores
