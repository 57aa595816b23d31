"""The work of text-metrics choose on the groups of a file: read, embedded, and chosen from, batch by batch."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from text_metrics.commands.choose.command import ChooseCommand
from text_metrics.commands.choose.greedy import choose, subset_score
from text_metrics.commands.jobs.batches import Batch, batches, make_batch
from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State
from text_metrics.metrics._core.core_encoder import encode
from text_metrics.metrics._core.core_inputs import content_ranks
from text_metrics.metrics._core.core_results import SETS

_SEED = 0
# What the encoder reports of itself.
_SIGNED = ("model", "precision", "long_texts")


def read_groups(command: ChooseCommand, start: int) -> Iterator[tuple[list[Unit], int]]:
    """Read the file from row `start` on: groups that make a batch, and how far the file was read."""
    source = Source(command.reading.data, command.reading.split)
    columns = [] if command.quality is None else [command.quality]
    options = {"one_group": command.one_set, "keeps_incomplete": True, "one_text": True}
    reader = Reader(command.reading, SETS, columns, **options)
    for units in batches(reader.units(source.rows(start), start), command.reading.batch_size):
        yield units, source.done


class Chooser:
    """Chooses texts of groups."""

    def __init__(self, command: ChooseCommand) -> None:
        self._command = command
        self._grouped = command.one_set or command.reading.group_key is not None or command.reading.set_size is not None

    def work(self, item: tuple[list[Unit], int]) -> Batch:
        """Choose texts of a batch of groups: `scores` are the rows to write of each group."""
        units, done = item
        good = [unit for unit in units if unit.rows]
        rows, result = self._choose(good, list(map(_quality, good))) if good else ([], None)
        return make_batch(units, good, rows, result)._replace(done=done)

    def _choose(self, units: list[Unit], qualities: list[np.ndarray]) -> tuple[list[list[dict]], dict[str, Any]]:
        """Choose texts of groups: the rows to write of each, and sums for the summary."""
        least = self._command.min_quality or 0.0
        candidates = [np.flatnonzero(quality >= least) for quality in qualities]
        texts = [unit.texts[i] for unit, eligible in zip(units, candidates, strict=True) for i in eligible]
        sizes = np.array([len(eligible) for eligible in candidates])
        keep = np.array(
            [min(self._command.wanted(len(quality)), n) for quality, n in zip(qualities, sizes, strict=True)]
        )
        quality = np.concatenate([values[eligible] for values, eligible in zip(qualities, candidates, strict=True)])
        sums = {"n_groups": len(units), "n_texts": sum(map(len, qualities)), "n_chosen": int(keep.sum())}
        if not texts:
            return [self._rows(unit, np.empty(0, int)) for unit in units], {**sums, "chosen": 0.0, "random": 0.0}
        with as_usage(TypeError):
            embeddings, signed = encode(texts, self._command.encoder)
        chosen = choose(embeddings, quality, sizes, keep, content_ranks(texts))
        starts = np.cumsum(sizes) - sizes
        scores = np.zeros(2)
        for start, size, places in zip(starts, sizes, chosen, strict=True):
            if len(places):
                drawn = np.random.default_rng((_SEED, size, len(places))).choice(size, len(places), replace=False)
                scores += [_score(embeddings, quality, start + subset) for subset in (places, drawn)]
        rows = [
            self._rows(unit, eligible[places]) for unit, eligible, places in zip(units, candidates, chosen, strict=True)
        ]
        return rows, {**sums, "chosen": float(scores[0]), "random": float(scores[1]), **signed}

    def _rows(self, unit: Unit, places: np.ndarray) -> list[dict[str, Any]]:
        """Keep the chosen texts of a group, in their order: rows of the file, or a row with shorter lists."""
        order = np.sort(places).tolist()
        if self._grouped:
            return [unit.rows[i] for i in order]
        row = {**unit.rows[0], self._command.reading.text_key: [unit.texts[i] for i in order]}
        if self._command.quality is not None:
            row[self._command.quality.name] = [unit.values["quality"][i] for i in order]
        return [row]


def _quality(unit: Unit) -> np.ndarray:
    """Return the quality of each text of a group, 1 without a column of them."""
    return np.array(unit.values.get("quality", [1.0] * len(unit.texts)), dtype=np.float64)


def _score(embeddings: np.ndarray, quality: np.ndarray, rows: np.ndarray) -> float:
    vectors = embeddings[rows].astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return subset_score(vectors @ vectors.T, quality[rows])


def add_up(merged: Mapping[str, Any] | None, result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Add the sums of a batch to those of the batches before."""
    if merged is None or result is None:
        return dict(result or merged or {}) or None
    for name in _SIGNED:
        if merged.get(name, result.get(name)) != result.get(name, merged.get(name)):
            raise UsageError(f"{name} changed since the job was begun, from {merged[name]} to {result[name]}.")
    total = {**merged, **result}
    for name in ("n_groups", "n_texts", "n_chosen", "chosen", "random"):
        total[name] = merged[name] + result[name]
    return total


def summary_of(state: State) -> dict[str, Any]:
    """Give the counts, the mean scores over groups, and the encoder."""
    merged = state.merged
    assert merged is not None
    scores = {f"{name}_score": merged[name] / merged["n_groups"] for name in ("chosen", "random")}
    counts = {name: merged[name] for name in ("n_groups", "n_texts", "n_chosen")}
    left = {name: getattr(state, name) for name in ("n_bad", "n_incomplete", "n_dropped")}
    return {**counts, **left, **scores, **{name: merged[name] for name in _SIGNED if name in merged}}
