"""A score for each row, or for each set of rows."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from text_metrics.commands.jobs.batches import Batch, Engine, Job, open_reader
from text_metrics.commands.jobs.grouping import Reader
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.jobs.tables import write_rows
from text_metrics.commands.score.scoring import Scorer, open_metric, score_batch
from text_metrics.commands.shared.command import describe_os_error
from text_metrics.commands.shared.merging import MergedResult
from text_metrics.metrics._core.core_results import TEXTS, Estimate, ItemResult, UnitSums, result_numbers


class ScoredRows(NamedTuple):
    """What the command needs of a batch, besides its counts.

    numbers : of the result, with the signature; n_items : how many items each mean among them is over
    rows : with their scores; None if they are in a file
    n_rows, types, sums, labels : as in `State`
    """

    numbers: dict[str, Any]
    n_items: dict[str, int]
    rows: list[dict[str, Any]] | None
    n_rows: int
    types: str
    sums: list[np.ndarray]
    labels: list[Any]

    def n_items_of(self, _: Mapping[str, Any], name: str) -> int:
        """Return how many items a mean is over."""
        return self.n_items[name]


def open_rows(job: Job) -> Callable[[Any], Iterator[Batch]]:
    """Load the metric, once in a process; returns the function that makes and writes the rows of batches."""
    scorer = open_metric(job.command)
    scorer.check()
    keys = _keys(job.command, scorer)
    names = [result.name for result in _with_intervals(scorer)]
    read = open_reader(job)

    def work(item: Any) -> Iterator[Batch]:
        for units, done in read(item):
            batch = score_batch(scorer.score, units)._replace(done=done)
            if batch.result is not None:
                batch = batch._replace(units=[], scores=[], result=scored(batch))
            yield batch

    def scored(batch: Batch) -> ScoredRows:
        rows, types = _scored_rows(batch, keys, job.command), ""
        if job.rows is not None:
            try:
                types = job.rows.save(batch.end, rows)
            except OSError as error:
                raise UsageError(describe_os_error(error)) from None
        numbers = dict(result_numbers(batch.result))
        has_labels = "confidence_by" in job.command.columns
        return ScoredRows(
            {"signature": batch.result["signature"], **numbers},
            {name: scorer.metric.n_items(batch.result, name) for name in numbers},
            rows if job.rows is None else None,
            len(rows),
            types,
            [_sums([results[name] for results in batch.scores]) for name in names],
            [unit.values["confidence_by"] for unit in batch.units] if has_labels else [],
        )

    return work


def _keys(command: Command, scorer: Scorer) -> dict[str, str]:
    """Name the columns of the results."""
    prefix = f"{command.score_key}_" if command.score_key else ""
    others = {result.name: f"{prefix}{result.name}" for result in scorer.results}
    return {"scores": command.score_key or scorer.metric.name, **others}


def _with_intervals(scorer: Scorer) -> list[ItemResult]:
    """List the results whose means have an interval, that of the scores first."""
    main = ItemResult("scores", bounds=scorer.bounds)
    return [result for result in [main, *scorer.results] if result.bounds]


def _scored_rows(batch: Batch, keys: Mapping[str, str], command: Command) -> list[dict[str, Any]]:
    """Add the results of each unit to its row, or to the lists of its rows' values."""
    rows = []
    is_grouped = command.group_key is not None or command.set_size is not None
    for unit, results in zip(batch.units, batch.scores, strict=True):
        row = unit.rows[0]
        if is_grouped:
            names = dict.fromkeys(name for values in unit.rows for name in values)
            row = {
                name: row[name] if name == command.group_key else [values.get(name) for values in unit.rows]
                for name in names
            }
        for key in keys.values():
            if key in row:
                raise UsageError(f"row {unit.numbers[0]} has a column {key!r} already: pass --score-key.")
        rows.append({**row, **{keys[name]: value for name, value in results.items()}})
    return rows


def _sums(column: Sequence[Any]) -> np.ndarray:
    """Add up the values of each row: ndarray of shape (n, 2), the sum and the number of values that are not None."""
    lists = (values if isinstance(values, list) else [values] for values in column)
    rows = ([value for value in values if value is not None] for values in lists)
    return np.array([(sum(values), len(values)) for values in rows], dtype=np.float64).reshape(-1, 2)


class ByRow:
    """The task of a command without --one-set: rows with their scores, and a summary."""

    open_work: Callable[[Job], Callable[[Any], Iterator[Batch]]] = staticmethod(open_rows)

    def __init__(self, command: Command, scorer: Scorer, source: Source) -> None:
        scorer.check()
        self._command, self._scorer = command, scorer
        self._reader = Reader(command, scorer.items, scorer.columns)
        self._keys = _keys(command, scorer)
        for key in self._keys.values():
            if source.schema is not None and key in source.schema.names:
                raise UsageError(f"{command.data} has a column {key!r} already: pass --score-key.")
        self.schema = self._output_schema(source)

    def job(self) -> Job:
        """Return what a process needs to take part."""
        return Job(self._command.for_other_folders(), self._reader.items, self._scorer.columns)

    def collect(self, batches: Iterator[Batch], store: Store, state: State) -> State:
        """Keep the states after scored batches as they come; returns the one at the end."""
        for batch in batches:
            merged, scored = MergedResult(state.merged), batch.result
            if scored is not None:
                try:
                    merged.add(scored.numbers, scored.n_items_of)
                except ValueError as error:
                    raise UsageError(f"{error} Pass the setting that differs with --setting.") from None
            state = state.after(batch, merged.state if merged.state["n_parts"] else None)
            if scored is not None:
                types = scored.types if scored.rows is None else store.rows.save(batch.end, scored.rows)
                sums = [values.tolist() for values in scored.sums]
                state = replace(state, n_rows=scored.n_rows, types=types, sums=sums, labels=scored.labels)
            store.append(state)
        return state

    def finish(self, job: Job, store: Store, state: State, engine: Engine) -> dict[str, Any]:
        """Write the rows, and return the summary."""
        out = self._command.output(self._scorer.metric.name)
        write_rows(store, out, None if job.rows is None else engine)
        assert self._command.confidence is not None
        return summarize(store, _with_intervals(self._scorer), self._command.confidence, state)

    def _output_schema(self, source: Source) -> pa.Schema | None:
        """Return the schema of a table with its results; None for files whose columns have no types."""
        if source.schema is None:
            return None
        reader = self._reader
        scalars = (None, reader.group_key)
        fields = [
            field if not reader.grouped or field.name in scalars else field.with_type(pa.list_(field.type))
            for field in source.schema
        ]
        kind = source.schema.field(reader.text_key).type
        is_list = reader.grouped or not (pa.types.is_string(kind) or pa.types.is_large_string(kind))
        for result in [ItemResult("scores"), *self._scorer.results]:
            kind = pa.int64() if result.is_count else pa.float64()
            several = result.of_texts or (reader.items == TEXTS and is_list)
            fields.append(pa.field(self._keys[result.name], pa.list_(kind) if several else kind))
        return pa.schema(fields)


def summarize(store: Store, results: Sequence[ItemResult], level: float, state: State) -> dict[str, Any]:
    """Merge the results of all batches, and find the intervals of the means over items.

    The texts of a row, or of rows that make a set, are not independent of each other: the intervals are over rows, or
    over the labels of rows. `results` are those with an interval, that of the scores first.
    """
    means = [_Mean() for _ in results]
    for part in store.states():
        # A batch in which no row can be scored has no sums.
        for mean, sums in zip(means if part.sums else [], part.sums, strict=True):
            mean.add(np.array(sums, dtype=np.float64).reshape(-1, 2), part.labels)
    estimates = [mean.estimate() for mean in means]
    # A score may be bounded by the size of its set.
    size = state.n_texts / means[0].n_values if means[0].n_values else math.inf
    return {
        **MergedResult(state.merged).result(),
        "n_scores": means[0].n_values,
        "n_texts": state.n_texts,
        "n_bad": state.n_bad,
        "n_incomplete": state.n_incomplete,
        "n_dropped": state.n_dropped,
        "confidence": level,
        **{
            f"{result.name.removesuffix('scores')}confidence_interval": estimate.interval(level, result.bounds, size)
            for result, estimate in zip(results, estimates, strict=True)
            if result.bounds is not None
        },
        "n_units": estimates[0].n,
        "command": state.command,
    }


class _Mean:
    """The mean of the values of all rows, whose units are rows or the labels of rows."""

    def __init__(self) -> None:
        self.n_values = 0
        self._sums = UnitSums()
        # The sum and the number of the values of each label.
        self._of_labels: dict[Any, np.ndarray] = {}

    def add(self, sums: np.ndarray, labels: Sequence[Any]) -> None:
        """Add the sum and the number of the values of each row, (n, 2); `labels` has one for each row, or is empty."""
        self.n_values += int(sums[:, 1].sum())
        if not labels:
            self._add(sums)
        for label, of_row in zip(labels, sums, strict=False):
            self._of_labels[label] = self._of_labels.get(label, 0) + of_row

    def estimate(self) -> Estimate:
        """Return the mean; add nothing later."""
        self._add(np.array(list(self._of_labels.values())).reshape(-1, 2))
        return self._sums.estimate()

    def _add(self, sums: np.ndarray) -> None:
        has_values = sums[:, 1] > 0
        self._sums.add(sums[has_values, 0], sums[has_values, 1])
