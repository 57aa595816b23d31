"""Files of texts, read row by row from a given row."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.jobs.pieces import WHOLE, Piece, cut_lines, cut_table, read_lines
from text_metrics.commands.shared.files import (
    check_text,
    decompressed_name,
    file_format,
    has_old_ends,
    open_file,
    parse_lines,
    read_json,
    to_plain,
)
from text_metrics.commands.shared.remote import Remote, parquet_files
from text_metrics.metrics._core.core_numbers import describe

# Rows of a table read at a time.
_ROWS = 1024
_CSV_FIELD = 1_000_000
# Between the fields of CSV: Excel writes semicolons where a comma is the decimal mark, and tabs if asked to.
_DELIMITERS = ",;\t"
_TEXT = (".jsonl", ".json", ".ndjson", ".csv")
# Characters of a bad row that are set aside with it.
SHOWN = 1000


class Row(NamedTuple):
    """A row of a file.

    number : of the row, or of its line, from 1
    values : None if the row cannot be read, or is blank
    error : why it cannot be read; empty for a row that is blank, which is neither good nor bad
    raw : the line of a row that cannot be read
    n_lines : how many lines it was read from
    """

    number: int
    values: dict[str, Any] | None
    error: str
    raw: str
    n_lines: int = 1

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to read."""
        return self.values is None and not self.error


# Makes a row of a tuple of all fields: much faster than the constructor, which is Python code.
_new_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)


class Source:
    """A file that is read row by row, from a given row.

    Parameters
    ----------
    split : of a folder of `datasets`
    any_value : whether a line of JSON may be any value but null; otherwise, it is an object

    Attributes
    ----------
    schema : of a table; None for a file without types
    delimiter : between the fields of CSV
    is_array : whether it is one JSON array
    is_divisible : whether it can be read from the middle
    done, total : how far the file was read, and its size, both in `unit`: rows or bytes; the size of what a compressed
        file holds is None, since it is not known
    """

    schema: pa.Schema | None = None
    total: int | None
    _group_ends: Sequence[int] = ()
    # The file of each row group, and its index there.
    _groups: Sequence[tuple[Path, int]] = ()
    _opened: tuple[Path, pq.ParquetFile] | None = None

    def __init__(self, path: Path, split: str | None, any_value: bool = False) -> None:
        self.path, self.split, self.done, self._any_value = path, split, 0, any_value
        self._columns: list[str] | None = None
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        kind = "folder" if path.is_dir() else file_format(path)
        is_compressed = decompressed_name(path) != path
        tables = [path] if kind == ".parquet" else parquet_files(path) if kind == "folder" else []
        if kind == "folder" and tables:
            kind = ".parquet"
        start = _start(path) if kind in _TEXT else b""
        # One array may span lines; else each line is a row.
        self.is_array = kind == ".json" and start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
        readers: dict[str, Callable[[Piece, int], Iterator[Row]]] = {
            ".jsonl": self._json_rows,
            ".json": self._array_rows if self.is_array else self._json_rows,
            ".ndjson": self._json_rows,
            ".csv": self._csv_rows,
            ".parquet": self._parquet_rows,
            "folder": self._dataset_rows,
        }
        if kind not in readers:
            raise UsageError(
                f"{path} must be .jsonl, .ndjson, .json or .csv, also with .gz or .zst, .parquet or a folder of "
                f"`datasets` or of Parquet files. Got {kind!r}."
            )
        if kind == ".parquet" and is_compressed:
            raise UsageError(f"{path}: a Parquet file has compression of its own: decompress it first.")
        if split is not None and kind != "folder":
            raise UsageError("--split is for a folder of `datasets`.")
        self._read = readers[kind]
        has_lines = self._read == self._json_rows and not is_compressed and not has_old_ends(start)
        self.is_divisible = has_lines or kind in (".parquet", "folder")
        if kind == ".parquet":
            self._find_groups(tables)
            self.total, self.unit = self._group_ends[-1] if self._group_ends else 0, "row"
        elif kind == "folder":
            self._dataset = _open_dataset(path, split)
            self.schema, self.total, self.unit = self._dataset.features.arrow_schema, len(self._dataset), "row"
        else:
            self.total, self.unit = None if is_compressed else path.stat().st_size, "B"
            self.delimiter = _delimiter(start.splitlines()[0] if start else b"")

    def _find_groups(self, tables: list[Path]) -> None:
        sizes, groups = [], []
        for path in tables:
            with _named(path, "is not a Parquet file, or is damaged"):
                file = self._open_table(path)
            schema, n_groups = file.schema_arrow, file.metadata.num_row_groups
            self.schema = schema if self.schema is None else self.schema
            if not schema.equals(self.schema):
                raise UsageError(f"{path} has other columns, or of other types, than {tables[0]}.")
            sizes += [file.metadata.row_group(i).num_rows for i in range(n_groups)]
            groups += [(path, i) for i in range(n_groups)]
        self._groups, self._group_ends = groups, np.cumsum(sizes, dtype=int).tolist()

    def _open_table(self, path: Path) -> pq.ParquetFile:
        if self._opened is None or self._opened[0] != path:
            self._opened = path, pq.ParquetFile(path.open("rb") if isinstance(path, Remote) else path)
        return self._opened[1]

    def check_columns(self, *keys: str | None) -> None:
        """Raise a UsageError for a key that a table does not have."""
        names = [] if self.schema is None else self.schema.names
        for key in keys:
            if names and key is not None and key not in names:
                raise UsageError(f"{self.path} has no column {key!r}: it has {', '.join(names)}.")

    def rows(self, start: int, column: str | None = None, piece: Piece | None = None) -> Iterator[Row]:
        """Read the rows from index `start`, or those of them in a piece; of a table, only one column where asked."""
        self.done = 0
        self._columns = None if column is None else [column]
        return self._read(piece or WHOLE, start)

    def pieces(self, start: int, least: int, multiple: int) -> Iterator[Piece]:
        """Cut a file into pieces from row `start`: not at any row, but after the same ones each time.

        A piece has at least `least` rows that are not blank, and a multiple of `multiple` but for the last one; a piece
        of Parquet consists of row groups.
        """
        if not self.is_divisible:
            pieces = iter([(WHOLE, start + 1)])
        elif self.schema is None:
            pieces = cut_lines(self.path, -(-least // multiple) * multiple)
        else:
            total = self.total or 0
            pieces = cut_table(self._group_ends or [*range(least, total, least), total], least, multiple)
        with as_usage():
            yield from (piece for piece, end in pieces if end > start)

    def _lines(self, piece: Piece) -> Iterator[bytes]:
        self.done = piece.begin
        with as_usage():
            for line in read_lines(self.path, piece):
                self.done += len(line)
                yield line

    def _json_rows(self, piece: Piece, start: int) -> Iterator[Row]:
        for line in parse_lines(self._lines(piece), start, piece.first):
            if line.is_blank:
                yield Row(line.number, None, "", "")
            elif line.error:
                yield Row(line.number, None, f"is not valid JSON: {line.error}", _show(line.raw))
            else:
                yield self._row(line.number, line.value, line.raw)

    def _array_rows(self, _: Piece, start: int) -> Iterator[Row]:
        with as_usage():
            values = read_json(self.path)
        for i, value in enumerate(values):
            self.done = (self.total or len(values)) * (i + 1) // len(values)
            if i >= start:
                yield self._row(i + 1, value, describe(value))

    def _row(self, number: int, values: Any, raw: bytes | str) -> Row:
        if isinstance(values, dict) or (self._any_value and values is not None):
            return _new_row((number, values, "", "", 1))
        expected = "must not be null" if self._any_value else "must be a JSON object"
        return Row(number, None, f"{expected}. Got {describe(values)}", _show(raw))

    def _csv_rows(self, piece: Piece, start: int) -> Iterator[Row]:
        # Bounds what an unclosed quote can swallow.
        csv.field_size_limit(_CSV_FIELD)
        lines = (
            # Invalid UTF-8 becomes unpaired surrogates, with which a row is set aside.
            line.decode("utf-8-sig" if i == 0 else "utf-8", errors="surrogateescape")
            for i, line in enumerate(self._lines(piece))
        )
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        try:
            names = next(reader, None)
        except csv.Error as error:
            raise UsageError(f"{self.path}, line 1 is not valid CSV: {error}.") from None
        if not names or len(set(names)) < len(names):
            raise UsageError(f"{self.path} must begin with a line of different column names. Got {names!r:.200}.")
        if not _is_utf8(names):
            raise UsageError(f"{self.path}, line 1 is not valid UTF-8. Got {names!r:.200}.")
        for i in count():
            number, fields, problem = reader.line_num + 1, list[str](), ""
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"is not valid CSV: {error}"
            if i < start:
                continue
            n_lines = reader.line_num + 1 - number
            if fields and len(fields) != len(names):
                problem = f"has {len(fields)} fields, not {len(names)}"
            elif not _is_utf8(fields):
                problem, n_lines = "is not valid UTF-8: a byte was read as an unpaired surrogate", 1
            if problem or not fields:
                yield Row(number, None, problem, _show(",".join(fields)), n_lines)
            else:
                yield Row(number, dict(zip(names, fields, strict=True)), "", "")

    def _parquet_rows(self, piece: Piece, start: int) -> Iterator[Row]:
        start = max(start, piece.first)
        first_group, last_group = np.searchsorted(self._group_ends, [start, self._end(piece) - 1], "right").tolist()
        first = self._group_ends[first_group - 1] if first_group else 0
        # One row group after another, so that the first damaged one is named, and the rows before it are scored.
        tables = (
            table
            for path, i in self._groups[first_group : last_group + 1]
            for table in self._open_table(path).iter_batches(batch_size=_ROWS, row_groups=[i], columns=self._columns)
        )
        yield from self._table_rows(tables, first, start, self._end(piece))

    def _dataset_rows(self, piece: Piece, start: int) -> Iterator[Row]:
        start, end = max(start, piece.first), self._end(piece)
        table = self._dataset.select_columns(self._columns) if self._columns else self._dataset
        table = table.with_format("arrow")
        yield from self._table_rows((table[i : i + _ROWS] for i in range(start, end, _ROWS)), start, start, end)

    def _end(self, piece: Piece) -> int:
        end = self.total if piece.end is None else piece.end
        assert end is not None
        return end

    def _table_rows(self, tables: Iterator[Any], first: int, start: int, end: int) -> Iterator[Row]:
        while first < end:
            with _named(self.path, f"is damaged after row {first}"):
                table = next(tables, None)
                rows = [] if table is None else table.slice(max(0, start - first), end - max(first, start)).to_pylist()
            if table is None:
                return
            before, first = max(first, start), first + len(table)
            for number, values in enumerate(rows, before + 1):
                self.done = number
                yield _new_row((number, values, "", "", 1))


def read_rows(path: Path, split: str | None) -> list[tuple[str, Any]]:
    """Read all rows of a file that are not blank, each with its place; raises a ValueError if one is bad, or none."""
    rows = []
    try:
        source = Source(path, split, any_value=True)
        is_text = source.schema is None and not source.is_array
        for row in source.rows(0):
            where = f"{path}, {'line' if is_text else 'row'} {row.number}"
            if row.error:
                raise ValueError(f"{where} {row.error}.")
            if not row.is_blank:
                rows.append((where, row.values))
    except UsageError as error:
        raise ValueError(str(error)) from None
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows


def _open_dataset(path: Path, split: str | None) -> Any:
    import datasets

    with _named(path, "is not a folder saved by `datasets`, or is damaged"):
        dataset = datasets.load_from_disk(str(path))
    if isinstance(dataset, datasets.DatasetDict):
        if split not in dataset:
            raise UsageError(f"--split must be one of {', '.join(dataset)}. Got {split}.")
        return dataset[split]
    if split is not None:
        raise UsageError(f"{path} has no splits: leave out --split.")
    return dataset


@contextmanager
def _named(path: Path, problem: str) -> Iterator[None]:
    """Name the file in what pyarrow and `datasets` raise for a damaged one."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(f"{path} {problem}: {reason}") from None


def _start(path: Path) -> bytes:
    """Read the first bytes of a file of text."""
    with as_usage(), open_file(path) as file:
        start = file.peek()
        check_text(start, path)
        return start


def _delimiter(line: bytes) -> str:
    """Return the delimiter of a line of CSV: the first one of those it may be that is outside of quotes."""
    unquoted = re.sub(r'"[^"]*"', "", line.decode("utf-8", errors="replace"))
    return next((mark for mark in _DELIMITERS if mark in unquoted), _DELIMITERS[0])


def _is_utf8(fields: list[str]) -> bool:
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(line: bytes | str) -> str:
    data = line if isinstance(line, bytes) else line.encode("utf-8", errors="replace")
    return data.decode("utf-8", errors="replace").rstrip("\n")[:SHOWN]


def show_values(values: Mapping[str, Any]) -> str:
    """Return the values of a row as they are set aside."""
    return json.dumps(values, default=to_plain)[:SHOWN]
