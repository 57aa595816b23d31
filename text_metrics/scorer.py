"""A metric as a step of any engine that maps batches: Ray Data, `datasets`, Daft, Spark."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import text_metrics
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS
from text_metrics.metrics._core.core_settings import CALL, PAIR, Declared


class Scorer:
    """Add columns of scores to batches of rows; the models load once, at the first batch.

    Parameters
    ----------
    metric : the name of a metric of sets or of texts
    text_key : the column of the texts: for a metric of sets, each row has a list of them; for gruen, one text
    **settings : of `compute`; one that is given for texts or sets may be the name of a column

    Raises
    ------
    TypeError, ValueError
        If the metric compares with references, as probeval does, or a setting is invalid; when called, if a row of
        texts has another form, or the batch has a column that would be added.
    """

    def __init__(self, metric: str, text_key: str, **settings: Any) -> None:
        self._metric, self._text_key = text_metrics.load(metric), text_key
        if self._metric.items == QUESTIONS:
            raise ValueError(f"{metric} compares answers with references, and is no step: call its compute.")
        declared = self._metric.settings.declared()
        self._columns = {
            name: value for name, value in settings.items() if name in declared and _is_column(declared[name], value)
        }
        self._settings = {name: value for name, value in settings.items() if name not in self._columns}
        self._metric.settings.read(self._settings, metric)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Scorer, self._metric.name, self._text_key, **self._settings, **self._columns), ()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Score a batch, a dict of columns of n rows; returns it with the column `<metric>`, and `<metric>_<name>`."""
        columns = {name: _plain(batch[column]) for name, column in self._columns.items()}
        rows = _plain(batch[self._text_key])
        for i, row in enumerate(rows):
            # Without this check, a column of texts would be one set.
            if isinstance(row, str) != (self._metric.items == TEXTS):
                expected = "a text" if self._metric.items == TEXTS else "a list of texts"
                raise TypeError(f"{self._text_key} (row {i}) must be {expected}. Got {describe(row)}.")
        result = self._metric.compute(predictions=rows, **columns, **self._settings)
        scores = {name: value for name, value in result.items() if name.endswith("scores")}
        name = self._metric.name
        added = {f"{name}_{key}".removesuffix("_scores"): np.array(row, float) for key, row in scores.items()}
        if taken := added.keys() & batch.keys():
            raise ValueError(f"the batch has a column {min(taken)!r} already: rename it, or leave it out.")
        # Rows of arrays as lists, which engines can store.
        of_objects = [key for key, rows in batch.items() if getattr(rows, "dtype", "") == np.object_]
        return {**batch, **{key: _plain(batch[key]) for key in of_objects}, **added}


def _is_column(declared: Declared, value: Any) -> bool:
    """Tell whether the value of a setting names a column, and not a model of pairs."""
    if declared.given == PAIR and isinstance(value, str):
        from text_metrics.metrics._core.core_pairs import is_pair_model

        return not is_pair_model(value)
    return declared.given != CALL and isinstance(value, str)


def _plain(values: Any) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
