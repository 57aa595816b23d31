"""Units scored by a metric, and what a summary needs of their scores."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from text_metrics import METRICS
from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.job import Done, Step
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.shared.columns import columns_of, name_columns, to_arguments
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_results import QUESTIONS, TEXTS, ItemResult, result_numbers, rows_of
from text_metrics.metrics._core.core_settings import CALL, Settings, suggest

# Settings that are options of the command.
_OPTIONS = ("set_size", "confidence")
# Optional imports of evaluate.
_OF_EVALUATORS = ("transformers", "scipy.stats")


class _OfColumn:
    """The value of an argument that a column gives, before any row is read."""

    def __repr__(self) -> str:
        return "a column"


class RowScorer:
    """The metric of a command, loaded, with its settings and the columns of its arguments.

    Attributes
    ----------
    keys : the names of the columns of its results that have an entry for each unit
    results : those whose mean has an interval
    """

    def __init__(self, command: Command) -> None:
        name = command.metric
        # Any other module of `evaluate` has a name with a slash, or a folder.
        if name not in METRICS and os.sep not in name and not os.path.isdir(name):
            raise UsageError(
                f"--metric {name} is not a metric{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}."
            )
        _import_evaluate()
        with as_usage():
            self.metric: Any = load_metric(name)
        if not hasattr(self.metric, "items"):
            raise UsageError(f"--metric {name} does not declare its settings: use text-metrics compare.")
        self._command, self._given, self.items = command, dict(command.settings), self.metric.items
        if (command.reference_key is None) == (self.items == QUESTIONS):
            missing, superfluous = "needs the column of people's answers", "takes no references"
            problem = missing if self.items == QUESTIONS else superfluous
            raise UsageError(f"--reference-key: {self.metric.name} {problem}.")
        with as_usage(TypeError):
            columns = columns_of(self.metric, command.columns)
            # The units of the interval in the summary are rows, or sets of rows.
            self.columns = tuple(
                column._replace(per_text=False) if column.argument == "confidence_by" else column for column in columns
            )
            self._computed = [column for column in self.columns if column.argument != "confidence_by"]
            self.settings: Any = self._read_settings()
            if not command.one_set:
                self.settings.check_batches()
        passed = set(self.settings.passed())
        results = [result for result in self.metric.item_results if passed.issuperset(result.needs)]
        results = [ItemResult("scores", bounds=self.metric.bounds_under(self.settings)), *results]
        self.results = [result for result in results if result.bounds is not None]
        self._items = {result.name: result for result in results}
        prefix = f"{command.score_key}_" if command.score_key else ""
        self.keys = {name: f"{prefix}{name}" for name in self._items}
        self.keys["scores"] = command.score_key or self.metric.name

    def _read_settings(self) -> Settings:
        """Check the settings of the command, before a file is read."""
        declared = self.metric.settings.declared()
        for setting in self._given:
            if setting in _OPTIONS:
                raise ValueError(f"--setting {setting}: pass --{setting.replace('_', '-')}.")
            if setting == "details":
                raise ValueError(f"--setting {setting} cannot be given to a command: its results have no columns.")
            if setting in declared and declared[setting].given != CALL:
                raise ValueError(
                    f"--setting {setting} cannot be given to a command: it has a value for each "
                    f"{declared[setting].given}: pass --column {setting}=COLUMN."
                )
        of_columns = dict.fromkeys((column.argument for column in self._computed), _OfColumn())
        return self.metric.settings.read({**self._given, **of_columns}, self.metric.name)

    def reader(self) -> Reader:
        """Return what joins rows to units."""
        return Reader(self._command, self.items, self.columns)

    def schema(self, source: Source) -> pa.Schema | None:
        """Return the schema of a table with its results; None for files whose columns have no types."""
        command, schema = self._command, source.schema
        if schema is None or command.one_set:
            return None
        for key in self.keys.values():
            if key in schema.names:
                raise UsageError(f"{command.data} has a column {key!r} already: pass --score-key.")
        scalars = [command.group_key] if command.is_grouped else schema.names
        fields = [field if field.name in scalars else field.with_type(pa.list_(field.type)) for field in schema]
        kind = schema.field(command.text_key).type
        is_list = command.is_grouped or not (pa.types.is_string(kind) or pa.types.is_large_string(kind))
        for name, result in self._items.items():
            kind = pa.int64() if result.is_count else pa.float64()
            several = result.of_texts or (self.items == TEXTS and is_list)
            fields.append(pa.field(self.keys[name], pa.list_(kind) if several else kind))
        return pa.schema(fields)

    def score(self, units: Sequence[Unit]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Score units together: for each its results by name, as lists where a row has several texts; and the result.

        Raises errors as the metric does; their messages also name the columns of the arguments that they name.
        """
        predictions: list[Any] = [unit.texts for unit in units]
        if self.items == TEXTS:
            predictions = [text for texts in predictions for text in texts]
        given = to_arguments(self._computed, [unit.values for unit in units])
        if self.items == QUESTIONS:
            given["references"] = [unit.values["references"] for unit in units]
        # A metric may have a bar of the texts of each call.
        if self._command.engine == "local" and "progress" in self.settings.declared():
            given["progress"] = not self._command.quiet
        try:
            result = self.metric.compute(predictions=predictions, **given, **self._given)
        except (TypeError, ValueError) as error:
            raise ValueError(name_columns(str(error), self._computed)) from error
        return rows_of({name: self._by_unit(result[name], units) for name in self.keys}), result

    def _by_unit(self, values: list[Any], units: Sequence[Unit]) -> list[Any]:
        if self.items != TEXTS:
            return values
        of_texts = iter(values)
        return [next(of_texts) if unit.is_single else [next(of_texts) for _ in unit.texts] for unit in units]


def open_scores(command: Command) -> Step:
    """Load the metric; returns the function that scores units, and adds the results to their rows."""
    scorer = RowScorer(command)

    def step(units: list[Unit]) -> Done:
        units, done, failed = score_those_that_can(scorer.score, units)
        if done is None:
            return Done(None, [], failed)
        scores, result = done
        numbers = dict(result_numbers(result))
        facts = {
            "numbers": {**numbers, "signature": result["signature"]},
            "n_items": {name: scorer.metric.n_items(result, name) for name in numbers},
            "sums": {of.name: [_sum(results[of.name]) for results in scores] for of in scorer.results},
            "labels": [unit.values["confidence_by"] for unit in units] if "confidence_by" in command.columns else [],
        }
        rows = (
            [] if command.one_set else [_join(command, scorer.keys, *pair) for pair in zip(units, scores, strict=True)]
        )
        return Done(facts, rows, failed)

    return step


def score_those_that_can(
    score: Callable[[list[Unit]], Any], units: list[Unit]
) -> tuple[list[Unit], Any, list[tuple[Unit, str]]]:
    """Score units together; if that fails, each alone first, to find those that cannot be scored.

    Returns the units that are scored, what `score` returns for them, None without any, and those that fail, with why.
    """
    try:
        return units, score(units), []
    except (TypeError, ValueError):
        good: list[Unit] = []
        failed: list[tuple[Unit, str]] = []
    for unit in units:
        try:
            score([unit])
            good.append(unit)
        except (TypeError, ValueError) as error:
            failed.append((unit, str(error)))
    return good, score(good) if good else None, failed


def _join(command: Command, keys: Mapping[str, str], unit: Unit, results: Mapping[str, Any]) -> dict[str, Any]:
    """Add the results of a unit to its row, or to the lists of its rows' values."""
    row = unit.rows[0]
    if command.is_grouped:
        names = dict.fromkeys(name for values in unit.rows for name in values)
        row = {
            name: row[name] if name == command.group_key else [values.get(name) for values in unit.rows]
            for name in names
        }
    for key in keys.values():
        if key in row:
            raise UsageError(f"row {unit.numbers[0]} has a column {key!r} already: pass --score-key.")
    return {**row, **{keys[name]: value for name, value in results.items()}}


def _sum(values: Any) -> tuple[float, int]:
    """Add up the values of a unit that are not None, and count them."""
    numbers = [value for value in (values if isinstance(values, list) else [values]) if value is not None]
    return sum(numbers), len(numbers)


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
