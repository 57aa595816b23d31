"""Compare the outputs of two systems item by item, by any metric, and test whether the difference is chance.

    python scripts/compare.py a.jsonl b.jsonl --metric vendi_embed
    python scripts/compare.py a.jsonl b.jsonl --metric gruen --text-key output --id-key id --plot differences.svg
    python scripts/compare.py a.jsonl b.jsonl --metric vendi_embed --setting q=0.5 --json comparison.json
    python scripts/compare.py a.jsonl b.jsonl --metric probeval --references people.jsonl
    python scripts/compare.py a.jsonl b.jsonl --metric vendi_embed --setting rarefy=4

An item is a JSON value on its own line: a text, a list of texts if the metric scores sets, or an object that holds
either under --text-key. The items of the two files are paired line by line, or by --id-key. If another key, such as a
prompt, has the same values in both files in different orders, the command stops and says so. The metric is one of this
repository, or the path of any module of `evaluate` whose result has `scores`, one for each item.

Prints both means and the mean difference, each with a bootstrap interval, and the p-value of a paired approximate
randomization test: the probability of a difference at least as large if the systems were equally good.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import evaluate
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics._core.core_results import confidence_interval, merge_signatures, parse_confidence  # noqa: E402
from scripts._command import command, drawn  # noqa: E402
from scripts._files import read_jsonl, write_text  # noqa: E402
from scripts._outputs import check_outputs  # noqa: E402
from scripts._pages import save_figure  # noqa: E402
from scripts._pairing import Row, check_order, order_by_id, places_by_id  # noqa: E402
from scripts._settings import cache_of, parse_settings, paths_of  # noqa: E402
from scripts._statistics import RESAMPLES, randomization_p  # noqa: E402


class Pairing(NamedTuple):
    """How items of two files are paired.

    text_key : the key of the item; None where a line is the item
    id_key : the key that pairs them; None for the line
    by_line : whether to pair by the line though a column shows another order
    """

    text_key: str | None = None
    id_key: str | None = None
    by_line: bool = False


ADVICE = "Pass --id-key with a key that no two lines share (is it {key}?), or --by-line if equal lines belong together."


def read_items(rows: list[Row], text_key: str | None) -> list[Any]:
    """Return the items of rows."""
    for where, value in rows:
        if text_key is not None and (not isinstance(value, dict) or text_key not in value):
            raise ValueError(f"{where} has no {text_key!r}.")
    return [value if text_key is None else value[text_key] for _, value in rows]


def pair_up(first: Path, second: Path, references: Path | None, how: Pairing) -> tuple[list, list, list, list | None]:
    """Read the files and pair their items; returns the items of each, the ids, and the references if there are any.

    Raises
    ------
    ValueError
        If a file cannot be read, lines have no partner, or a column shows that the files are in different orders.
    """
    notes: list[str] = []
    rows, others = list(read_jsonl(first)), list(read_jsonl(second))
    places: dict[str | int, int] = {i: i for i in range(len(rows))}
    if how.id_key is not None:
        places = places_by_id(rows, how.id_key)
        others = [others[i] for i in order_by_id(places, others, how.id_key, f"{first} and {second}")]
    elif len(rows) != len(others):
        raise ValueError(
            f"Both files must have as many items, for they are compared line by line. {first} has {len(rows)}, "
            f"{second} has {len(others)}. Pass --id-key if they belong together by an id."
        )
    elif not how.by_line:
        notes += check_order(rows, others, how.text_key, ADVICE)
    given = None
    if references is not None:
        people = list(read_jsonl(references))
        if how.id_key is not None and any(isinstance(value, dict) and how.id_key in value for _, value in people):
            people = [people[i] for i in order_by_id(places, people, how.id_key, f"{first} and {references}")]
        elif len(people) == len(rows) and not how.by_line:
            notes += check_order(rows, people, how.text_key, ADVICE)
        given = [value for _, value in people]
    for note in notes:
        print(note, file=sys.stderr)
    return read_items(rows, how.text_key), read_items(others, how.text_key), list(places), given


def load(name: str) -> Any:
    """Load a metric of this repository by its name, or any module by its path."""
    folder = ROOT / "metrics" / name
    known = sorted(path.parent.name for path in ROOT.glob("metrics/*/*.py") if path.stem == path.parent.name)
    try:
        return evaluate.load(str(folder) if name in known else name)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(
            f"metric {name!r} is none of {', '.join(known)}, and no module to load: {str(error).splitlines()[0]}"
        ) from error


def score(metric: Any, items: list, settings: dict[str, Any], path: Path) -> tuple[np.ndarray, str]:
    """Score the items of one system: (n,), NaN for an item without a score; and the signature."""
    try:
        result = metric.compute(predictions=items, **settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    scores = result.get("scores")
    if not isinstance(scores, list) or len(scores) != len(items):
        got = f"{len(scores)} of them" if isinstance(scores, list) else "none"
        raise ValueError(
            f"{path}: {metric.name} must give 'scores', one for each of the {len(items)} items. Got {got}. A metric of "
            "sets wants a list of texts in each line."
        )
    return np.array(scores, dtype=np.float64), str(result.get("signature", metric.name))


def compare(first: np.ndarray, second: np.ndarray, level: float) -> dict[str, Any]:
    """Compare paired scores.

    Parameters
    ----------
    first, second : ndarrays of shape (n,)
    level : of the confidence intervals

    Returns
    -------
    dict, strictly valid JSON
    """
    differences = first - second
    return {
        "n": len(differences),
        "confidence": level,
        **{
            name: {"mean": float(values.mean()), "interval": confidence_interval(level, values)}
            for name, values in (("a", first), ("b", second), ("difference", differences))
        },
        "p": randomization_p(differences),
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
    ]
    for name, title in (("a", result["files"][0]), ("b", result["files"][1]), ("difference", "A - B")):
        own = result[name]
        interval = "" if own["interval"] is None else f"  [{own['interval'][0]:.4f}, {own['interval'][1]:.4f}]"
        letter = "" if name == "difference" else f"{name.upper()}: "
        lines.append(f"  {letter + title:<40} {own['mean']:>9.4f}{interval}")
    lines.append(
        f"  A is higher {result['a_higher']} times, B {result['b_higher']} times, equal {result['equal']} times"
    )
    lines.append(f"  p = {result['p']:.4f} (paired approximate randomization, {result['resamples']} resamples)")
    lines.append(f"  intervals: {100 * result['confidence']:g} % bootstrap")
    if not scored_alike(*result["signatures"]):
        lines.append("  the signatures differ: what is compared was not scored alike")
    return "\n".join([*lines, *(f"  {signature}" for signature in dict.fromkeys(result["signatures"]))])


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
    own = result["difference"]
    for panel in (left, right):
        panel.axhline(0, color="black", linewidth=0.8)
        panel.axhline(own["mean"], color="tab:red", linewidth=1)
        if own["interval"] is not None:
            panel.axhspan(*own["interval"], color="tab:red", alpha=0.15)
    left.set_xlabel("items, in order of the difference")
    left.set_ylabel(f"{result['metric']}: A - B")
    right.hist(differences, bins="auto", orientation="horizontal", color="tab:gray")
    right.set_xlabel("items")
    figure.suptitle(f"mean difference {own['mean']:.4f}, p = {result['p']:.4f}", fontsize=10)
    save_figure(figure, path)


@command
def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", type=Path)
    parser.add_argument("b", type=Path)
    parser.add_argument("--metric", required=True, help="name of a metric here, or the path of a module")
    parser.add_argument("--text-key", help="the key of the item, where lines are objects")
    pairing = parser.add_mutually_exclusive_group()
    pairing.add_argument("--id-key", help="the key that pairs the items, and the references if they have it")
    pairing.add_argument("--by-line", action="store_true", help="pair line by line, though a key is in another order")
    parser.add_argument("--references", type=Path, help="a reference for each item of A, as JSON lines")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="a setting of the metric")
    parser.add_argument("--confidence", type=float, default=0.95, help="level of the intervals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers, including those of each item")
    parser.add_argument("--plot", type=drawn, metavar="FILE", help="plot the differences: .svg, .png or .pdf")
    arguments = parser.parse_args()
    level = parse_confidence(arguments.confidence)
    settings = parse_settings(arguments.setting, "--setting")
    reads = [arguments.a, arguments.b, arguments.references, *paths_of({**settings, "metric": arguments.metric})]
    check_outputs(reads, [arguments.json, arguments.plot, cache_of(settings)])
    how = Pairing(arguments.text_key, arguments.id_key, arguments.by_line)
    one, other, names, references = pair_up(arguments.a, arguments.b, arguments.references, how)
    if references is not None:
        settings["references"] = references
    metric = load(arguments.metric)
    scores, signature = score(metric, one, settings, arguments.a)
    other_scores, other_signature = score(metric, other, settings, arguments.b)
    told = ~(np.isnan(scores) | np.isnan(other_scores))
    if not told.any():
        raise ValueError(f"No item has a score by {metric.name} on both sides.")
    assert level is not None
    result = {
        "metric": metric.name,
        "files": [str(arguments.a), str(arguments.b)],
        "left_out": int((~told).sum()),
        **compare(scores[told], other_scores[told], level),
        "signatures": [signature, other_signature],
    }
    print(show(result))
    if arguments.json:
        items = [
            {"id": name, "a": a, "b": b}
            for name, a, b, kept in zip(names, scores.tolist(), other_scores.tolist(), told.tolist(), strict=True)
            if kept
        ]
        write_text(arguments.json, json.dumps({**result, "items": items}, indent=1, ensure_ascii=False) + "\n")
    if arguments.plot:
        plot((scores - other_scores)[told], result, arguments.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
