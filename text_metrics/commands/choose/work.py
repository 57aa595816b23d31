"""The work of text-metrics choose on the groups of a file: read, embedded, and chosen from, batch by batch."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from text_metrics.commands.choose.command import ChooseCommand
from text_metrics.commands.choose.greedy import choose, subset_score
from text_metrics.commands.score.command import UsageError
from text_metrics.commands.score.rows import SHOWN, Source
from text_metrics.commands.score.units import Reader, Unit, batches
from text_metrics.commands.score.work import Batch, count_bad_first
from text_metrics.metrics._core.core_encoder import encode
from text_metrics.metrics._core.core_inputs import content_ranks
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import SETS

_SEED = 0
# What the encoder reports of itself.
_SIGNED = ("model", "precision", "long_texts")


def read_groups(command: ChooseCommand, start: int) -> Iterator[tuple[list[Unit], int]]:
    """Read the file from row `start` on: groups that make a batch, and how far the file was read."""
    source = Source(command.reading.data, command.reading.split)
    reader = Reader(command.reading, SETS)
    reader.grouped = reader.grouped or command.one_set
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
        bad = [(row.number, row.error, row.raw) for unit in units for row in unit.bad]
        good, qualities = [], []
        for unit in units:
            if not unit.rows:
                continue
            try:
                qualities.append(self._quality(unit))
                good.append(unit)
            except ValueError as error:
                bad.append((unit.number, str(error), json.dumps(unit.texts)[:SHOWN]))
        n_texts = sum(len(unit.texts) for unit in units)
        n_bad_first = count_bad_first(bad, good)
        if not good:
            return Batch([], [], None, sorted(bad), units[-1].end, n_texts, done, n_bad_first)
        rows, result = self._choose(good, qualities)
        return Batch(good, rows, result, sorted(bad), units[-1].end, n_texts, done, n_bad_first)

    def _quality(self, unit: Unit) -> np.ndarray:
        """Read the quality of each text of a group."""
        key = self._command.quality_key
        if key is None:
            return np.ones(len(unit.texts))
        values: Any = [row.get(key) for row in unit.rows]
        if not self._grouped:
            values = values[0]
            if isinstance(values, str):
                values = json.loads(values)
            if not isinstance(values, list) or len(values) != len(unit.texts):
                raise ValueError(f"{key!r} must be a list of {len(unit.texts)} numbers, one for each text")
        numbers = []
        for value in values:
            try:
                number = float("nan") if isinstance(value, bool) or value is None else float(value)
            except (TypeError, ValueError):
                number = float("nan")
            if not 0 <= number <= 1:
                raise ValueError(f"{key!r} must hold numbers in [0, 1]. Got {describe(value)}")
            numbers.append(number)
        return np.array(numbers)

    def _choose(self, units: list[Unit], qualities: list[np.ndarray]) -> tuple[list[list[dict]], dict[str, Any]]:
        """Choose texts of groups: the rows to write of each, and sums for the summary."""
        least = self._command.min_quality or 0.0
        candidates = [np.flatnonzero(quality >= least) for quality in qualities]
        texts = [unit.texts[i] for unit, own in zip(units, candidates, strict=True) for i in own]
        sizes = np.array([len(own) for own in candidates])
        keep = np.array(
            [min(self._command.wanted(len(quality)), n) for quality, n in zip(qualities, sizes, strict=True)]
        )
        quality = np.concatenate([values[own] for values, own in zip(qualities, candidates, strict=True)])
        sums = {"n_groups": len(units), "n_texts": sum(map(len, qualities)), "n_chosen": int(keep.sum())}
        if not texts:
            return [self._rows(unit, np.empty(0, int)) for unit in units], {**sums, "chosen": 0.0, "random": 0.0}
        embeddings, signed = encode(texts, self._command.encoder)
        chosen = choose(embeddings, quality, sizes, keep, content_ranks(texts))
        starts = np.cumsum(sizes) - sizes
        scores = np.zeros(2)
        for start, size, places in zip(starts, sizes, chosen, strict=True):
            if len(places):
                drawn = np.random.default_rng((_SEED, size, len(places))).choice(size, len(places), replace=False)
                scores += [_score(embeddings, quality, start + own) for own in (places, drawn)]
        rows = [self._rows(unit, own[places]) for unit, own, places in zip(units, candidates, chosen, strict=True)]
        return rows, {**sums, "chosen": float(scores[0]), "random": float(scores[1]), **signed}

    def _rows(self, unit: Unit, places: np.ndarray) -> list[dict[str, Any]]:
        """Keep the chosen texts of a group, in their order: rows of the file, or a row with shorter lists."""
        kept = np.sort(places).tolist()
        if self._grouped:
            return [unit.rows[i] for i in kept]
        row = {**unit.rows[0], self._command.reading.text_key: [unit.texts[i] for i in kept]}
        key = self._command.quality_key
        if key is not None:
            values = row[key]
            values = json.loads(values) if isinstance(values, str) else values
            row[key] = [values[i] for i in kept]
        return [row]


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
    found = {**merged, **result}
    for name in ("n_groups", "n_texts", "n_chosen", "chosen", "random"):
        found[name] = merged[name] + result[name]
    return found


def summary_of(merged: Mapping[str, Any]) -> dict[str, Any]:
    """Give the counts, the mean scores over groups, and the encoder."""
    n = merged["n_groups"]
    scores = {f"{name}_score": merged[name] / n for name in ("chosen", "random")}
    counts = {name: merged[name] for name in ("n_groups", "n_texts", "n_chosen")}
    return {**counts, **scores, **{name: merged[name] for name in _SIGNED if name in merged}}
