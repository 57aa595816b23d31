"""Compare two systems prompt by prompt by any metric, and test whether their mean difference is chance.

Prints both means and their difference with intervals, a p-value, and how many prompts the test needs. A row of a file
holds a set of texts, as a list, or one text; rows with one --id-key make a set. docs/compare.md says more.

    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --text-key outputs --id-key prompt --setting q=0.5
    text-metrics compare all.csv --metric gruen --text-key output --id-key prompt --system-key model
    text-metrics compare a.jsonl b.jsonl --metric probeval --text-key answers --reference-key people --by-line
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics import options as cli
from text_metrics.console import Parser, command
from text_metrics.core_api import (
    QUESTIONS,
    TEXTS,
    UNBOUNDED,
    Signature,
    mean_by_set,
    mean_estimate,
    parse_confidence_by,
)
from text_metrics.files.columns import columns_of, to_arguments
from text_metrics.files.listing import data_files
from text_metrics.files.rows import Source
from text_metrics.files.sets import Reader, Unit, common_size, total_marks
from text_metrics.files.storage import check_outputs, parse_path, write_text
from text_metrics.files.systems import check_one_system, count_repeats, warn_of_repeats
from text_metrics.files.written import mark
from text_metrics.loading import load_metric
from text_metrics.questions.sets import score_sets
from text_metrics.reporting.formats import count, estimate, number, with_p
from text_metrics.statistics import TIE, paired_test
from text_metrics.texts import PROMPT, Marks, to_signature

# The sets of a system by id, and its name for errors.
System = tuple[str, dict[str, Unit]]


def read_pair(options: cli.Options, reader: Reader) -> tuple[list[System], Counter[str]]:
    """Read two systems with the same prompts: of two files, or of one; returns them, and counts of repeated rows.

    Raises a ValueError for a bad row, for another number of systems, or for a prompt that only one has, or whose
    clusters differ.
    """
    systems: list[System] = []
    repeats = Counter[str]()
    for path in options.files:
        sets_by_system: dict[str, dict[str, Unit]] = {}
        units = list(reader.units(Source(path, **cli.form_of(options))))
        for unit in units:
            for row in unit.bad:
                raise ValueError(f"{path}, row {row.number} {row.error}.")
            sets_by_system.setdefault(unit.system or str(path), {})[str(unit.id)] = unit
        if not sets_by_system:
            raise ValueError(f"{path} is empty.")
        if options.id_key is not None:
            if options.system_key is None and not options.one_system:
                check_one_system(path, units, [options.text_key, options.id_key, *options.columns.values()])
            repeats.update(count_repeats(units))
        systems += sets_by_system.items()
    if options.systems:
        systems = _select_systems(systems, options.systems)
    if len(systems) != 2 or (len(options.files) == 2) == bool(options.system_key):
        names = ", ".join(name for name, _ in systems)
        raise ValueError(f"pass two files, or one file with --system-key, which has two systems. Got {names}.")
    key = options.id_key or "line"
    for (name, sets), (partner, partner_sets) in (systems, systems[::-1]):
        for prompt, unit in sets.items():
            where = f"{name}, row {unit.rows[0].number}"
            if prompt not in partner_sets:
                last = max(each.rows[-1].number for each in partner_sets.values())
                raise ValueError(f"{where}: {key} {prompt!r:.80} is not in {partner}, which ends at row {last}.")
            cluster = unit.given.get("confidence_by")
            partner_cluster = partner_sets[prompt].given.get("confidence_by")
            if cluster != partner_cluster:
                problem = f"must have one {options.cluster_key}. Got {cluster!r} and {partner_cluster!r}"
                raise ValueError(f"{where}: {key} {prompt!r:.80} {problem}.")
    return systems, repeats


def _select_systems(systems: list[System], names: Sequence[str]) -> list[System]:
    """Return two systems by name; raises a ValueError for a name that none has, or twice the same."""
    by_name = dict(systems)
    if len(set(names)) < 2 or not by_name.keys() >= set(names):
        raise ValueError(f"--systems must be two of {', '.join(by_name)}. Got {' and '.join(names)}.")
    return [(name, by_name[name]) for name in names]


def choose_size(metric: Any, sides: Sequence[Sequence[Unit]]) -> tuple[np.ndarray, int | None]:
    """Choose the prompts that are compared, and the number of texts to which all sets are rarefied, as a report does.

    Where the sets of a prompt differ in size, the larger one may score as more diverse for its size alone. Then,
    prompts with fewer than two texts of a system are left out.

    Returns
    -------
    used : ndarray of shape (n,), bool
    k : None where the sets of each prompt have one size, or the metric does not score sets

    Raises a ValueError for a metric of another package, which may score anything.
    """
    sizes = sizes_of(sides)
    every = np.ones(sizes.shape[1], dtype=bool)
    items = getattr(metric, "items", None)
    if items in (TEXTS, QUESTIONS) or not count_unequal(sizes):
        return every, None
    if items is None:
        raise ValueError(
            f"the sets of {count(count_unequal(sizes), 'prompt')} differ in size, and {metric.name} cannot be "
            "rarefied, because it does not declare its settings: pass --no-rarefy to score the sets as they are."
        )
    used = sizes.min(axis=0) > 1
    if not used.any():
        raise ValueError("no prompt has two texts or more of both systems: pass --no-rarefy to score all sets.")
    return used, common_size(sizes[:, used]) if count_unequal(sizes[:, used]) else None


def sizes_of(sides: Sequence[Sequence[Unit]]) -> np.ndarray:
    """Return the number of texts of each set: (2, n)."""
    sizes = []
    for units in sides:
        sizes.append([len(unit.texts) for unit in units])
    return np.array(sizes)


def count_unequal(sizes: np.ndarray) -> int:
    """Count the prompts whose two sets differ in size: (2, n) to an integer."""
    return int((sizes[0] != sizes[1]).sum())


def score(
    metric: Any, units: Sequence[Unit], settings: dict[str, Any], name: str, k: int | None = None
) -> tuple[np.ndarray, str, float]:
    """Score units; for a metric of texts, the score of a set is the mean over its texts.

    k : rarefy sets to so many texts

    Returns the scores, NaN for a unit without one, their signature, and the mean number of texts of a unit.
    """
    items: list[Any] = [list(unit.texts) for unit in units]
    sizes = np.array(list(map(len, items)))
    are_texts = getattr(metric, "items", None) == TEXTS
    if not are_texts and all(len(unit.rows) == 1 and unit.rows[0].is_text for unit in units):
        # A metric of another package may be one of texts.
        items = [unit.texts[0] for unit in units]
    result = score_sets(metric, items, settings, k)
    values = result.get(name)
    n_items = sizes.sum() if are_texts else len(items)
    if not isinstance(values, list) or len(values) != n_items:
        got = f"{len(values)} of them" if isinstance(values, list) else "none"
        raise ValueError(f"{metric.name} must give {name!r}, one for each of the {n_items} items. Got {got}.")
    scores = np.array(values, dtype=np.float64)
    scores = mean_by_set(scores, sizes) if are_texts else scores
    return scores, str(result.get("signature", metric.name)), float(sizes.mean() if k is None else k)


def compare(first: np.ndarray, second: np.ndarray, confidence: float, units: np.ndarray) -> dict[str, Any]:
    """Test the mean difference of paired scores of shape (n,); returns a dict that is valid JSON.

    Differences below `TIE`, of items and of means, count as ties. The test finds `smallest_difference` with a
    probability of 80 %, and `n_needed` is the number of units with which it finds the observed difference as often.
    `units`, int of shape (n,), are equal for items that are not independent.
    """
    differences = first - second
    test = paired_test(first, second, confidence, units)
    n_units = test["n_units"]
    mean = test["difference"]
    smallest = test["smallest_difference"]
    is_tie = smallest is None or abs(mean) < TIE
    n_needed = None if is_tie else math.ceil(n_units * (smallest / mean) ** 2)
    a_higher = int((differences >= TIE).sum())
    b_higher = int((differences <= -TIE).sum())
    equal = int((np.abs(differences) < TIE).sum())
    return {
        "n": len(differences),
        "n_units": n_units,
        "confidence": confidence,
        "difference": {"mean": mean, "interval": test["interval"]},
        "p": test["p"],
        "smallest_difference": smallest,
        "n_needed": n_needed,
        "a_higher": a_higher,
        "b_higher": b_higher,
        "equal": equal,
    }


def show(result: dict[str, Any]) -> str:
    """Format a comparison as text."""
    left_out = f" ({result['left_out']:,} without a score)" if result["left_out"] else ""
    lines = [f"{result['metric']}, {result['result']} of {count(result['n'], 'item')}{left_out}"]
    titles = (f"A: {result['systems'][0]}", f"B: {result['systems'][1]}", "A - B")
    for name, title in zip(("a", "b", "difference"), titles, strict=True):
        lines.append(f"  {title:<40} {estimate(result[name]['mean'], result[name]['interval'], 4)}")
    units = count(result["n_units"], "item" if result["n_units"] == result["n"] else "cluster")
    lines += [
        f"  A is higher {result['a_higher']} times, B {result['b_higher']} times, equal {result['equal']} times",
        f"  {with_p(result['p'])} (t test of the mean difference, corrected for skewness)",
        f"  intervals: level {result['confidence']:g}, over {units}",
    ]
    if result["n_unequal"]:
        lines.append(f"  {_show_sizes(result)}")
    if result["smallest_difference"] is not None:
        lines.append(f"  {units} show a difference of {number(result['smallest_difference'], 4)} or more (power 80 %)")
    if (result["n_needed"] or 0) > result["n_units"]:
        lines[-1] += f"; this one needs about {result['n_needed']:,}"
    first, second = map(Signature.parse, result["signatures"])
    differences = []
    for name, (value, other) in first.difference(second).items():
        differences.append(f"{name}: {value or 'none'} and {other or 'none'}")
    if differences:
        lines.append(f"  the signatures differ in {'; '.join(differences)}")
    for name, counts in zip("AB", result.get("stripped", ()), strict=False):
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in counts.items())
        lines.append(f"  stripped from texts of {name}: {kinds}")
    lines += [f"  {signature}" for signature in dict.fromkeys(result["signatures"])]
    return "\n".join(lines)


def _show_sizes(result: dict[str, Any]) -> str:
    """Say how many prompts have sets of different sizes, and how these are scored."""
    sizes = " and ".join(f"{low} to {high}" if low < high else str(low) for low, high in result["sizes"].values())
    differ = f"{count(result['n_unequal'], 'item')} with sets of different sizes ({sizes} texts)"
    if k := result["rarefied_to"]:
        return f"{differ}: scores are what is expected of {k} texts of each (rarefied)"
    return f"{differ}, scored as they are: a score may depend on the number of texts"


def parse_options() -> cli.Options:
    """Read the command line, as `parse` does."""
    parser = Parser(__doc__)
    help = "of any format that text-metrics score reads: one of each system, or one with --system-key"
    parser.add_argument("files", nargs="+", type=parse_path, metavar="FILE", help=help)
    parser.add_argument("--metric", required=True, help="name of a metric, or path of a module")
    cli.add_keys(parser)
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", metavar="KEY", help="which prompt a row belongs to: its rows make a set")
    pairing.add_argument("--by-line", action="store_true", help="each row is a set; equal rows belong together")
    parser.add_argument("--reference-key", metavar="KEY", help="people's answers, for probeval")
    help = "compare these two of the systems of --system-key, such as two steps of a training"
    parser.add_argument("--systems", nargs=2, metavar=("A", "B"), help=help)
    cli.add_one_system(parser)
    cli.add_columns(parser)
    cli.add_settings(parser)
    help = "score sets of different sizes as they are, not by what is expected of the size of the smallest"
    parser.add_argument("--no-rarefy", action="store_true", help=help)
    parser.add_argument("--result", default="scores", metavar="NAME", help="such as quality_scores")
    cli.add_confidence(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
    parser.set_defaults(set_size=None, one_set=False)
    options = cli.parse(parser)
    reads = list(itertools.chain.from_iterable(map(data_files, options.files)))
    check_outputs(reads, [options.out], {**options.settings, "metric": options.metric})
    return options


@command
def main() -> int:
    """Run the command."""
    options = parse_options()
    settings = options.settings
    confidence = options.confidence
    name = options.result
    metric = load_metric(options.metric)
    bounds = {each.name: each.bounds for each in getattr(metric, "item_results", ()) if not each.is_reciprocal}
    if name not in ("scores", *bounds):
        raise ValueError(f"--result must be one of {', '.join(['scores', *bounds])}. Got {name!r}.")
    columns = columns_of(metric, options.columns, options.quality_scale, PROMPT in options.strip)
    reads_sets = getattr(metric, "items", TEXTS) != TEXTS
    reader = Reader(options.keys, reads_sets, columns, is_scattered=True, strip=options.strip)
    systems, repeats = read_pair(options, reader)
    marks = [total_marks(sets.values()) for _, sets in systems]
    cli.warn_of_marks(sum(marks, Marks()))
    warn_of_repeats(", ".join(map(str, options.files)), repeats, str(options.id_key))
    ids = list(systems[0][1])
    n_all = len(ids)
    sides = []
    for _, sets in systems:
        sides.append([sets[prompt] for prompt in ids])
    k = None
    if not options.no_rarefy:
        used, k = choose_size(metric, sides)
        ids = list(itertools.compress(ids, used))
        sides = [list(itertools.compress(units, used)) for units in sides]
    scored = []
    for (system, _), units in zip(systems, sides, strict=True):
        given = to_arguments(columns, [unit.given for unit in units], not reads_sets)
        try:
            scored.append(score(metric, units, settings | given, name, k))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{system}: {str(error) or type(error).__name__}") from error
    all_scores, signatures, sizes = zip(*scored, strict=True)
    signed = to_signature(options.strip)
    if signed:
        signatures = [str(Signature.parse(each).merge(**signed)) for each in signatures]
    have_scores = ~np.isnan(all_scores).any(axis=0)
    if not have_scores.any():
        raise ValueError(f"No item has a score by {metric.name} on both sides.")
    clusters = [unit.given["confidence_by"] for unit in sides[0]] if options.cluster_key else None
    units = parse_confidence_by(clusters, len(ids), "item")[have_scores]
    first, second = np.array(all_scores)[:, have_scores]
    set_sizes = sizes_of(sides)[:, have_scores]
    ranges = {}
    for side, side_sizes in zip("ab", set_sizes, strict=True):
        ranges[side] = [int(side_sizes.min()), int(side_sizes.max())]
    are_texts = getattr(metric, "items", None) == TEXTS
    n_unequal = 0 if are_texts else count_unequal(set_sizes)
    comparison = compare(first, second, confidence, units)
    names = [system for system, _ in systems]
    result: dict[str, Any] = {
        "metric": metric.name,
        "result": name,
        "systems": names,
        "left_out": n_all - len(first),
        "sizes": ranges,
        "n_unequal": n_unequal,
        "rarefied_to": k,
        **comparison,
        "signatures": list(signatures),
    }
    if options.strip:
        result["stripped"] = [side_marks.counts(options.strip) for side_marks in marks]
    if name == "scores" and hasattr(metric, "settings"):
        bounds[name] = metric.bounds_under(metric.settings.read(settings, metric.name))
    for side, size, values in zip("ab", sizes, (first, second), strict=True):
        mean = mean_estimate(values, units)
        interval = mean.interval(confidence, bounds.get(name) or UNBOUNDED, size)
        result[side] = {"mean": mean.value, "interval": interval}
    print(show(result))
    if options.out:
        scored_ids = itertools.compress(ids, have_scores)
        items = zip(scored_ids, first.tolist(), second.tolist(), strict=True)
        result["items"] = [{"id": id, "a": a, "b": b} for id, a, b in items]
        result = mark("compare") | result
        write_text(options.out, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    return 0
