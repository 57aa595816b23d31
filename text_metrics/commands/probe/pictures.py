"""The pictures of text-metrics probe, as SVG that is the same for the same numbers."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from text_metrics.commands.shared.pages import to_svg

_styled = matplotlib.rc_context({"svg.hashsalt": "probe", "svg.fonttype": "none", "font.size": 9})
# So many levels are each named on the axis.
_FEW = 6


@_styled
def draw_report(report: dict[str, Any]) -> str:
    """Plot the divergence of each model beside that of people: all answers, and each answer once."""
    panels = {"all answers": report["against_people"], "each answer once": report["against_people_once"]}
    height = 1.2 + 0.3 * max(len(rows) for rows in panels.values())
    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    for panel, (title, rows) in zip(axes, panels.items(), strict=True):
        places = np.arange(len(rows))
        panel.scatter([row["own"] for row in rows], places, label="the model", zorder=3)
        panel.scatter([row["people"] for row in rows], places, marker="D", label="people", zorder=3)
        panel.hlines(places, [row["people"] for row in rows], [row["own"] for row in rows], color="grey", linewidth=1)
        panel.set_yticks(places, [row["name"] for row in rows])
        panel.invert_yaxis()
        panel.set_xlim(left=0)
        panel.grid(axis="x", alpha=0.3)
        panel.set_title(title, fontsize=9)
    axes[0].legend(fontsize=8, frameon=False)
    figure.supxlabel("KL(half of people ‖ the other answers), nats; lower is closer to people", fontsize=8)
    return to_svg(figure)


@_styled
def draw_annotators(result: dict[str, Any]) -> str:
    """Plot the divergence of m people from all, and the error of telling two distributions apart by m answers."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    sizes = result["sizes"]
    for smoothed, title in (("smoothed", "smoothed, as in probeval"), ("debiased", "debias=True")):
        curve = np.array([[point["mean"], point["low"], point["high"]] for point in result[smoothed]])
        left.plot(sizes, curve[:, 0], label=title)
        left.fill_between(sizes, curve[:, 1], curve[:, 2], alpha=0.2)
    left.set_ylabel("KL(all people ‖ m people), nats")
    left.set_xlabel("m; bands hold 90 % of samples")
    left.axhline(0, color="grey", linewidth=0.8)
    left.legend(fontsize=8, frameon=False)
    for divergence, errors in zip(result["divergences"], result["errors"], strict=True):
        right.plot(sizes, errors, label=f"{divergence:g} nats")
    right.axhline(result["wanted"], color="grey", linewidth=0.8, linestyle="--")
    right.set_ylabel(f"type II error, at a type I error of {100 * result['alpha']:g} %")
    right.set_xlabel("m")
    right.set_ylim(0, 1)
    right.legend(fontsize=8, frameon=False, title="divergence", title_fontsize=8)
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_xticks(sizes, [str(size) for size in sizes], rotation=90)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    return to_svg(figure)


@_styled
def draw_sensitivity(result: dict[str, Any]) -> str:
    """Plot how each score responds to each change: a row of panels for the scores in [0, 1], and one for probeval."""
    changes = result["changes"]
    figure = Figure(figsize=(3 * len(changes), 5.6), layout="constrained")
    axes = figure.subplots(2, len(changes), sharex="col", sharey="row", squeeze=False)
    for column, change in enumerate(changes):
        for i, name in enumerate(result["scores"]):
            panel, color = axes[0 if name == "probeval" else 1][column], matplotlib.colormaps["tab20"](i)
            panel.plot(change["levels"], change["curves"][name], marker=".", linewidth=1, label=name, color=color)
            panel.grid(alpha=0.3)
        if len(change["levels"]) <= _FEW:
            axes[1][column].set_xticks(change["levels"])
        axes[0][column].set_title(change["title"], fontsize=9)
        axes[1][column].set_xlabel(change["axis"])
    axes[0][0].set_ylabel("probeval, nats; lower is better")
    axes[1][0].set_ylabel("score; higher is better")
    axes[1][0].set_ylim(-0.02, 1.02)
    handles, labels = axes[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7, frameon=False)
    return to_svg(figure)


DRAWINGS = {"report": draw_report, "annotators": draw_annotators, "sensitivity": draw_sensitivity}
