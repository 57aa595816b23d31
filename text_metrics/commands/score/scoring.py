"""Batches of units scored by a metric."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from text_metrics import METRICS
from text_metrics.commands.jobs.batches import Batch, fail_unit, make_batch
from text_metrics.commands.jobs.grouping import Unit
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.shared.columns import (
    OF_COLUMN,
    columns_of,
    name_columns,
    to_arguments,
    why_no_setting,
)
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS, ItemResult, rows_of
from text_metrics.metrics._core.core_settings import Settings, suggest

# Settings that are options of the command.
_OPTIONS = ("set_size", "confidence")
# Optional imports of evaluate.
_OF_EVALUATORS = ("transformers", "scipy.stats")


class Scorer:
    """A loaded metric with its settings, and the columns with the values of its arguments.

    Attributes
    ----------
    columns : of all arguments
    results : its results with an entry for each item, besides `scores`, once the settings are checked
    bounds : range of the score, once they are
    """

    def __init__(self, name: str, settings: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> None:
        # Any other module of `evaluate` has a name with a slash, or a folder.
        if name not in METRICS and os.sep not in name and not os.path.isdir(name):
            raise UsageError(
                f"--metric {name} is not a metric{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}."
            )
        _import_evaluate()
        with as_usage():
            self.metric: Any = load_metric(name)
        if not hasattr(self.metric, "items"):
            raise UsageError(
                f"--metric {name} has no declared settings, as those of text_metrics have: use text-metrics compare."
            )
        self.settings = settings
        self.items: str = self.metric.items
        with as_usage():
            declared = columns_of(self.metric, columns or {})
        # The units of the interval in the summary are rows, or sets of rows.
        self.columns = tuple(
            column._replace(per_text=False) if self._is_of_command(column.argument) else column for column in declared
        )
        self._computed = [column for column in self.columns if not self._is_of_command(column.argument)]
        self.results: list[ItemResult] = []
        self.bounds: tuple[float, float] = self.metric.bounds

    def _is_of_command(self, argument: str) -> bool:
        """Whether an argument goes with an option of the command, such as `confidence_by` with --confidence."""
        return argument == "confidence_by"

    def check(self) -> None:
        """Check that the score of the whole follows from those of batches, before a file is read."""
        self.check_names()
        with as_usage(TypeError):
            settings = self._read()
            settings.check_batches()
        passed = set(settings.passed())
        self.results = [result for result in self.metric.item_results if passed.issuperset(result.needs)]
        self.bounds = self.metric.bounds_under(settings)

    def check_found(self) -> None:
        """Check that a model and a device can be found, before a file is read."""
        with as_usage(TypeError):
            self._read().check_found()

    def _read(self) -> Settings:
        of_columns = dict.fromkeys((column.argument for column in self._computed), OF_COLUMN)
        return self.metric.settings.read({**self.settings, **of_columns}, self.metric.name)

    def check_names(self) -> None:
        """Raise an error for settings that the metric lacks, that are options, or that a file cannot give."""
        name = self.metric.name
        declared = self.metric.settings.declared()
        for setting in self.settings:
            if setting in _OPTIONS:
                raise UsageError(f"--setting {setting}: pass --{setting.replace('_', '-')}.")
            if setting not in declared:
                known = [other for other in declared if self._why_invalid(other) is None and other not in _OPTIONS]
                hint = suggest(setting, [*known, *(f"--{option.replace('_', '-')}" for option in _OPTIONS)])
                raise UsageError(f"--setting {setting}: {name} has no such argument{hint} It has {', '.join(known)}.")
            if reason := self._why_invalid(setting):
                raise UsageError(f"--setting {setting} cannot be given to a command: {reason}.")
        for column in self.columns:
            if column.argument in self.settings:
                raise UsageError(f"{column.argument} is given twice: by --column and by --setting.")

    def _why_invalid(self, name: str) -> str | None:
        """Say why a setting cannot be given to the command; None if it can."""
        settings = self.metric.settings
        if reason := why_no_setting(settings, name, [column.argument for column in self.columns]):
            return reason
        in_columns = any(name in result.needs for result in self.metric.item_results)
        return "its results have no columns" if name == "details" and not in_columns else None

    def score(self, units: Sequence[Unit]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Score units together: for each its results by name, as lists where a row has several texts; and the result.

        Raises errors as the metric does; their messages also name the columns of the arguments that they name.
        """
        if self.items == TEXTS:
            predictions: list[Any] = [text for unit in units for text in unit.texts]
        else:
            predictions = [unit.texts for unit in units]
        given = to_arguments(self._computed, [unit.values for unit in units])
        if self.items == QUESTIONS:
            given["references"] = [unit.reference for unit in units]
        try:
            result = self.metric.compute(predictions=predictions, **given, **self.settings)
        except (TypeError, ValueError) as error:
            if not self._computed:
                raise
            raise ValueError(name_columns(str(error), self._computed)) from error
        names = ["scores", *(other.name for other in self.results)]
        return rows_of({name: self._by_unit(result[name], units) for name in names}), result

    def _by_unit(self, values: list[Any], units: Sequence[Unit]) -> list[Any]:
        if self.items != TEXTS:
            return values
        of_texts = iter(values)
        return [next(of_texts) if unit.is_single else [next(of_texts) for _ in unit.texts] for unit in units]


def score_batch(score: Callable[[Sequence[Unit]], tuple[list[Any], dict[str, Any]]], units: list[Unit]) -> Batch:
    """Score a batch by a function that returns the results of each unit, and the result of all.

    If that fails, score each unit alone to find those that cannot be scored.
    """
    failed: list[tuple[int, str, str]] = []
    good = [unit for unit in units if unit.rows]
    scores: list[Any] = []
    result = None
    if good:
        try:
            scores, result = score(good)
        except (TypeError, ValueError):
            scorable = []
            for unit in good:
                try:
                    score([unit])
                    scorable.append(unit)
                except (TypeError, ValueError) as error:
                    failed += fail_unit(unit, error)
            good = scorable
            if good:
                scores, result = score(good)
    return make_batch(units, good, scores, result, failed)


def _import_evaluate() -> None:
    """Import evaluate without what only its evaluators use, which would take three quarters of the time."""
    modules: dict[str, Any] = sys.modules
    hidden = () if "evaluate" in modules else [name for name in _OF_EVALUATORS if name not in modules]
    # To import them now raises ImportError, as if they were not installed.
    modules.update(dict.fromkeys(hidden))
    try:
        importlib.import_module("evaluate")
    finally:
        for name in hidden:
            del modules[name]


def open_metric(command: Command) -> Scorer:
    """Load the metric in the process that scores."""
    scorer = Scorer(command.metric, command.settings, command.columns)
    # A metric may have a bar of the texts of each call.
    if command.engine == "local" and not command.quiet and "progress" in scorer.metric.settings.declared():
        scorer.settings = {"progress": True, **scorer.settings}
    return scorer
