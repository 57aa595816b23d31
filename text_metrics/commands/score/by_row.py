"""A score for each row, or for each set of rows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from text_metrics.commands.jobs.batches import Batch, Job
from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.jobs.tables import write_rows
from text_metrics.commands.score.engine import Engine
from text_metrics.commands.score.scoring import Scorer, open_scorer
from text_metrics.commands.score.summary import summarize
from text_metrics.metrics._core.core_results import TEXTS, MergedResult


class ByRow:
    """The task of a command without --one-set: rows with their scores, and a summary."""

    open_work: Callable[[Job], Callable[[tuple[list[Unit], int]], Batch]] = staticmethod(open_scorer)

    def __init__(self, command: Command, scorer: Scorer, source: Source) -> None:
        scorer.check()
        self._command, self._scorer = command, scorer
        self._reader = Reader(command, scorer.items)
        self._score_key = command.score_key or scorer.metric.name
        if source.schema is not None and self._score_key in source.schema.names:
            raise UsageError(f"{command.data} has a column {self._score_key!r} already: pass --score-key.")
        self.schema = output_schema(source, self._reader, self._score_key)

    def job(self) -> Job:
        """Return what a process needs to take part."""
        return Job(self._command.for_other_folders(), self._reader.items)

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
            store.append(scored_rows(batch, self._score_key, self._reader), state)
        return state

    def score(self, store: Store, state: State, engine: Engine) -> dict[str, Any]:
        """Return no numbers: all rows have their scores."""
        return {}

    def finish(self, store: Store, state: State, numbers: dict[str, Any], out: Path) -> dict[str, Any]:
        """Write the rows, and return the summary."""
        write_rows(store, out)
        assert self._command.confidence is not None
        bounds = self._scorer.metric.bounds
        return summarize(store, self._score_key, self._command.confidence, bounds, state)


def output_schema(source: Source, reader: Reader, score_key: str) -> pa.Schema | None:
    """Return the schema of a table with its scores; None for files whose columns have no types."""
    if source.schema is None:
        return None
    scalars = (None, reader.group_key)
    fields = [
        field if not reader.grouped or field.name in scalars else field.with_type(pa.list_(field.type))
        for field in source.schema
    ]
    is_list = reader.grouped or not _is_text(source.schema.field(reader.text_key).type)
    several = reader.items == TEXTS and is_list
    return pa.schema([*fields, pa.field(score_key, pa.list_(pa.float64()) if several else pa.float64())])


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def scored_rows(batch: Batch, score_key: str, reader: Reader) -> list[dict[str, Any]]:
    """Add the score of each unit to its row, or to the lists of its rows' values."""
    rows = []
    for unit, score in zip(batch.units, batch.scores, strict=True):
        row = unit.rows[0]
        if reader.grouped:
            names = dict.fromkeys(name for values in unit.rows for name in values)
            row = {
                name: row[name] if name == reader.group_key else [values.get(name) for values in unit.rows]
                for name in names
            }
        if score_key in row:
            raise UsageError(f"row {unit.numbers[0]} has a column {score_key!r} already: pass --score-key.")
        rows.append({**row, score_key: score})
    return rows
