"""The page of a report: one file of HTML with its pictures inside, and the same pictures and tables as files.

Nothing is read but the report, as in `report.json`. Cells of tables are text; what is small below a number is on a line
of its own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from text_metrics.commands.report.pictures import pictures
from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import count, decimals, interval, listed, number, p_value, printable, with_p
from text_metrics.commands.shared.plots import COLORS, themed
from text_metrics.commands.shared.tables import latex, markdown

_TEMPLATES = FileSystemLoader(Path(__file__).parent / "templates")
_ENVIRONMENT = Environment(loader=_TEMPLATES, autoescape=True, trim_blocks=True, lstrip_blocks=True)
_LATEX = "% For \\input in a document with \\usepackage[T1]{fontenc} and \\usepackage{booktabs,graphicx}.\n"
_ARROWS = {"higher": "\u00a0↑", "lower": "\u00a0↓", None: ""}


class Table(NamedTuple):
    """A table with its caption."""

    caption: str
    frame: pd.DataFrame


def write_pages(report: Report, folder: Path) -> None:
    """Write all files of a report but `report.json` into a folder."""
    drawn = pictures(report)
    for section, picture in drawn.items():
        write_text(folder / "figures" / f"{section}.svg", f"{picture.svg}\n")
    shown = tables(report)
    printed = [shown[section] for section in ("diversity", "quality", "likeness", "people") if section in shown]
    write_text(folder / "table.md", "\n".join(f"{table.caption}\n\n{markdown(table.frame)}" for table in printed))
    write_text(folder / "table.tex", _LATEX + "\n".join(latex(table.frame, table.caption) for table in printed))
    page = _ENVIRONMENT.get_template("report.html").render(
        title=f"Diversity of {listed(report['systems'])}",
        report=report,
        colors=COLORS,
        pictures={section: picture._replace(svg=themed(picture.svg)) for section, picture in drawn.items()},
        tables=shown,
    )
    write_text(folder / "index.html", printable(page))


def tables(report: Report) -> dict[str, Table]:
    """Return the tables of a report by name, without those that would be empty."""
    shown = {section: _scores(report, section) for section in ("diversity", "quality") if in_section(report, section)}
    if report["likeness"] is not None:
        shown |= {"tests": _tests(report), "likeness": _partition(report)}
    if report["people"] is not None:
        shown["people"] = _people(report)
    return {**shown, "sources": _sources(report)}


def _scores(report: Report, section: str) -> Table:
    """Return the means of the metrics of a section, the best system first."""
    metrics = in_section(report, section)
    order = metrics[0]["order"]
    columns = {"System": [report["systems"][i] for i in order]}
    for metric in metrics:
        cells = _cells(metric["values"], "mean", "interval")
        if metric["best"] is not None:
            cells[metric["best"]] = cells[metric["best"]].replace("\n", "*\n")
        columns[metric["title"] + _ARROWS[metric["better"]]] = [cells[i] for i in order]
    level, n = 100 * report["confidence"], count(len(report["prompts"]), "prompt")
    caption = f"{section.capitalize()}: means over {n} with {level:g} % intervals. ↑ higher, ↓ lower is better."
    if any(metric["best"] is not None for metric in metrics):
        caption += " * beats every other system in paired tests (Holm)."
    if section == "diversity" and report["pairs"]:
        cells = _cells(report["pairs"], "mean", "interval")
        columns["Pairs, all texts\u00a0↑"] = [cells[i] for i in order]
    return Table(caption, pd.DataFrame(columns))


def _tests(report: Report) -> Table:
    """Return the paired tests, a row for each pair of systems."""
    metrics, names = report["metrics"], report["systems"]
    columns = {"Pair": [f"{names[test['a']]} − {names[test['b']]}" for test in metrics[0]["tests"]]}
    for metric in metrics:
        tests = metric["tests"]
        digits = decimals((test["difference"], test["interval"]) for test in tests)
        columns[metric["title"]] = [
            f"{number(test['difference'], digits, signed=True)}\n{with_p(test['p_holm'])}" for test in tests
        ]
    return Table("Mean differences, with p of the paired test after Holm's adjustment.", pd.DataFrame(columns))


def _partition(report: Report) -> Table:
    """Return the partition of diversity, the most different pair first."""
    alike, names = report["likeness"], report["systems"]
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
    alpha, gamma = (number(whole[name], digits) for name in ("within", "pooled"))
    caption = f"Different texts on a prompt: {alpha} of one system (alpha), {gamma} of all (gamma)."
    return Table(caption, pd.DataFrame(columns))


def _people(report: Report) -> Table:
    """Return how near each system is to people, the nearest first."""
    people = report["people"]
    # Of two halves of the people, the other one is last.
    names = [*report["systems"], "half of the people"]
    rows = sorted(zip(people["rows"], names, strict=False), key=lambda row: row[0]["share"] or 0.0)
    columns = {
        "Beside people": [name for _, name in rows],
        "Share beyond chance,\u00a0%\u00a0↓": _shares([part for part, _ in rows]),
        "p": [p_value(part["p"], part["least_p"]) for part, _ in rows],
    }
    n_texts, n_prompts = count(people["n_texts"], "text"), count(people["n_prompts"], "prompt")
    return Table(f"{n_texts} of each side on {n_prompts}.", pd.DataFrame(columns))


def _sources(report: Report) -> Table:
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
        share, ends = part["share"], part["share_interval"] or []
        value = number(None if share is None else 100 * share, 1)
        cells.append(f"{value}\n{interval([100 * end for end in ends] or None, 1)}".strip())
    return cells
