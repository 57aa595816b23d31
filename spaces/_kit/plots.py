"""Figures that several demos share, in one style.

`style.css` sets the colours of text and background in light and dark mode; the colours set here are legible in both.
Plotly interprets some HTML in labels, so all text of a visitor passes through `label`.
"""

import html
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .core import TIE, first_maximum

SERIES = ("#6366f1", "#e5622b")
_HATCHES, _SYMBOLS = ("", "/"), ("circle", "diamond")
# Up to this size a cell of a heat map has room for its value.
_LEGIBLE = 8


def label(text: str, width: int = 60, lines: int = 6) -> str:
    """Escape, wrap and truncate a text for a label."""
    wrapped = textwrap.wrap(text, width, max_lines=lines, placeholder="…") or ["(empty)"]
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        # Isolates, so that each line runs in the direction of its script.
        wrapped = [f"\u2068{line}\u2069" for line in wrapped]
    # Plotly decodes entities after it has parsed tags.
    return "<br>".join(html.escape(line, quote=False) for line in wrapped)


def _figure(height: int, *, legend: bool = False) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 44, "r": 12, "t": 36 if legend else 10, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "IBM Plex Sans, system-ui, sans-serif", "size": 13, "color": "#8a8fa3"},
        showlegend=legend,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "xanchor": "left"},
        hoverlabel={"bgcolor": "#1e2130", "bordercolor": "#1e2130", "font": {"color": "#ffffff"}, "align": "left"},
        barcornerradius=3,
        dragmode=False,
    )
    figure.update_xaxes(gridcolor="rgba(138,143,163,.22)", zeroline=False, fixedrange=True, automargin=True)
    figure.update_yaxes(gridcolor="rgba(138,143,163,.22)", zeroline=False, fixedrange=True, automargin=True)
    return figure


def heat_map(similarity: np.ndarray, names: Sequence[str], texts: Sequence[str]) -> go.Figure:
    """Draw a similarity matrix of n texts, of shape (n, n), with their short names."""
    rgb = ", ".join(str(int(SERIES[0][i : i + 2], 16)) for i in (1, 3, 5))
    hovers = [label(text, 48, 2) for text in texts]
    figure = _figure(60 + max(240, min(420, 60 * len(texts))))
    figure.add_heatmap(
        z=similarity.tolist(),
        x=names,
        y=names,
        zmin=0,
        zmax=1,
        # Transparent to opaque, because the background is light or dark.
        colorscale=[[0, f"rgba({rgb}, 0.04)"], [1, f"rgba({rgb}, 0.62)"]],
        xgap=2,
        ygap=2,
        customdata=[[[a, b] for b in hovers] for a in hovers],
        texttemplate="%{z:.2f}" if len(texts) <= _LEGIBLE else None,
        hovertemplate="%{y}: %{customdata[0]}<br>%{x}: %{customdata[1]}<br>similarity %{z:.3f}<extra></extra>",
        colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickvals": [0, 0.5, 1]},
    )
    figure.update_xaxes(type="category", showgrid=False, constrain="domain")
    figure.update_yaxes(type="category", showgrid=False, autorange="reversed")
    return figure


def positions(similarity: np.ndarray) -> np.ndarray:
    """Place n texts in two dimensions, (n, 2), by classical scaling of their cosines, of shape (n, n)."""
    centred = similarity - similarity.mean(0) - similarity.mean(1)[:, None] + similarity.mean()
    values, vectors = np.linalg.eigh(centred)
    axes = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    # Eigenvectors have no sign of their own.
    signs = np.sign(axes[first_maximum(np.abs(axes), 0), [0, 1]])
    return axes * np.where(signs == 0, 1.0, signs)


def text_map(
    similarity: np.ndarray, names: Sequence[str], texts: Sequence[str], groups: Mapping[str, Sequence[int]], near: float
) -> go.Figure:
    """Draw n texts, n >= 2, as a map, with lines between those whose cosine is at least `near`.

    groups : the indices of the texts of each set
    """
    places = positions(similarity)
    figure = _figure(360, legend=len(groups) > 1)
    ends = np.argwhere(np.triu(similarity >= near - TIE, 1))
    lines = np.full((len(ends), 3, 2), np.nan)
    lines[:, :2] = places[ends]
    grey = {"color": "rgba(138,143,163,.7)", "width": 1.5}
    figure.add_scatter(
        x=lines[..., 0].ravel().tolist(),
        y=lines[..., 1].ravel().tolist(),
        mode="lines",
        line=grey,
        hoverinfo="skip",
        showlegend=False,
    )
    for series, (name, members) in enumerate(groups.items()):
        # Texts at one place have one mark.
        marks: dict[int, list[int]] = {}
        for i in members:
            marks.setdefault(next(j for j in members if similarity[i, j] >= 1 - TIE), []).append(i)
        figure.add_scatter(
            x=places[list(marks), 0].tolist(),
            y=places[list(marks), 1].tolist(),
            mode="markers+text",
            name=html.escape(name, quote=False),
            marker={"color": SERIES[series], "symbol": _SYMBOLS[series], "size": 11},
            text=[", ".join(names[i] for i in of_mark) for of_mark in marks.values()],
            textposition="top center",
            customdata=["<br>".join(label(texts[i], 60, 3) for i in of_mark) for of_mark in marks.values()],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_traces(cliponaxis=False)
    figure.update_xaxes(showticklabels=False, showgrid=False)
    figure.update_yaxes(showticklabels=False, showgrid=False, scaleanchor="x")
    figure.update_layout(margin={"l": 24, "r": 24, "b": 16})
    return figure


def bars(
    groups: Mapping[str, Sequence[float | None]],
    names: Sequence[str],
    title: str,
    hovers: Sequence[str] | None = None,
    *,
    is_shared: bool = False,
) -> go.Figure:
    """Draw horizontal bars from top to bottom, for each name one of each group; None is left out.

    title : of the axis of the values
    hovers : text of each name; the name itself by default
    is_shared : whether each name has a bar of one group only
    """
    per_name = 1 if is_shared else len(groups)
    figure = _figure(110 + max(38 if is_shared else 24, 18 * per_name + 8) * len(names), legend=len(groups) > 1)
    # Positions, because truncated names may be equal.
    places = list(range(len(names)))
    for i, (name, values) in enumerate(groups.items()):
        figure.add_bar(
            y=places,
            x=list(values),
            orientation="h",
            name=html.escape(name, quote=False),
            # Hatching distinguishes the series without colour.
            marker={"color": SERIES[i], "pattern": _hatching(i)},
            customdata=[label(text) for text in hovers or names],
            hovertemplate="%{customdata}<br>%{x:.3f}<extra>%{fullData.name}</extra>",
        )
    labels = [label(name, 26, 2) for name in names]
    figure.update_yaxes(tickvals=places, ticktext=labels, autorange="reversed", showgrid=False, ticklabelstandoff=6)
    figure.update_xaxes(title=title, zeroline=True, zerolinecolor="rgba(138,143,163,.6)")
    barmode = "overlay" if is_shared else "group"
    figure.update_layout(bargap=0.28, barmode=barmode, legend_traceorder="normal")
    return figure


def _hatching(i: int) -> dict[str, Any]:
    return {"shape": _HATCHES[i], "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.45, "size": 7}
