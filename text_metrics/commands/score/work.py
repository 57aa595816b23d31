"""The work on the batches of a file: what each process does, and the engine of one process."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from text_metrics.commands.score.command import UsageError
from text_metrics.commands.score.rows import Row
from text_metrics.commands.score.units import Job, Unit, show_values
from text_metrics.commands.shared.metrics import load_metric
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS

# Settings that are options of the command.
_OPTIONS = ("set_size", "confidence")


class Scorer:
    """A loaded metric with its settings.

    Parameters
    ----------
    similarity_key : column of the similarities of a set: a matrix, or in a row of one text a row of the matrix
    """

    def __init__(self, name: str, settings: Mapping[str, Any], similarity_key: str | None = None) -> None:
        self.metric: Any = load_metric(name)
        self.settings, self._similarity_key = settings, similarity_key
        self.items: str = self.metric.items

    def check(self) -> None:
        """Check that the score of the whole follows from those of batches, before a file is read."""
        self.check_names()
        try:
            self.metric.settings.read(self.settings, self.metric.name).check_batches()
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None

    def check_names(self) -> None:
        """Refuse settings that the metric does not have, that are options, or that a file cannot give."""
        kind, name = self.metric.settings, self.metric.name
        declared = kind.declared()
        if self._similarity_key is not None and "similarity" not in declared:
            raise UsageError(f"--similarity-key: {name} takes no similarities.")
        for setting in self.settings:
            if setting in _OPTIONS:
                raise UsageError(f"--setting {setting}: pass --{setting.replace('_', '-')}.")
            if setting not in declared:
                known = [other for other in declared if self._refusal(other) is None and other not in _OPTIONS]
                raise UsageError(f"--setting {setting}: {name} has no such argument. It has {', '.join(known)}.")
            if reason := self._refusal(setting):
                raise UsageError(f"--setting {setting} cannot be given to a command: {reason}.")

    def _refusal(self, name: str) -> str | None:
        """Say why a setting cannot be given to the command; None if it can."""
        kind = self.metric.settings
        return kind.of_items(name) or ("it adds results for single texts" if kind.declared()[name].finer else None)

    def score(self, units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        """Score units together: the score of each, a list where a row has several texts; and the result."""
        if self.items == TEXTS:
            predictions: list[Any] = [text for unit in units for text in unit.texts]
        else:
            predictions = [unit.texts for unit in units]
        given = {"references": [unit.reference for unit in units]} if self.items == QUESTIONS else {}
        if self._similarity_key is not None:
            given["similarity"] = [_similarity(unit, self._similarity_key) for unit in units]
        result = self.metric.compute(predictions=predictions, **given, **self.settings)
        if self.items != TEXTS:
            return result["scores"], result
        scores = iter(result["scores"])
        by_unit = [[next(scores) for _ in unit.texts] for unit in units]
        return [own[0] if unit.is_single else own for own, unit in zip(by_unit, units, strict=True)], result


def _similarity(unit: Unit, key: str) -> Any:
    """Read the matrix of a set from its row, or from the rows of its texts."""
    # In CSV, a list is JSON.
    values = [json.loads(value) if isinstance(value := row.get(key), str) else value for row in unit.rows]
    is_matrix = len(values) == 1 and isinstance(values[0], list) and any(isinstance(line, list) for line in values[0])
    return values[0] if is_matrix else values


class Scores(Protocol):
    """Anything that scores units together."""

    def score(self, units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        """Return the score of each unit, and the result of all."""


class Batch(NamedTuple):
    """Units that were scored together.

    result : of all units; None where there is none that can be scored
    bad : what was set aside: the number of the row, the error, and the line
    end : how many rows of the file were read up to here
    n_texts : texts of the units
    done : how far the file was read, in the units of `Source.total`
    n_bad_first : how many rows are bad before the first good one, without those set aside with their set
    n_incomplete, n_dropped : sets that lack a row, and rows left out with them by --drop-incomplete
    """

    units: list[Unit]
    scores: list[Any]
    result: dict[str, Any] | None
    bad: list[tuple[int, str, str]]
    end: int
    n_texts: int
    done: int = 0
    n_bad_first: int = 0
    n_incomplete: int = 0
    n_dropped: int = 0


def make_batch(
    units: Sequence[Unit],
    good: list[Unit],
    scores: list[Any],
    result: dict[str, Any] | None,
    failed: Sequence[tuple[int, str, str]] = (),
) -> Batch:
    """Make a batch of units, of which the good ones are scored, and the rows of others failed."""
    bad = [*failed, *(_as_bad(row) for unit in units for row in unit.bad)]
    return Batch(
        good,
        scores,
        result,
        sorted([*bad, *(_as_bad(row) for unit in units for row in unit.spoiled)]),
        units[-1].end,
        n_texts=sum(len(unit.texts) for unit in good),
        n_bad_first=sum(not good or number < good[0].numbers[0] for number, _, _ in bad),
        n_incomplete=sum(unit.is_incomplete for unit in units),
        n_dropped=sum(unit.n_dropped for unit in units),
    )


def _as_bad(row: Row) -> tuple[int, str, str]:
    return row.number, row.error, row.raw


def fail_unit(unit: Unit, error: Exception) -> list[tuple[int, str, str]]:
    """Name all rows of a unit that cannot be scored."""
    numbers = unit.numbers
    rows = f"its set, rows {numbers[0]} to {numbers[-1]}, cannot be scored: " if len(numbers) > 1 else ""
    return [(number, f"{rows}{error}", show_values(row)) for number, row in zip(numbers, unit.rows, strict=True)]


def score_batch(scorer: Scores, units: list[Unit]) -> Batch:
    """Score a batch; if that fails, score each unit alone to find those that cannot be scored."""
    failed: list[tuple[int, str, str]] = []
    good = [unit for unit in units if unit.rows]
    scores: list[Any] = []
    result = None
    if good:
        try:
            scores, result = scorer.score(good)
        except (TypeError, ValueError):
            kept = []
            for unit in good:
                try:
                    scorer.score([unit])
                    kept.append(unit)
                except (TypeError, ValueError) as error:
                    failed += fail_unit(unit, error)
            good = kept
            if good:
                scores, result = scorer.score(good)
    return make_batch(units, good, scores, result, failed)


def open_scorer(job: Job) -> Callable[[tuple[list[Unit], int]], Batch]:
    """Load the metric, once in a process; returns the function that scores a batch."""
    scorer = Scorer(job.command.metric, job.command.settings, job.command.similarity_key)

    def work(item: tuple[list[Unit], int]) -> Batch:
        units, done = item
        return score_batch(scorer, units)._replace(done=done)

    return work


class Engine(Protocol):
    """Where work is done: maps a function over items, and returns the results in the order of the items."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: Callable[[], Callable[[Any], Any]]) -> Iterator[Any]:
        """Map over the items the function that `open_work` returns; each process calls that once."""

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays in a form that can be sent to any process."""


class OneProcess:
    """The engine of this process alone."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: Callable[[], Callable[[Any], Any]]) -> Iterator[Any]:
        """Map over the items in this process."""
        yield from map(open_work(), items())

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays themselves."""
        return blocks
