"""Files of texts, read row by row."""

import csv
import json
import re
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

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
    ends : of a table, the places where it is read from fastest, in ascending order; the last one is the end
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
        self.ends: list[int] = []
        # For each end, what reads the tables before it.
        self._blocks: list[Callable[..., Iterable[Any]]] = []
        self._read: Callable[[Piece, Any], Iterator[Row]] = self._table_rows
        if tables:
            self._find_row_groups(tables)
        elif kind == "folder":
            self._open_dataset()
        elif kind == ".csv":
            self._read = self._csv_rows
            # Excel's fields may have other delimiters outside of quotes.
            header = re.sub(r'"[^"]*"', "", self._start().decode("utf-8", errors="replace").partition("\n")[0])
            self._delimiter = next((mark for mark in _DELIMITERS if mark in header), _DELIMITERS[0])
            self._names = self._header()
        else:
            is_array = kind == ".json" and self._start().removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
            self._read = self._array_rows if is_array else self._json_rows
        self.kind = "array" if self._read == self._array_rows else kind

    def unpack(self, folder: Path) -> "Source":
        """Write what can be read from its start only to a file of lines in a folder, unless it is there; opens it."""
        if self.schema is not None or (self.kind != "array" and self.file.suffix.lower() not in files.COMPRESSIONS):
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

    def lines(self, piece: Piece) -> Iterator[bytes]:
        """Read the lines of a piece with their ends."""
        self.at, self.n_lines = piece.begin, piece.first
        with as_usage():
            for line in files.read_lines(self.file, piece.begin, piece.end):
                self.at += len(line)
                self.n_lines += 1
                yield line

    def _start(self) -> bytes:
        with as_usage(), files.open_file(self.file) as file:
            start = file.peek()
            files.check_text(start, self.path)
        return start

    def _json_rows(self, piece: Piece, _: Any) -> Iterator[Row]:
        for number, line in enumerate(self.lines(piece), piece.first + 1):
            try:
                value = files.parse_line(line)
            except ValueError as error:
                problem = "" if files.is_blank(line) else f"is not valid JSON: {error}"
                yield Row(number, None, problem, _show(line))
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
        names, records = self._names, self._records(piece)
        if piece.begin == 0:
            next(records)
        while True:
            number, fields, problem = self.n_lines + 1, list[str](), ""
            try:
                fields = next(records)
                "".join(fields).encode()
            except StopIteration:
                return
            except (csv.Error, UnicodeEncodeError) as error:
                problem = f"is not valid CSV in UTF-8: {error}"
            if fields and len(fields) != len(names):
                problem = f"has {len(fields)} fields, not {len(names)}"
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
            names = next(self._records(WHOLE), list[str]())
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError) as error:
            raise UsageError(f"{self.path}, line 1 is not valid CSV in UTF-8: {error}.") from None
        if not names or len(set(names)) < len(names):
            raise UsageError(f"{self.path} must begin with a line of different column names. Got {names!r:.200}.")
        return names

    def _find_row_groups(self, paths: list[Path]) -> None:
        import pyarrow.dataset as pads

        for path in paths:
            with _named(path, "is not a Parquet file, or is damaged"):
                name, system = path.open_on() if isinstance(path, Remote) else (str(path), None)
                table = pads.dataset(name, filesystem=system, format="parquet")
                groups = [group for part in table.get_fragments() for group in part.split_by_row_group()]
                self._add_blocks(
                    (group.row_groups[0].num_rows, partial(group.to_batches, batch_size=_ROWS)) for group in groups
                )
            self.schema = self.schema or table.schema
            if not table.schema.equals(self.schema):
                raise UsageError(f"{path} has other columns, or of other types, than {paths[0]}.")

    def _open_dataset(self) -> None:
        import datasets

        with _named(self.path, "is not a folder saved by `datasets`, or is damaged"):
            dataset = datasets.load_from_disk(str(self.path))
        names = list(dataset) if isinstance(dataset, datasets.DatasetDict) else [None]
        if self.split not in names:
            raise UsageError(f"--split must be one of {names}. Got {self.split}.")
        dataset = dataset if self.split is None else dataset[self.split]
        self.schema = dataset.features.arrow_schema

        def read(start: int, columns: list[str] | None) -> list[pa.Table]:
            table = dataset.select_columns(columns) if columns else dataset
            return [table.with_format("arrow")[start : start + _ROWS]]

        starts = range(0, len(dataset), _ROWS)
        self._add_blocks((min(_ROWS, len(dataset) - start), partial(read, start)) for start in starts)

    def _add_blocks(self, blocks: Iterable[tuple[int, Callable[..., Iterable[Any]]]]) -> None:
        for n_rows, read in blocks:
            self.ends.append(n_rows + (self.ends[-1] if self.ends else 0))
            self._blocks.append(read)

    def _table_rows(self, piece: Piece, columns: Any) -> Iterator[Row]:
        first = bisect_right(self.ends, piece.begin)
        start = self.ends[first - 1] if first else 0
        # One block after another, so that the first damaged one is named, and the rows before it are scored.
        for read in self._blocks[first:]:
            if piece.end is not None and start >= piece.end:
                return
            tables = iter(read(columns=columns))
            while True:
                with _named(self.path, f"is damaged after row {start}"):
                    table = next(tables, None)
                    if table is None:
                        break
                    skipped = max(piece.begin - start, 0)
                    end = len(table) if piece.end is None else min(piece.end - start, len(table))
                    rows = table.slice(skipped, max(end - skipped, 0)).to_pylist()
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


@contextmanager
def _named(path: Path, problem: str) -> Iterator[None]:
    """Name the file in what pyarrow and `datasets` raise for a damaged one."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(f"{path} {problem}: {reason}") from None


def _show(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\n")[:SHOWN]


def show_values(values: Mapping[str, Any]) -> str:
    """Return the values of a row as they are set aside."""
    return json.dumps(values, default=files.to_plain)[:SHOWN]
