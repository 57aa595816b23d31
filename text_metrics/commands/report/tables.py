"""The tables of a report, as data frames whose cells are text; what is small below a number is on a line of its own."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from text_metrics.commands.report.sentences import Report, comparison, in_section, level
from text_metrics.commands.shared.formats import (
    count,
    decimals,
    integer,
    interval,
    number,
    p_value,
    percent,
    percent_interval,
    significant,
    with_p,
)

PEOPLE = "half of the people"
_ARROWS = {"higher": " ↑", "lower": " ↓", None: ""}


class Table(NamedTuple):
    """A table with its caption; `marked` are the places of cells that show a difference."""

    caption: str
    frame: pd.DataFrame
    marked: frozenset[tuple[int, int]] = frozenset()


def scores_table(report: Report, section: str) -> Table | None:
    """Return the means of the metrics of a section, a row for each system, the best first; None without metrics."""
    metrics = in_section(report, section)
    if not metrics:
        return None
    order = metrics[0]["order"]
    columns = {"System": [report["systems"][i] for i in order]}
    for metric in metrics:
        values = [metric["values"][i] for i in order]
        columns[metric["title"] + _ARROWS[metric["better"]]] = _estimates(
            (value["mean"], value["interval"]) for value in values
        )
    caption = (
        f"{section.capitalize()}: means over {count(report['prompts']['n'], 'prompt')} with {level(report)} intervals. "
        "↑ higher is better, ↓ lower is better."
    )
    best = {(order.index(metric["best"]), j) for j, metric in enumerate(metrics, 1) if metric["best"] is not None}
    if best:
        caption += " Bold: the paired tests against all other systems hold after Holm's adjustment."
    return Table(caption, pd.DataFrame(columns), frozenset(best))


def tests_table(report: Report, metric: dict[str, Any]) -> Table:
    """Return the matrix of the paired tests of a metric: row minus column."""
    order, alpha = metric["order"], 1 - report["confidence"]
    digits = decimals((test["difference"], test["interval"]) for test in metric["tests"])
    tests = [[None if i == j else comparison(metric, i, j) for j in order] for i in order]
    cells = [
        ["" if t is None else f"{number(t['difference'], digits, signed=True)}\n{with_p(t['p_holm'])}" for t in row]
        for row in tests
    ]
    marked = {
        (i, j)
        for i, row in enumerate(tests)
        for j, test in enumerate(row, 1)
        if test is not None and test["p_holm"] is not None and test["p_holm"] < alpha
    }
    names = [report["systems"][i] for i in order]
    frame = pd.DataFrame(cells, columns=names)
    frame.insert(0, "Row − column", names, allow_duplicates=True)
    caption = f"{metric['title']}: differences, with p of the paired test after Holm's adjustment."
    return Table(caption + f" Bold: p < {alpha:.2g}." * bool(marked), frame, frozenset(marked))


def partition_table(report: Report) -> Table | None:
    """Return the partition of diversity among all systems and between pairs, the most different first."""
    alike = report["likeness"]
    if alike is None:
        return None
    whole, pairs, names = alike["partition"], alike["pairs"], report["systems"]
    rows = [[f"all {whole['n_groups']} systems", whole, whole["intervals"]["share"], whole["p"], whole["least_p"]]]
    for pair in pairs if len(pairs) > 1 else []:
        label = f"{names[pair['a']]} and {names[pair['b']]}"
        rows.append([label, pair, pair["interval"], pair["p_holm"], pair["least_p_holm"]])
    digits = decimals([(whole["between"], whole["intervals"]["between"])], least=2)
    columns = {
        "Systems": [label for label, *_ in rows],
        "Share beyond chance": [
            f"{percent(part['share'], 1)}\n{percent_interval(ends, 1)}" for _, part, ends, *_ in rows
        ],
        "Effective systems (beta)": [number(part["between"], digits) for _, part, *_ in rows],
        "by chance": [number(part["between_expected"], digits) for _, part, *_ in rows],
        "p": [p_value(p, least) for *_, p, least in rows],
    }
    within, pooled = (
        f"{number(whole[name], digits)} {interval(whole['intervals'][name], digits)}" for name in ("within", "pooled")
    )
    caption = (
        f"A system has {within} different texts on a prompt (alpha), all systems together {pooled} (gamma): gamma / "
        "alpha is the effective number of systems (beta). Their share is 0 % if systems differ as by chance, 100 % if "
        "they have nothing in common, and negative if they are more alike than by chance, for example because they "
        "share texts. p is of a permutation test, for pairs after Holm's adjustment."
    )
    marked = {(i, 4) for i, (*_, p, _) in enumerate(rows) if p is not None and p < 1 - report["confidence"]}
    return Table(caption, pd.DataFrame(columns), frozenset(marked))


def people_table(report: Report) -> Table | None:
    """Return how near each system is to people, the nearest first, with half of the people as the scale."""
    people = report["people"]
    if people is None:
        return None
    rows = sorted(people["rows"], key=lambda row: (row["system"] is not None, row["share"] or 0.0))
    names = [PEOPLE if row["system"] is None else report["systems"][row["system"]] for row in rows]
    columns = {"Beside people": names}
    for key in ("recall", "precision", "coverage"):
        columns[f"{key.capitalize()} ↑"] = _estimates(((row[key]["value"], row[key]["interval"]) for row in rows), 2)
    columns |= {
        "Share beyond chance ↓": [percent(row["share"], 1) for row in rows],
        "p": [p_value(row["p"], row["least_p"]) for row in rows],
        "Mean length, words": [
            number(row["mean_length"], 1) + "\nunlike people's" * row["length_warning"] for row in rows
        ],
    }
    caption = (
        f"{count(people['n_texts'], 'text')} of each side, {people['k']} neighbours; {level(report)} intervals. "
        "Recall is the share of people's texts with one of the system nearby, precision that of the system's with one "
        "of people, coverage that of people's neighbourhoods with one of the system."
    )
    return Table(caption, pd.DataFrame(columns))


def power_table(report: Report) -> Table | None:
    """Return the smallest differences that the prompts show at 80 % power; None if there are none."""
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    rows = [
        [metrics[row["metric"]]["title"], significant(row["difference"]), metrics[row["metric"]]["unit"]]
        for row in report["power"]
    ]
    caption = f"The smallest difference of two means that {count(report['prompts']['n'], 'prompt')} show at 80 % power."
    return Table(caption, pd.DataFrame(rows, columns=["Metric", "Smallest difference", "Unit"])) if rows else None


def sources_table(report: Report) -> Table:
    """Return what was read from each file."""
    keys = {"n_rows": "Rows", "n_bad": "Set aside", "n_prompts": "Prompts", "n_texts": "Texts"}
    columns = {"System": report["systems"], "File": [source["file"] for source in report["sources"]]}
    columns |= {title: [integer(source[key]) for source in report["sources"]] for key, title in keys.items()}
    columns["Texts of a prompt"] = [
        " / ".join(f"{size:g}" for size in source["set_sizes"]) for source in report["sources"]
    ]
    return Table("What was read; texts of a prompt: least / median / most.", pd.DataFrame(columns))


def missing_table(report: Report) -> Table | None:
    """Return how many prompts each system lacks, with examples; None if none is missing."""
    rows = [
        [row["system"], integer(row["n"]), "; ".join(row["examples"]) + "; …" * (row["n"] > len(row["examples"]))]
        for row in report["prompts"]["missing"]
    ]
    caption = "Prompts that some systems lack; comparisons leave them out."
    return Table(caption, pd.DataFrame(rows, columns=["System", "Missing prompts", "Which"])) if rows else None


def _estimates(values: Iterable[tuple[float | None, Sequence[float] | None]], least: int = 1) -> list[str]:
    """Format numbers and their intervals, with the decimals that these deserve."""
    pairs = list(values)
    digits = decimals(pairs, least)
    return [f"{number(value, digits)}\n{interval(ends, digits)}".strip() for value, ends in pairs]
