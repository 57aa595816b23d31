"""Batches of units scored by a metric."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from text_metrics import METRICS
from text_metrics.commands.jobs.batches import Batch, Job, fail_unit, make_batch
from text_metrics.commands.jobs.grouping import Unit
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.shared.metrics import load_metric
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS
from text_metrics.metrics._core.core_settings import suggest

# Settings that are options of the command.
_OPTIONS = ("set_size", "confidence")


class Scorer:
    """A loaded metric with its settings.

    Parameters
    ----------
    similarity_key : column of the similarities of a set: a matrix, or in a row of one text a row of the matrix
    """

    def __init__(self, name: str, settings: Mapping[str, Any], similarity_key: str | None = None) -> None:
        # Any other module of `evaluate` has a name with a slash, or a folder.
        if name not in METRICS and os.sep not in name and not os.path.isdir(name):
            raise UsageError(
                f"--metric {name} is not a metric{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}."
            )
        try:
            self.metric: Any = load_metric(name)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not hasattr(self.metric, "items"):
            raise UsageError(
                f"--metric {name} has no declared settings, as those of text_metrics have: use text-metrics compare."
            )
        self.settings, self._similarity_key = settings, similarity_key
        self.items: str = self.metric.items

    def show_progress(self) -> None:
        """Show a bar of the texts of each call, by a metric that has one."""
        if "progress" in self.metric.settings.declared():
            self.settings = {"progress": True, **self.settings}

    def check(self) -> None:
        """Check that the score of the whole follows from those of batches, before a file is read."""
        self.check_names()
        try:
            self.metric.settings.read(self.settings, self.metric.name).check_batches()
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None

    def check_found(self) -> None:
        """Check that a model and a device can be found, before a file is read."""
        try:
            self.metric.settings.read(self.settings, self.metric.name).check_found()
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None

    def check_names(self) -> None:
        """Raise an error for settings that the metric lacks, that are options, or that a file cannot give."""
        kind, name = self.metric.settings, self.metric.name
        declared = kind.declared()
        if self._similarity_key is not None and "similarity" not in declared:
            raise UsageError(f"--similarity-key: {name} takes no similarities.")
        for setting in self.settings:
            if setting in _OPTIONS:
                raise UsageError(f"--setting {setting}: pass --{setting.replace('_', '-')}.")
            if setting not in declared:
                known = [other for other in declared if self._why_invalid(other) is None and other not in _OPTIONS]
                hint = suggest(setting, [*known, *(f"--{option.replace('_', '-')}" for option in _OPTIONS)])
                raise UsageError(f"--setting {setting}: {name} has no such argument{hint} It has {', '.join(known)}.")
            if reason := self._why_invalid(setting):
                raise UsageError(f"--setting {setting} cannot be given to a command: {reason}.")

    def _why_invalid(self, name: str) -> str | None:
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
        return [
            unit_scores[0] if unit.is_single else unit_scores for unit_scores, unit in zip(by_unit, units, strict=True)
        ], result


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
            scorable = []
            for unit in good:
                try:
                    scorer.score([unit])
                    scorable.append(unit)
                except (TypeError, ValueError) as error:
                    failed += fail_unit(unit, error)
            good = scorable
            if good:
                scores, result = scorer.score(good)
    return make_batch(units, good, scores, result, failed)


def open_metric(command: Command) -> Scorer:
    """Load the metric in the process that scores."""
    scorer = Scorer(command.metric, command.settings, command.similarity_key)
    if command.engine == "local" and not command.quiet:
        scorer.show_progress()
    return scorer


def open_scorer(job: Job) -> Callable[[tuple[list[Unit], int]], Batch]:
    """Load the metric, once in a process; returns the function that scores a batch."""
    scorer = open_metric(job.command)

    def work(item: tuple[list[Unit], int]) -> Batch:
        units, done = item
        return score_batch(scorer, units)._replace(done=done)

    return work
