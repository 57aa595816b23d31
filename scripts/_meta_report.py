"""The report of the meta-evaluation: for the terminal, as Markdown, and as a page with its pictures inside."""

import base64
import html as markup
import io
import os
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from scripts._files import write_text

# Accuracies that the paper prints, in percent. It names the encoder, SimCSE on RoBERTa-large, but not the checkpoint.
PAPER = {
    "self-BLEU-3": {"commongen_gpt4t, all": 48.4, "commongen_qwen, all": 50.7},
    "self-BLEU-4": {"commongen_gpt4t, all": 49.1, "commongen_qwen, all": 51.9},
    "VS-ngram-0.5": {"commongen_gpt4t, all": 49.2, "commongen_qwen, all": 57.7},
    "Distinct-4": {"commongen_gpt4t, all": 64.0, "commongen_qwen, all": 69.7},
    "Entropy-2": {"commongen_gpt4t, all": 63.0, "commongen_qwen, all": 74.0},
    "Chamfer": {"commongen_gpt4t, all": 80.6, "commongen_qwen, all": 78.9},
    "VS-Embed-0.5": {"commongen_gpt4t, all": 80.7, "commongen_qwen, all": 80.8},
}
_LABELS = {
    "original": "original",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
    "nonsensical": "nonsensical",
    "shuffle": "shuffled",
    "noun_shuffle": "NounShuff",
    "random_shuffle": "RndShuff",
}
# Reproducible pictures: no date, no random ids.
matplotlib.rcParams.update({"svg.hashsalt": "meta-evaluation", "svg.fonttype": "none", "font.size": 9})

Table = list[list[str]]


def terminal(report: dict[str, Any]) -> str:
    """Write the accuracies as plain text."""
    table = accuracy_table(report)
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([*lines, "", f"{reading(report)} * {WORSE}"])


WORSE = "The metric is worse than the best of its column by more than chance (p < 0.05)."


def reading(report: dict[str, Any]) -> str:
    """Say what the accuracies are."""
    settings = report["settings"]
    return (
        f"Agreement with the judge in %, with {100 * settings['level']:.0f} % bootstrap intervals. Ties "
        f"{settings['ties']}; {settings['left_out']} vague pairs are left out."
    )


def accuracy_table(report: dict[str, Any]) -> Table:
    """Lay out the accuracies: a row for each metric, a column for each part of the data."""
    head = ["metric", *(f"{cell['name']} ({cell['pairs']})" for cell in report["cells"])]
    rows = []
    for metric in report["metrics"]:
        row = [metric["name"]]
        for cell in report["cells"]:
            own = metric["cells"][cell["name"]]
            worse = own["p_against_best"] is not None and own["p_against_best"] < 0.05
            low, high = own["interval"] or [float("nan")] * 2
            row.append(f"{100 * own['accuracy']:.1f}{'*' * worse} [{100 * low:.1f}, {100 * high:.1f}]")
        rows.append(row)
    return [head, *rows]


def paper_table(report: dict[str, Any]) -> Table | None:
    """Set our accuracies beside those that the paper prints, where the data are its own."""
    names = [cell["name"] for cell in report["cells"] if cell["name"] in PAPER["Chamfer"]]
    if not names:
        return None
    found = [["metric", *(f"{name}: {whose}" for name in names for whose in ("here", "paper"))]]
    for metric in report["metrics"]:
        printed = PAPER.get(metric["name"])
        if printed:
            pairs = ((100 * metric["accuracy_by_parity"][name], printed[name]) for name in names)
            found.append([metric["name"], *(f"{value:.1f}" for pair in pairs for value in pair)])
    return found


def kappa_table(report: dict[str, Any]) -> Table:
    """Lay out Cohen's kappa; columns bear the numbers of the rows."""
    names, matrix = report["kappa"]["names"], report["kappa"]["matrix"]
    rows = [
        [f"{i}. {name}", *("" if value is None else f"{value:.2f}" for value in row)]
        for i, (name, row) in enumerate(zip(names, matrix, strict=True), 1)
    ]
    return [["", *(f"{i}." for i in range(1, len(names) + 1))], *rows]


def labels_of(report: dict[str, Any]) -> list[str]:
    """List the labels of candidate sets, the paper's in its order."""
    found = dict.fromkeys(label for own in report["distributions"].values() for label in own)
    return sorted(found, key=lambda label: (list(_LABELS).index(label) if label in _LABELS else len(_LABELS), label))


def label_table(report: dict[str, Any]) -> Table:
    """Lay out the median score of the sets of each label, and the middle half."""
    labels = labels_of(report)
    rows = [
        [name, *(f"{own[label]['median']:.3g} [{own[label]['q1']:.3g}, {own[label]['q3']:.3g}]" for label in labels)]
        for name, own in report["distributions"].items()
    ]
    return [["metric", *(_LABELS.get(label, label) for label in labels)], *rows]


def sections(report: dict[str, Any]) -> list[tuple[str, str, Table | None, str | None]]:
    """List the parts of a report: title, text, table, name of the picture."""
    settings = report["settings"]
    found: list[tuple[str, str, Table | None, str | None]] = [
        (
            "Agreement with the judge",
            f"{reading(report)} Pairs about the same thing are drawn together. An asterisk: {WORSE[0].lower()}"
            f"{WORSE[1:]} By paired approximate randomization.",
            accuracy_table(report),
            "agreement",
        )
    ]
    beside = paper_table(report)
    if beside:
        text = (
            "The numbers printed in arXiv 2506.00514, and ours by its rule that ties go to set 1. Our encoder is "
            f"{settings['model']}, the paper's is SimCSE on RoBERTa-large."
        )
        found.append(("Beside the paper", text, beside, None))
    text = (
        "Agreement of the metrics with each other and with the judge, beyond chance, over all pairs: 1 where two "
        "always choose the same set, 0 where no more often than chance."
    )
    found.append(("Cohen's kappa", text, kappa_table(report), "kappa"))
    if labels_of(report):
        text = (
            "How each metric scores sets that were made in different ways: median, and the middle half in brackets. "
            "The whiskers of the picture reach from 5 to 95 % of the sets."
        )
        found.append(("Scores by the way a set was made", text, label_table(report), "labels"))
    signatures = [["metric", "more diverse", "signature"]]
    signatures += [[own["name"], own["more_diverse"], own["signature"]] for own in report["metrics"]]
    found.append(("Settings", f"Files: {', '.join(settings['files'])}.", signatures, None))
    if settings["failures"]:
        found.append(("Left out", "", [["metric and reason"], *([failure] for failure in settings["failures"])], None))
    return found


TITLE = "Which diversity metric to believe"
INTRODUCTION = (
    "Each metric is an annotator who says which of two sets of texts is the more diverse, and is held against a judge "
    "(arXiv 2506.00514). Written by scripts/meta_eval.py."
)


def markdown(report: dict[str, Any], path: Path, folder: Path | None) -> str:
    """Write the report as Markdown.

    Parameters
    ----------
    path : where it will stand, so that its links lead to the pictures
    folder : where to write the pictures; None for none
    """
    drawn = pictures(report) if folder else {}
    lines = [f"# {TITLE}", "", INTRODUCTION]
    for title, text, table, picture in sections(report):
        lines += ["", f"## {title}", "", text]
        if folder and picture in drawn:
            write_text(folder / f"{picture}.svg", drawn[picture])
            link = os.path.relpath(folder / f"{picture}.svg", path.parent)
            lines += ["", f"![{title}]({Path(link).as_posix()})"]
        if table:
            cells = [[cell.replace("|", "\\|") for cell in row] for row in table]
            lines += ["", f"| {' | '.join(cells[0])} |", "|---" * len(cells[0]) + "|"]
            lines += [f"| {' | '.join(row)} |" for row in cells[1:]]
    return "\n".join(lines) + "\n"


_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8885; white-space: nowrap }
td.long { white-space: normal; overflow-wrap: anywhere }
img { max-width: 100%; background: white }
"""


def html(report: dict[str, Any]) -> str:
    """Write the report as a page with its pictures inside."""
    drawn = pictures(report)
    parts = []
    for title, text, table, picture in sections(report):
        parts.append(f"<h2>{markup.escape(title)}</h2><p>{markup.escape(text)}</p>")
        if picture in drawn:
            data = base64.b64encode(drawn[picture].encode()).decode()
            parts.append(f'<img alt="{markup.escape(title)}" src="data:image/svg+xml;base64,{data}">')
        if table:
            head = "".join(f"<th>{markup.escape(cell)}</th>" for cell in table[0])
            rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table[1:])
            parts.append(f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body><h1>{TITLE}</h1><p>{INTRODUCTION}</p>{''.join(parts)}</body></html>\n"
    )


def _cell(text: str) -> str:
    return f"<td{' class=long' if len(text) > 60 else ''}>{markup.escape(text)}</td>"


def pictures(report: dict[str, Any]) -> dict[str, str]:
    """Draw the report: name to SVG."""
    drawn = {"agreement": _agreement(report), "kappa": _heat_map(report)}
    if labels_of(report):
        drawn["labels"] = _boxes(report)
    found = {}
    for name, figure in drawn.items():
        file = io.StringIO()
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        # Without the declaration, the text can stand in a page too.
        found[name] = file.getvalue()[file.getvalue().index("<svg") :]
    return found


def _agreement(report: dict[str, Any]) -> Figure:
    names = [metric["name"] for metric in report["metrics"]]
    columns = report["cells"]
    figure = Figure(figsize=(2 + 1.8 * len(columns), 0.8 + 0.22 * len(names)))
    axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)
    for panel, cell in zip(axes[0], columns, strict=True):
        own = [metric["cells"][cell["name"]] for metric in report["metrics"]]
        middle = 100 * np.array([one["accuracy"] for one in own])
        ends = 100 * np.array([one["interval"] or [one["accuracy"]] * 2 for one in own])
        panel.errorbar(middle, range(len(names)), xerr=np.abs(ends.T - middle), fmt="o", markersize=3, linewidth=1)
        panel.axvline(50, color="grey", linewidth=0.8)
        panel.set_title(cell["name"].replace(", ", "\n"), fontsize=8)
        panel.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].invert_yaxis()
    figure.supxlabel("agreement with the judge, %; the line is a coin's", fontsize=8)
    return figure


def _heat_map(report: dict[str, Any]) -> Figure:
    names = report["kappa"]["names"]
    matrix = np.array([[np.nan if value is None else value for value in row] for row in report["kappa"]["matrix"]])
    size = 2.5 + 0.36 * len(names)
    figure = Figure(figsize=(size, size))
    panel = figure.subplots()
    panel.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu")
    panel.set_xticks(range(len(names)), names, rotation=90)
    panel.set_yticks(range(len(names)), names)
    for (i, j), value in np.ndenumerate(matrix):
        shown = "" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
        panel.text(j, i, shown, ha="center", va="center", fontsize=6.5, color="white" if abs(value) > 0.6 else "black")
    return figure


def _boxes(report: dict[str, Any]) -> Figure:
    labels = labels_of(report)
    metrics = list(report["distributions"].items())
    width = 4
    height = -(-len(metrics) // width)
    figure = Figure(figsize=(3 * width, 1.9 * height), layout="constrained")
    axes = figure.subplots(height, width, sharex=True, squeeze=False)
    for panel, (name, own) in zip(axes.flat, metrics, strict=False):
        boxes = [
            {
                "whislo": own[label]["p5"],
                "q1": own[label]["q1"],
                "med": own[label]["median"],
                "q3": own[label]["q3"],
                "whishi": own[label]["p95"],
            }
            for label in labels
        ]
        panel.bxp(boxes, showfliers=False, widths=0.6)
        panel.set_title(name, fontsize=9)
        panel.set_xticks(range(1, len(labels) + 1), [_LABELS.get(label, label) for label in labels], rotation=90)
        panel.tick_params(labelbottom=True)
    for panel in axes.flat[len(metrics) :]:
        panel.axis("off")
    return figure
