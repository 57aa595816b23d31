"""The pictures of an evaluation: agreement with the judge, Cohen's kappa by quality, and scores by kind of set."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from text_metrics.commands.meta_eval.tables import LABELS, labels_of, shown

# What matplotlib calls the quantiles of a box.
_BOX = {"whislo": "p5", "q1": "q1", "med": "median", "q3": "q3", "whishi": "p95"}


def pictures(report: dict[str, Any]) -> dict[str, Figure]:
    """Draw what the results allow, by name."""
    drawn: dict[str, Figure] = {}
    if "metrics" in report:
        drawn |= {"agreement": _agreement(report), "kappa": _heat_maps(report["kappa"])}
    if labels_of(report):
        drawn["distributions"] = _boxes(report)
    return drawn


def _agreement(report: dict[str, Any]) -> Figure:
    names = [shown(metric["name"]) for metric in report["metrics"]]
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


def _heat_maps(kappa: dict[str, Any]) -> Figure:
    names, parts = [shown(name) for name in kappa["names"]], list(kappa["matrices"])
    size = 1.2 + 0.3 * len(names)
    figure = Figure(figsize=(size * len(parts) + 1.5, size + 1), layout="constrained")
    axes = figure.subplots(1, len(parts), sharey=True, squeeze=False)
    for panel, part in zip(axes[0], parts, strict=True):
        matrix = np.array(kappa["matrices"][part], dtype=float)
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
    labels, metrics = labels_of(report), list(report["distributions"].items())
    height = -(-len(metrics) // 4)
    figure = Figure(figsize=(12, 1.9 * height), layout="constrained")
    axes = figure.subplots(height, 4, sharex=True, squeeze=False)
    for panel, (name, by_label) in zip(axes.flat, metrics, strict=False):
        boxes = [{key: by_label[label][quantile] for key, quantile in _BOX.items()} for label in labels]
        panel.bxp(boxes, showfliers=False, widths=0.6)
        panel.set_title(name, fontsize=9)
        panel.set_xticks(range(1, len(labels) + 1), [LABELS.get(label, label) for label in labels], rotation=90)
        panel.tick_params(labelbottom=True)
    for panel in axes.flat[len(metrics) :]:
        panel.axis("off")
    return figure
