"""Score sets by any metric; by one of texts, each text of a set is scored."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from text_metrics.core_api import TEXTS, owners_of, split_list


def score_sets(
    metric: Any, sets: Sequence[Sequence[str]], settings: Mapping[str, Any], k: int | None = None
) -> dict[str, Any]:
    """Return the result of `compute` for sets, or for their texts; its interval takes texts of a set as dependent.

    k : rarefy sets to this many texts
    """
    if k is not None:
        # Its import takes a second.
        from text_metrics.questions.rarefied import rarefied

        return rarefied(metric, sets, k, **settings)
    if getattr(metric, "items", None) != TEXTS:
        return metric.compute(predictions=sets, **settings)
    owners = owners_of(_sizes(sets)).tolist()
    return metric.compute(predictions=list(chain.from_iterable(sets)), **{"confidence_by": owners, **settings})


def by_set(metric: Any, values: list[Any], sets: Sequence[Sequence[str]]) -> list[Any]:
    """Return the values of the items of a result by set: of a metric of texts, a list for each set."""
    return split_list(values, _sizes(sets)) if metric.items == TEXTS else values


def _sizes(sets: Sequence[Sequence[str]]) -> np.ndarray:
    return np.array(list(map(len, sets)))
