"""One score for a whole file, from statistics of its parts that merge: the file is never in memory as a whole."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from text_metrics.commands.jobs.batches import Batch, Engine, Job, open_reader
from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.score.out_of_core import PASSES, Place, StoredArrays
from text_metrics.commands.score.scoring import Scorer, open_metric, score_batch
from text_metrics.commands.shared.files import written_whole
from text_metrics.metrics._core.core_results import TEXTS, MergedResult, merge_signatures
from text_metrics.metrics._core.core_statistics import Arrays


def open_parts(job: Job) -> Callable[[Any], Iterator[Batch]]:
    """Load the metric, once in a process; returns the function that makes the arrays of batches."""
    scorer = open_metric(job.command)
    parts = scorer.metric.parts(scorer.metric, scorer.settings, job.reference)
    with as_usage(TypeError):
        parts.signature()
    read = open_reader(job)

    def make_arrays(units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        for unit in units:
            if unit.reference is not None and unit.reference != job.reference:
                raise UsageError(
                    f"--one-set: {job.command.reference_key!r} of row {unit.numbers[0]} is not that of the rows "
                    f"before: all texts must be answers to one question."
                )
        texts = [text for unit in units for text in unit.texts]
        # Single texts have no scores.
        return [None] * len(units), {"arrays": parts.part(texts), "signature": parts.signature()}

    def work(item: Any) -> Iterator[Batch]:
        for units, done in read(item):
            # The rows need not be sent back.
            yield score_batch(make_arrays, units)._replace(units=[], scores=[], done=done)

    return work


class OneSet:
    """The task of a command with --one-set: a summary."""

    open_work: Callable[[Job], Callable[[Any], Iterator[Batch]]] = staticmethod(open_parts)
    schema = None  # No rows are written.

    def __init__(self, command: Command, scorer: Scorer, source: Source) -> None:
        self._name = scorer.metric.name
        if self._name not in PASSES:
            raise UsageError(f"--one-set is for {', '.join(PASSES)}. The metric is {self._name}.")
        self._command = command
        scorer.check_names()
        with as_usage(TypeError, prefix="--one-set: "):
            self._parts = scorer.metric.parts(scorer.metric, scorer.settings, _first_reference(command, source))
            self._parts.check()
        self._pass = PASSES[self._name](self._parts)

    def job(self) -> Job:
        """Return what a process needs to take part."""
        return Job(self._command.for_other_folders(), TEXTS, reference=self._parts.reference)

    def collect(self, batches: Iterator[Batch], store: Store, state: State) -> State:
        """Keep merged arrays as batches come; returns the state at the end, with the signature under `merged`."""
        pending: list[Arrays] = []
        if self._parts.replaces and store.parts:
            pending = [{name: np.array(array) for name, array in part.items()} for part in _stored_arrays(store, 1)]
        written = state
        for batch in batches:
            bad_before = () if state is written else state.bad
            merged = state.merged
            if batch.result is not None:
                pending.append(batch.result["arrays"])
                signature = batch.result["signature"]
                with as_usage():
                    merged = {"signature": merge_signatures(merged["signature"], signature) if merged else signature}
            state = replace(state.after(batch, merged), bad=[*bad_before, *batch.bad])
            if self._pass.is_full(pending):
                pending, written = self._keep(pending, store, state), state
        if state is not written:
            self._keep(pending, store, state)
        return state

    def _keep(self, pending: list[Arrays], store: Store, state: State) -> list[Arrays]:
        """Write arrays, then the state that names them; returns those that further parts are merged with."""
        arrays = self._parts.merge(pending) if pending else {}
        stem = f"arrays-{len(store.parts):08d}"
        for name, array in arrays.items():
            with written_whole(store.folder / f"{stem}.{name}.npy") as temporary, temporary.open("wb") as file:
                # Into a file itself, numpy writes by `tofile`, whose errors do not say why.
                np.save(SimpleNamespace(write=file.write), array)
        store.append(replace(state, arrays=list(arrays)))
        if not self._parts.replaces:
            return []
        for old in store.folder.glob("arrays-*"):
            if not old.name.startswith(stem):
                old.unlink()
        return [arrays] if arrays else []

    def finish(self, job: Job, store: Store, state: State, engine: Engine) -> dict[str, Any]:
        """Score the set from what is kept of it, and return the summary."""
        n = state.n_texts
        if n < self._parts.least:
            raise UsageError(f"{self._command.data} holds one text, and {self._name} is undefined for a set of one.")
        arrays = _stored_arrays(store, 1 if self._parts.replaces else None)
        result = self._pass.score(arrays, n, Place(engine, store.folder.resolve(), self._command.quiet))
        assert state.merged is not None
        signature = re.sub(r"\|set_size:[^|]*", f"|set_size:{n}", state.merged["signature"])
        merged = MergedResult()
        merged.add({"signature": signature, **result}, lambda *_: 1)
        counts = {"n_scores": 1, "n_texts": n, "n_bad": state.n_bad}
        return {**merged.result(), **counts, "command": state.command}


def _first_reference(command: Command, source: Source) -> Any:
    if command.reference_key is None:
        return None
    rows = Source(source.path, command.split).rows(0)
    references = (unit.reference for unit in Reader(command, TEXTS).units(rows, 0))
    reference = next((value for value in references if value is not None), None)
    if reference is None:
        raise UsageError(f"{source.path} has no row with {command.reference_key!r}.")
    return reference


def _stored_arrays(store: Store, n_last: int | None) -> list[StoredArrays]:
    """Find the arrays of the last batches, or of all."""
    folder = store.folder.resolve()
    first = 0 if n_last is None else len(store.parts) - n_last
    states = ((i, store.state(i)) for i in range(first, len(store.parts)))
    return [StoredArrays(folder / f"arrays-{i:08d}", state.arrays) for i, state in states if state.arrays]
