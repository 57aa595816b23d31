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

from .panels import shorten

SERIES = ("#6366f1", "#e5622b", "#0d9488", "#a16207", "#be185d")
_HATCHES = ("", "/", "x", ".", "-")
GREY = "#8a8fa3"
# Smaller values are not told from 0.
_NOTHING = 1e-6
# Up to this size a cell of a heat map has room for its value.
_LEGIBLE = 8


def label(text: str, width: int = 60, lines: int = 6) -> str:
    """Escape, wrap and truncate a text for a label."""
    wrapped = textwrap.wrap(shorten(text, width * lines), width) or ["(empty)"]
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        # Isolates, so that each line runs in the direction of its script.
        wrapped = [f"\u2068{line}\u2069" for line in wrapped]
    # Plotly decodes entities after it has parsed tags.
    return "<br>".join(html.escape(line, quote=False) for line in wrapped)


def figure(height: int, *, legend: bool = False) -> go.Figure:
    """Return an empty figure in the common style."""
    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 44, "r": 12, "t": 36 if legend else 10, "b": 40},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "IBM Plex Sans, system-ui, sans-serif", "size": 13, "color": GREY},
        showlegend=legend,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "xanchor": "left"},
        hoverlabel={"bgcolor": "#1e2130", "bordercolor": "#1e2130", "font": {"color": "#ffffff"}, "align": "left"},
        barcornerradius=3,
        dragmode=False,
    )
    figure.update_xaxes(gridcolor="rgba(138,143,163,.22)", zeroline=False, fixedrange=True, automargin=True)
    figure.update_yaxes(gridcolor="rgba(138,143,163,.22)", zeroline=False, fixedrange=True, automargin=True)
    return figure


def heat_map(similarity: np.ndarray, texts: Sequence[str], series: int = 0, what: str = "text") -> go.Figure:
    """Draw a similarity matrix of shape (n, n) of texts, or of what else is named; NaN stays blank."""
    numbers = [str(i + 1) for i in range(len(texts))]
    rgb = ", ".join(str(int(SERIES[series][i : i + 2], 16)) for i in (1, 3, 5))
    names = [label(text, 48, 2) for text in texts]
    picture = figure(60 + max(240, min(420, 60 * len(texts))))
    picture.add_heatmap(
        z=[[None if np.isnan(value) else value for value in row] for row in similarity.tolist()],
        x=numbers,
        y=numbers,
        zmin=0,
        zmax=1,
        # Transparent to opaque, because the background is light or dark.
        colorscale=[[0, f"rgba({rgb}, 0.04)"], [1, f"rgba({rgb}, 0.62)"]],
        xgap=2,
        ygap=2,
        customdata=[[[a, b] for b in names] for a in names],
        texttemplate="%{z:.2f}" if len(texts) <= _LEGIBLE else None,
        hovertemplate="%{y}: %{customdata[0]}<br>%{x}: %{customdata[1]}<br>similarity %{z:.3f}<extra></extra>",
        colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickvals": [0, 0.5, 1]},
    )
    picture.update_xaxes(type="category", showgrid=False, constrain="domain", title=what)
    picture.update_yaxes(type="category", showgrid=False, autorange="reversed", title=what)
    return picture


def _fill(i: int) -> dict[str, Any]:
    # Hatching distinguishes the series without colour.
    hatching = {"shape": _HATCHES[i], "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.45, "size": 7}
    return {"color": SERIES[i], "pattern": hatching}


def curves(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], x_title: str, y_title: str, hover: str
) -> go.Figure:
    """Draw a line chart with one line for each name."""
    picture = figure(300, legend=len(lines) > 1)
    for i, (name, (x, y)) in enumerate(lines.items()):
        picture.add_scatter(
            x=list(x),
            y=list(y),
            name=html.escape(name, quote=False),
            mode="lines+markers",
            line={"color": SERIES[i], "width": 2.5, "dash": "dash" if i % 2 else "solid"},
            marker={"size": 7, "symbol": i},
            hovertemplate=hover,
        )
    picture.update_xaxes(title=x_title)
    picture.update_yaxes(title=y_title)
    return picture


def bars(groups: Mapping[str, Sequence[float | None]], categories: Sequence[str], title: str) -> go.Figure:
    """Draw a bar chart with a group of bars for each category, one for each name."""
    picture = figure(300, legend=len(groups) > 1)
    for i, (name, values) in enumerate(groups.items()):
        picture.add_bar(
            x=list(categories),
            y=list(values),
            name=html.escape(name, quote=False),
            marker=_fill(i),
            hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        )
    picture.update_xaxes(type="category", showgrid=False)
    picture.update_yaxes(title=title, rangemode="tozero")
    if all(abs(value or 0) < _NOTHING for values in groups.values() for value in values):
        # Else rounding errors would fill the figure.
        picture.update_yaxes(range=[0, 1])
    return picture


def paired_bars(
    groups: Mapping[str, Sequence[float]],
    names: Sequence[str],
    title: str,
    hovers: Sequence[str] | None = None,
    first: int = 0,
) -> go.Figure:
    """Draw horizontal bars, grouped by name, from top to bottom.

    first : index of the colour of the first group
    """
    picture = figure(90 + max(46, 20 * (first + len(groups))) * len(names), legend=len(groups) > 1)
    labels = [label(name, 26, 2) for name in names]
    # Positions, because truncated names may be equal.
    places = list(range(len(names)))
    for i, (name, values) in enumerate(groups.items(), first):
        picture.add_bar(
            y=places,
            x=list(values),
            orientation="h",
            name=html.escape(name, quote=False),
            marker=_fill(i),
            customdata=hovers or labels,
            hovertemplate="%{customdata}<br>%{x:.3f}<extra>%{fullData.name}</extra>",
        )
    picture.update_yaxes(tickvals=places, ticktext=labels, autorange="reversed", showgrid=False, ticklabelstandoff=6)
    picture.update_xaxes(title=title)
    picture.update_layout(bargap=0.28, legend_traceorder="normal")
    return picture


def ranked_bars(items: Sequence[tuple[str, float, int, str]], names: Sequence[str], title: str) -> go.Figure:
    """Draw horizontal bars from top to bottom.

    items : label, value, group and text of each
    names : of the groups
    """
    picture = figure(max(300, 90 + (26 if len(items) <= 20 else 18) * len(items)), legend=len(names) > 1)
    for i, name in enumerate(names):
        members = [item for item in items if item[2] == i]
        picture.add_bar(
            y=[html.escape(item[0], quote=False) for item in members],
            x=[item[1] for item in members],
            orientation="h",
            name=html.escape(name, quote=False),
            marker=_fill(i),
            customdata=[label(item[3]) for item in members],
            hovertemplate="%{customdata}<br>%{x:.3f}<extra></extra>",
        )
    order = [html.escape(item[0], quote=False) for item in items]
    picture.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=order,
        autorange="reversed",
        showgrid=False,
        ticklabelstandoff=6,
    )
    picture.update_xaxes(title=title, rangemode="tozero")
    picture.update_layout(bargap=0.3, barmode="overlay")
    return picture


def steps(parts: Sequence[tuple[str, float]], total: float, title: str, start: float = 0) -> go.Figure:
    """Draw a waterfall chart of parts that add up to a total."""
    picture = figure(320)
    names, drawn, places, level = [name for name, _ in parts], [], [], start
    for _, value in parts:
        # The score stops at 0, below which the names are.
        drawn.append(max(value, -level))
        level += drawn[-1]
        places.append("inside" if drawn[-1] < 0 and level <= 0 else "outside")
    picture.add_waterfall(
        x=[*names, "Score"],
        y=[*drawn, total],
        measure=[*["relative"] * len(parts), "absolute"],
        base=start,
        text=[*(f"{value:+.2f}".replace("-", "−") for value in drawn), f"{total:.2f}"],
        textposition=[*places, "outside"],
        cliponaxis=False,
        increasing={"marker": {"color": SERIES[2]}},
        decreasing={"marker": {"color": SERIES[1]}},
        totals={"marker": {"color": SERIES[0]}},
        connector={"line": {"color": GREY, "width": 1}},
        hovertemplate="%{x}: %{text}<extra></extra>",
    )
    picture.update_xaxes(type="category", showgrid=False)
    picture.update_yaxes(title=title, range=[0, 1.12])
    return picture


def plane(similarity: np.ndarray) -> tuple[np.ndarray, float]:
    """Return principal coordinates: points in two dimensions whose distances approximate those of the texts.

    Parameters
    ----------
    similarity : ndarray of shape (n, n), positive semi-definite

    Returns
    -------
    points : ndarray of shape (n, 2)
    share : share of the variance in the two dimensions, in [0, 1]
    """
    centered = similarity - similarity.mean(axis=0) - similarity.mean(axis=1, keepdims=True) + similarity.mean()
    values, vectors = np.linalg.eigh(centered)
    leading = np.maximum(values[::-1][:2], 0.0)
    axes = vectors[:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary: the largest entry points up.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
    points = np.zeros((len(similarity), 2))
    points[:, : axes.shape[1]] = axes * np.sign(largest) * np.sqrt(leading)
    total = np.maximum(values, 0.0).sum()
    return points, float(leading.sum() / total) if total > 0 else 1.0


# Directions from a point to its label.
_PLACES = {"top center": (0, 1), "bottom center": (0, -1), "middle right": (1, 0), "middle left": (-1, 0)}


def _label_places(points: np.ndarray, arrows: Sequence[tuple[int, int]]) -> list[str]:
    """Choose the place of each point's label that is the farthest from the arrows at the point."""
    towards: list[list[np.ndarray]] = [[] for _ in points]
    for start, end in arrows:
        step = points[end] - points[start]
        towards[start].append(step)
        towards[end].append(-step)

    def nearness(place: str, steps: list[np.ndarray]) -> float:
        return max((float(step @ _PLACES[place]) / (float(np.linalg.norm(step)) or 1.0) for step in steps), default=0.0)

    return [min(_PLACES, key=lambda place: round(nearness(place, steps), 3)) for steps in towards]


def text_map(
    points: np.ndarray,
    texts: Sequence[str],
    numbers: Sequence[str],
    groups: Sequence[int],
    names: Sequence[str],
    arrows: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """Draw texts as numbered points, coloured by group, with arrows between points.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    groups : index of the group of each text, which determines its colour, marker and name
    """
    picture = figure(400, legend=len(names) > 1)
    group_of, places = np.asarray(groups), _label_places(points, arrows)
    for i, name in enumerate(names):
        chosen = np.flatnonzero(group_of == i).tolist()
        picture.add_scatter(
            x=points[chosen, 0].tolist(),
            y=points[chosen, 1].tolist(),
            mode="markers+text" if len(texts) <= 40 else "markers",
            text=[numbers[j] for j in chosen],
            textposition=[places[j] for j in chosen],
            cliponaxis=False,
            name=html.escape(name, quote=False),
            marker={"size": 13, "color": SERIES[i], "symbol": ("circle", "diamond")[i % 2], "opacity": 0.9},
            customdata=[label(texts[j]) for j in chosen],
            hovertemplate="%{customdata}<extra></extra>",
        )
    for start, end in arrows:
        picture.add_annotation(
            x=points[end, 0],
            y=points[end, 1],
            ax=points[start, 0],
            ay=points[start, 1],
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            text="",
            showarrow=True,
            arrowhead=2,
            arrowwidth=1.5,
            arrowcolor=GREY,
            standoff=9,
            startstandoff=9,
        )
    spread = float(np.ptp(points, axis=0).max()) or 1.0
    for axis, middle in (("x", 0), ("y", 1)):
        center = float((points[:, middle].max() + points[:, middle].min()) / 2)
        picture.layout[f"{axis}axis"].update(
            range=[center - 0.62 * spread, center + 0.62 * spread], showticklabels=False, showgrid=False
        )
    picture.update_layout(margin={"l": 12, "r": 12, "b": 12})
    return picture
