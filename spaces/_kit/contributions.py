"""What each text adds to the score of its set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# The texts of larger sets are not left out one by one: it takes too long.
MOST_TEXTS = 60


def contributions(
    metric: Any,
    texts: Sequence[Sequence[str]],
    similarity: Sequence[np.ndarray],
    scores: Sequence[Any],
    **settings: Any,
) -> list[list[float | None]]:
    """Return the score of each set minus its score without each text.

    Parameters
    ----------
    metric : one that takes `similarity` in place of texts
    texts : of m sets
    similarity : for each set of k texts, ndarray of shape (k, k)
    scores : of the m sets
    settings : of the metric

    Returns
    -------
    list of m lists, a number for each text; None in sets of one text or of more than `MOST_TEXTS`, and where no score
    remains
    """
    added: list[list[float | None]] = [[None] * len(members) for members in texts]
    places = [(i, j) for i, row in enumerate(added) if 1 < len(row) <= MOST_TEXTS for j in range(len(row))]
    if places:
        kept = [(i, [k for k in range(len(texts[i])) if k != j]) for i, j in places]
        rests = metric.compute(
            predictions=[[texts[i][j] for j in rows] for i, rows in kept],
            similarity=[similarity[i][np.ix_(rows, rows)] for i, rows in kept],
            **settings,
        )
        for (i, j), rest in zip(places, rests["scores"], strict=True):
            if rest is not None:
                added[i][j] = scores[i] - rest
    return added
