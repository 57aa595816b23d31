"""A metric as a step of any engine that maps batches: Ray Data, `datasets`, Daft, Spark, polars."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

import text_metrics
from text_metrics.core_api import QUESTIONS, TEXTS, describe
from text_metrics.files.columns import (
    column_of,
    columns_of,
    is_missing,
    missing,
    read_value,
    to_arguments,
)


class Scorer:
    """Add columns of scores to batches of rows; the models load once, at the first batch.

    Parameters
    ----------
    metric : the name of a metric of sets or of texts
    text_key : the column of the texts, or a JMESPath expression that begins with a column: for a metric of sets, each
        row has a list of texts; for gruen, one text
    **settings : settings of `compute`; one that is given for texts or sets may be the name of a column, or such an
        expression. `singletons` is "skip" by default, so that a set of one text has no score.

    Raises
    ------
    TypeError, ValueError
        If the metric compares with references, as probeval does, or a setting is invalid; when called, if a row of
        texts has another form, or the batch lacks a column, or has one that would be added.
    """

    def __init__(self, metric: str, text_key: str, **settings: Any) -> None:
        self._metric = text_metrics.load(metric)
        self._text_key = text_key
        if self._metric.items == QUESTIONS:
            raise ValueError(f"{metric} needs references and cannot be a Scorer: call compute().")
        declared = self._metric.settings.declared()
        keys = {
            name: value
            for name, value in settings.items()
            if name in declared and isinstance(value, str) and declared[name].is_given(value)
        }
        self._settings = {name: value for name, value in settings.items() if name not in keys}
        if "singletons" in declared:
            self._settings.setdefault("singletons", "skip")
        self._metric.settings.read(self._settings, metric)
        self._columns = columns_of(self._metric, keys)

    def __reduce__(self) -> tuple[Any, ...]:
        keys = {column.argument: column.name for column in self._columns}
        arguments = self._settings | keys
        return partial(Scorer, self._metric.name, self._text_key, **arguments), ()

    def __call__(self, batch: Any) -> Any:
        """Score a batch of n rows; returns it with the column `<metric>`, and columns `<metric>_<name>`, of floats.

        A batch is a dict of columns, a table or batch of pyarrow, a DataFrame of pandas, or one that pyarrow can read,
        as of polars; the result is of the same type. A row whose texts are null or an empty list has NaN.
        """
        columns = _columns_of_batch(batch)
        read = self._read_columns(columns)
        rows = [dict(zip(read, values, strict=True)) for values in zip(*read.values(), strict=True)]
        texts = [self._texts(row, i) for i, row in enumerate(rows)]
        scored = [i for i, row in enumerate(texts) if row is not None]
        added = {name: np.full(len(rows), np.nan) for name in self._added()}
        if taken := added.keys() & columns.keys():
            raise ValueError(f"the batch has a column {min(taken)!r} already: rename it, or leave it out.")
        if scored:
            given = [self._given(rows[i], texts[i], i) for i in scored]
            scores = self._compute([texts[i] for i in scored], given)
            for name in added:
                added[name][scored] = scores[name]
        return _with_columns(batch, added)

    def _read_columns(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the columns that the keys read, as lists; raises a ValueError for one that the batch lacks."""
        read: dict[str, list[Any]] = {}
        for key in (self._text_key, *(column.name for column in self._columns)):
            # An expression may read several columns.
            names = [key] if key in columns else [name for name in columns if str(name) in key]
            # A batch of no rows may have no columns.
            if columns and (not names or column_of(key, columns) not in (None, *columns)):
                raise ValueError(f"the batch {missing(key, columns)}.")
            read |= {name: _plain(columns[name]) for name in names if name not in read}
        return read

    def _texts(self, row: dict[str, Any], i: int) -> Any:
        """Read the text, or the texts, of row i; None if there are none."""
        texts = read_value(row, self._text_key)
        if texts is None or texts != texts or (isinstance(texts, list) and not texts):
            return None
        is_text = self._metric.items == TEXTS
        # Without this check, a column of texts would be one set.
        if isinstance(texts, str) != is_text or not isinstance(texts, (str, list)):
            expected = "a text" if is_text else "a list of texts"
            raise TypeError(f"{self._text_key} (row {i}) must be {expected}. Got {describe(texts)}.")
        for j, text in enumerate(() if is_text else texts):
            if not isinstance(text, str):
                raise TypeError(f"{self._text_key} (row {i}, text {j}) must be a text. Got {describe(text)}.")
        return texts

    def _given(self, row: dict[str, Any], texts: Any, i: int) -> dict[str, Any]:
        """Read the values of arguments of row i, by argument; None for a set that needs none."""
        n_texts = None if isinstance(texts, str) else len(texts)
        given: dict[str, Any] = {}
        for column in self._columns:
            if not column.per_text and is_missing(read_value(row, column.name)):
                given[column.argument] = None
                continue
            try:
                given[column.argument] = column.read(row, n_texts)
            except ValueError as error:
                raise ValueError(f"row {i} of the batch: {error}.") from None
        return given

    def _compute(self, texts: list[Any], given: list[dict[str, Any]]) -> dict[str, list[Any]]:
        """Score rows; returns the columns that are added."""
        arguments = self._settings | to_arguments(self._columns, given, self._metric.items == TEXTS)
        try:
            result = self._metric.compute(predictions=texts, **arguments)
        except (TypeError, ValueError) as error:
            sources = [f"predictions are {self._text_key}"]
            sources += [f"{each.argument} {each.name}" for each in self._columns]
            raise type(error)(f"{error} ({', '.join(sources)})") from error
        return {self._column(name): values for name, values in result.items() if name.endswith("scores")}

    def _added(self) -> list[str]:
        """Name the columns that are added."""
        given = {column.argument: ["a column"] for column in self._columns}
        settings = self._metric.settings.read(self._settings | given, self._metric.name)
        names = [result.name for result in self._metric.results_under(settings)]
        return [self._column(name) for name in names if name.endswith("scores")]

    def _column(self, result: str) -> str:
        return f"{self._metric.name}_{result}".removesuffix("_scores")


def _is_pandas(batch: Any) -> bool:
    return type(batch).__module__.partition(".")[0] == "pandas"


def _columns_of_batch(batch: Any) -> dict[str, Any]:
    """Return the columns of a batch by name; raises a TypeError if it is not a batch."""
    if isinstance(batch, Mapping):
        return dict(batch)
    if _is_pandas(batch):
        return dict(batch.items())
    if hasattr(batch, "__arrow_c_stream__"):
        table = _as_table(batch)
        return dict(zip(table.schema.names, table.columns, strict=True))
    raise TypeError(f"a batch must be a dict of columns, or a table. Got {describe(batch)}.")


def _as_table(batch: Any) -> Any:
    """Return a batch as pyarrow's table, or as the batch of pyarrow that it is."""
    import pyarrow as pa

    return batch if isinstance(batch, (pa.Table, pa.RecordBatch)) else pa.table(batch)


def _with_columns(batch: Any, added: Mapping[str, np.ndarray]) -> Any:
    """Add columns of floats to a batch, in its type."""
    if isinstance(batch, Mapping):
        # Rows of arrays as lists, which engines can store.
        arrays = [name for name, values in batch.items() if getattr(values, "dtype", "") == np.object_]
        return dict(batch) | {name: _plain(batch[name]) for name in arrays} | dict(added)
    if _is_pandas(batch):
        return batch.assign(**added)
    import pyarrow as pa

    table = _as_table(batch)
    for name, values in added.items():
        table = table.append_column(name, pa.array(values))
    return table if isinstance(batch, (pa.Table, pa.RecordBatch)) else type(batch)(table)


def _plain(values: Any) -> Any:
    """Turn columns and arrays, and those in lists and dictionaries, into lists of Python's values."""
    if hasattr(values, "notna"):
        # pandas has several kinds of null.
        values = values.astype(object).where(values.notna(), None)
    for convert in ("to_pylist", "tolist"):
        if hasattr(values, convert):
            values = getattr(values, convert)()
            break
    if isinstance(values, dict):
        return {name: _plain(value) for name, value in values.items()}
    # Long lists of numbers stay as they are.
    if isinstance(values, (list, tuple)) and any(not isinstance(value, (str, int, float)) for value in values):
        return [_plain(value) for value in values]
    return list(values) if isinstance(values, tuple) else values
