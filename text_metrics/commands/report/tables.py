"""The tables of a report, as data frames whose cells are text; what is small below a number is on a line of its own."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.formats import (
    count,
    decimals,
    integer,
    interval,
    level,
    number,
    p_value,
    percent,
    percent_interval,
    with_p,
)

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
        f"{section.capitalize()}: means over {count(report['prompts']['n'], 'prompt')} with "
        f"{level(report)} intervals. ↑ higher is better, ↓ lower is better."
    )
    best = {(order.index(metric["best"]), j) for j, metric in enumerate(metrics, 1) if metric["best"] is not None}
    if best:
        caption += " Bold: the paired tests against all other systems hold after Holm's adjustment."
    return Table(caption, pd.DataFrame(columns), frozenset(best))


def tests_table(report: Report) -> Table | None:
    """Return the paired tests of all pairs of systems, a column for each metric; None for one system."""
    metrics, names, alpha = report["metrics"], report["systems"], 1 - report["confidence"]
    columns = [[f"{names[test['a']]} − {names[test['b']]}" for test in metrics[0]["tests"]]]
    marked = set()
    for j, metric in enumerate(metrics, 1):
        tests = metric["tests"]
        digits = decimals((test["difference"], test["interval"]) for test in tests)
        columns.append([f"{number(t['difference'], digits, signed=True)}\n{with_p(t['p_holm'])}" for t in tests])
        marked |= {(i, j) for i, test in enumerate(tests) if test["p_holm"] is not None and test["p_holm"] < alpha}
    caption = f"Mean differences, with p of the paired test after Holm's adjustment. Bold: p < {alpha:.2g}."
    titles = ["Pair", *(metric["title"] for metric in metrics)]
    frame = pd.DataFrame(dict(enumerate(columns))).set_axis(titles, axis=1)
    return Table(caption, frame, frozenset(marked)) if len(frame) else None


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
    names: dict[int | None, str] = {None: "half of the people", **dict(enumerate(report["systems"]))}
    columns = {
        "Beside people": [names[row["system"]] for row in rows],
        "Share beyond chance ↓": [
            f"{percent(row['share'], 1)}\n{percent_interval(row.get('interval'), 1)}" for row in rows
        ],
        "p": [p_value(row["p"], row["least_p"]) for row in rows],
        "Mean length, words": [
            number(row["mean_length"], 1) + "\nunlike people's" * row["length_warning"] for row in rows
        ],
    }
    caption = (
        f"{count(people['n_texts'], 'text')} of each side, {level(report)} intervals. The share is "
        "0\u00a0% if a system differs from people as by chance, and negative if it is nearer than that."
    )
    return Table(caption, pd.DataFrame(columns))


def sources_table(report: Report) -> Table:
    """Return what was read from each file."""
    keys = {"n_rows": "Rows", "n_bad": "Set aside", "n_prompts": "Prompts", "n_texts": "Texts"}
    columns = {"System": report["systems"], "File": [source["file"] for source in report["sources"]]}
    columns |= {title: [integer(source[key]) for source in report["sources"]] for key, title in keys.items()}
    columns["Texts of a prompt"] = [
        " / ".join(f"{size:g}" for size in source["set_sizes"]) for source in report["sources"]
    ]
    return Table("What was read; texts of a prompt: least / median / most.", pd.DataFrame(columns))


def _estimates(values: Iterable[tuple[float | None, Sequence[float] | None]]) -> list[str]:
    """Format numbers and their intervals, with the decimals that these deserve."""
    pairs = list(values)
    digits = decimals(pairs)
    return [f"{number(value, digits)}\n{interval(ends, digits)}".strip() for value, ends in pairs]
