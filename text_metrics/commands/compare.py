"""Compare two systems prompt by prompt by any metric, and test whether their mean difference is chance.

Prints both means and their difference with intervals, a p-value, and how many prompts the test needs. A row of a file
holds a set of texts, as a list, or one text; rows with one --id-key make a set. With --unpaired, the prompts of the two
systems are different ones, such as those of two nights. docs/compare.md says more.

    text-metrics compare a.jsonl b.jsonl --metric vendi_embed --text-key outputs --id-key prompt --setting q=0.5
    text-metrics compare all.csv --metric gruen --text-key output --id-key prompt --system-key model
    text-metrics compare a.jsonl b.jsonl --metric probeval --text-key answers --reference-key people --by-line
    text-metrics compare tonight.jsonl yesterday.jsonl --unpaired --metric vendi_embed --text-key outputs \
        --fail-under low=-0.05
"""

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics import options as cli
from text_metrics.console import EXIT_LIMIT, Parser, command
from text_metrics.core_api import (
    QUESTIONS,
    TEXTS,
    UNBOUNDED,
    Bounds,
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
from text_metrics.gate import check_limits, ends, missed_limits
from text_metrics.loading import load_metric
from text_metrics.questions.sets import score_sets
from text_metrics.reporting.formats import count, estimate, number, with_p
from text_metrics.statistics import TIE, difference_bounds, paired_test, unpaired_test
from text_metrics.texts import PROMPT, Marks, to_signature

# The numbers that may have limits: the difference, the ends of its interval, its p-value, and both means.
_LIMITED = ("difference", "low", "high", "p", "a", "b")
# The sets of a system by id, and its name for errors.
System = tuple[str, dict[str, Unit]]


@dataclass
class Side:
    """A system that is compared: its items, in order, their scores, (n,), and the mean number of texts of an item."""

    name: str
    units: list[Unit]
    scores: np.ndarray = field(default_factory=lambda: np.empty(0))
    signature: str = ""
    size: float = math.inf


@dataclass
class Pair:
    """Two sides, A and B: if they are paired, their items have one order."""

    sides: list[Side]
    is_paired: bool

    @property
    def n_items(self) -> int:
        """The number of items of both sides: a pair is one."""
        first, second = (len(side.units) for side in self.sides)
        return first if self.is_paired else first + second

    @property
    def sizes(self) -> list[np.ndarray]:
        """The number of texts of each set, of both sides."""
        return [np.array([len(unit.texts) for unit in side.units]) for side in self.sides]

    @property
    def n_unequal(self) -> int:
        """The number of prompts whose two sets differ in size; of unpaired sides, of sets above the smallest size."""
        first, second = self.sizes
        if self.is_paired:
            return int((first != second).sum())
        both = np.concatenate([first, second])
        return int((both > both.min()).sum())

    def select(self, masks: Sequence[np.ndarray], message: str) -> None:
        """Keep the items that the masks of their sides have, a pair if both do; raises a ValueError for none."""
        first, second = masks
        if self.is_paired:
            first = second = first & second
        if not (first.any() and second.any()):
            raise ValueError(message)
        for side, mask in zip(self.sides, (first, second), strict=True):
            side.units = list(itertools.compress(side.units, mask))
            side.scores = side.scores[mask] if len(side.scores) else side.scores


def read_pair(options: cli.Options, reader: Reader) -> tuple[list[System], Counter[str]]:
    """Read two systems, of two files or of one; returns them, and counts of repeated rows.

    Raises a ValueError for a bad row, for another number of systems, and for items that are not paired but should be.
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
    if names := options.systems:
        by_name = dict(systems)
        if len(set(names)) < 2 or not by_name.keys() >= set(names):
            raise ValueError(f"--systems must be two of {', '.join(by_name)}. Got {' and '.join(names)}.")
        systems = [(name, by_name[name]) for name in names]
    if len(systems) != 2 or (len(options.files) == 2) == bool(options.system_key):
        got = ", ".join(name for name, _ in systems)
        raise ValueError(f"pass two files, or one file with --system-key, which has two systems. Got {got}.")
    if not options.unpaired:
        _check_pairs(options, systems)
    return systems, repeats


def _check_pairs(options: cli.Options, systems: list[System]) -> None:
    """Raise a ValueError for a prompt that only one of two systems has, or whose clusters differ."""
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


def choose_size(metric: Any, pair: Pair) -> int | None:
    """Choose the number of texts to which all sets are rarefied, as a report does; None if their sizes do not matter.

    Prompts with fewer than two texts of a system are then left out. Raises a ValueError for a metric of another
    package, which may score anything.
    """
    items = getattr(metric, "items", None)
    if items in (TEXTS, QUESTIONS) or not pair.n_unequal:
        return None
    if items is None:
        raise ValueError(
            f"the sets of {count(pair.n_unequal, 'prompt')} differ in size, and {metric.name} cannot be rarefied, "
            "because it does not declare its settings: pass --no-rarefy to score the sets as they are."
        )
    have_two = [sizes > 1 for sizes in pair.sizes]
    pair.select(have_two, "no prompt has two texts or more of both systems: pass --no-rarefy to score all sets.")
    return common_size(np.concatenate(pair.sizes)) if pair.n_unequal else None


def score(
    metric: Any, units: Sequence[Unit], settings: dict[str, Any], name: str, k: int | None = None
) -> tuple[np.ndarray, str, float]:
    """Score units; for a metric of texts, the score of a set is the mean over its texts.

    k : rarefy sets to this many texts

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


def show(result: dict[str, Any]) -> str:
    """Format a comparison as text."""
    left_out = f" ({result['left_out']:,} without a score)" if result["left_out"] else ""
    lines = [f"{result['metric']}, {result['result']} of {count(result['n'], 'item')}{left_out}"]
    titles = (f"A: {result['systems'][0]}", f"B: {result['systems'][1]}", "A - B")
    for name, title in zip(("a", "b", "difference"), titles, strict=True):
        lines.append(f"  {title:<40} {estimate(result[name]['mean'], result[name]['interval'], 4)}")
    units = count(result["n_units"], "item" if result["n_units"] == result["n"] else "cluster")
    test = "Welch's t test of unpaired items"
    if "equal" in result:
        test = "t test of the mean difference"
        times = f"A is higher {result['a_higher']} times, B {result['b_higher']} times, equal {result['equal']} times"
        lines.append(f"  {times}")
    lines += [
        f"  {with_p(result['p'])} ({test}, corrected for skewness)",
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
    pairing = parser.add_mutually_exclusive_group()
    pairing.add_argument("--id-key", metavar="KEY", help="which prompt a row belongs to: its rows make a set")
    pairing.add_argument("--by-line", action="store_true", help="each row is a set; equal rows belong together")
    help = "the systems have different prompts; a row is a set, or the rows of one --id-key"
    parser.add_argument("--unpaired", action="store_true", help=help)
    parser.add_argument("--reference-key", metavar="KEY", help="people's answers, for probeval")
    help = "compare these two of the systems of --system-key, such as two steps of a training"
    parser.add_argument("--systems", nargs=2, metavar=("A", "B"), help=help)
    cli.add_one_system(parser)
    cli.add_columns(parser)
    cli.add_settings(parser)
    help = "score sets of different sizes as they are, not by what is expected of the size of the smallest"
    parser.add_argument("--no-rarefy", action="store_true", help=help)
    parser.add_argument("--result", default="scores", metavar="NAME", help="such as quality_scores")
    cli.add_limits(parser, ", ".join(_LIMITED))
    cli.add_confidence(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
    parser.set_defaults(set_size=None, one_set=False)
    options = cli.parse(parser)
    if not (options.id_key or options.by_line or options.unpaired):
        parser.error("one of the arguments --id-key --by-line --unpaired is required")
    if options.unpaired and options.by_line:
        parser.error("argument --unpaired: not allowed with argument --by-line")
    check_limits(options, _LIMITED)
    reads = list(itertools.chain.from_iterable(map(data_files, options.files)))
    check_outputs(reads, [options.out], {**options.settings, "metric": options.metric})
    return options


@command
def main() -> int:
    """Run the command."""
    options = parse_options()
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
    sides = []
    for system, sets in systems:
        # Paired sides have the order of the first one.
        ids = list(sets if options.unpaired else systems[0][1])
        sides.append(Side(system, [sets[prompt] for prompt in ids]))
    pair = Pair(sides, not options.unpaired)
    n_all = pair.n_items
    k = None if options.no_rarefy else choose_size(metric, pair)
    for side in sides:
        given = to_arguments(columns, [unit.given for unit in side.units], not reads_sets)
        try:
            side.scores, side.signature, side.size = score(metric, side.units, options.settings | given, name, k)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{side.name}: {str(error) or type(error).__name__}") from error
        if signed := to_signature(options.strip):
            side.signature = str(Signature.parse(side.signature).merge(**signed))
    have_scores = [~np.isnan(side.scores) for side in sides]
    pair.select(have_scores, f"No item has a score by {metric.name} on both sides.")
    if name == "scores" and hasattr(metric, "settings"):
        bounds[name] = metric.bounds_under(metric.settings.read(options.settings, metric.name))
    result: dict[str, Any] = {
        "metric": metric.name,
        "result": name,
        "systems": [side.name for side in sides],
        "left_out": n_all - pair.n_items,
        "sizes": {each: [int(part.min()), int(part.max())] for each, part in zip("ab", pair.sizes, strict=True)},
        "n_unequal": 0 if getattr(metric, "items", None) == TEXTS else pair.n_unequal,
        "rarefied_to": k,
        **compare_sides(pair, options.confidence, options.cluster_key is not None, bounds.get(name) or UNBOUNDED),
        "signatures": [side.signature for side in sides],
    }
    if options.strip:
        result["stripped"] = [side_marks.counts(options.strip) for side_marks in marks]
    print(show(result))
    if options.out:
        record = mark("compare") | result | {"items": _items(pair)}
        write_text(options.out, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    values = {each: result[each]["mean"] for each in ("difference", "a", "b")}
    n_units = result["n_units"] if pair.is_paired else min(result["a"]["n_units"], result["b"]["n_units"])
    values |= {"p": result["p"], **ends(values["difference"], result["difference"]["interval"], n_units)}
    return EXIT_LIMIT if missed_limits(options, values) else 0


def compare_sides(pair: Pair, confidence: float, has_clusters: bool, bounds: Bounds) -> dict[str, Any]:
    """Test the difference of the means of two sides, and estimate both; returns entries of the output.

    Differences below `TIE`, of items and of means, count as ties.
    """
    clusters = []
    for side in pair.sides:
        labels = [unit.given["confidence_by"] for unit in side.units] if has_clusters else None
        clusters.append(parse_confidence_by(labels, len(side.units), "item"))
    first, second = (side.scores for side in pair.sides)
    means = [mean_estimate(side.scores, units) for side, units in zip(pair.sides, clusters, strict=True)]
    possible = difference_bounds(bounds, [side.size for side in pair.sides])
    if pair.is_paired:
        test = paired_test(first, second, confidence, clusters[0], bounds=possible)
    else:
        test = unpaired_test(means[0], means[1], confidence, possible)
    mean = test["difference"]
    smallest = test["smallest_difference"]
    is_tie = smallest is None or abs(mean) < TIE
    result: dict[str, Any] = {
        "n": pair.n_items,
        "n_units": test["n_units"],
        "confidence": confidence,
        "difference": {"mean": mean, "interval": test["interval"]},
        "p": test["p"],
        "smallest_difference": smallest,
        "n_needed": None if is_tie else math.ceil(test["n_units"] * (smallest / mean) ** 2),
    }
    if pair.is_paired:
        result["a_higher"] = int((first - second >= TIE).sum())
        result["b_higher"] = int((first - second <= -TIE).sum())
        result["equal"] = result["n"] - result["a_higher"] - result["b_higher"]
    for name, side, of_side in zip("ab", pair.sides, means, strict=True):
        result[name] = {"mean": of_side.value, "interval": of_side.interval(confidence, bounds, side.size)}
        if not pair.is_paired:
            result[name] |= {"n": len(side.scores), "n_units": of_side.n}
    return result


def _items(pair: Pair) -> list[dict[str, Any]]:
    """Return the scores of each item: both of a pair, or one."""
    rows = []
    for name, side in zip("ab", pair.sides, strict=True):
        items = zip(side.units, side.scores.tolist(), strict=True)
        rows.append([{"id": str(unit.id), name: value} for unit, value in items])
    first, second = rows
    return [a | b for a, b in zip(first, second, strict=True)] if pair.is_paired else first + second
