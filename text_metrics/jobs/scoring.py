"""Score units by a metric, and collect the facts about their scores that a summary needs."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from text_metrics.console import input_checked
from text_metrics.core_api import QUESTIONS, TEXTS, result_numbers, result_values, rows_of
from text_metrics.files.columns import ID, Column, columns_of, to_arguments
from text_metrics.files.sets import Reader, Unit
from text_metrics.gate import DRIFT, check_limits, ends
from text_metrics.jobs.job import Rows
from text_metrics.loading import load_metric
from text_metrics.options import Options
from text_metrics.questions.sets import by_set, score_sets
from text_metrics.texts import PROMPT


class RowScorer:
    """The metric of a command, its settings and the columns of its arguments; a copy loads it anew.

    keys : by name, the columns of the results that have an entry for each unit
    floats : the columns of numbers, which may all be None
    bounds : by name, the ranges of the results whose mean has an interval

    Raises a ValueError if the command does not fit the metric.
    """

    def __init__(self, options: Options) -> None:
        name = options.metric
        self.metric: Any = load_metric(name, from_hub=False)
        if not hasattr(self.metric, "items"):
            raise ValueError(f"--metric {name} does not declare its settings: use text-metrics compare.")
        self.options = options
        self.items = self.metric.items
        if options.reference_key is None and self.items == QUESTIONS:
            raise ValueError(f"--reference-key: {self.metric.name} needs people's answers.")
        strips_prompt = PROMPT in options.strip
        self.columns: list[Column] = columns_of(self.metric, options.columns, options.quality_scale, strips_prompt)
        declared = self.metric.settings.declared()
        for name, value in options.settings.items():
            if name in ("set_size", "confidence"):
                raise ValueError(f"--setting {name}: pass --{name.replace('_', '-')}.")
            if name in declared and declared[name].is_given(value):
                raise ValueError(f"--setting {name} is per {declared[name].given}: pass --column {name}=COLUMN.")
        names = [column.argument for column in self.columns if column.kind != ID]
        given = {name: ["a column"] for name in names if name in declared}
        with input_checked():
            self.settings: Any = self.metric.settings.read(options.settings | given, self.metric.name)
        if self.settings.pooled_by and not options.one_set:
            raise ValueError(f"{self.settings.pooled_by} pools all sets: score them in one call.")
        results = self.metric.results_under(self.settings)
        self.bounds = {result.name: result.bounds for result in results if result.bounds is not None}
        self.keys = {result.name: result.name for result in results} | {"scores": self.metric.name}
        self.floats = [self.keys[result.name] for result in results if not result.is_count and self.items != TEXTS]

    @property
    def has_sums(self) -> bool:
        """True if the score of a set follows from sums over its texts."""
        return hasattr(self.metric, "has_sums") and not self.columns and self.metric.has_sums(self.settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options,)

    def score(self, units: Sequence[Unit]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Score units together; returns the results of each unit by name, and the result of `compute`."""
        given = to_arguments(self.columns, [unit.given for unit in units], self.items == TEXTS)
        result = score_sets(self.metric, [unit.texts for unit in units], given | self.options.settings)
        by_name = {name: self._by_unit(result[name], units) for name in self.keys}
        return rows_of(by_name), result

    def _by_unit(self, values: list[Any], units: Sequence[Unit]) -> list[Any]:
        by_unit = by_set(self.metric, values, [unit.texts for unit in units])
        for i, unit in enumerate(units):
            if self.items == TEXTS and unit.rows[0].is_text and not unit.is_joined:
                by_unit[i] = by_unit[i][0]
        return by_unit


def check_numbers(scorer: RowScorer, numbers: Iterable[str]) -> None:
    """Raise a ValueError if a limit names neither one of these numbers nor one that every summary has."""
    options = scorer.options
    names = [*numbers, "n_scores", "n_texts", "n_rows", "n_bad", "n_bad_lines", "n_incomplete"]
    if options.id_key is not None:
        names += ["n_joined", "n_repeated"]
    if not options.one_set:
        names += ["n_units", "confidence"]
        for name in scorer.bounds:
            names += ends(None, None, 0, name.removesuffix("scores"))
    if options.against is not None:
        names += DRIFT
    check_limits(options, names)


def finish(scorer: RowScorer, units: list[Unit], scored: Any) -> tuple[dict[str, Any], Rows]:
    """Return the facts that the summary needs of the scores of `RowScorer.score`, and the rows with their results."""
    scores, result = scored
    numbers = dict(result_numbers(result))
    check_numbers(scorer, numbers)
    sums = {}
    for name in scorer.bounds:
        sums[name] = np.array([_sum(results[name]) for results in scores])
    is_one = scorer.options.one_set
    facts = {
        "signature": result["signature"],
        "numbers": numbers,
        "n_items": {name: scorer.metric.n_items(result, name) for name in numbers},
        "sums": sums,
        "labels": [unit.given["confidence_by"] for unit in units if "confidence_by" in unit.given],
        # A single set has no rows to write the lists to.
        "lists": result_lists(result) if is_one else {},
    }
    pairs = [] if is_one else zip(units, scores, strict=True)
    return facts, [_join(scorer, unit, results) for unit, results in pairs]


def result_lists(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lists of a result by their names, such as `scores` and `details`."""
    return {name: value for name, value in result_values(result) if isinstance(value, list)}


def sum_up(scorer: RowScorer, units: list[Unit]) -> np.ndarray:
    """Sum up the outer products of the embeddings of texts, so that a whole file is never in memory."""
    return scorer.metric.sum_up(list(chain.from_iterable(unit.texts for unit in units)), scorer.settings)


def finish_sums(scorer: RowScorer, units: list[Unit], sums: np.ndarray) -> tuple[dict[str, Any], Rows]:
    """Return the facts that the summary needs of sums, and no rows."""
    n_texts = sum(len(unit.texts) for unit in units)
    result = scorer.metric.score_sums(sums, n_texts, scorer.settings)
    check_numbers(scorer, dict(result_numbers(result)))
    return {"signature": result["signature"], "sums": sums, "n": n_texts}, []


def output_schema(scorer: RowScorer, schema: pa.Schema | None, reader: Reader) -> pa.Schema:
    """Return the known types of the columns of the output, for rows of a `schema` that a reader joins or leaves."""
    fields = list(schema or ())
    if reader.joins_rows:
        # The values of the rows of a set are a list.
        names = scorer.options.keys.names
        fields = [field if field.name in names else field.with_type(pa.list_(field.type)) for field in fields]
    # Their metadata describe the rows as they were.
    metadata = None if schema is None or reader.joins_rows else schema.metadata
    fields += [pa.field(name, pa.float64()) for name in scorer.floats]
    return pa.schema(fields, metadata)


def _join(scorer: RowScorer, unit: Unit, results: Mapping[str, Any]) -> dict[str, Any]:
    """Add the results of a unit to its row, or to the lists of its rows' values."""
    rows = [row.as_object() for row in unit.rows]
    row = rows[0]
    if unit.is_joined:
        lists: dict[str, Any] = {}
        for name in dict.fromkeys(chain.from_iterable(rows)):
            lists[name] = [values.get(name) for values in rows]
        ids = {name: row[name] for name in scorer.options.keys.names if name in lists}
        row = lists | ids
    for key in scorer.keys.values():
        if key in row:
            place = f"{scorer.options.data}, row {unit.rows[0].number}"
            raise ValueError(f"{place} has a column {key!r} already: rename it.")
    return row | {scorer.keys[name]: value for name, value in results.items()}


def _sum(values: Any) -> tuple[float, float]:
    """Add up the values of a unit that are not None, and count them."""
    values = values if isinstance(values, list) else [values]
    numbers = [value for value in values if value is not None]
    return float(sum(numbers)), float(len(numbers))
