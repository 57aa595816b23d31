"""Choose a diverse subset of good texts in each group, for example from generated training data.

    text-metrics choose data.jsonl --text-key answer --group-key prompt --keep 4
    text-metrics choose data.jsonl --text-key answers --keep 4 --out chosen.jsonl
    text-metrics choose data.parquet --text-key text --one-set --share 0.1 --column quality=reward \
        --min-quality 0.3

Reads and writes the files of `text-metrics score`. If a row holds a group of texts as a list, the list is reduced to
the chosen texts. If a row holds one text, a group consists of the adjacent rows with the same --group-key, of
--set-size consecutive rows, or with --one-set of all rows; the rows of the chosen texts are written unchanged, in
order.

Texts are chosen one at a time: always the one that most increases the mean quality times the Vendi score of order 2 of
the texts chosen so far in its group. No guarantee is known for this rule: docs/choose.md has its distance from the
best subset. All texts of a group with fewer than --keep are chosen.

A summary goes to stdout and to <out>.summary.json: the numbers of groups, texts and chosen texts, the number of groups
that lack a row (n_incomplete), and the mean over groups of that score for the chosen texts (chosen_score) and for the
same number of texts drawn at random (random_score).

Finished batches of groups are saved in <out>.parts, two files each. After a kill, the same command continues from
there.
A row that cannot be read, or has no quality, is named on stderr, and set aside in <out>.bad.jsonl. Its group is chosen
from without it, and is counted in n_incomplete, as is a last group of --set-size that is too small; --drop-incomplete
leaves such groups out, and counts their other rows in n_dropped. Exit codes are those of `text-metrics score`; 3 also
if groups lack a row, without --drop-incomplete.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from text_metrics.commands.choose.command import ChooseCommand, parse_command
from text_metrics.commands.choose.greedy import choose, subset_score, unit_vectors
from text_metrics.commands.jobs.batches import Batch, batches, make_batch
from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.job_files import Files
from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.jobs.progress import NothingGoodError, end, show, watch
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State
from text_metrics.commands.jobs.tables import write_rows
from text_metrics.metrics._core.core_encoder import encode
from text_metrics.metrics._core.core_inputs import content_ranks
from text_metrics.metrics._core.core_results import SETS

_SEED = 0
# What the encoder reports of itself.
_SIGNED = ("model", "long_texts")


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
    vectors = unit_vectors(embeddings[rows])
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


def run(command: ChooseCommand) -> int:
    """Choose texts of the file; returns the exit code."""
    reading = command.reading
    source = Source(reading.data, reading.split)
    source.check_columns(reading.text_key, reading.group_key, *reading.columns.values())
    chooser = Chooser(command)
    decisive = command.decisive()
    files = Files(reading.output("chosen"), None, decisive, reading)
    summary = files.finished(reading.restart)
    if summary is not None:
        return show(summary)
    store, state = files.open(source.schema, reading, source)
    chosen_batches = map(chooser.work, read_groups(command, state.position))
    try:
        for batch in watch(reading, source, chosen_batches, "choose", state):
            rows = [row for chosen in batch.scores for row in chosen]
            state = state.after(batch, add_up(state.merged, batch.result))
            if rows:
                state = replace(state, n_rows=len(rows), types=store.rows.save(batch.end, rows))
            store.append(state)
    except NothingGoodError:
        store.remove()
        raise
    assert state.merged is not None
    write_rows(store, files.out)
    return files.finish(store, state, {**summary_of(state), "command": decisive})


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return end("text-metrics choose", lambda: run(parse_command(words, __doc__)))
