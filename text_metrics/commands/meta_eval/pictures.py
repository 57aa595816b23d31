"""The pictures of an evaluation: agreement with the judge, Cohen's kappa by quality, and scores by kind of set."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from text_metrics.commands.meta_eval.tables import LABELS, Results, ordered_labels, shown
from text_metrics.commands.shared.plots import new_figure, styled

# What matplotlib calls the quantiles of a box.
_BOX = {"whislo": "p5", "q1": "q1", "med": "median", "q3": "q3", "whishi": "p95"}


@styled()
def pictures(results: Results) -> dict[str, Figure]:
    """Draw what the results allow, by name."""
    drawn: dict[str, Figure] = {}
    if "agreement" in results:
        drawn |= {"agreement": _agreement(results["agreement"]), "kappa": _heat_maps(results["kappa"])}
    if "distributions" in results:
        drawn["distributions"] = _boxes(results["distributions"])
    return drawn


def _agreement(agreement: pd.DataFrame) -> Figure:
    clear = agreement[agreement["pairs"] == "clear"]
    names = list(clear["metric"].unique())
    panels = list(clear.groupby("cell", sort=False))
    figure = new_figure(260 + 115 * len(panels), 60 + 16 * len(names))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, (cell, frame) in zip(axes[0], panels, strict=True):
        shares = 100 * frame.set_index("metric").loc[names, ["balanced", "balanced_low", "balanced_high"]].to_numpy()
        bars = np.nan_to_num(np.abs(shares[:, 1:] - shares[:, [0]])).T
        panel.errorbar(shares[:, 0], range(len(names)), xerr=bars, fmt="o", markersize=3, linewidth=1)
        panel.axvline(50, color="grey", linewidth=0.8)
        panel.set_title(str(cell).replace(", ", "\n"), fontsize=9)
        panel.grid(axis="x")
    axes[0][0].set_yticks(range(len(names)), list(map(shown, names)))
    axes[0][0].invert_yaxis()
    figure.supxlabel("balanced accuracy on clear pairs, %; the line is chance", fontsize=9)
    return figure


def _heat_maps(kappa: pd.DataFrame) -> Figure:
    names, panels = list(kappa["first"].unique()), list(kappa.groupby(["part", "n"], sort=False))
    size = 90 + 22 * len(names)
    figure = new_figure(size * len(panels) + 110, size + 70)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, ((part, n), frame) in zip(axes[0], panels, strict=True):
        matrix = frame.pivot(index="first", columns="second", values="kappa").loc[names, names].to_numpy()
        panel.imshow(matrix, vmin=-1, vmax=1, cmap="RdBu")
        panel.set_title(f"{part}, {n} pairs", fontsize=9)
        panel.set_xticks(range(len(names)), list(map(shown, names)), rotation=90, fontsize=7)
        panel.set_yticks(range(len(names)), list(map(shown, names)), fontsize=7)
        for (i, j), value in np.ndenumerate(matrix):
            text = "" if np.isnan(value) else f"{value:.2f}"
            panel.text(j, i, text, ha="center", va="center", fontsize=5, color="white" if abs(value) > 0.6 else "black")
    return figure


def _boxes(distributions: pd.DataFrame) -> Figure:
    labels, panels = ordered_labels(distributions), list(distributions.groupby("metric", sort=False))
    height = -(-len(panels) // 4)
    figure = new_figure(860, 140 * height)
    axes = figure.subplots(height, 4, sharex=True, squeeze=False)
    for panel in axes.flat[len(panels) :]:
        panel.axis("off")
    for panel, (name, frame) in zip(axes.flat, panels, strict=False):
        boxes = frame.set_index("label").loc[labels].rename(columns={q: name for name, q in _BOX.items()})
        panel.bxp(boxes[list(_BOX)].to_dict("records"), showfliers=False, widths=0.6)
        panel.set_title(name, fontsize=9)
        panel.set_xticks(range(1, len(labels) + 1), [LABELS.get(label, label) for label in labels], rotation=90)
        panel.tick_params(labelbottom=True)
    return figure
