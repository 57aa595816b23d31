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
_HATCHES = ("", "/")
_SYMBOLS = ("circle", "diamond")
_HATCHING: dict[str, Any] = {"fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 0.45, "size": 7}
# Height of a bar and of the name above it, in pixels.
_BAR, _NAME = 18, 26
# Sides of a mark where its label can be, in this order of preference, with their directions.
_SIDES = {"top center": (0, 1), "bottom center": (0, -1), "middle right": (1, 0), "middle left": (-1, 0)}
# Up to this size a cell of a heat map has room for its value.
_LEGIBLE = 8
_FONT = {"family": "IBM Plex Sans, system-ui, sans-serif", "size": 13, "color": "#8a8fa3"}
_LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "xanchor": "left"}
_HOVER_LABEL = {"bgcolor": "#1e2130", "bordercolor": "#1e2130", "font": {"color": "#ffffff"}, "align": "left"}
_AXIS = {"gridcolor": "rgba(138,143,163,.22)", "zeroline": False, "fixedrange": True, "automargin": True}


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
        font=_FONT,
        showlegend=legend,
        legend=_LEGEND,
        hoverlabel=_HOVER_LABEL,
        barcornerradius=3,
        dragmode=False,
    )
    figure.update_xaxes(_AXIS)
    figure.update_yaxes(_AXIS)
    return figure


def _square(n: int) -> int:
    """Return the height of a square figure of n texts."""
    return 60 + max(240, min(420, 60 * n))


def heat_map(similarity: np.ndarray, names: Sequence[str], texts: Sequence[str]) -> go.Figure:
    """Draw a similarity matrix of n texts, of shape (n, n), with their short names."""
    rgb = ", ".join(str(int(SERIES[0][i : i + 2], 16)) for i in (1, 3, 5))
    # Transparent to opaque, because the background is light or dark.
    colours = [[0, f"rgba({rgb}, 0.04)"], [1, f"rgba({rgb}, 0.62)"]]
    hovers = [label(text, 48, 2) for text in texts]
    pairs = [list(zip([hover] * len(hovers), hovers, strict=True)) for hover in hovers]
    figure = _figure(_square(len(texts)))
    figure.add_heatmap(
        z=similarity.tolist(),
        x=names,
        y=names,
        zmin=0,
        zmax=1,
        colorscale=colours,
        xgap=2,
        ygap=2,
        customdata=pairs,
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
    signs = np.sign(axes[first_maximum(np.abs(axes).T), [0, 1]])
    return axes * np.where(signs == 0, 1.0, signs)


def text_map(
    similarity: np.ndarray, names: Sequence[str], texts: Sequence[str], groups: Mapping[str, Sequence[int]], near: float
) -> go.Figure:
    """Draw n texts, n >= 2, as a map, with lines between those whose cosine is at least `near`.

    groups : the indices of the texts of each set
    """
    places = positions(similarity)
    figure = _figure(_square(len(texts)), legend=len(groups) > 1)
    _join(figure, places, similarity >= near - TIE)
    marks = marks_of(similarity, groups)
    firsts = list(marks)
    labels = [_names_of(names, members) for members in marks.values()]
    sides = label_sides(places[firsts], list(map(len, labels)))
    for series, (name, members) in enumerate(groups.items()):
        own = [k for k, first in enumerate(firsts) if first in members]
        at = places[[firsts[k] for k in own]]
        marker = {"color": SERIES[series], "symbol": _SYMBOLS[series], "size": 11}
        hovers = [_hover_of(names, texts, marks[firsts[k]]) for k in own]
        figure.add_scatter(
            x=at[:, 0].tolist(),
            y=at[:, 1].tolist(),
            mode="markers+text",
            name=html.escape(name, quote=False),
            marker=marker,
            text=[labels[k] if sides[k] else "" for k in own],
            textposition=[sides[k] or "top center" for k in own],
            customdata=hovers,
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_traces(cliponaxis=False)
    figure.update_xaxes(showticklabels=False, showgrid=False)
    figure.update_yaxes(showticklabels=False, showgrid=False, scaleanchor="x")
    figure.update_layout(margin={"l": 36, "r": 36, "b": 16})
    return figure


def marks_of(similarity: np.ndarray, groups: Mapping[str, Sequence[int]]) -> dict[int, list[int]]:
    """Return the marks of a map: by the first text at a place, all texts of its set that are there."""
    marks: dict[int, list[int]] = {}
    for members in groups.values():
        for i in members:
            first = next(j for j in members if similarity[i, j] >= 1 - TIE)
            marks.setdefault(first, []).append(i)
    return marks


def _names_of(names: Sequence[str], members: Sequence[int]) -> str:
    return label(", ".join(names[i] for i in members), 20, 1)


def _hover_of(names: Sequence[str], texts: Sequence[str], members: Sequence[int]) -> str:
    return "<br>".join(label(f"{names[i]}  {texts[i]}", 60, 3) for i in members)


def _join(figure: go.Figure, places: np.ndarray, is_near: np.ndarray) -> None:
    """Draw a line between the places, (n, 2), of each two texts that are near each other, (n, n)."""
    ends = np.argwhere(np.triu(is_near, 1))
    # Between two lines, NaN lifts the pen.
    lines = np.full((len(ends), 3, 2), np.nan)
    lines[:, :2] = places[ends]
    figure.add_scatter(
        x=lines[..., 0].ravel().tolist(),
        y=lines[..., 1].ravel().tolist(),
        mode="lines",
        line={"color": "rgba(138,143,163,.7)", "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )


def label_sides(places: np.ndarray, lengths: Sequence[int]) -> list[str]:
    """Return the side of each of n marks, (n, 2), where its label overlaps nothing; "" if there is none.

    lengths : of the labels, in characters
    """
    # In pixels, as on a phone: all is further apart in a larger figure.
    pixels = places * 200 / max(np.ptp(places, 0).max(), TIE)
    centres = list(pixels)
    halves = [np.array([6, 6])] * len(pixels)
    sides = []
    for mark, length in zip(pixels, lengths, strict=True):
        half = np.array([4 * length, 7])
        for side, direction in _SIDES.items():
            centre = mark + direction * (half + 7)
            if not (np.abs(centre - centres) < half + halves).all(1).any():
                centres.append(centre)
                halves.append(half)
                sides.append(side)
                break
        else:
            sides.append("")
    return sides


def bars(
    groups: Mapping[str, Sequence[float | None]], names: Sequence[str], hovers: Sequence[str], title: str
) -> go.Figure:
    """Draw horizontal bars from top to bottom, below each name one of each group that has a value for it.

    hovers : the text of each name
    title : of the axis of the values
    """
    # The most values that a name has.
    has_value = ~np.isnan(np.array(list(groups.values()), dtype=float))
    n_bars = int(has_value.sum(axis=0).max())
    slot = _NAME + _BAR * n_bars
    figure = _figure(110 + slot * len(names), legend=len(groups) > 1)
    # Positions, because truncated names may be equal.
    rows = list(range(len(names)))
    for i, (name, values) in enumerate(groups.items()):
        # Below the name, so that the bars have the whole width.
        offset = (_NAME + _BAR * min(i, n_bars - 1)) / slot - 0.5
        # Hatching distinguishes the series without colour.
        marker = {"color": SERIES[i], "pattern": {"shape": _HATCHES[i], **_HATCHING}}
        figure.add_bar(
            y=rows,
            x=list(values),
            orientation="h",
            width=_BAR / slot,
            offset=offset,
            name=html.escape(name, quote=False),
            marker=marker,
            customdata=[label(text) for text in hovers],
            hovertemplate="%{customdata}<br>%{x:.3f}<extra>%{fullData.name}</extra>",
        )
    shift = (_BAR * n_bars - _NAME) / 2 + 11
    for place, name in enumerate(names):
        figure.add_annotation(
            text=label(name, 44, 1),
            showarrow=False,
            bgcolor="#ffffff",
            x=0,
            xref="paper",
            xanchor="left",
            y=place,
            yshift=shift,
        )
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], showgrid=False, showticklabels=False)
    figure.update_xaxes(title=title, zeroline=True, zerolinecolor="rgba(138,143,163,.6)", tickangle=0, nticks=6)
    figure.update_layout(legend_traceorder="normal", margin_l=12)
    return figure
