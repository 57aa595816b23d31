"""A score for each row, or for each set of rows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from text_metrics.commands.jobs.batches import Batch, Job
from text_metrics.commands.jobs.grouping import Reader
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.jobs.tables import write_rows
from text_metrics.commands.score.engine import Engine
from text_metrics.commands.score.scoring import Scorer, open_scorer
from text_metrics.commands.score.summary import summarize
from text_metrics.metrics._core.core_results import TEXTS, ItemResult, MergedResult


class ByRow:
    """The task of a command without --one-set: rows with their scores, and a summary."""

    open_work: Callable[[Job], Callable[[Any], Iterator[Batch]]] = staticmethod(open_scorer)

    def __init__(self, command: Command, scorer: Scorer, source: Source) -> None:
        scorer.check()
        self._command, self._scorer = command, scorer
        self._reader = Reader(command, scorer.items, scorer.columns)
        self._score_key = command.score_key or scorer.metric.name
        self._keys = {"scores": self._score_key}
        for result in scorer.results:
            self._keys[result.name] = f"{command.score_key}_{result.name}" if command.score_key else result.name
        for key in self._keys.values():
            if source.schema is not None and key in source.schema.names:
                raise UsageError(f"{command.data} has a column {key!r} already: pass --score-key.")
        self.schema = self._output_schema(source)

    def job(self) -> Job:
        """Return what a process needs to take part."""
        return Job(self._command.for_other_folders(), self._reader.items, self._scorer.columns)

    def collect(self, batches: Iterator[Batch], store: Store, state: State) -> State:
        """Keep scored batches as they come; returns the state at the end."""
        for batch in batches:
            merged = MergedResult(state.merged)
            if batch.result is not None:
                try:
                    merged.add(batch.result, self._scorer.metric.n_items)
                except ValueError as error:
                    raise UsageError(f"{error} Pass the setting that differs with --setting.") from None
            state = state.after(batch, merged.state if merged.state["n_parts"] else None)
            if "confidence_by" in self._command.columns:
                state = replace(state, labels=[unit.values["confidence_by"] for unit in batch.units])
            store.append(self._scored_rows(batch), state)
        return state

    def score(self, store: Store, state: State, engine: Engine) -> dict[str, Any]:
        """Return no numbers: all rows have their scores."""
        return {}

    def finish(self, store: Store, state: State, numbers: dict[str, Any], out: Path) -> dict[str, Any]:
        """Write the rows, and return the summary."""
        write_rows(store, out)
        assert self._command.confidence is not None
        main = ItemResult("scores", bounds=self._scorer.bounds)
        results = [(self._keys[result.name], result) for result in [main, *self._scorer.results] if result.bounds]
        return summarize(store, results, self._command.confidence, state)

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
        is_list = reader.grouped or not _is_text(source.schema.field(reader.text_key).type)
        for result in [ItemResult("scores"), *self._scorer.results]:
            kind = pa.int64() if result.is_count else pa.float64()
            several = result.of_texts or (reader.items == TEXTS and is_list)
            fields.append(pa.field(self._keys[result.name], pa.list_(kind) if several else kind))
        return pa.schema(fields)

    def _scored_rows(self, batch: Batch) -> list[dict[str, Any]]:
        """Add the results of each unit to its row, or to the lists of its rows' values."""
        rows = []
        for unit, results in zip(batch.units, batch.scores, strict=True):
            row = unit.rows[0]
            if self._reader.grouped:
                names = dict.fromkeys(name for values in unit.rows for name in values)
                row = {
                    name: row[name] if name == self._reader.group_key else [values.get(name) for values in unit.rows]
                    for name in names
                }
            for key in self._keys.values():
                if key in row:
                    raise UsageError(f"row {unit.numbers[0]} has a column {key!r} already: pass --score-key.")
            rows.append({**row, **{self._keys[name]: value for name, value in results.items()}})
        return rows


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
