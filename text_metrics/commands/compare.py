"""Compare the outputs of two systems item by item, by any metric, and test whether the difference is chance.

    text-metrics compare a.jsonl b.jsonl --metric vendi_embed
    text-metrics compare a.jsonl b.jsonl --metric gruen --text-key output --id-key id --plot differences.svg
    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --setting q=0.5 --json comparison.json
    text-metrics compare a.jsonl b.jsonl --metric probeval --references people.jsonl
    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --setting rarefy=4
    text-metrics compare a.jsonl b.jsonl --metric gruen --text-key output --group-key prompt
    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --text-key outputs --column quality=rewards \
        --result quality_scores

Reads the files that text-metrics score reads. An item is a text or a list of texts, in the column --text-key; in JSON
lines, a line may also be the item itself. A list is a set; for gruen, its score is the mean over its texts. The items
of the two files are paired line by line, or by --id-key. If another key, such as a prompt, has the same values in both
files in different orders, the command stops and says so. Items with the same --group-key are not independent:
intervals and tests are then over groups. The metric is one of text_metrics, or the path of any module of `evaluate`
whose result has `scores`, one for each item; --result compares another result with a value for each item. --column
ARGUMENT=COLUMN reads an argument that belongs to sets or texts from a column, as in text-metrics score.

Prints both means and the mean difference, each with a confidence interval, and two p-values: of the hypothesis that the
mean difference is 0, by a t test that is corrected for skewness as the intervals are; and of the hypothesis that the
two systems are exchangeable within each item, by a paired approximate randomization test.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics.commands.jobs.grouping import missing, parse_set
from text_metrics.commands.jobs.rows import read_rows
from text_metrics.commands.shared.columns import add_columns, columns_of, parse_columns, read_columns
from text_metrics.commands.shared.command import command, drawn, make_parser
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.merging import merge_signatures
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import save_figure
from text_metrics.commands.shared.pairing import Row, check_order, order_by_id, places_by_id, read_id
from text_metrics.commands.shared.settings import (
    add_confidence,
    add_settings,
    cache_of,
    load_metric,
    parse_settings,
    paths_of,
)
from text_metrics.commands.shared.statistics import RESAMPLES, TIE, mean_test, randomization_p
from text_metrics.metrics._core.core_inputs import mean_by_set
from text_metrics.metrics._core.core_results import (
    QUESTIONS,
    SETS,
    TEXTS,
    UNBOUNDED,
    Bounds,
    confidence_level,
    mean_estimate,
    parse_confidence_by,
)

ADVICE = "Pass --id-key with a key that no two lines share (is it {key}?), or --by-line if equal lines belong together."


def read_items(rows: list[Row], text_key: str | None) -> list[Any]:
    """Return the items of rows."""
    for where, value in rows:
        if text_key is not None and (not isinstance(value, dict) or text_key not in value):
            reason = missing(text_key, value) if isinstance(value, dict) else f"must be an object with {text_key!r}"
            raise ValueError(f"{where} {reason}.")
    return [value if text_key is None else value[text_key] for _, value in rows]


def read_groups(rows: list[Row], partners: list[Row], key: str) -> list[Any]:
    """Return the groups of paired rows, which must be the same on both sides."""
    groups = []
    for row, partner in zip(rows, partners, strict=True):
        group, other = read_id(row, key), read_id(partner, key)
        if group != other:
            raise ValueError(f"{row[0]} and {partner[0]} must have the same {key}. Got {group!r} and {other!r}.")
        groups.append(group)
    return groups


def pair_up(how: argparse.Namespace) -> tuple[list[Row], list[Row], list[Any] | None, list[Any]]:
    """Read the files and pair their rows as the options say.

    Returns the rows of both files, the references of the pairs, if there are any, and the ids or numbers of the pairs.
    Raises a ValueError if lines have no partner, or a column shows that the files are in different orders.
    """
    notes: list[str] = []
    rows, partners = read_rows(how.a, how.split), read_rows(how.b, how.split)
    places: dict[str | int, int] = {i: i for i in range(len(rows))}
    if how.id_key is not None:
        places = places_by_id(rows, how.id_key)
        partners = [partners[i] for i in order_by_id(places, partners, how.id_key, f"{how.a} and {how.b}")]
    elif len(rows) != len(partners):
        raise ValueError(
            f"Both files must have the same number of items, because they are compared line by line. {how.a} has "
            f"{len(rows)}, {how.b} has {len(partners)}. Pass --id-key if they belong together by an id."
        )
    elif not how.by_line:
        notes += check_order(rows, partners, how.text_key, ADVICE)
    given = None
    if how.references is not None:
        people = read_rows(how.references, how.split if how.references.is_dir() else None)
        if how.id_key is not None and any(isinstance(value, dict) and how.id_key in value for _, value in people):
            people = [people[i] for i in order_by_id(places, people, how.id_key, f"{how.a} and {how.references}")]
        elif len(people) == len(rows) and not how.by_line:
            notes += check_order(rows, people, how.text_key, ADVICE)
        given = [value for _, value in people]
    for note in notes:
        print(note, file=sys.stderr)
    return rows, partners, given, list(places)


def score(
    metric: Any, items: list, settings: dict[str, Any], path: Path, name: str = "scores"
) -> tuple[np.ndarray, str]:
    """Score the items of one system by the result of some name: (n,), NaN without a score; and the signature."""
    kind = getattr(metric, "items", None)
    if kind in (SETS, TEXTS) and any(isinstance(item, dict) for item in items):
        columns = next(item for item in items if isinstance(item, dict))
        raise ValueError(
            f"{path} holds objects: pass --text-key with the key of the texts. It has {', '.join(columns)}."
        )
    if kind in (SETS, QUESTIONS):
        # In CSV, a list is JSON.
        items = [parse_set(item) or item if isinstance(item, str) else item for item in items]
    sizes = None
    if kind == TEXTS and all(isinstance(item, list) and item for item in items):
        sizes = np.array([len(item) for item in items])
        items = [text for item in items for text in item]
    try:
        result = metric.compute(predictions=items, **settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    scores = result.get(name)
    if not isinstance(scores, list) or len(scores) != len(items):
        got = f"{len(scores)} of them" if isinstance(scores, list) else "none"
        raise ValueError(
            f"{path}: {metric.name} must give {name!r}, one for each of the {len(items)} items. Got {got}. A metric of "
            "sets requires a list of texts on each line."
        )
    values = np.array(scores, dtype=np.float64)
    return values if sizes is None else mean_by_set(values, sizes), str(result.get("signature", metric.name))


def parse_result(metric: Any, name: str) -> str:
    """Read the name of a result with a value for each item."""
    names = ["scores", *(result.name for result in getattr(metric, "item_results", ()) if not result.of_texts)]
    if name not in names:
        raise ValueError(f"--result must be one of {', '.join(names)}. Got {name!r}.")
    return name


def _mean_size(items: Sequence[Any]) -> float:
    """Return the mean number of texts of items that are sets; infinity if some are single texts."""
    sizes = [len(item) if isinstance(item, (list, tuple)) else math.inf for item in items]
    return float(np.mean(sizes))


def bounds_of(metric: Any, name: str, settings: dict[str, Any]) -> Bounds:
    """Return the range of a result under some settings, which are valid."""
    if name != "scores":
        return next(result.bounds or UNBOUNDED for result in metric.item_results if result.name == name)
    if not hasattr(metric, "bounds_under"):
        return getattr(metric, "bounds", UNBOUNDED)
    return metric.bounds_under(metric.settings.read(settings, metric.name))


def compare(
    first: np.ndarray,
    second: np.ndarray,
    level: float,
    groups: np.ndarray | None = None,
    bounds: Bounds = UNBOUNDED,
    sizes: tuple[float, float] = (math.inf, math.inf),
) -> dict[str, Any]:
    """Compare paired scores; returns what is valid JSON.

    Parameters
    ----------
    first, second : ndarrays of shape (n,)
    level : of the confidence intervals
    groups : ndarray of shape (n,), int: equal for items that are not independent; by default all are
    bounds : range of the scores
    sizes : the mean number of texts of an item of each side, for bounds that depend on it
    """
    differences = np.where(np.abs(first - second) < TIE, 0.0, first - second)
    groups = np.arange(len(differences)) if groups is None else groups
    sides = {name: mean_estimate(values, groups) for name, values in (("a", first), ("b", second))}
    difference = mean_estimate(differences, groups)
    test = mean_test(difference, level)
    return {
        "n": len(differences),
        "n_units": difference.n,
        "confidence": level,
        **{
            name: {"mean": estimate.value, "interval": estimate.interval(level, bounds, size)}
            for (name, estimate), size in zip(sides.items(), sizes, strict=True)
        },
        "difference": {"mean": test["mean"], "interval": test["interval"]},
        "p": test["p"],
        "p_randomization": randomization_p(np.bincount(groups, differences)),
        "resamples": RESAMPLES,
        "a_higher": int((differences > 0).sum()),
        "b_higher": int((differences < 0).sum()),
        "equal": int((differences == 0).sum()),
    }


def show(result: dict[str, Any]) -> str:
    """Format a comparison as text."""
    lines = [
        f"{result['metric']}, {result['n']} items"
        + f" ({result['left_out']} without a score)" * bool(result["left_out"])
        + f", {result['result']}" * (result["result"] != "scores")
    ]
    for name, title in (("a", result["files"][0]), ("b", result["files"][1]), ("difference", "A - B")):
        estimate = result[name]
        interval = (
            "" if estimate["interval"] is None else f"  [{estimate['interval'][0]:.4f}, {estimate['interval'][1]:.4f}]"
        )
        letter = "" if name == "difference" else f"{name.upper()}: "
        lines.append(f"  {letter + title:<40} {estimate['mean']:>9.4f}{interval}")
    lines.append(
        f"  A is higher {result['a_higher']} times, B {result['b_higher']} times, equal {result['equal']} times"
    )
    lines.append(f"  {_format_p(result['p'])} (mean difference, t test corrected for skewness)")
    lines.append(
        f"  {_format_p(result['p_randomization'])} (paired approximate randomization, {result['resamples']} resamples)"
    )
    over = "items" if result["n_units"] == result["n"] else f"{result['n_units']} groups of items"
    lines.append(f"  intervals: {100 * result['confidence']:g} %, over {over}")
    if not scored_alike(*result["signatures"]):
        lines.append("  the signatures differ: the two systems were scored with different settings")
    return "\n".join([*lines, *(f"  {signature}" for signature in dict.fromkeys(result["signatures"]))])


def _format_p(p: float | None) -> str:
    if p is None:
        return "p is undefined"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"


def scored_alike(first: str, second: str) -> bool:
    """Say whether two signatures agree; if scores are rarefied, the sizes of the sets may differ."""
    if first == second:
        return True
    try:
        return "|rarefy:" in first and bool(merge_signatures(first, second))
    except ValueError:
        return False


def plot(differences: np.ndarray, result: dict[str, Any], path: Path) -> None:
    """Plot the difference of each item, in ascending order, and their histogram."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    ordered = np.sort(differences)
    left.bar(np.arange(len(ordered)), ordered, width=1.0, color=np.where(ordered > 0, "tab:blue", "tab:orange"))
    estimate = result["difference"]
    for panel in (left, right):
        panel.axhline(0, color="black", linewidth=0.8)
        panel.axhline(estimate["mean"], color="tab:red", linewidth=1)
        if estimate["interval"] is not None:
            panel.axhspan(*estimate["interval"], color="tab:red", alpha=0.15)
    left.set_xlabel("items, in order of the difference")
    left.set_ylabel(f"{result['metric']}: A - B")
    right.hist(differences, bins="auto", orientation="horizontal", color="tab:gray")
    right.set_xlabel("items")
    figure.suptitle(f"mean difference {estimate['mean']:.4f}, {_format_p(result['p'])}", fontsize=10)
    save_figure(figure, path)


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("a", type=Path, help=".jsonl, .json, .csv, .parquet, or a folder of `datasets`")
    parser.add_argument("b", type=Path, help="the same, of the other system")
    parser.add_argument("--metric", required=True, help="name of a metric here, or the path of a module")
    parser.add_argument("--text-key", help="the key of the item, where lines are objects")
    pairing = parser.add_mutually_exclusive_group()
    pairing.add_argument("--id-key", help="the key that pairs the items, and the references if they have it")
    pairing.add_argument("--by-line", action="store_true", help="pair line by line, though a key is in another order")
    parser.add_argument("--group-key", help="the key of the group, such as the prompt, of items that belong together")
    parser.add_argument("--references", type=Path, help="a reference for each item of A")
    parser.add_argument("--split", help="of folders of `datasets`")
    add_columns(parser)
    add_settings(parser)
    parser.add_argument("--result", default="scores", metavar="NAME", help="what is compared, such as quality_scores")
    add_confidence(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers, including those of each item")
    parser.add_argument("--plot", type=drawn, metavar="FILE", help="plot the differences: .svg, .png or .pdf")
    arguments = parser.parse_args()
    level = confidence_level(arguments.confidence)
    settings = parse_settings(arguments.setting)
    reads = [arguments.a, arguments.b, arguments.references, *paths_of({**settings, "metric": arguments.metric})]
    check_outputs(reads, [arguments.json, arguments.plot, cache_of(settings)])
    rows, partners, references, names = pair_up(arguments)
    items, other_items = read_items(rows, arguments.text_key), read_items(partners, arguments.text_key)
    metric = load_metric(arguments.metric)
    if references is not None and getattr(metric, "items", QUESTIONS) != QUESTIONS:
        raise ValueError(f"--references: {metric.name} takes no references: leave it out.")
    name = parse_result(metric, arguments.result)
    columns = columns_of(metric, parse_columns(arguments.column))
    if any(column.argument == "confidence_by" for column in columns):
        raise ValueError("--column confidence_by: pass --group-key.")
    groups = None if arguments.group_key is None else read_groups(rows, partners, arguments.group_key)
    given, other_given = read_columns(rows, items, columns), read_columns(partners, other_items, columns)
    # The metric needs the memory.
    del rows, partners
    units = parse_confidence_by(groups, len(names), "item")
    shared = settings if references is None else {**settings, "references": references}
    scores, signature = score(metric, items, {**shared, **given}, arguments.a, name)
    other_scores, other_signature = score(metric, other_items, {**shared, **other_given}, arguments.b, name)
    bounds = bounds_of(metric, name, {**settings, **given})
    sizes = (_mean_size(items), _mean_size(other_items))
    told = ~(np.isnan(scores) | np.isnan(other_scores))
    if not told.any():
        raise ValueError(f"No item has a score by {metric.name} on both sides.")
    assert level is not None
    result = {
        "metric": metric.name,
        "result": name,
        "files": [str(arguments.a), str(arguments.b)],
        "left_out": int((~told).sum()),
        **compare(scores[told], other_scores[told], level, units[told], bounds, sizes),
        "signatures": [signature, other_signature],
    }
    print(show(result))
    if arguments.json:
        of_items = [
            {"id": names[i], "a": float(scores[i]), "b": float(other_scores[i])} for i in np.flatnonzero(told).tolist()
        ]
        write_text(arguments.json, json.dumps({**result, "items": of_items}, indent=1, ensure_ascii=False) + "\n")
    if arguments.plot:
        plot((scores - other_scores)[told], result, arguments.plot)
    return 0
