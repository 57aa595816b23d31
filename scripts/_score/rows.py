"""Files of texts, read row by row from a given row.

Nothing here imports torch, so that the process that reads for a cluster starts fast.
"""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from metrics._core.core_inputs import describe
from scripts._score.command import UsageError

# Rows of a table read at a time.
_ROWS = 1024
_CSV_FIELD = 1_000_000
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
    error: str
    raw: str


class Source:
    """A file that is read row by row, from a given row.

    Attributes
    ----------
    schema : of a table; None for a file without types
    done, total : how far the file was read, and its size, both in `unit`: rows or bytes
    """

    schema: pa.Schema | None = None

    def __init__(self, path: Path, split: str | None) -> None:
        self.path, self.done = path, 0
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
        kind = "folder" if path.is_dir() else path.suffix.lower()
        readers: dict[str, Callable[[int], Iterator[Row]]] = {
            ".jsonl": self._json_rows,
            ".json": self._json_rows,
            ".ndjson": self._json_rows,
            ".csv": self._csv_rows,
            ".parquet": self._parquet_rows,
            "folder": self._dataset_rows,
        }
        if kind not in readers:
            raise UsageError(f"{path} must be .jsonl, .csv, .parquet or a folder of `datasets`. Got {kind!r}.")
        if split is not None and kind != "folder":
            raise UsageError("--split is for a folder of `datasets`.")
        self._read = readers[kind]
        if kind == ".parquet":
            try:
                file = pq.ParquetFile(path)
            except pa.ArrowInvalid as error:
                raise UsageError(f"{path} is no Parquet file: {error}") from None
            self.schema, self.total, self.unit = file.schema_arrow, file.metadata.num_rows, "row"
        elif kind == "folder":
            self._dataset = _open_dataset(path, split)
            self.schema, self.total, self.unit = self._dataset.features.arrow_schema, len(self._dataset), "row"
        else:
            self.total, self.unit = path.stat().st_size, "B"

    def rows(self, start: int) -> Iterator[Row]:
        """Read the rows from index `start`."""
        return self._read(start)

    def _json_rows(self, start: int) -> Iterator[Row]:
        with self.path.open("rb") as file:
            for i, line in enumerate(file):
                self.done += len(line)
                if i < start:
                    continue
                try:
                    text = line.decode("utf-8-sig" if i == 0 else "utf-8")
                    if not text.strip():
                        yield Row(i + 1, None, "", "")
                        continue
                    # NaN is not valid JSON, but common.
                    values = json.loads(text, parse_constant=lambda _: None)
                    # A lone surrogate cannot be written as UTF-8 again.
                    json.dumps(values, ensure_ascii=False).encode()
                except (ValueError, RecursionError) as error:
                    yield Row(i + 1, None, f"is no JSON: {error}", _show(line))
                    continue
                if isinstance(values, dict):
                    yield Row(i + 1, values, "", "")
                else:
                    yield Row(i + 1, None, f"must hold an object. Got {describe(values)}", _show(line))

    def _csv_rows(self, start: int) -> Iterator[Row]:
        # Bounds what an unclosed quote can swallow.
        csv.field_size_limit(_CSV_FIELD)
        with self.path.open("rb") as file:
            reader = csv.reader(self._csv_lines(file), strict=True)
            names = next(reader, None)
            if not names or len(set(names)) < len(names):
                raise UsageError(f"{self.path} must begin with a line of different column names. Got {names}.")
            i = -1
            while True:
                number = reader.line_num + 1
                try:
                    fields = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    i += 1
                    if i >= start:
                        yield Row(number, None, f"is no CSV: {error}", "")
                    continue
                i += 1
                if i < start:
                    continue
                if not fields:
                    yield Row(number, None, "", "")
                elif len(fields) != len(names):
                    yield Row(number, None, f"has {len(fields)} fields, not {len(names)}", _show(",".join(fields)))
                else:
                    yield Row(number, dict(zip(names, fields, strict=True)), "", "")

    def _csv_lines(self, file: IO[bytes]) -> Iterator[str]:
        for i, line in enumerate(file):
            self.done += len(line)
            # Invalid UTF-8 becomes lone surrogates, with which a text is refused.
            yield line.decode("utf-8-sig" if i == 0 else "utf-8", errors="surrogateescape")

    def _parquet_rows(self, start: int) -> Iterator[Row]:
        file = pq.ParquetFile(self.path)
        groups, first = list(range(file.num_row_groups)), 0
        while groups and first + file.metadata.row_group(groups[0]).num_rows <= start:
            first += file.metadata.row_group(groups.pop(0)).num_rows
        yield from self._table_rows(file.iter_batches(batch_size=_ROWS, row_groups=groups), first, start)

    def _dataset_rows(self, start: int) -> Iterator[Row]:
        table = self._dataset.with_format("arrow")
        yield from self._table_rows((table[i : i + _ROWS] for i in range(start, self.total, _ROWS)), start, start)

    def _table_rows(self, tables: Iterator[Any], first: int, start: int) -> Iterator[Row]:
        for table in tables:
            for values in table.to_pylist():
                first += 1
                self.done = first
                if first > start:
                    yield Row(first, values, "", "")


def _open_dataset(path: Path, split: str | None) -> Any:
    import datasets

    try:
        found = datasets.load_from_disk(str(path))
    except FileNotFoundError as error:
        raise UsageError(f"{path} is no folder that `datasets` saved: {error}") from None
    if isinstance(found, datasets.DatasetDict):
        if split not in found:
            raise UsageError(f"--split must be one of {', '.join(found)}. Got {split}.")
        return found[split]
    if split is not None:
        raise UsageError(f"{path} has no splits: leave out --split.")
    return found


def _show(line: bytes | str) -> str:
    text = line.decode("utf-8", errors="replace") if isinstance(line, bytes) else line
    return text.rstrip("\n")[:SHOWN]
