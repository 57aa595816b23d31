"""The picture of an evaluation: balanced agreement with the judge, by metric and part of the data."""

import numpy as np
import pandas as pd

from text_metrics.commands.meta_eval.tables import shown
from text_metrics.commands.shared.plots import new_figure, styled, to_svg


@styled()
def agreement_picture(agreement: pd.DataFrame) -> str:
    """Draw the balanced accuracies on clear pairs, with their intervals, as SVG."""
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
    return to_svg(figure, "Balanced accuracy on clear pairs, by metric and part of the data.")
