"""Rows of files of texts: JSON, CSV, text, Parquet and folders of `datasets`, as all commands read them."""

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from text_metrics.core_api import describe
from text_metrics.files import listing, tables
from text_metrics.files import storage as files
from text_metrics.files.columns import SHOWN, column_of, delimiter_hint, missing, read_value
from text_metrics.files.reading import current

# Characters that an unclosed quote can swallow.
_CSV_FIELD = 1_000_000
# Levels of a row of JSON: a hundred can be written in any format.
_DEEPEST = 100
# A blank line may contain these, such as a byte order mark.
_BLANK = b" \t\r\n\xef\xbb\xbf"
_UTF8 = "utf-8"
_HINT = "; pass --encoding, such as cp1252"


class Row(msgspec.Struct):
    """A non-blank row of a file; a `Reader` reads its texts and its values of arguments.

    number : the number of the row, or of its line, from 1
    values : the value of the row; None if it cannot be read
    error : why the row cannot be used; empty for a good row
    raw : the line of a row that cannot be read
    place : the number of the row among rows and blank lines, from 1: equal places of files belong together
    n_lines : how many lines an invalid row of CSV covers
    file : the number of its file
    has_cells : whether its values are the texts of CSV cells, where a list is JSON
    is_text : whether it holds one text, and not a list
    """

    number: int
    values: Any
    error: str = ""
    raw: str = ""
    place: int = 0
    n_lines: int = 1
    file: int = 0
    has_cells: bool = False
    texts: list[str] = []
    is_text: bool = False
    given: dict[str, Any] = {}

    def show(self) -> str:
        """Format the row as it is written to the file of bad rows."""
        return self.raw if self.values is None else files.to_json(self.values)[:SHOWN]

    def as_object(self) -> dict[str, Any]:
        """Return the values as an object: a text, or a list of texts, is the value of `text`."""
        return self.values if isinstance(self.values, dict) else {"text": self.values}


class Source:
    """A file that is read row by row, or several that are concatenated; a row is any value of JSON but null.

    rows : the key of the rows within a JSON value
    delimiter : the delimiter of CSV; by default, it follows from the file's name
    encoding : the encoding of text

    Raises a ValueError if the file is missing, or is a damaged table.
    """

    # The joined schema of all files, if they are tables.
    schema: pa.Schema | None = None

    def __init__(
        self, path: Path, rows: str | None = None, delimiter: str | None = None, encoding: str = _UTF8
    ) -> None:
        self.path = path
        self._rows_key = rows
        self._delimiter = delimiter
        self._encoding = encoding
        self.files, ignored = listing.list_files(path)
        current().ignore(ignored)
        self._partitions = tables.partitions_of(path, self.files)
        if all(files.file_format(each) in tables.FORMATS for each in self.files):
            schemas = {each: tables.read_schema(each) for each in self.files}
            self.schema = tables.join_schemas(schemas, self._partitions)

    def check_columns(self, keys: Mapping[str, str | None]) -> None:
        """Raise a ValueError for a key, by its option, whose column a table does not have."""
        columns = [] if self.schema is None else self.schema.names
        for option, key in keys.items():
            if key and columns and column_of(key, columns) not in (None, *columns):
                raise ValueError(f"{self.path} {missing(key, dict.fromkeys(columns))} ({option}).")

    def where(self, row: Row) -> str:
        """Name a row for an error."""
        return f"{self.path}, {'line' if self.schema is None else 'row'} {row.number}"

    def rows(self, *columns: str) -> Iterator[Row]:
        """Read the rows; only some columns where that is faster, if they are named."""
        has_all = self.schema is not None and set(columns) <= set(self.schema.names)
        selected = list(columns) if columns and has_all else None
        row = Row(0, None)
        n_rows = 0
        for file, path in enumerate(self.files):
            last = row
            for row in self._file_rows(path, selected):
                row.number += last.number
                row.place += last.place
                row.file = file
                n_rows += 1
                yield row
        current().add(self.path, self.files, n_rows)

    def _file_rows(self, path: Path, columns: list[str] | None) -> Iterator[Row]:
        kind = files.file_format(path)
        if kind in tables.FORMATS:
            rows = tables.table_rows(path, self.schema, self._partitions[path], columns)
            for number, values in enumerate(rows, 1):
                yield Row(number, values, place=number)
            return
        with files.open_file(path) as file:
            if kind in (".csv", ".tsv"):
                yield from self._csv_rows(path, file, self._delimiter or ("\t" if kind == ".tsv" else ","))
            elif self._rows_key is not None or (kind == ".json" and _is_one_value(file, self._encoding)):
                for number, value in enumerate(self._values(path, file), 1):
                    error = _fault(value)
                    yield Row(number, None if error else value, error, describe(value) if error else "", number)
            else:
                yield from self._line_rows(file, kind)

    def _lines(self, file: Any) -> Iterator[bytes]:
        """Read lines in UTF-8; bytes that are invalid in the encoding of the file stay invalid."""
        if self._encoding == _UTF8:
            return file
        text = io.TextIOWrapper(file, self._encoding, errors="surrogateescape", newline="\n")
        return (line.encode(errors="surrogateescape") for line in text)

    def _line_rows(self, file: Any, kind: str) -> Iterator[Row]:
        expected = "UTF-8" if kind == ".txt" else "JSON"
        for number, line in enumerate(self._lines(file), 1):
            if not line.strip(_BLANK):
                continue
            try:
                value = line.decode("utf-8-sig").rstrip("\r\n") if kind == ".txt" else files.parse_json(line)
                error = _fault(value)
            except ValueError as problem:
                value = None
                error = _invalid(expected, problem)
            yield Row(number, None if error else value, error, _show(line) if error else "", number)

    def _values(self, path: Path, file: Any) -> list[Any]:
        """Read one JSON value: its rows are its items, or those under --rows; another object is one row."""
        try:
            value = files.parse_json(b"".join(self._lines(file)))
        except ValueError as error:
            raise ValueError(f"{path} {_invalid('JSON', error)}.") from None
        rows = read_value(value, self._rows_key)
        if isinstance(rows, list):
            return rows
        if self._rows_key is None:
            return [value]
        lists = [name for name, part in value.items() if isinstance(part, list)] if isinstance(value, dict) else []
        got = f"it has lists under {', '.join(lists)}" if lists else f"it is {describe(value)}"
        raise ValueError(f"{path} has no list of rows under --rows {self._rows_key}: {got}.")

    def _csv_rows(self, path: Path, file: Any, delimiter: str) -> Iterator[Row]:
        csv.field_size_limit(_CSV_FIELD)
        kind = f"CSV in {self._encoding.upper()}"
        encoding = "utf-8-sig" if self._encoding == _UTF8 else self._encoding
        # Invalid bytes become unpaired surrogates, with which a row is bad.
        lines = io.TextIOWrapper(file, encoding, errors="surrogateescape", newline="")
        records = csv.reader(lines, strict=True, delimiter=delimiter)
        names, problem = _next_record(records, kind)
        if problem:
            raise ValueError(f"{path}, line 1 {problem}.")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{path} must begin with a line of different column names. Got {names or []!r:.200}.")
        hint = delimiter_hint(names, delimiter)
        for place in count(1):
            begin = records.line_num
            fields, problem = _next_record(records, kind)
            if fields is None:
                return
            if len(fields) == len(names) and not problem:
                yield Row(begin + 1, dict(zip(names, fields, strict=True)), place=place, has_cells=True)
            elif fields or problem:
                problem = problem or f"has {len(fields)} fields, not {len(names)}{hint}"
                n_lines = records.line_num - begin
                if n_lines > 1:
                    problem += f"; it takes {n_lines:,} lines, as after a quote that is not closed"
                raw = _show(delimiter.join(fields).encode(errors="replace"))
                yield Row(begin + 1, None, problem, raw, place, n_lines)


def read_rows(path: Path) -> list[tuple[str, Any]]:
    """Read all rows, which are objects, with their places; raises a ValueError for a bad one, or for none."""
    source = Source(path)
    rows = []
    for row in source.rows():
        where = source.where(row)
        if not row.error and not isinstance(row.values, dict):
            row.error = f"must be a JSON object. Got {describe(row.values)}"
        if row.error:
            raise ValueError(f"{where} {row.error}.")
        rows.append((where, row.values))
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows


def _fault(value: Any) -> str:
    """Say why a value of JSON cannot be a row; empty if it can."""
    if value is None:
        return "must not be null"
    if isinstance(value, (dict, list)) and _is_deep(value, _DEEPEST):
        return f"is nested too deeply: over {_DEEPEST} levels"
    return ""


def _is_deep(value: Any, levels: int) -> bool:
    if not levels:
        return True
    parts = value.values() if isinstance(value, dict) else value
    return any(_is_deep(part, levels - 1) for part in parts if isinstance(part, (dict, list)))


def _next_record(records: Iterator[list[str]], kind: str) -> tuple[list[str] | None, str]:
    """Read a record of CSV, None at the end, and its error; returns both."""
    fields: list[str] | None = []
    try:
        fields = next(records, None)
        "".join(fields or ()).encode()
    except UnicodeEncodeError as error:
        return fields, f"is not valid {kind}: byte 0x{ord(error.object[error.start]) & 0xFF:x} is invalid{_HINT}"
    except csv.Error as error:
        return fields, f"is not valid {kind}: {error}"
    return fields, ""


def _is_one_value(file: Any, encoding: str) -> bool:
    """Tell whether a .json file is one JSON value: a list, or an object of several lines, and not lines of JSON."""
    head = file.peek().decode(encoding, errors="replace").lstrip(" \t\r\n\ufeff")
    first_line = head.partition("\n")[0].rstrip()
    return head.startswith("[") or (head.startswith("{") and first_line.endswith(("{", "[", ",")))


def _invalid(kind: str, error: Exception) -> str:
    return f"is not valid {kind}: {error}{_HINT if isinstance(error, UnicodeDecodeError) else ''}"


def _show(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\n")[:SHOWN]
