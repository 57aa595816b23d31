"""One Vendi score for a whole file, from a sum over its texts: the file is never in memory as a whole."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from text_metrics.commands.jobs.batches import Batch, Engine, Job, open_reader
from text_metrics.commands.jobs.grouping import Unit
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.score.scoring import Scorer, open_metric, score_batch
from text_metrics.commands.shared.files import written_whole
from text_metrics.commands.shared.merging import MergedResult, merge_signatures
from text_metrics.metrics._core.core_results import TEXTS, format_order


def open_sums(job: Job) -> Callable[[Any], Iterator[Batch]]:
    """Load the metric, once in a process; returns the function that sums up batches."""
    from text_metrics.metrics._core.core_encoder import embed_part
    from text_metrics.metrics._core.core_models import matrix_device
    from text_metrics.metrics._core.core_spectra import gram_sums

    scorer = open_metric(job.command)
    with as_usage(TypeError):
        settings = scorer.metric.settings.read(scorer.settings, scorer.metric.name)
        signature = scorer.metric.compute(predictions=[["a", "b"]], **scorer.settings)["signature"]
    read = open_reader(job)

    def add_up(units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        embeddings, _ = embed_part([text for unit in units for text in unit.texts], settings)
        sums = gram_sums(embeddings, device=matrix_device(settings.device))
        # Single texts have no scores.
        return [None] * len(units), {"sums": sums, "signature": signature}

    def work(item: Any) -> Iterator[Batch]:
        for units, done in read(item):
            # The rows need not be sent back.
            yield score_batch(add_up, units)._replace(units=[], scores=[], done=done)

    return work


class OneSet:
    """The task of a command with --one-set: a summary."""

    open_work: Callable[[Job], Callable[[Any], Iterator[Batch]]] = staticmethod(open_sums)
    schema = None  # No rows are written.

    def __init__(self, command: Command, scorer: Scorer, source: Source) -> None:
        if scorer.metric.name != "vendi_embed":
            raise UsageError(f"--one-set is for vendi_embed. The metric is {scorer.metric.name}.")
        self._command = command
        scorer.check_names()
        with as_usage(TypeError, prefix="--one-set: "):
            self._settings = scorer.metric.settings.read(scorer.settings, scorer.metric.name)
        if self._settings.kernel != "embedding":
            raise UsageError(f"--one-set is for kernel='embedding'. Got {self._settings.kernel!r}.")

    def job(self) -> Job:
        """Return what a process needs to take part."""
        return Job(self._command.for_other_folders(), TEXTS)

    def collect(self, batches: Iterator[Batch], store: Store, state: State) -> State:
        """Keep the sum as batches come; returns the state at the end, with the signature under `merged`."""
        total = self._stored(store)
        for batch in batches:
            merged = state.merged
            if batch.result is not None:
                total = batch.result["sums"] + (0.0 if total is None else total)
                signature = batch.result["signature"]
                with as_usage():
                    merged = {"signature": merge_signatures(merged["signature"], signature) if merged else signature}
            state = state.after(batch, merged)
            self._keep(total, store, state)
        return state

    def _keep(self, total: np.ndarray | None, store: Store, state: State) -> None:
        """Write the sum, then the state that goes with it."""
        name = f"sums-{len(store.parts):08d}.npy"
        if total is not None:
            with written_whole(store.folder / name) as temporary, temporary.open("wb") as file:
                # Into a file itself, numpy writes by `tofile`, whose errors do not say why.
                np.save(SimpleNamespace(write=file.write), total)
        store.append(replace(state, arrays=[] if total is None else ["sums"]))
        for old in store.folder.glob("sums-*"):
            if old.name != name:
                old.unlink()

    def _stored(self, store: Store) -> np.ndarray | None:
        """Read the sum of the batches so far; None if there is none."""
        if not store.parts or not store.state(-1).arrays:
            return None
        return np.load(store.folder / f"sums-{len(store.parts) - 1:08d}.npy")

    def finish(self, job: Job, store: Store, state: State, engine: Engine) -> dict[str, Any]:
        """Score the set from the sum, and return the summary."""
        from text_metrics.metrics._core.core_spectra import vendi_from_sums

        n, sums = state.n_texts, self._stored(store)
        assert state.merged is not None
        assert sums is not None
        scores = vendi_from_sums(sums, n, self._settings.orders).tolist()
        by_order = dict(zip(map(format_order, self._settings.orders), scores, strict=True))
        result = {"vendi_embed": scores[0], **({"by_order": by_order} if self._settings.has_orders else {})}
        signature = re.sub(r"\|set_size:[^|]*", f"|set_size:{n}", state.merged["signature"])
        merged = MergedResult()
        merged.add({"signature": signature, **result}, lambda *_: 1)
        counts = {"n_scores": 1, "n_texts": n, "n_bad": state.n_bad}
        return {**merged.result(), **counts, "command": state.command}
