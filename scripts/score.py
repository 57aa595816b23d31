"""Score a file of generated texts with one of the metrics: any size, in little memory, and again after a kill.

    python scripts/score.py data.jsonl --metric vendi_embed --text-key generations
    python scripts/score.py data.csv --metric self_bleu --text-key answer --group-key prompt --out scores.parquet
    python scripts/score.py data.parquet --metric probeval --text-key answers --reference-key people --set smoothing=0.5

Reads JSON lines, CSV, Parquet, or a folder that `datasets` saved. A row holds a set of texts, as a list; or one text,
and rows with the same --group-key that stand side by side, or --set-size rows in turn, make a set. gruen scores each
text. Writes the rows with their scores, in order, as Parquet, JSON lines or CSV, by the ending of --out; the columns of
rows that make a set become lists. A summary goes to stdout and to <out>.summary.json.

What is done is kept in <out>.parts, one file a batch. The same command, run again after a kill, goes on there. A row
that cannot be scored is named on stderr, and set aside to <out>.bad.jsonl.

Exit codes: 0 all rows are scored; 3 some were set aside; 4 stopped at a bad row, by --strict; 2 the command, its
settings or the file are wrong; 130 interrupted; 1 a fault of the program.
"""

import argparse
import csv
import fcntl
import inspect
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import NormalDist
from typing import IO, Any, NamedTuple

import evaluate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
# So that it runs from any directory.
sys.path.insert(0, str(ROOT))

from metrics._core.core_confidence import confidence_interval, parse_confidence  # noqa: E402
from metrics._core.core_inputs import check_characters, describe  # noqa: E402
from metrics._core.core_trainer import QUESTIONS, TEXTS, MergedResult  # noqa: E402
from scripts._files import write_text  # noqa: E402

EXIT_USAGE, EXIT_BAD_ROWS, EXIT_STRICT, EXIT_INTERRUPTED = 2, 3, 4, 130
# Rows of a table read at a time.
_ROWS = 1024
_CSV_FIELD = 1_000_000
# Characters of a bad row that are set aside with it.
_SHOWN = 1000
# Up to so many scores the interval is the core's bootstrap; beyond, the normal one, which is the same by then.
_BOOTSTRAP_ITEMS = 100_000


class UsageError(Exception):
    """The command, its settings or the file are wrong."""


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


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


# Reading.


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
    return text.rstrip("\n")[:_SHOWN]


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
                raw = row.raw or json.dumps(row.values, default=str)[:_SHOWN]
                bad.append(row._replace(error=problem, raw=raw))
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
            bad += [row._replace(error=f"is left over: no {self.set_size} rows to the end of the file") for row in good]
            good, texts = [], []
        if good or bad:
            yield self._unit(good, texts, bad, end)

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


# Scoring.


class Scorer:
    """A loaded metric with its settings."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        folder = ROOT / "metrics" / name
        self.metric: Any = evaluate.load(str(folder if folder.is_dir() else name))
        self.settings = settings
        self.items: str = self.metric._items

    def check(self) -> None:
        """Refuse settings that cannot be, before a file is read."""
        known = inspect.signature(self.metric._compute).parameters
        for name in self.settings:
            if name not in known:
                raise UsageError(f"--set {name}: {self.metric.name} has no such argument. It has {', '.join(known)}.")
            if name in ("predictions", "references", "set_size", "details", "confidence"):
                raise UsageError(f"--set {name} has no place here.")
        try:
            self.metric._check_parts(self.settings)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def score(self, units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        """Score units together: the score of each, a list where a row has several texts; and the result."""
        if self.items == TEXTS:
            predictions: list[Any] = [text for unit in units for text in unit.texts]
        else:
            predictions = [unit.texts for unit in units]
        references = {"references": [unit.reference for unit in units]} if self.items == QUESTIONS else {}
        result = self.metric.compute(predictions=predictions, **references, **self.settings)
        if self.items != TEXTS:
            return result["scores"], result
        scores = iter(result["scores"])
        by_unit = [[next(scores) for _ in unit.texts] for unit in units]
        return [own[0] if unit.is_single else own for own, unit in zip(by_unit, units, strict=True)], result


class Batch(NamedTuple):
    """Units scored: each score, the result of all, and what was set aside: number, error and line."""

    units: list[Unit]
    scores: list[Any]
    result: dict[str, Any] | None
    bad: list[tuple[int, str, str]]
    end: int


def score_batch(scorer: Scorer, units: list[Unit]) -> Batch:
    """Score a batch; where it cannot be scored together, find out which units are to blame."""
    bad = [(row.number, row.error, row.raw) for unit in units for row in unit.bad]
    good = [unit for unit in units if unit.rows]
    scores: list[Any] = []
    result = None
    if good:
        try:
            scores, result = scorer.score(good)
        except (TypeError, ValueError):
            kept = []
            for unit in good:
                try:
                    scorer.score([unit])
                    kept.append(unit)
                except (TypeError, ValueError) as error:
                    bad.append((unit.number, str(error), json.dumps(unit.texts)[:_SHOWN]))
            good = kept
            if good:
                scores, result = scorer.score(good)
    return Batch(good, scores, result, sorted(bad), units[-1].end)


# Keeping and writing.


class Store:
    """A folder with a file for each batch that is done: its rows, and the state of the job after it.

    A file appears whole or not at all, so that a kill leaves what was done, once.
    """

    def __init__(self, folder: Path, schema: pa.Schema | None) -> None:
        self.folder, self.schema = folder, schema
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{folder} is in use by another process.") from None
        for left in folder.glob("*.tmp"):
            left.unlink()
        self.parts = sorted(folder.glob("part-*"))

    def last_state(self) -> dict[str, Any] | None:
        """Read the state after the last batch."""
        return self._read(self.parts[-1])[0] if self.parts else None

    def append(self, rows: list[dict[str, Any]], state: dict[str, Any]) -> None:
        """Keep a batch and the state after it."""
        path = self.folder / f"part-{len(self.parts):08d}"
        temporary = path.with_suffix(".tmp")
        if self.schema is None:
            lines = [json.dumps(value, ensure_ascii=False) + "\n" for value in [state, *rows]]
            temporary.write_text("".join(lines), encoding="utf-8")
        else:
            schema = self.schema.with_metadata({b"state": json.dumps(state).encode()})
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)
        _put(temporary, path)
        self.parts.append(path)

    def batches(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Read all batches in order: the state after each, and its rows."""
        return map(self._read, self.parts)

    def _read(self, path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if self.schema is None:
            state, *rows = map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1])
            return state, rows
        table = pq.read_table(path)
        return json.loads(table.schema.metadata[b"state"]), table.to_pylist()

    def remove(self) -> None:
        """Take the folder away; at no moment does a part of it look like all of it."""
        done = self.folder.with_name(f"{self.folder.name}.done")
        shutil.rmtree(done, ignore_errors=True)
        self.folder.rename(done)
        shutil.rmtree(done)


def _put(temporary: Path, path: Path) -> None:
    """Move a file that is complete, and on the disk, to its name."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


def output_schema(source: Source, reader: Reader, score_key: str) -> pa.Schema | None:
    """Add the score to the columns of a table; None for files whose columns have no types."""
    if source.schema is None:
        return None
    kept = (None, reader.group_key)
    fields = [
        field if not reader.grouped or field.name in kept else field.with_type(pa.list_(field.type))
        for field in source.schema
    ]
    several = reader.items == TEXTS and not _is_text(source.schema.field(reader.text_key).type)
    return pa.schema([*fields, pa.field(score_key, pa.list_(pa.float64()) if several else pa.float64())])


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def infer_schema(batches: Iterator[list[dict[str, Any]]]) -> pa.Schema:
    """Find types for the columns of JSON rows; a column that holds different ones is written as JSON, a string."""
    types: dict[str, pa.DataType] = {}
    for rows in batches:
        for name in dict.fromkeys(name for row in rows for name in row):
            try:
                found = pa.array([row.get(name) for row in rows]).type
                old = types.get(name, found)
                pair = [pa.schema([(name, kind)]) for kind in (old, found)]
                types[name] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except (pa.ArrowException, OverflowError):
                types[name] = pa.string()
    return pa.schema(list(types.items()))


def write_rows(store: Store, path: Path) -> None:
    """Write all batches to one file, batch by batch."""
    temporary = path.with_name(f"{path.name}.tmp")
    if path.suffix == ".jsonl":
        with temporary.open("w", encoding="utf-8") as file:
            for _, rows in store.batches():
                file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    else:
        schema = store.schema or infer_schema(rows for _, rows in store.batches())
        if path.suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, schema.names)
                writer.writeheader()
                for _, rows in store.batches():
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
        else:
            with pq.ParquetWriter(temporary, schema) as parquet:
                for _, rows in store.batches():
                    parquet.write_table(
                        pa.Table.from_pylist(_fit(rows, schema) if store.schema is None else rows, schema)
                    )
    _put(temporary, path)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else value


def _fit(rows: list[dict[str, Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    """Write as JSON what is no text in a column of texts."""
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    return [
        {
            name: json.dumps(value, ensure_ascii=False)
            if name in texts and value is not None and not isinstance(value, str)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def summarize(store: Store, score_key: str, level: float, state: dict[str, Any], command: dict[str, Any]) -> dict:
    """Put the numbers of the whole together, with the interval of the mean of the scores."""
    kept: list[float] = []
    n, mean, squares = 0, 0.0, 0.0
    for _, rows in store.batches():
        scores = np.array([score for row in rows for score in _flat(row[score_key]) if score is not None])
        if not len(scores):
            continue
        if n + len(scores) <= _BOOTSTRAP_ITEMS:
            kept += scores.tolist()
        # The parallel form of Welford's sums (Chan, Golub & LeVeque 1979).
        shift = float(scores.mean()) - mean
        squares += float(((scores - scores.mean()) ** 2).sum()) + shift**2 * n * len(scores) / (n + len(scores))
        n += len(scores)
        mean += shift * len(scores) / n
    interval, method = None, None
    if 1 < n <= _BOOTSTRAP_ITEMS:
        interval, method = confidence_interval(level, np.array(kept)), "bootstrap"
    elif n:
        half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(squares / (n - 1) / n) if n > 1 else math.nan
        interval, method = ([mean - half, mean + half], "normal") if n > 1 else (None, None)
    return {
        **MergedResult(state["merged"]).result(),
        "n_scores": n,
        "n_texts": state["n_texts"],
        "n_bad": state["n_bad"],
        "confidence": level,
        "confidence_interval": interval,
        "interval": method,
        "command": command,
    }


def _flat(score: Any) -> list[Any]:
    return score if isinstance(score, list) else [score]


# The command.


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help=".jsonl, .csv, .parquet, or a folder of `datasets`")
    parser.add_argument("--metric", required=True, help="name of a metric here, or a path that evaluate.load takes")
    parser.add_argument("--text-key", required=True, help="column of the text, or of the list of texts")
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--group-key", help="rows that are equal here, and stand side by side, make a set")
    sets.add_argument("--set-size", type=int, help="so many rows in turn make a set")
    parser.add_argument("--reference-key", help="column of people's answers, for probeval")
    parser.add_argument("--split", help="of a folder of `datasets`")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the metric")
    parser.add_argument("--score-key", help="column of the scores; the metric's name by default")
    parser.add_argument("--out", type=Path, help=".parquet, .jsonl or .csv; <data>.<metric>.parquet by default")
    parser.add_argument("--batch-size", type=int, default=4096, help="texts scored and kept at a time")
    parser.add_argument("--confidence", type=float, default=0.95, help="level of the interval in the summary")
    parser.add_argument("--strict", action="store_true", help="stop at the first bad row")
    parser.add_argument("--restart", action="store_true", help="forget what was done, and write --out anew")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    return parser.parse_args(words)


def _parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Read NAME=VALUE; a value is JSON, or else a string."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set must be NAME=VALUE. Got {pair!r}.")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def run(arguments: argparse.Namespace) -> int:
    """Score the file; returns the exit code."""
    try:
        parse_confidence(arguments.confidence)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    for name in ("batch_size", "set_size"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1. Got {getattr(arguments, name)}.")
    source = Source(arguments.data, arguments.split)
    scorer = Scorer(arguments.metric, _parse_settings(arguments.set))
    scorer.check()
    name = scorer.metric.name
    if (arguments.reference_key is None) == (scorer.items == QUESTIONS):
        raise UsageError(f"--reference-key goes with probeval, and only with it. The metric is {name}.")
    reader = Reader(arguments, scorer.items)
    for key in (arguments.text_key, arguments.group_key, arguments.reference_key):
        if source.schema is not None and key is not None and key not in source.schema.names:
            raise UsageError(f"{arguments.data} has no column {key!r}: it has {', '.join(source.schema.names)}.")
    score_key = arguments.score_key or name
    if source.schema is not None and score_key in source.schema.names:
        raise UsageError(f"{arguments.data} has a column {score_key!r} already: pass --score-key.")
    out = arguments.out or arguments.data.with_name(f"{arguments.data.name}.{name}.parquet")
    if out.suffix not in (".parquet", ".jsonl", ".csv"):
        raise UsageError(f"--out must end in .parquet, .jsonl or .csv. Got {out}.")
    summary_file, bad_file = out.with_name(f"{out.name}.summary.json"), out.with_name(f"{out.name}.bad.jsonl")
    parts = out.with_name(f"{out.name}.parts")
    command = _command(arguments, scorer, score_key)

    shutil.rmtree(parts.with_name(f"{parts.name}.done"), ignore_errors=True)
    if arguments.restart:
        shutil.rmtree(parts, ignore_errors=True)
        summary_file.unlink(missing_ok=True)
    elif out.exists() and not parts.exists():
        if not summary_file.exists() or json.loads(summary_file.read_text())["command"] != command:
            raise UsageError(f"{out} is there already, from another command: pass --restart, or another --out.")
        print(summary_file.read_text())
        return EXIT_BAD_ROWS if json.loads(summary_file.read_text())["n_bad"] else 0

    store = Store(parts, output_schema(source, reader, score_key))
    state = store.last_state() or {"command": command, "position": 0, "n_texts": 0, "n_bad": 0, "merged": None}
    if state["command"] != command:
        raise UsageError(f"{parts} was begun with another command or file: pass --restart, or another --out.")
    _score_all(arguments, source, reader, scorer, store, state, score_key)
    state = store.last_state() or state
    if not state["merged"]:
        raise UsageError(f"{arguments.data} has no row that can be scored.")
    write_rows(store, out)
    if state["n_bad"]:
        lines = (
            dict(zip(("row", "error", "text"), row, strict=True)) for part, _ in store.batches() for row in part["bad"]
        )
        temporary = bad_file.with_name(f"{bad_file.name}.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        _put(temporary, bad_file)
    else:
        bad_file.unlink(missing_ok=True)
    summary = summarize(store, score_key, arguments.confidence, state, command)
    write_text(summary_file, json.dumps(summary, indent=2) + "\n")
    store.remove()
    print(json.dumps(summary, indent=2))
    return EXIT_BAD_ROWS if state["n_bad"] else 0


def _command(arguments: argparse.Namespace, scorer: Scorer, score_key: str) -> dict[str, Any]:
    """Say what decides the numbers: a job goes on only with the same."""
    file = arguments.data
    stat = (file / (arguments.split or "") / "state.json" if file.is_dir() else file).stat()
    return {
        "data": str(file),
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "metric": scorer.metric.name,
        "settings": scorer.settings,
        "score_key": score_key,
        **{
            name: getattr(arguments, name)
            for name in ("text_key", "group_key", "set_size", "reference_key", "split", "batch_size", "confidence")
        },
    }


def _score_all(
    arguments: argparse.Namespace,
    source: Source,
    reader: Reader,
    scorer: Scorer,
    store: Store,
    state: dict[str, Any],
    score_key: str,
) -> None:
    """Score what is not done yet, and keep it batch by batch."""
    units = reader.units(source.rows(state["position"]), state["position"])
    began, n_before = time.monotonic(), state["n_texts"]
    with tqdm(
        total=source.total,
        initial=state.get("done", 0),
        unit=source.unit,
        unit_scale=True,
        disable=arguments.quiet,
        desc=scorer.metric.name,
    ) as bar:
        for batch in (score_batch(scorer, group) for group in _batches(units, arguments.batch_size)):
            for number, error, _ in batch.bad:
                tqdm.write(f"{arguments.data}, row {number}: {error}", file=sys.stderr)
                if arguments.strict:
                    raise BadRowError(f"{arguments.data}, row {number}: {error}")
            if batch.bad and not batch.units and not state["merged"]:
                # Nothing could be scored so far: it may well be the settings.
                raise UsageError(f"{arguments.data}: no row of the first batch can be scored: {batch.bad[0][1]}")
            merged = MergedResult(state["merged"])
            if batch.result is not None:
                try:
                    merged.add(batch.result, scorer.metric._n_items)
                except ValueError as error:
                    raise UsageError(f"{error} Pass the setting that differs with --set.") from None
            state = {
                **state,
                "position": batch.end,
                "done": source.done,
                "n_texts": state["n_texts"] + sum(len(unit.texts) for unit in batch.units),
                "n_bad": state["n_bad"] + len(batch.bad),
                "merged": merged.state if merged.state["n_parts"] else None,
                "bad": batch.bad,
            }
            store.append(_scored_rows(batch, score_key, reader), state)
            bar.update(source.done - bar.n)
            rate = (state["n_texts"] - n_before) / (time.monotonic() - began)
            bar.set_postfix_str(f"{rate:.0f} texts/s")


def _batches(units: Iterator[Unit], n_texts: int) -> Iterator[list[Unit]]:
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


def _scored_rows(batch: Batch, score_key: str, reader: Reader) -> list[dict[str, Any]]:
    rows = []
    for unit, score in zip(batch.units, batch.scores, strict=True):
        row = unit.rows[0]
        if reader.grouped:
            names = dict.fromkeys(name for own in unit.rows for name in own)
            row = {
                name: row[name] if name == reader.group_key else [own.get(name) for own in unit.rows] for name in names
            }
        if score_key in row:
            raise UsageError(f"row {unit.number} has a column {score_key!r} already: pass --score-key.")
        rows.append({**row, score_key: score})
    return rows


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    arguments = parse_arguments(words)
    try:
        return run(arguments)
    except BadRowError:
        print("Stopped there. What was done before is kept.", file=sys.stderr)
        return EXIT_STRICT
    except (UsageError, OSError) as error:
        print(f"score.py: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on from here.", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
