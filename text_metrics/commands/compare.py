"""Compare two systems item by item by any metric, and test whether their mean difference is chance.

Prints both means and their difference with confidence intervals, the p-value of a t test that is corrected for
skewness, and how many items this test needs. An item is a set of texts, or a text. docs/compare.md says more.

    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --text-key outputs --id-key prompt --setting q=0.5
    text-metrics compare a.jsonl b.jsonl --metric gruen --text-key output --id-key id --group-key prompt
    text-metrics compare a.jsonl b.jsonl --metric probeval --text-key answers --reference-key people --by-line
"""

import argparse
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics.commands.shared.columns import (
    Column,
    add_columns,
    columns_of,
    parse_list,
    parse_pairs,
    to_arguments,
)
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import count, estimate, number, with_p
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.rows import missing, read_rows
from text_metrics.commands.shared.settings import add_confidence, add_settings, load_metric, parse_settings
from text_metrics.commands.shared.statistics import TIE, paired_test
from text_metrics.metrics._core.core_inputs import mean_by_set
from text_metrics.metrics._core.core_numbers import parse_level
from text_metrics.metrics._core.core_results import (
    QUESTIONS,
    SETS,
    TEXTS,
    UNBOUNDED,
    mean_estimate,
    parse_confidence_by,
)

# A row with its file and line, for errors.
Row = tuple[str, Any]


def read_values(rows: Sequence[Row], key: str | None) -> list[Any]:
    """Return the values of a key; the rows themselves without one."""
    if key is None:
        return [value for _, value in rows]
    for where, value in rows:
        if not isinstance(value, dict):
            raise ValueError(f"{where} must be an object with {key!r}.")
        if value.get(key) is None:
            raise ValueError(f"{where} {missing(key, value)}.")
    return [value[key] for _, value in rows]


def read_columns(rows: Sequence[Row], items: Sequence[Any], columns: Sequence[Column]) -> dict[str, Any]:
    """Read the arguments that columns give for the items of rows; raises a ValueError that names an invalid line."""
    values = []
    for (where, row), item in zip(rows, items, strict=True):
        if columns and not isinstance(item, (str, list)):
            raise ValueError(f"{where}: --column requires a text or a list of texts. Got {item!r:.80}.")
        n_texts = len(item) if isinstance(item, list) else None
        try:
            values.append({column.argument: column.read(row, n_texts) for column in columns})
        except ValueError as error:
            raise ValueError(f"{where}: {error}.") from None
    return to_arguments(columns, values)


def read_names(rows: Sequence[Row], key: str) -> list[str | int]:
    """Return the values of a key, which must be strings or integers."""
    names = read_values(rows, key)
    for (where, _), name in zip(rows, names, strict=True):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise ValueError(f"{where}: {key} must be a string or an integer. Got {name!r:.80}.")
    return names


def pair_rows(first: Sequence[Row], second: Sequence[Row], key: str | None) -> tuple[dict[str | int, Row], list[Row]]:
    """Pair rows by an id, or by line; returns those of the first file by id or number, and their partners.

    Raises a ValueError if an id is invalid or appears twice, or for a row without a partner.
    """
    sides: list[dict[str | int, Row]] = []
    for rows in (first, second):
        by_name: dict[str | int, Row] = {}
        for name, row in zip(read_names(rows, key) if key else range(len(rows)), rows, strict=True):
            if name in by_name:
                raise ValueError(f"{row[0]}: {key} {name!r} appears twice, first in {by_name[name][0]}.")
            by_name[name] = row
        sides.append(by_name)
    for name, (where, _) in (sides[0] | sides[1]).items():
        if name not in sides[0] or name not in sides[1]:
            what = f"{key} {name!r}" if key else "this line"
            end = (second if name in sides[0] else first)[-1][0]
            raise ValueError(f"{where}: {what} is in only one of the files; the other one ends at {end}.")
    return sides[0], [sides[1][name] for name in sides[0]]


def score(metric: Any, items: list[Any], settings: dict[str, Any], name: str) -> tuple[np.ndarray, str, float]:
    """Score the items of a file; for a metric of texts, the score of a list is the mean over its texts.

    Returns the scores, NaN for an item without one, their signature, and the mean number of texts of an item.
    """
    sizes = np.array([len(item) if isinstance(item, list) else math.inf for item in items])
    are_lists = getattr(metric, "items", None) == TEXTS and np.isfinite(sizes).all() and sizes.all()
    texts = [text for item in items for text in item] if are_lists else items
    result = metric.compute(predictions=texts, **settings)
    values = result.get(name)
    if not isinstance(values, list) or len(values) != len(texts):
        got = f"{len(values)} of them" if isinstance(values, list) else "none"
        raise ValueError(f"{metric.name} must give {name!r}, one for each of the {len(texts)} items. Got {got}.")
    scores = np.array(values, dtype=np.float64)
    scores = mean_by_set(scores, sizes.astype(np.int64)) if are_lists else scores
    return scores, str(result.get("signature", metric.name)), float(sizes.mean())


def compare(first: np.ndarray, second: np.ndarray, confidence: float, units: np.ndarray) -> dict[str, Any]:
    """Test the mean difference of paired scores of shape (n,); returns what is valid JSON.

    Differences of less than `TIE` are none, of items and of means. `smallest_difference` is what the test finds with a
    probability of 80 %, and `n_needed` the number of units with which it finds the observed difference so often.
    `units`, int of shape (n,), are equal for items that are not independent.
    """
    differences = first - second
    test = paired_test(first, second, confidence, units)
    mean, smallest = test["difference"], test["smallest_difference"]
    is_tie = smallest is None or abs(mean) < TIE
    return {
        "n": len(differences),
        "n_units": test["n_units"],
        "confidence": confidence,
        "difference": {"mean": mean, "interval": test["interval"]},
        "p": test["p"],
        "smallest_difference": smallest,
        "n_needed": None if is_tie else math.ceil(test["n_units"] * (smallest / mean) ** 2),
        "a_higher": int((differences >= TIE).sum()),
        "b_higher": int((differences <= -TIE).sum()),
        "equal": int((np.abs(differences) < TIE).sum()),
    }


def differing(first: str, second: str) -> list[str]:
    """List the entries of two signatures that differ, as in `q: 1 and 0.5`."""
    sides = [dict(entry.partition(":")[::2] for entry in signature.split("|")) for signature in (first, second)]
    names = [name for name in sides[0] | sides[1] if sides[0].get(name) != sides[1].get(name)]
    return [f"{name}: {' and '.join(side.get(name, 'none') for side in sides)}" for name in names]


def show(result: dict[str, Any]) -> str:
    """Format a comparison as text."""
    left_out = f" ({result['left_out']:,} without a score)" if result["left_out"] else ""
    lines = [f"{result['metric']}, {result['result']} of {count(result['n'], 'item')}{left_out}"]
    titles = (f"A: {result['files'][0]}", f"B: {result['files'][1]}", "A - B")
    for name, title in zip(("a", "b", "difference"), titles, strict=True):
        lines.append(f"  {title:<40} {estimate(result[name]['mean'], result[name]['interval'], 4)}")
    units = count(result["n_units"], "item" if result["n_units"] == result["n"] else "group")
    lines += [
        f"  A is higher {result['a_higher']} times, B {result['b_higher']} times, equal {result['equal']} times",
        f"  {with_p(result['p'])} (t test of the mean difference, corrected for skewness)",
        f"  intervals: level {result['confidence']:g}, over {units}",
    ]
    if result["smallest_difference"] is not None:
        lines.append(f"  {units} show a difference of {number(result['smallest_difference'], 4)} or more (power 80 %)")
    if (result["n_needed"] or 0) > result["n_units"]:
        lines[-1] += f"; this one needs about {result['n_needed']:,}"
    if differ := differing(*result["signatures"]):
        lines.append(f"  the signatures differ in {'; '.join(differ)}")
    return "\n".join([*lines, *(f"  {signature}" for signature in dict.fromkeys(result["signatures"]))])


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("a", type=Path, help="of any format that text-metrics score reads")
    parser.add_argument("b", type=Path, help="the same, of the other system")
    parser.add_argument("--metric", required=True, help="name of a metric, or path of a module")
    parser.add_argument("--text-key", help="key of the item, where lines are objects")
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", help="key that pairs items")
    pairing.add_argument("--by-line", action="store_true", help="equal lines belong together")
    parser.add_argument("--group-key", help="key of items that belong together, such as the prompt")
    parser.add_argument("--reference-key", help="key of people's answers, for probeval")
    add_columns(parser)
    add_settings(parser)
    parser.add_argument("--result", default="scores", metavar="NAME", help="such as quality_scores")
    add_confidence(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
    return parser.parse_args()


@command
def main() -> int:
    """Run the command."""
    arguments = parse_arguments()
    confidence, name = parse_level(arguments.confidence), arguments.result
    settings = parse_settings(arguments.setting)
    files = (arguments.a, arguments.b)
    check_outputs(files, [arguments.out], {**settings, "metric": arguments.metric})
    if absent := [path for path in files if not path.exists()]:
        raise ValueError(f"{absent[0]} does not exist.")
    metric = load_metric(arguments.metric)
    kind = getattr(metric, "items", None)
    # The range of each result, for the ends of intervals.
    bounds = {each.name: each.bounds for each in getattr(metric, "item_results", ())}
    if name not in ("scores", *bounds):
        raise ValueError(f"--result must be one of {', '.join(['scores', *bounds])}. Got {name!r}.")
    columns = columns_of(metric, parse_pairs(arguments.column))
    if arguments.reference_key:
        if kind in (SETS, TEXTS):
            raise ValueError(f"--reference-key: {metric.name} takes no references.")
        columns.append(Column("references", arguments.reference_key))
    first, second = (read_rows(path, any_value=True) for path in files)
    by_name, partners = pair_rows(first, second, arguments.id_key)
    sides = list(by_name.values()), partners
    groups = None
    if key := arguments.group_key:
        groups, others = (read_names(rows, key) for rows in sides)
        for (where, _), group, other in zip(sides[0], groups, others, strict=True):
            if group != other:
                raise ValueError(f"{where}: its partner must have the same {key}. Got {group!r} and {other!r}.")
    scored = []
    for path, rows in zip(files, sides, strict=True):
        items = read_values(rows, arguments.text_key)
        # In CSV, a list is JSON.
        items = list(map(parse_list, items)) if kind in (SETS, QUESTIONS) else items
        given = read_columns(rows, items, columns)
        try:
            scored.append(score(metric, items, {**settings, **given}, name))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error
    all_scores, signatures, sizes = zip(*scored, strict=True)
    have_scores = ~np.isnan(all_scores).any(axis=0)
    if not have_scores.any():
        raise ValueError(f"No item has a score by {metric.name} on both sides.")
    units = parse_confidence_by(groups, len(by_name), "item")[have_scores]
    first, second = (values[have_scores] for values in all_scores)
    result: dict[str, Any] = {
        "metric": metric.name,
        "result": name,
        "files": list(map(str, files)),
        "left_out": int((~have_scores).sum()),
        **compare(first, second, confidence, units),
        "signatures": list(signatures),
    }
    if name == "scores" and hasattr(metric, "settings"):
        bounds[name] = metric.bounds_under(metric.settings.read(settings, metric.name))
    for side, size, values in zip("ab", sizes, (first, second), strict=True):
        mean = mean_estimate(values, units)
        result[side] = {"mean": mean.value, "interval": mean.interval(confidence, bounds.get(name) or UNBOUNDED, size)}
    print(show(result))
    if arguments.out:
        ids = itertools.compress(by_name, have_scores)
        items = [{"id": i, "a": a, "b": b} for i, a, b in zip(ids, first.tolist(), second.tolist(), strict=True)]
        write_text(arguments.out, json.dumps({**result, "items": items}, indent=1, ensure_ascii=False) + "\n")
    return 0
