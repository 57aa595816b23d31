"""Files of texts, read row by row."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.shared import files
from text_metrics.commands.shared.remote import Remote, parquet_files
from text_metrics.metrics._core.core_numbers import describe

# Rows of a table read at a time.
_ROWS = 1024
_CSV_FIELD = 1_000_000
# Between the fields of CSV: Excel writes semicolons where a comma is the decimal mark, and tabs if asked to.
_DELIMITERS = ",;\t"
_LINES = (".jsonl", ".ndjson", ".json", ".csv")
# Characters of a bad row that are set aside with it.
SHOWN = 1000


class Row(NamedTuple):
    """A row of a file.

    number : of the row, or of its line, from 1
    values : None if the row cannot be read, or is blank
    error : why it cannot be read; empty for a row that is blank, which is neither good nor bad
    raw : the line of a row that cannot be read
    """

    number: int
    values: dict[str, Any] | None
    error: str = ""
    raw: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to read."""
        return self.values is None and not self.error


# Makes a row of a tuple of all fields: much faster than the constructor, which is Python code.
_new_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)


class Piece(NamedTuple):
    """Consecutive rows of a file.

    first : how many rows or lines are before it
    begin, end : where it is in the file, in bytes, or in rows of a table; `end` is None for the end of the file
    """

    first: int = 0
    begin: int = 0
    end: int | None = None


WHOLE = Piece()


class Source:
    """A file that is read row by row.

    Parameters
    ----------
    split : of a folder of `datasets`
    any_value : whether a line of JSON may be any value but null; otherwise, it is an object
    file : lines of the same rows, as `unpack` makes them of a file that can be read from its start only

    Attributes
    ----------
    schema : of a table; None for a file without types
    at, n_lines : where the rows end that were read so far, in the units of a piece, and the number of their lines
    """

    schema: pa.Schema | None = None

    def __init__(self, path: Path, split: str | None, any_value: bool = False, file: Path | None = None) -> None:
        self.path, self.split, self._any_value, self.at, self.n_lines = path, split, any_value, 0, 0
        self.file = file or path
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        kind = "folder" if path.is_dir() else files.file_format(self.file)
        tables = [path] if kind == ".parquet" else parquet_files(path) if kind == "folder" else []
        if kind not in (*_LINES, ".parquet", "folder"):
            raise UsageError(
                f"{path} must be .jsonl, .ndjson, .json or .csv, also with .gz or .zst, .parquet or a folder of "
                f"`datasets` or of Parquet files. Got {kind!r}."
            )
        if split is not None and (kind != "folder" or tables):
            raise UsageError("--split is for a folder of `datasets`.")
        # The rows after each row group, its file, and its index there.
        self._groups: list[tuple[int, Path, int]] = []
        self._read: Callable[[Piece, Any], Iterator[Row]]
        if tables:
            self._read, kind = self._parquet_rows, ".parquet"
            self._find_groups(tables)
        elif kind == "folder":
            self._read, self._dataset = self._dataset_rows, _open_dataset(path, split)
            self.schema = self._dataset.features.arrow_schema
        else:
            start = self._start()
            is_array = kind == ".json" and start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
            if kind == ".csv":
                self._delimiter = _delimiter(start.splitlines()[0] if start else b"")
                self._names = self._header()
            self._read = self._csv_rows if kind == ".csv" else self._array_rows if is_array else self._json_rows
        self.kind = "array" if self._read == self._array_rows else kind

    @property
    def is_divisible(self) -> bool:
        """Whether it can be read from the middle."""
        return self.kind != "array" and self.file.suffix.lower() not in files.COMPRESSIONS

    def unpack(self, folder: Path) -> "Source":
        """Write what can be read from its start only to a file of lines in a folder, unless it is there; opens it."""
        if self.is_divisible:
            return self
        lines = folder / f"data{'.csv' if self.kind == '.csv' else '.jsonl'}"
        if not lines.exists():
            with as_usage(), files.written_whole(lines) as temporary, temporary.open("wb") as file:
                if self.kind == "array":
                    file.writelines(json.dumps(value).encode() + b"\n" for value in files.read_json(self.path))
                else:
                    with files.open_file(self.path) as packed:
                        shutil.copyfileobj(packed, file)
        return Source(self.path, self.split, file=lines)

    def check_columns(self, *keys: str | None) -> None:
        """Raise a UsageError for a key that a table does not have."""
        names = [] if self.schema is None else self.schema.names
        for key in keys:
            if names and key is not None and key not in names:
                raise UsageError(f"{self.path} has no column {key!r}: it has {', '.join(names)}.")

    def rows(self, piece: Piece = WHOLE, column: str | None = None) -> Iterator[Row]:
        """Read the rows of a piece; of a table, only one column where asked."""
        self.at, self.n_lines = piece.begin, piece.first
        return self._read(piece, None if column is None else [column])

    def places(self, n_rows: int) -> list[int]:
        """List the places after rows of a table where it is read from fastest, the last one after all rows."""
        if self._groups:
            return [end for end, _, _ in self._groups]
        return [*range(n_rows, len(self._dataset), n_rows), len(self._dataset)] if self.kind == "folder" else [0]

    # Lines.

    def lines(self, piece: Piece) -> Iterator[bytes]:
        """Read the lines of a piece with their ends."""
        with as_usage():
            for line in files.read_lines(self.file, piece.begin, piece.end):
                self.at += len(line)
                self.n_lines += 1
                yield line

    def _start(self) -> bytes:
        with as_usage(), files.open_file(self.file) as file:
            start = file.peek()
        with as_usage():
            files.check_text(start, self.path)
        return start

    def _json_rows(self, piece: Piece, _: Any) -> Iterator[Row]:
        for number, line in enumerate(self.lines(piece), piece.first + 1):
            try:
                value = files.parse_line(line)
            except ValueError as error:
                is_blank = not line.strip(b" \t\r\n\xef\xbb\xbf")
                yield Row(number, None) if is_blank else Row(number, None, f"is not valid JSON: {error}", _show(line))
                continue
            yield _new_row((number, value, "", "")) if type(value) is dict else self._any_row(number, value, line)

    def _array_rows(self, piece: Piece, _: Any) -> Iterator[Row]:
        with as_usage():
            values = files.read_json(self.path)
        for number, value in enumerate(values, 1):
            yield Row(number, value) if type(value) is dict else self._any_row(number, value, describe(value).encode())

    def _any_row(self, number: int, value: Any, raw: bytes) -> Row:
        if self._any_value and value is not None:
            return Row(number, value)
        expected = "must not be null" if self._any_value else "must be a JSON object"
        return Row(number, None, f"{expected}. Got {describe(value)}", _show(raw))

    def _csv_rows(self, piece: Piece, _: Any) -> Iterator[Row]:
        names, reader = self._names, self._records(piece)
        if piece.begin == 0:
            next(reader)
        while True:
            number, fields, problem = self.n_lines + 1, list[str](), ""
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"is not valid CSV: {error}"
            if fields and len(fields) != len(names):
                problem = f"has {len(fields)} fields, not {len(names)}"
            elif not _is_utf8(fields):
                problem = "is not valid UTF-8: a byte was read as an unpaired surrogate"
            if problem or not fields:
                yield Row(number, None, problem, _show(",".join(fields).encode(errors="replace")))
            else:
                yield _new_row((number, dict(zip(names, fields, strict=True)), "", ""))

    def _records(self, piece: Piece) -> Any:
        # Bounds what an unclosed quote can swallow.
        csv.field_size_limit(_CSV_FIELD)
        # Invalid UTF-8 becomes unpaired surrogates, with which a row is set aside.
        lines = (
            line.decode("utf-8" if piece.begin + i else "utf-8-sig", errors="surrogateescape")
            for i, line in enumerate(self.lines(piece))
        )
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    def _header(self) -> list[str]:
        try:
            names = next(self._records(WHOLE), None)
        except csv.Error as error:
            raise UsageError(f"{self.path}, line 1 is not valid CSV: {error}.") from None
        if not names or len(set(names)) < len(names):
            raise UsageError(f"{self.path} must begin with a line of different column names. Got {names!r:.200}.")
        if not _is_utf8(names):
            raise UsageError(f"{self.path}, line 1 is not valid UTF-8. Got {names!r:.200}.")
        return names

    # Tables.

    def _find_groups(self, paths: Sequence[Path]) -> None:
        n_rows = 0
        for path in paths:
            with _named(path, "is not a Parquet file, or is damaged"):
                file = _open_parquet(path)
            self.schema = self.schema or file.schema_arrow
            if not file.schema_arrow.equals(self.schema):
                raise UsageError(f"{path} has other columns, or of other types, than {paths[0]}.")
            for i in range(file.metadata.num_row_groups):
                n_rows += file.metadata.row_group(i).num_rows
                self._groups.append((n_rows, path, i))

    def _parquet_rows(self, piece: Piece, columns: Any) -> Iterator[Row]:
        ends = [end for end, _, _ in self._groups]
        first_group = int(np.searchsorted(ends, piece.begin, "right"))
        start = ends[first_group - 1] if first_group else 0
        opened: tuple[Path | None, Any] = (None, None)
        # One row group after another, so that the first damaged one is named, and the rows before it are scored.
        for end, path, i in self._groups[first_group:]:
            if piece.end is not None and start >= piece.end:
                return
            opened = opened if opened[0] == path else (path, _open_parquet(path))
            yield from self._table_rows(opened[1].iter_batches(_ROWS, row_groups=[i], columns=columns), start, piece)
            start = end

    def _dataset_rows(self, piece: Piece, columns: Any) -> Iterator[Row]:
        table = self._dataset.select_columns(columns) if columns else self._dataset
        table, end = table.with_format("arrow"), len(table) if piece.end is None else piece.end
        yield from self._table_rows((table[i : i + _ROWS] for i in range(piece.begin, end, _ROWS)), piece.begin, piece)

    def _table_rows(self, tables: Iterator[Any], start: int, piece: Piece) -> Iterator[Row]:
        """Yield the rows of a piece that are in tables, of which the first begins at row `start`."""
        while piece.end is None or start < piece.end:
            with _named(self.path, f"is damaged after row {start}"):
                table = next(tables, None)
                if table is None:
                    return
                skipped = max(piece.begin - start, 0)
                rows = table.slice(skipped, None if piece.end is None else piece.end - start - skipped).to_pylist()
            for self.at, values in enumerate(rows, start + skipped + 1):
                self.n_lines = self.at
                yield _new_row((self.at, values, "", ""))
            start += len(table)


def read_rows(path: Path, split: str | None) -> list[tuple[str, Any]]:
    """Read all rows of a file that are not blank, each with its place; raises a ValueError if one is bad, or none."""
    rows = []
    try:
        source = Source(path, split, any_value=True)
        noun = "row" if source.schema is not None or source.kind == "array" else "line"
        for row in source.rows():
            where = f"{path}, {noun} {row.number}"
            if row.error:
                raise ValueError(f"{where} {row.error}.")
            if not row.is_blank:
                rows.append((where, row.values))
    except UsageError as error:
        raise ValueError(str(error)) from None
    if not rows:
        raise ValueError(f"{path} is empty.")
    return rows


def _open_parquet(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path.open("rb") if isinstance(path, Remote) else path)


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


def _show(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\n")[:SHOWN]


def show_values(values: Mapping[str, Any]) -> str:
    """Return the values of a row as they are set aside."""
    return json.dumps(values, default=files.to_plain)[:SHOWN]
