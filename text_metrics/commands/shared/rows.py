"""Rows of files of texts: JSON, CSV, Parquet and folders of `datasets`, as all commands read them."""

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.shared import files
from text_metrics.metrics._core.core_numbers import describe

# Rows of a table read at a time.
_ROWS = 1024
# Characters of a field of CSV, which bounds what an unclosed quote can swallow.
_CSV_FIELD = 1_000_000
# What may be left of a blank line: a byte order mark, too.
_BLANK = b" \t\r\n\xef\xbb\xbf"
# What pyarrow and `datasets` raise for a damaged file.
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)
# Characters of a bad row that are set aside with it.
SHOWN = 1000


class Row(msgspec.Struct):
    """A row of a file that is not blank.

    number : of the row, or of its line, from 1
    values : None if it cannot be read
    error : why it cannot be used; empty for a good row
    raw : the line of a row that cannot be read
    n_lines : how many lines a row of CSV covers that cannot be read
    texts, given : the texts of a good row, and its values of arguments by name, once a `Reader` has read them
    """

    number: int
    values: Any
    error: str = ""
    raw: str = ""
    n_lines: int = 1
    texts: list[str] = []
    given: dict[str, Any] = {}

    def show(self) -> str:
        """Format the row as it is set aside."""
        return self.raw if self.values is None else json.dumps(self.values, default=files.to_plain)[:SHOWN]


class Source:
    """A file that is read row by row.

    Parameters
    ----------
    any_value : whether a row of JSON may be any value but null; otherwise, it is an object

    Attributes
    ----------
    schema : of a table; None for a file without types

    Raises a ValueError if the file is not there, or is a table that is damaged.
    """

    schema: pa.Schema | None = None

    def __init__(self, path: Path, any_value: bool = False) -> None:
        self.path, self._any_value = path, any_value
        if not path.exists():
            raise ValueError(f"{path} does not exist.")
        self._files = files.data_files(path)
        self._is_saved = path.is_dir() and self._files[0].suffix == ".json"
        self._is_table = path.is_dir() or files.file_format(path) == ".parquet"
        if self._is_table:
            try:
                self._open_table()
            except _DAMAGE as error:
                kind = "`datasets`" if self._is_saved else "Parquet"
                raise ValueError(f"{path} is no {kind}, or is damaged: {_first_line(error)}") from None

    def _open_table(self) -> None:
        if self._is_saved:
            import datasets

            self._dataset = datasets.load_from_disk(str(self.path))
            if isinstance(self._dataset, datasets.DatasetDict):
                raise ValueError(f"pass the folder of a split: {', '.join(self._dataset)}.")
            self.schema = self._dataset.features.arrow_schema
            return
        for path in self._files:
            with path.open("rb") as file:
                schema = pq.read_schema(file)
            self.schema = self.schema or schema
            if not schema.equals(self.schema):
                raise ValueError(f"{path} has other columns, or of other types, than {self._files[0]}.")

    def check_columns(self, *keys: str | None) -> None:
        """Raise a ValueError for a key that a table does not have."""
        names = [] if self.schema is None else self.schema.names
        for key in keys:
            if names and key is not None and key not in names:
                raise ValueError(f"{self.path} has no column {key!r}: it has {', '.join(names)}.")

    def rows(self, column: str | None = None) -> Iterator[Row]:
        """Read the rows; only one column where that is faster, if it is named."""
        if self._is_table:
            return self._table_rows(None if column is None else [column])
        if files.file_format(self.path) == ".csv":
            return self._csv_rows()
        return self._json_rows()

    def _json_rows(self) -> Iterator[Row]:
        if self._is_array():
            for number, value in enumerate(files.read_json(self.path), 1):
                yield self._json_row(number, value, b"")
            return
        with files.open_file(self.path) as file:
            for number, line in enumerate(file, 1):
                try:
                    value = files.parse_line(line)
                except ValueError as error:
                    if line.strip(_BLANK):
                        yield Row(number, None, f"is not valid JSON: {error}", _show(line))
                    continue
                yield self._json_row(number, value, line)

    def _is_array(self) -> bool:
        if files.file_format(self.path) != ".json":
            return False
        with files.open_file(self.path) as file:
            return file.peek().lstrip(_BLANK)[:1] == b"["

    def _json_row(self, number: int, value: Any, line: bytes) -> Row:
        if type(value) is dict or (self._any_value and value is not None):
            return Row(number, value)
        expected = "must not be null" if self._any_value else "must be a JSON object"
        return Row(number, None, f"{expected}. Got {describe(value)}", _show(line) or describe(value))

    def _csv_rows(self) -> Iterator[Row]:
        csv.field_size_limit(_CSV_FIELD)
        with files.open_file(self.path) as file:
            # Invalid UTF-8 becomes unpaired surrogates, with which a row is set aside.
            lines = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
            records = csv.reader(lines, strict=True)
            names = self._header(records)
            while True:
                begin, problem, fields = records.line_num, "", []
                try:
                    fields = next(records)
                    "".join(fields).encode()
                except StopIteration:
                    return
                except (csv.Error, UnicodeEncodeError) as error:
                    problem = f"is not valid CSV in UTF-8: {error}"
                if len(fields) == len(names) and not problem:
                    yield Row(begin + 1, dict(zip(names, fields, strict=True)))
                elif fields or problem:
                    problem = problem or f"has {len(fields)} fields, not {len(names)}"
                    raw = _show(",".join(fields).encode(errors="replace"))
                    yield Row(begin + 1, None, problem, raw, records.line_num - begin)

    def _header(self, records: Any) -> list[str]:
        try:
            names = next(records, list[str]())
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError) as error:
            raise ValueError(f"{self.path}, line 1 is not valid CSV in UTF-8: {error}.") from None
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{self.path} must begin with a line of different column names. Got {names!r:.200}.")
        return names

    def _tables(self, columns: list[str] | None) -> Iterator[Any]:
        if self._is_saved:
            dataset = self._dataset.select_columns(columns) if columns else self._dataset
            yield from dataset.with_format("arrow").iter(_ROWS)
            return
        for path in self._files:
            with path.open("rb") as file:
                table = pq.ParquetFile(file)
                # One group after another, so that the first damaged one is named, and the rows before it are scored.
                for group in range(table.num_row_groups):
                    yield from table.iter_batches(_ROWS, [group], columns)

    def _table_rows(self, columns: list[str] | None) -> Iterator[Row]:
        tables, begin = self._tables(columns), 0
        while True:
            try:
                table = next(tables, None)
                rows = None if table is None else table.to_pylist()
            except _DAMAGE as error:
                raise ValueError(f"{self.path} is damaged after row {begin}: {_first_line(error)}") from None
            if rows is None:
                return
            for number, values in enumerate(rows, begin + 1):
                yield Row(number, values)
            begin += len(rows)


def read_rows(path: Path, any_value: bool = False) -> list[tuple[str, Any]]:
    """Read all rows of a file, each with its place, for errors; raises a ValueError if one is bad, or there is none."""
    source, rows = Source(path, any_value), []
    for row in source.rows():
        where = f"{path}, {'line' if source.schema is None else 'row'} {row.number}"
        if row.error:
            raise ValueError(f"{where} {row.error}.")
        rows.append((where, row.values))
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows


def read_key(values: Any, name: str) -> str | None:
    """Read the key of a row as a text, so that 1, 1.0 and "1" are one key, as in CSV; None if it is missing or NaN."""
    value = values.get(name) if type(values) is dict else None
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def missing(key: str, values: Mapping[str, Any]) -> str:
    """Say that a row has no value under a key, and which keys it has."""
    columns = "" if key in values else f": it has {', '.join(values) or 'no columns'}"
    return f"has no {key!r}{columns}"[:SHOWN]


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _show(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\n")[:SHOWN]
