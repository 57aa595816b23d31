"""What each text adds to the score of its set."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from text_metrics.questions.asked import Asked, Subset


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
        For what `compute` refuses, and for a metric that does not score sets.
    """
    return score_contributions(metric, predictions, settings)[1]


def score_contributions(
    metric: Any, predictions: Any, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], list[list[float | None]]]:
    """Return the result of `compute` for the whole sets too: see `contributions`."""
    asked = Asked(metric, predictions, settings)
    with asked.remembering():
        whole = asked.plain["scores"]
        without_each = cache(lambda n: [np.delete(np.arange(n), j) for j in range(n)])
        rests = [
            (Subset(i, rest), j)
            for i, texts in enumerate(asked.texts)
            if len(texts) > 1 and whole[i] is not None
            for j, rest in enumerate(without_each(len(texts)))
        ]
        rests = [(rest, j) for rest, j in rests if asked.has_weight(rest.of_set, rest.members)]
        scores = asked.scores([rest for rest, _ in rests], **asked.skipping)
        result: list[list[float | None]] = [[None] * len(texts) for texts in asked.texts]
        for (rest, j), score in zip(rests, scores.tolist(), strict=True):
            if not np.isnan(score):
                result[rest.of_set][j] = whole[rest.of_set] - score
        return asked.plain, result
