"""Score a file of generated texts with one of the metrics: any size, in little memory, and again after a kill.

    python scripts/score.py data.jsonl --metric vendi_embed --text-key generations
    python scripts/score.py data.csv --metric self_bleu --text-key answer --group-key prompt --out scores.parquet
    python scripts/score.py data.parquet --metric probeval --text-key answers --reference-key people --set smoothing=0.5
    python scripts/score.py data.jsonl --metric vendi_embed --text-key text --one-set --engine ray --address auto

Reads JSON lines, CSV, Parquet, or a folder that `datasets` saved. A row holds a set of texts, as a list; or one text,
and rows with the same --group-key that stand side by side, or --set-size rows in turn, make a set. gruen scores each
text. Writes the rows with their scores, in order, as Parquet, JSON lines or CSV, by the ending of --out; the columns of
rows that make a set become lists.

A summary goes to stdout and to <out>.summary.json: the numbers of the metric over the whole file, its signature, and
    n_scores, n_texts, n_bad    how many scores, texts scored, and rows set aside
    confidence                  the level of --confidence
    confidence_interval         [low, high] of the mean of the scores; null for fewer than two scores
    confidence_method           how it was found: bootstrap, or normal for more than 100 000 scores; null without one
    command                     what decided the numbers

With --one-set all texts of the file are one set, for probeval the answers to one question, whatever their number: sums
and tables of its parts are merged. Then the summary is all there is, without an interval, for there is one score; and
--out, which ends in .json, is its file.

With --engine ray the work is done by the actors of a Ray cluster, one model each, on a GPU where there are GPUs. Only
this machine reads and writes files. Ray is an extra: pip install ".[ray]".

What is done is kept in <out>.parts, one file a batch. The same command, run again after a kill, goes on there, with
either engine. A row that cannot be scored is named on stderr, and set aside to <out>.bad.jsonl.

Exit codes: 0 all rows are scored; 3 some were set aside; 4 stopped at a bad row, by --strict; 2 the command, its
settings or the file are wrong, or no cluster answers; 130 interrupted; 1 a fault of the program.
"""

import argparse
import csv
import fcntl
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
# So that it runs from any directory.
sys.path.insert(0, str(ROOT))

from metrics._core.core_confidence import confidence_interval, parse_confidence  # noqa: E402
from metrics._core.core_signature import merge_signatures  # noqa: E402
from metrics._core.core_trainer import QUESTIONS, TEXTS, MergedResult  # noqa: E402
from scripts._score.one_set import STATISTICS, Statistic, StoredArrays, open_statistic  # noqa: E402
from scripts._score.ray_engine import OnRay  # noqa: E402
from scripts._score.reading import Job, Reader, Source, UsageError, read_batches  # noqa: E402
from scripts._score.work import Batch, Engine, OneProcess, Scorer, open_scorer  # noqa: E402

EXIT_USAGE, EXIT_BAD_ROWS, EXIT_STRICT, EXIT_INTERRUPTED = 2, 3, 4, 130
_CONFIDENCE = 0.95
# Up to so many scores the interval is the core's bootstrap; beyond, the normal one, which is the same by then.
_BOOTSTRAP_ITEMS = 100_000


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


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
        return self.state(-1) if self.parts else None

    def append(self, rows: list[dict[str, Any]], state: dict[str, Any]) -> None:
        """Keep a batch and the state after it."""
        path = self.folder / f"part-{len(self.parts):08d}"
        with _whole(path) as temporary:
            if self.schema is None:
                lines = [json.dumps(value, ensure_ascii=False) + "\n" for value in [state, *rows]]
                temporary.write_text("".join(lines), encoding="utf-8")
            else:
                schema = self.schema.with_metadata({b"state": json.dumps(state).encode()})
                pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)
        self.parts.append(path)

    def batches(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Read all batches in order: the state after each, and its rows."""
        return map(self._read, self.parts)

    def state(self, place: int) -> dict[str, Any]:
        """Read the state after one batch."""
        return self._read(self.parts[place])[0]

    def _read(self, path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if self.schema is None:
            state, *rows = map(json.loads, path.read_text(encoding="utf-8").split("\n")[:-1])
            return state, rows
        table = pq.read_table(path)
        return json.loads(table.schema.metadata[b"state"]), table.to_pylist()

    def remove(self) -> None:
        """Take the folder away; at no moment does a part of it look like all of it."""
        self.sweep(self.folder)
        self.folder.rename(self._done(self.folder))
        self.sweep(self.folder)
        self._lock.close()

    @classmethod
    def sweep(cls, folder: Path) -> None:
        """Delete what a kill has left of a folder that was taken away."""
        shutil.rmtree(cls._done(folder), ignore_errors=True)

    @staticmethod
    def _done(folder: Path) -> Path:
        return folder.with_name(f"{folder.name}.done")


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Give a name to write a file under, which takes its own once it is complete."""
    temporary = path.with_name(f"{path.name}.tmp")
    yield temporary
    _put(temporary, path)


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
    with _whole(path) as temporary:
        if path.suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as file:
                for _, rows in store.batches():
                    file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            return
        schema = store.schema or infer_schema(rows for _, rows in store.batches())
        if path.suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, schema.names)
                writer.writeheader()
                for _, rows in store.batches():
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            return
        with pq.ParquetWriter(temporary, schema) as parquet:
            for _, rows in store.batches():
                fitted = _fit(rows, schema) if store.schema is None else rows
                parquet.write_table(pa.Table.from_pylist(fitted, schema))


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
    elif n > 1:
        half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(squares / (n - 1) / n)
        interval, method = [mean - half, mean + half], "normal"
    return {
        **MergedResult(state["merged"]).result(),
        "n_scores": n,
        "n_texts": state["n_texts"],
        "n_bad": state["n_bad"],
        "confidence": level,
        "confidence_interval": interval,
        "confidence_method": method,
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
    sets.add_argument("--one-set", action="store_true", help="all texts of the file are one set; writes a summary")
    parser.add_argument("--reference-key", help="column of people's answers, for probeval: those of a set's first row")
    parser.add_argument("--split", help="of a folder of `datasets`")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the metric")
    parser.add_argument("--score-key", help="column of the scores; the metric's name by default")
    parser.add_argument("--out", type=Path, help=".parquet, .jsonl or .csv; by default <data>.<metric>.parquet")
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="this process, or a Ray cluster")
    parser.add_argument(
        "--address", help="host:port or auto: a Ray cluster with this machine in it; else one is started"
    )
    parser.add_argument("--workers", type=int, help="actors on Ray; by default one a GPU, or a core if there is no GPU")
    parser.add_argument("--batch-size", type=int, default=4096, help="texts scored and kept at a time")
    parser.add_argument(
        "--confidence", type=float, help=f"level of the interval in the summary; {_CONFIDENCE} by default"
    )
    parser.add_argument("--strict", action="store_true", help="stop at the first bad row")
    parser.add_argument("--restart", action="store_true", help="forget what was done, and write --out anew")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    arguments = parser.parse_args(words)
    if arguments.confidence is None and not arguments.one_set:
        arguments.confidence = _CONFIDENCE
    return arguments


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
    _check_numbers(arguments)
    source = Source(arguments.data, arguments.split)
    scorer = Scorer(arguments.metric, _parse_settings(arguments.set))
    name = scorer.metric.name
    if (arguments.reference_key is None) == (scorer.items == QUESTIONS):
        raise UsageError(f"--reference-key goes with probeval, and only with it. The metric is {name}.")
    statistic = _statistic(arguments, scorer, source)
    (statistic or scorer).check()
    reader = Reader(arguments, TEXTS if statistic else scorer.items)
    score_key = arguments.score_key or name
    _check_columns(arguments, source, None if statistic else score_key)
    out = _output(arguments, name)
    summary_file = out if statistic else out.with_name(f"{out.name}.summary.json")
    parts = out.with_name(f"{out.name}.parts")
    command = _command(arguments, scorer, score_key)

    Store.sweep(parts)
    if arguments.restart:
        # Opened first: another process may be at it.
        Store(parts, None).remove()
        summary_file.unlink(missing_ok=True)
    elif out.exists() and not parts.exists():
        summary = _summary_of(summary_file, command)
        if summary is None:
            raise UsageError(f"{out} is there already, from another command: pass --restart, or another --out.")
        return _end(summary)

    store = Store(parts, None if statistic else output_schema(source, reader, score_key))
    state = store.last_state() or {"command": command, "position": 0, "n_texts": 0, "n_bad": 0, "merged": None}
    if state["command"] != command:
        raise UsageError(f"{parts} was begun with another command or file: pass --restart, or another --out.")
    job = _job(arguments, scorer, reader, statistic)
    result: dict[str, Any] = {}
    with _engine(arguments) as engine:
        if statistic is None:
            found = engine.map(*_work(job, state, open_scorer))
            state = _score_all(arguments, source, reader, found, scorer, store, state)
        else:
            found = engine.map(*_work(job, state, open_statistic))
            state = _gather(arguments, source, found, statistic, store, state)
        if not state["merged"]:
            raise UsageError(f"{arguments.data} has no row that can be scored.")
        if statistic is not None:
            result = _score_one_set(arguments, statistic, store, state, engine)
    if statistic is None:
        write_rows(store, out)
    _write_bad(store, state, out.with_name(f"{out.name}.bad.jsonl"))
    if statistic is None:
        summary = summarize(store, score_key, arguments.confidence, state, command)
    else:
        summary = {**result, "n_texts": state["n_texts"], "n_bad": state["n_bad"], "command": command}
    with _whole(summary_file) as temporary:
        temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    store.remove()
    return _end(summary)


def _end(summary: Mapping[str, Any]) -> int:
    print(json.dumps(summary, indent=2))
    return EXIT_BAD_ROWS if summary["n_bad"] else 0


def _check_numbers(arguments: argparse.Namespace) -> None:
    try:
        parse_confidence(arguments.confidence)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    for name in ("batch_size", "set_size", "workers"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be at least 1. Got {getattr(arguments, name)}.")
    for name in ("score_key", "confidence"):
        if arguments.one_set and getattr(arguments, name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} has no place with --one-set: texts have no scores of their own."
            )
    for name in ("address", "workers"):
        if getattr(arguments, name) is not None and arguments.engine != "ray":
            raise UsageError(f"--{name} goes with --engine ray, and only with it.")


def _statistic(arguments: argparse.Namespace, scorer: Scorer, source: Source) -> Statistic | None:
    """Choose what is merged where the file is one set."""
    if not arguments.one_set:
        return None
    if scorer.metric.name not in STATISTICS:
        raise UsageError(f"--one-set is for {', '.join(STATISTICS)}. The metric is {scorer.metric.name}.")
    reference = None
    if arguments.reference_key is not None:
        units = Reader(arguments, TEXTS).units(Source(source.path, arguments.split).rows(0), 0)
        reference = next((unit.reference for unit in units if unit.rows), None)
    return STATISTICS[scorer.metric.name](scorer, reference)


def _check_columns(arguments: argparse.Namespace, source: Source, score_key: str | None) -> None:
    """Refuse keys that a table does not have, and a key for the scores that it has."""
    if source.schema is None:
        return
    names = source.schema.names
    for key in (arguments.text_key, arguments.group_key, arguments.reference_key):
        if key is not None and key not in names:
            raise UsageError(f"{arguments.data} has no column {key!r}: it has {', '.join(names)}.")
    if score_key in names:
        raise UsageError(f"{arguments.data} has a column {score_key!r} already: pass --score-key.")


def _output(arguments: argparse.Namespace, name: str) -> Path:
    """Name the file that is written last."""
    endings = (".json",) if arguments.one_set else (".parquet", ".jsonl", ".csv")
    out = arguments.out or arguments.data.with_name(f"{arguments.data.name}.{name}{endings[0]}")
    if out.suffix not in endings:
        expected = ".json with --one-set" if arguments.one_set else ".parquet, .jsonl or .csv"
        raise UsageError(f"--out must end in {expected}. Got {out}.")
    return out


def _summary_of(summary_file: Path, command: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read the summary that this command has written; None if there is none, or it is of another."""
    try:
        summary = json.loads(summary_file.read_text(encoding="utf-8"))
        return summary if summary["command"] == command else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _command(arguments: argparse.Namespace, scorer: Scorer, score_key: str) -> dict[str, Any]:
    """Say what decides the numbers: a job goes on only with the same."""
    file = arguments.data
    stat = (file / (arguments.split or "") / "state.json" if file.is_dir() else file).stat()
    names = ("text_key", "group_key", "set_size", "one_set", "reference_key", "split", "batch_size", "confidence")
    return {
        "data": str(file),
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "metric": scorer.metric.name,
        "settings": scorer.settings,
        "score_key": score_key,
        **{name: getattr(arguments, name) for name in names},
    }


def _job(arguments: argparse.Namespace, scorer: Scorer, reader: Reader, statistic: Statistic | None) -> Job:
    """Say what to do in a form for processes that run in another folder: paths are made absolute."""

    def absolute(name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return value
        # The folder of a cache need not be there yet.
        is_path = name == "cache_dir" or (os.sep in value and os.path.exists(value))
        return os.path.abspath(os.path.expanduser(value)) if is_path else value

    words = argparse.Namespace(**{**vars(arguments), "data": arguments.data.resolve()})
    words.metric = absolute("metric", arguments.metric)
    settings = {name: absolute(name, value) for name, value in scorer.settings.items()}
    return Job(words, settings, reader.items, None if statistic is None else statistic.reference)


def _engine(arguments: argparse.Namespace) -> AbstractContextManager[Engine]:
    if arguments.engine == "ray":
        return OnRay(arguments.address, arguments.workers, arguments.quiet)
    return nullcontext(OneProcess())


def _work(job: Job, state: Mapping[str, Any], open_work: Any) -> tuple[Any, Any]:
    """Say what is left to read, and what to do with it."""
    return partial(read_batches, job, state["position"]), partial(open_work, job)


def _watch(
    arguments: argparse.Namespace, source: Source, found: Iterator[Batch], name: str, state: dict[str, Any]
) -> Iterator[tuple[Batch, tqdm]]:
    """Show how far it is, and name bad rows."""
    with tqdm(
        total=source.total,
        initial=state.get("done", 0),
        unit=source.unit,
        unit_scale=True,
        disable=arguments.quiet,
        desc=name,
    ) as bar:
        is_first = not state["merged"]
        for batch in found:
            for number, error, _ in batch.bad:
                tqdm.write(f"{arguments.data}, row {number}: {error}", file=sys.stderr)
                if arguments.strict:
                    raise BadRowError
            if batch.bad and batch.result is None and is_first:
                # Nothing could be scored so far: it may well be the settings.
                raise UsageError(f"{arguments.data}: no row of the first batch can be scored: {batch.bad[0][1]}")
            is_first = is_first and batch.result is None
            yield batch, bar
            bar.update(batch.done - bar.n)


def _rate(bar: tqdm, n_texts: int, began: float) -> None:
    bar.set_postfix_str(f"{n_texts / (time.monotonic() - began):.0f} texts/s")


def _score_all(
    arguments: argparse.Namespace,
    source: Source,
    reader: Reader,
    found: Iterator[Batch],
    scorer: Scorer,
    store: Store,
    state: dict[str, Any],
) -> dict[str, Any]:
    """Keep what is scored batch by batch; returns the state at the end."""
    began, n_before = time.monotonic(), state["n_texts"]
    for batch, bar in _watch(arguments, source, found, scorer.metric.name, state):
        merged = MergedResult(state["merged"])
        if batch.result is not None:
            try:
                merged.add(batch.result, scorer.metric._n_items)
            except ValueError as error:
                raise UsageError(f"{error} Pass the setting that differs with --set.") from None
        state = {
            **state,
            "position": batch.end,
            "done": batch.done,
            "n_texts": state["n_texts"] + sum(len(unit.texts) for unit in batch.units),
            "n_bad": state["n_bad"] + len(batch.bad),
            "merged": merged.state if merged.state["n_parts"] else None,
            "bad": batch.bad,
        }
        store.append(_scored_rows(batch, state["command"]["score_key"], reader), state)
        _rate(bar, state["n_texts"] - n_before, began)
    return state


def _gather(
    arguments: argparse.Namespace,
    source: Source,
    found: Iterator[Batch],
    statistic: Statistic,
    store: Store,
    state: dict[str, Any],
) -> dict[str, Any]:
    """Keep the merged statistics of one set; returns the state at the end, with the signature under `merged`."""
    began, n_before = time.monotonic(), state["n_texts"]
    pending: list[Mapping[str, np.ndarray]] = []
    if statistic.replaces and store.parts:
        pending = [{name: np.array(array) for name, array in part.items()} for part in _stored_arrays(store, 1)]
    kept = state
    for batch, bar in _watch(arguments, source, found, statistic.scorer.metric.name, state):
        state = {
            **state,
            "position": batch.end,
            "done": batch.done,
            "n_bad": state["n_bad"] + len(batch.bad),
            "bad": [*(state["bad"] if state is not kept else []), *batch.bad],
        }
        if batch.result is not None:
            pending.append(batch.result["arrays"])
            state["n_texts"] += batch.result["n_texts"]
            state["merged"] = _merge_signatures(state["merged"], batch.result["signature"])
        if statistic.is_full(pending):
            pending = _keep(statistic, pending, store, state)
            kept = state
        _rate(bar, state["n_texts"] - n_before, began)
    if state is not kept:
        _keep(statistic, pending, store, state)
    return state


def _merge_signatures(before: dict[str, Any] | None, signature: str) -> dict[str, Any]:
    try:
        return {"signature": merge_signatures(before["signature"], signature) if before else signature}
    except ValueError as error:
        raise UsageError(str(error)) from None


def _keep(
    statistic: Statistic, pending: list[Mapping[str, np.ndarray]], store: Store, state: dict[str, Any]
) -> list[Mapping[str, np.ndarray]]:
    """Write arrays, then the state that names them; returns those that go on."""
    arrays = statistic.merge(pending) if pending else {}
    place = len(store.parts)
    for name, array in arrays.items():
        with _whole(store.folder / f"arrays-{place:08d}.{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, array)
    store.append([], {**state, "arrays": list(arrays)})
    if not statistic.replaces:
        return []
    for old in store.folder.glob("arrays-*"):
        if not old.name.startswith(f"arrays-{place:08d}"):
            old.unlink()
    return [arrays] if arrays else []


def _stored_arrays(store: Store, n_last: int | None = None) -> list[StoredArrays]:
    """Find the arrays of the last parts, or of all."""
    folder = store.folder.resolve()
    first = 0 if n_last is None else len(store.parts) - n_last
    states = ((place, store.state(place)) for place in range(first, len(store.parts)))
    return [StoredArrays(folder / f"arrays-{i:08d}", state["arrays"]) for i, state in states if state["arrays"]]


def _score_one_set(
    arguments: argparse.Namespace, statistic: Statistic, store: Store, state: dict[str, Any], engine: Engine
) -> dict[str, Any]:
    """Score the set from what is kept of it, as the numbers of a summary."""
    n = state["n_texts"]
    if n < statistic.least:
        name = statistic.scorer.metric.name
        raise UsageError(f"{arguments.data} holds one text, and {name} is undefined for a set of one.")
    parts = _stored_arrays(store, 1 if statistic.replaces else None)
    result = statistic.result(parts, n, engine, store.folder.resolve(), arguments.quiet)
    own = re.sub(r"\|set_size:[^|]*", f"|set_size:{n}", state["merged"]["signature"])
    merged = MergedResult()
    merged.add({"signature": own, **result}, lambda *_: 1)
    return {**merged.result(), "n_scores": 1}


def _write_bad(store: Store, state: dict[str, Any], path: Path) -> None:
    if not state["n_bad"]:
        path.unlink(missing_ok=True)
        return
    lines = (
        dict(zip(("row", "error", "text"), row, strict=True)) for part, _ in store.batches() for row in part["bad"]
    )
    with _whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


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
