"""What each text adds to the score of its set."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from text_metrics.metrics._core.core_inputs import batches_by_size, lists_by_set
from text_metrics.questions.subsets import Subsets, SubsetScorer

# Texts of sets that are taken apart at a time, to bound the memory.
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
    weight of its set, or without which there is no score

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
        values = np.full(len(scorer.sets.texts), np.nan)
        for members, rows in batches_by_size(scorer.sets.sizes, _TEXTS_AT_ONCE):
            size = rows.shape[1]
            if size == 1:
                continue
            without_each = np.array([np.delete(np.arange(size), j) for j in range(size)])
            rests = rows[:, without_each].reshape(-1, size - 1)
            of_set, left_out = np.repeat(members, size), rows.ravel()
            scored = scorer.has_weight(rests) & ~np.isnan(whole[of_set])
            of_set, left_out, rests = of_set[scored], left_out[scored], rests[scored]
            values[left_out] = whole[of_set] - scorer.scores(Subsets(of_set, rests), **scorer.singletons_skipped)
    known = ~np.isnan(values)
    return scorer.whole, lists_by_set(values[known], scorer.sets.sizes, known)
