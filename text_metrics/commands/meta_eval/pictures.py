"""The pictures of the report, as deterministic SVG: without a date, with fixed identifiers."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from text_metrics.commands.meta_eval.generated_sets import POORER
from text_metrics.commands.meta_eval.report import LABELS, labels_of, shown, with_signature
from text_metrics.commands.shared.pages import to_svg

matplotlib.rcParams.update({"svg.hashsalt": "meta-evaluation", "svg.fonttype": "none", "font.size": 9})
# What matplotlib calls the quantiles of a box.
_BOX = {"whislo": "p5", "q1": "q1", "med": "median", "q3": "q3", "whishi": "p95"}


def pictures(report: dict[str, Any]) -> dict[str, str]:
    """Draw the report: name to SVG."""
    drawn = {}
    if "kinds" in report:
        drawn["qualities"] = _qualities(report["kinds"])
    if "people" in report:
        drawn["people"] = _people(report)
    if "metrics" in report:
        drawn |= {"agreement": _agreement(report), "kappa": _heat_maps(report)}
    if labels_of(report):
        drawn["labels"] = _boxes(report)
    return {name: to_svg(figure) for name, figure in drawn.items()}


def _qualities(kinds: dict[str, Any]) -> Figure:
    """Draw how often the original is above each poorer kind, by Vendi scores with and without quality."""
    rows = {row["name"]: row for row in kinds["metrics"]}
    names = [name for name in rows if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]
    names = names or list(rows)[:4]
    generators = [generator["name"] for generator in kinds["generators"]]
    figure = Figure(figsize=(2.6 * len(generators) + 1, 3.4), layout="constrained")
    axes = figure.subplots(1, len(generators), sharey=True, squeeze=False)
    positions = np.arange(len(kinds["kinds"]))
    height = 0.8 / len(names)
    for panel, generator in zip(axes[0], generators, strict=True):
        for i, name in enumerate(names):
            results = [rows[name]["above"][generator][kind] for kind in kinds["kinds"]]
            shares = 100 * np.array([result["share"] for result in results])
            ends = 100 * np.array([result["interval"] or [result["share"]] * 2 for result in results])
            panel.barh(
                positions + (i - (len(names) - 1) / 2) * height,
                shares,
                height,
                xerr=np.abs(ends.T - shares),
                error_kw={"linewidth": 0.8},
                label=shown(rows[name]),
            )
        panel.axvline(50, color="grey", linewidth=0.8)
        panel.set_xlim(0, 100)
        panel.set_title(generator, fontsize=9)
    axes[0][0].set_yticks(positions, [POORER[kind] for kind in kinds["kinds"]])
    axes[0][0].invert_yaxis()
    figure.supxlabel("original ranked above, %; the line is chance", fontsize=8)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(names), fontsize=8, frameon=False)
    return figure


def _people(report: dict[str, Any]) -> Figure:
    people = report["people"]
    names = [shown(with_signature(row, report)) for row in people]
    figure = Figure(figsize=(6, 0.8 + 0.22 * len(names)), layout="constrained")
    panel = figure.subplots()
    middle = 100 * np.array([row["majority"] for row in people])
    ends = 100 * np.array([row["majority_interval"] or [row["majority"]] * 2 for row in people])
    panel.errorbar(middle, range(len(names)), xerr=np.abs(ends.T - middle), fmt="o", markersize=3, linewidth=1)
    panel.axvline(50, color="grey", linewidth=0.8)
    panel.grid(axis="x", alpha=0.3)
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.set_xlabel("agreement with most people, %; the line is chance", fontsize=8)
    return figure


def _agreement(report: dict[str, Any]) -> Figure:
    names = [shown(metric) for metric in report["metrics"]]
    columns = [cell for cell in report["cells"] if cell["name"] in report["metrics"][0]["clear_cells"]]
    figure = Figure(figsize=(2 + 1.6 * len(columns), 0.8 + 0.22 * len(names)))
    axes = figure.subplots(1, len(columns), sharey=True, squeeze=False)
    for panel, cell in zip(axes[0], columns, strict=True):
        results = [metric["clear_cells"][cell["name"]] for metric in report["metrics"]]
        middle = np.array([np.nan if result["balanced"] is None else 100 * result["balanced"] for result in results])
        ends = np.array([result["balanced_interval"] or [np.nan] * 2 for result in results], dtype=float)
        bars = np.nan_to_num(np.abs(100 * ends.T - middle))
        panel.errorbar(middle, range(len(names)), xerr=bars, fmt="o", markersize=3, linewidth=1)
        panel.axvline(50, color="grey", linewidth=0.8)
        panel.set_title(cell["name"].replace(", ", "\n"), fontsize=8)
        panel.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(names)), names)
    axes[0][0].invert_yaxis()
    figure.supxlabel("balanced accuracy on clear pairs, %; the line is chance", fontsize=8)
    return figure


def _heat_maps(report: dict[str, Any]) -> Figure:
    kappa = report["kappa"]
    names = [shown(with_signature({"name": name}, report)) for name in kappa["names"]]
    size = 1.2 + 0.3 * len(names)
    parts = list(kappa["matrices"])
    figure = Figure(figsize=(size * len(parts) + 1.5, size + 1), layout="constrained")
    axes = figure.subplots(1, len(parts), sharey=True, squeeze=False)
    for panel, part in zip(axes[0], parts, strict=True):
        rows = kappa["matrices"][part]
        matrix = np.array([[np.nan if value is None else value for value in row] for row in rows])
        panel.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu")
        panel.set_title(f"{part}, {kappa['pairs'][part]} pairs", fontsize=9)
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        panel.set_yticks(range(len(names)), names, fontsize=7)
        for (i, j), value in np.ndenumerate(matrix):
            number = "" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
            color = "white" if abs(value) > 0.6 else "black"
            panel.text(j, i, number, ha="center", va="center", fontsize=5, color=color)
    return figure


def _boxes(report: dict[str, Any]) -> Figure:
    labels = labels_of(report)
    metrics = list(report["distributions"].items())
    width = 4
    height = -(-len(metrics) // width)
    figure = Figure(figsize=(3 * width, 1.9 * height), layout="constrained")
    axes = figure.subplots(height, width, sharex=True, squeeze=False)
    for panel, (name, by_label) in zip(axes.flat, metrics, strict=False):
        boxes = [{key: by_label[label][quantile] for key, quantile in _BOX.items()} for label in labels]
        panel.bxp(boxes, showfliers=False, widths=0.6)
        panel.set_title(name, fontsize=9)
        panel.set_xticks(range(1, len(labels) + 1), [LABELS.get(label, label) for label in labels], rotation=90)
        panel.tick_params(labelbottom=True)
    for panel in axes.flat[len(metrics) :]:
        panel.axis("off")
    return figure
