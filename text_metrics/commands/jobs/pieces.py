"""A file cut into pieces, each of which is read without the rows before it, and holds whole sets."""

import json
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.rows import WHOLE, Piece, Row, Source
from text_metrics.commands.shared.files import is_blank


def read_key(values: Mapping[str, Any] | None, name: str) -> str | None:
    """Read the key of a row as a text, so that 1, 1.0 and "1" are one key, as in CSV; None if it is missing or NaN."""
    value = values.get(name) if isinstance(values, Mapping) else None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def cut(source: Source, n_rows: int, set_size: int = 1, group_key: str | None = None) -> list[Piece]:
    """Cut a file into pieces of `n_rows` rows that are not blank, or a few more, so that each holds whole sets.

    A piece of Parquet also ends near the end of a row group. With `group_key`, all keys are read, and pieces end where
    the key changes, but not beside a row without a key, which may belong to the set before or after it.

    Raises a UsageError if a key comes back after rows of another one, or if rows that make sets of `set_size` cannot be
    counted.
    """
    n_rows = -(-n_rows // set_size) * set_size
    if group_key is not None:
        return _cut_at_keys(source, n_rows, group_key)
    if source.schema is None:
        return _cut_lines(source, n_rows, set_size)
    pieces, begin = [], 0
    while source.ends and begin < source.ends[-1]:
        end = min(-(-_end_after(source, begin + n_rows) // set_size) * set_size, source.ends[-1])
        pieces.append(Piece(begin, begin, end))
        begin = end
    return pieces


def _end_after(source: Source, row: int) -> int:
    return source.ends[min(bisect_left(source.ends, row), len(source.ends) - 1)]


def _cut_lines(source: Source, n_rows: int, set_size: int) -> list[Piece]:
    pieces, first, begin, count = [], 0, 0, 0
    for nothing in _blanks(source, set_size):
        count += not nothing
        if count == n_rows:
            pieces.append(Piece(first, begin, source.at))
            first, begin, count = source.n_lines, source.at, 0
    return [*pieces, Piece(first, begin, source.at)] if source.at > begin else pieces


def _blanks(source: Source, set_size: int) -> Iterator[bool]:
    """Read all rows, and say of each whether it is blank."""
    if source.kind != ".csv":
        yield from map(is_blank, source.lines(WHOLE))
        return
    for row in source.rows():
        if set_size > 1 and row.error and source.n_lines > row.number:
            raise UsageError(
                f"{source.path}, lines {row.number} to {source.n_lines} cannot be read: the first {row.error}. They "
                "may be any number of rows, so that the later sets of --set-size are unknown. Correct these lines."
            )
        yield row.is_blank


def _cut_at_keys(source: Source, n_rows: int, name: str) -> list[Piece]:
    pieces, hashes = [], array("q")
    first, begin, count, last, was_keyed = 0, 0, 0, None, False
    before = 0, 0
    for row in source.rows(column=name):
        key = None if row.is_blank else read_key(row.values, name)
        if key is not None and key != last:
            hashes.append(hash(key))
            is_far = before[1] >= _end_after(source, begin + n_rows) if source.schema is not None else count >= n_rows
            if is_far and was_keyed:
                pieces.append(Piece(first, begin, before[1]))
                (first, begin), count = before, 0
            last = key
        if not row.is_blank:
            count += 1
            was_keyed = key is not None
        before = source.n_lines, source.at
    _check_runs(source, hashes, name)
    return [*pieces, Piece(first, begin, source.at)] if source.at > begin else pieces


def _check_runs(source: Source, hashes: array, name: str) -> None:
    """Raise a UsageError if two runs of rows have one key; their hashes tell which keys have to be compared."""
    values, counts = np.unique(np.frombuffer(hashes, np.int64), return_counts=True)
    repeated = set(values[counts > 1].tolist())
    runs: dict[str, Row] = {}
    last = None
    for row in source.rows(column=name) if repeated else ():
        key = read_key(row.values, name)
        if key is None or key == last:
            continue
        if key in runs:
            raise UsageError(
                f"{source.path}: {name!r} is {key!r:.80} in row {runs[key].number}, and again in row {row.number}, "
                f"after other rows. The rows of a set must be next to each other: sort the file by {name!r} first."
            )
        if hash(key) in repeated:
            runs[key] = row
        last = key
