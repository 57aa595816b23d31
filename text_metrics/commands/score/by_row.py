"""A score for each row, or for each set of rows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from text_metrics.commands.score.command import Command, UsageError
from text_metrics.commands.score.output import output_schema, scored_rows, write_rows
from text_metrics.commands.score.rows import Source
from text_metrics.commands.score.store import State, Store
from text_metrics.commands.score.summary import summarize
from text_metrics.commands.score.units import Job, Reader, Unit
from text_metrics.commands.score.work import Batch, Engine, Scorer, open_scorer
from text_metrics.metrics._core.core_results import MergedResult


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

    def collect(self, found: Iterator[Batch], store: Store, state: State) -> State:
        """Keep scored batches as they come; returns the state at the end."""
        for batch in found:
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
