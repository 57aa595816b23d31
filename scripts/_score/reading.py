"""Files of texts, read row by row from any row on, and their rows joined to what is scored as one.

Nothing here imports torch: the process that reads for a cluster starts soon.
"""

import argparse
import csv
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from metrics._core.core_inputs import check_characters, describe
from metrics._core.core_trainer import TEXTS

# Rows of a table read at a time.
_ROWS = 1024
_CSV_FIELD = 1_000_000
# Characters of a bad row that are set aside with it.
SHOWN = 1000


class UsageError(Exception):
    """The command, its settings or the file are wrong."""


class Row(NamedTuple):
    """A row as it was read: its number from 1, or its line; `values` is None where it cannot be read."""

    number: int
    values: dict[str, Any] | None
    error: str
    raw: str


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts; and the bad rows that were met on the way.

    `end` is how many rows of the file have been read with it.
    """

    rows: list[dict[str, Any]]
    texts: list[str]
    reference: Any
    is_single: bool
    number: int
    bad: list[Row]
    end: int


class Source:
    """A file that is read row by row, from any row on; `done` of `total` says how far."""

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
        """Read from row `start` on, counted from 0."""
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
                        # Counted, so that numbers are those of the lines, but neither good nor bad.
                        yield Row(i + 1, None, "", "")
                        continue
                    # NaN is no JSON, though many write it.
                    values = json.loads(text, parse_constant=lambda _: None)
                    # Half of a surrogate pair could not be written again.
                    json.dumps(values, ensure_ascii=False).encode()
                except (ValueError, RecursionError) as error:
                    yield Row(i + 1, None, f"is no JSON: {error}", _show(line))
                    continue
                if isinstance(values, dict):
                    yield Row(i + 1, values, "", "")
                else:
                    yield Row(i + 1, None, f"must hold an object. Got {describe(values)}", _show(line))

    def _csv_rows(self, start: int) -> Iterator[Row]:
        # A quote that is not closed does not take in the whole file.
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
            # Bytes that are no UTF-8 become half surrogates, which are refused as texts.
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


class Reader:
    """Rows to units, by the keys of the command."""

    def __init__(self, arguments: argparse.Namespace, items: str) -> None:
        self.text_key, self.reference_key = arguments.text_key, arguments.reference_key
        self.group_key, self.set_size = arguments.group_key, arguments.set_size
        self.grouped = self.group_key is not None or self.set_size is not None
        self.items = items
        if self.grouped and items == TEXTS:
            raise UsageError(f"{arguments.metric} scores each text: leave out --group-key and --set-size.")

    def units(self, rows: Iterator[Row], start: int) -> Iterator[Unit]:
        """Join rows to units, in order; all that was read up to a unit belongs to it or to one before."""
        good: list[Row] = []
        texts: list[str] = []
        bad: list[Row] = []
        end = start
        for row in rows:
            problem = row.error
            if row.values is not None:
                problem, own = self._texts(row.values)
            if problem:
                bad.append(self._set_aside(row, problem))
            if row.values is None or problem:
                end += 1
                if not good:
                    yield self._unit(good, texts, bad, end)
                    bad = []
                continue
            if good and not self._belongs(good, row):
                yield self._unit(good, texts, bad, end)
                good, texts, bad = [], [], []
            good.append(row)
            texts += own
            end += 1
            if not self.grouped or len(good) == self.set_size:
                yield self._unit(good, texts, bad, end)
                good, texts, bad = [], [], []
        if self.set_size is not None and good:
            problem = f"is left over: no {self.set_size} rows to the end of the file"
            bad += [self._set_aside(row, problem) for row in good]
            good, texts = [], []
        if good or bad:
            yield self._unit(good, texts, bad, end)

    @staticmethod
    def _set_aside(row: Row, problem: str) -> Row:
        raw = row.raw if row.values is None else json.dumps(row.values, default=str)[:SHOWN]
        return row._replace(error=problem, raw=raw)

    def _belongs(self, good: list[Row], row: Row) -> bool:
        if self.group_key is None:
            return True
        ours, theirs = good[0].values, row.values
        assert ours is not None
        assert theirs is not None
        return bool(ours[self.group_key] == theirs[self.group_key])

    def _unit(self, good: list[Row], texts: list[str], bad: list[Row], end: int) -> Unit:
        rows = [row.values for row in good if row.values is not None]
        reference = rows[0].get(self.reference_key) if rows and self.reference_key else None
        if isinstance(reference, str):
            # CSV has lists as JSON; a text alone is one answer.
            with suppress(ValueError):
                reference = json.loads(reference)
            reference = [reference] if isinstance(reference, str) else reference
        is_single = bool(rows) and isinstance(rows[0][self.text_key], str)
        return Unit(rows, texts, reference, is_single, good[0].number if good else 0, bad, end)

    def _texts(self, values: dict[str, Any]) -> tuple[str, list[str]]:
        """Take the texts out of a row; returns what is wrong with it, or "", and the texts."""
        for key in (self.text_key, self.group_key, self.reference_key):
            if key is not None and values.get(key) is None:
                return f"has no {key!r}", []
        value = values[self.text_key]
        if isinstance(value, str):
            texts = [value]
            if not self.grouped and self.items != TEXTS:
                try:
                    texts = json.loads(value)
                except ValueError:
                    texts = []
                if not isinstance(texts, list):
                    texts = []
                if not texts:
                    return f"{self.text_key!r} is one text: a set is a list, or needs --group-key or --set-size", []
        elif isinstance(value, list):
            texts = value
        else:
            return f"{self.text_key!r} must be a text or a list of texts. Got {describe(value)}", []
        if not texts:
            return f"{self.text_key!r} is an empty list", []
        for text in texts:
            if not isinstance(text, str):
                return f"{self.text_key!r} must hold texts. Got {describe(text)}", []
        try:
            check_characters(texts, lambda i: f"text {i} of {self.text_key!r}")
        except ValueError as error:
            return str(error), []
        return "", texts


def batches(units: Iterator[Unit], n_texts: int) -> Iterator[list[Unit]]:
    """Join units until they hold so many texts."""
    batch: list[Unit] = []
    size = 0
    for unit in units:
        batch.append(unit)
        # Bad rows count too: they are kept.
        size += max(1, len(unit.texts))
        if size >= n_texts:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Job(NamedTuple):
    """All that a process must know to take part in a job: plain data, which can be sent.

    items : what a row holds, for the Reader
    reference : with --one-set, people's answers
    """

    arguments: argparse.Namespace
    settings: dict[str, Any]
    items: str
    reference: Any = None


def read_batches(job: Job, start: int) -> Iterator[tuple[list[Unit], int]]:
    """Read the file from row `start` on: units that make a batch, and how far the file was read."""
    source = Source(job.arguments.data, job.arguments.split)
    reader = Reader(job.arguments, job.items)
    for units in batches(reader.units(source.rows(start), start), job.arguments.batch_size):
        yield units, source.done
