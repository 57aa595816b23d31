"""The tables of a report, as data frames whose cells are text; what is small below a number is on a line of its own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.formats import count, decimals, interval, number, p_value, with_p

_ARROWS = {"higher": "\u00a0↑", "lower": "\u00a0↓", None: ""}


class Table(NamedTuple):
    """A table with its caption."""

    caption: str
    frame: pd.DataFrame


def scores_table(report: Report, section: str) -> Table | None:
    """Return the means of the metrics of a section, a row for each system, the best first; None without metrics."""
    metrics = in_section(report, section)
    if not metrics:
        return None
    order = metrics[0]["order"]
    columns = {"System": [report["systems"][i] for i in order]}
    for metric in metrics:
        cells = _cells(metric["values"], "mean", "interval")
        if metric["best"] is not None:
            mean, _, ends = cells[metric["best"]].partition("\n")
            cells[metric["best"]] = f"{mean}*\n{ends}"
        columns[metric["title"] + _ARROWS[metric["better"]]] = [cells[i] for i in order]
    caption = (
        f"{section.capitalize()}: means over {count(len(report['prompts']), 'prompt')}, with "
        f"{100 * report['confidence']:g} % confidence intervals. ↑ higher is better, ↓ lower is better."
    )
    if any(metric["best"] is not None for metric in metrics):
        caption += " Starred: the paired tests against all other systems hold after Holm's adjustment."
    if section == "diversity" and report["pairs"]:
        cells = _cells(report["pairs"], "mean", "interval")
        columns["Pairs, all texts\u00a0↑"] = [cells[i] for i in order]
        caption += " Pairs: 1 over the mean squared similarity of two texts, at any number of texts."
    return Table(caption, pd.DataFrame(columns))


def tests_table(report: Report) -> Table | None:
    """Return the paired tests of all pairs of systems, a column for each metric; None for one system."""
    metrics, names = report["metrics"], report["systems"]
    if len(names) == 1:
        return None
    columns = {"Pair": [f"{names[test['a']]} − {names[test['b']]}" for test in metrics[0]["tests"]]}
    for metric in metrics:
        tests = metric["tests"]
        digits = decimals((test["difference"], test["interval"]) for test in tests)
        columns[metric["title"]] = [
            f"{number(test['difference'], digits, signed=True)}\n{with_p(test['p_holm'])}" for test in tests
        ]
    return Table("Mean differences, with p of the paired test after Holm's adjustment.", pd.DataFrame(columns))


def partition_table(report: Report) -> Table | None:
    """Return the partition of diversity among all systems and between pairs, the most different first."""
    alike, names = report["likeness"], report["systems"]
    if alike is None:
        return None
    whole = alike["partition"]
    parts = [{**whole, "p_holm": whole["p"], "least_p_holm": whole["least_p"]}, *alike["pairs"]]
    digits = decimals((part["between"], part["between_interval"]) for part in parts)
    columns = {
        "Systems": ["all systems", *(f"{names[pair['a']]} and {names[pair['b']]}" for pair in alike["pairs"])],
        "Share beyond chance,\u00a0%": _shares(parts),
        "Effective systems (beta)": _cells(parts, "between", "between_interval"),
        "by chance": [number(part["between_expected"], digits) for part in parts],
        "p": [p_value(part["p_holm"], part["least_p_holm"]) for part in parts],
    }
    caption = (
        f"Different texts on a prompt: {number(whole['within'], digits)} of one system (alpha), "
        f"{number(whole['pooled'], digits)} of all (gamma); beta is gamma / alpha. The share is 0 % if systems differ "
        "as by chance, 100 % if they have nothing in common, negative if they are more alike than by chance, such as "
        "by shared texts. p: permutation test, for pairs after Holm's adjustment."
    )
    return Table(caption, pd.DataFrame(columns))


def people_table(report: Report) -> Table | None:
    """Return how near each system is to people, the nearest first, with half of the people as the scale."""
    people = report["people"]
    if people is None:
        return None
    # Of two halves of the people, the other one is last.
    names = [*report["systems"], "half of the people"]
    rows = sorted(zip(people["rows"], names, strict=False), key=lambda row: row[0]["share"] or 0.0)
    columns = {
        "Beside people": [name for _, name in rows],
        "Share beyond chance,\u00a0%\u00a0↓": _shares([part for part, _ in rows]),
        "p": [p_value(part["p"], part["least_p"]) for part, _ in rows],
    }
    caption = (
        f"{count(people['n_texts'], 'text')} of each side on {count(people['n_prompts'], 'prompt')}. The share is 0 % "
        "if a system differs from people as by chance, and negative if it is nearer."
    )
    return Table(caption, pd.DataFrame(columns))


def sources_table(report: Report) -> Table:
    """Return what was read from each file."""
    keys = {"n_rows": "Rows", "n_bad": "Set aside", "n_prompts": "Prompts", "n_texts": "Texts"}
    columns = {"System": report["systems"], "File": [source["file"] for source in report["sources"]]}
    columns |= {title: [f"{source[key]:,}" for source in report["sources"]] for key, title in keys.items()}
    return Table("What was read.", pd.DataFrame(columns))


def _cells(parts: Sequence[dict[str, Any]], name: str, ends: str) -> list[str]:
    """Format numbers above their intervals."""
    digits = decimals((part[name], part[ends]) for part in parts)
    return [f"{number(part[name], digits)}\n{interval(part[ends], digits)}".strip() for part in parts]


def _shares(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Format shares beyond chance and their intervals, in percent."""
    cells = []
    for part in parts:
        share, ends = part["share"], part["share_interval"]
        shown = None if share is None else 100 * share
        cells.append(f"{number(shown, 1)}\n{interval(ends and [100 * end for end in ends], 1)}".strip())
    return cells
