"""Plots of the benchmark: a panel for each case on logarithmic axes, as SVG with text that stays text."""

import math
import textwrap
from itertools import chain
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.reports.benchmark.report import growth, points
from text_metrics.commands.shared.pages import to_svg

_STYLE: Any = {"svg.hashsalt": "benchmark", "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 8}
_COLORS = {"ours": "#4f46e5", "peer": "#737990"}
_COLUMNS = 3
_TITLE_CHARACTERS = 46
# Decades around the points: left of them, right of them for the labels, and above and below.
_LEFT, _RIGHT, _AROUND = 0.2, 1.3, 0.6
Points = list[tuple[int, float]]


class Quantity(NamedTuple):
    """What a plot shows.

    title, name : its heading, and its name in the report
    units : pairs of a factor and a unit, the largest first
    less, same, more : words for a comparison
    least : values below this are noise, and are drawn as this
    """

    title: str
    name: str
    units: tuple[tuple[float, str], ...]
    less: str
    same: str
    more: str
    least: float


QUANTITIES = {
    "time": Quantity("Time", "seconds", ((1, "s"), (1e-3, "ms"), (1e-6, "µs")), "faster", "as fast", "slower", 0.0),
    "memory": Quantity("Memory", "megabytes", ((1e3, "GB"), (1, "MB")), "less", "as much", "more", 1.0),
}


@matplotlib.rc_context(_STYLE)
def picture(report: dict[str, Any], kind: str) -> str:
    """Draw the time or the memory of all cases, as SVG."""
    return to_svg(draw(report, kind))


@matplotlib.rc_context(_STYLE)
def draw(report: dict[str, Any], kind: str) -> Figure:
    """Draw the time or the memory of all cases; the scale is the same in all panels, so that slopes are comparable."""
    quantity, cases = QUANTITIES[kind], report["cases"]
    n_rows = -(-len(cases) // _COLUMNS)
    figure = Figure(figsize=(4.2 * _COLUMNS, 3.1 * n_rows + 1), layout="constrained", facecolor="white")
    panels = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
    measured = [[_points(case, side, quantity) for side in _COLORS] for case in cases]
    decades = [[_decades(values) for values in zip(*chain(*sides), strict=True)] for sides in measured if sides[0]]
    spans = [max(high - low for low, high in axis) for axis in zip(*decades, strict=True)]
    for panel, case, (ours, peer) in zip(panels, cases, measured, strict=False):
        panel.set_title("\n".join([case["name"], *_wrapped(case["title"])]), loc="left", pad=20)
        if ours:
            _draw_case(panel, case, quantity, ours, peer, spans)
        else:
            notes = dict.fromkeys(note for row in case["rows"] for note in row["failures"] + row["unmeasured"])
            reason = f"Not measured: {'; '.join(notes) or 'no memory figures on this system'}"
            panel.text(0.5, 0.5, "\n".join(_wrapped(reason)), ha="center", va="center", transform=panel.transAxes)
            panel.set(xticks=[], yticks=[])
    for panel in panels[len(cases) :]:
        panel.axis("off")
    figure.suptitle(
        f"{quantity.title} by the size n of the input\n"
        "The label of a line: the value at the largest size, and its growth with n."
    )
    machine = report["machine"]
    figure.supxlabel(f"{machine['Processor'].split(';')[0]}; {machine['Memory']}; {machine['Date']}", fontsize=8)
    return figure


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text.replace("`", ""), _TITLE_CHARACTERS)


def _points(case: dict[str, Any], side: str, quantity: Quantity) -> Points:
    return [(n, max(value, quantity.least)) for n, value in points(case, side, quantity.name)]


def _decades(values: tuple[float, ...]) -> tuple[float, float]:
    return math.log10(min(values)), math.log10(max(values))


def _draw_case(
    panel: Axes, case: dict[str, Any], quantity: Quantity, ours: Points, peer: Points, spans: list[float]
) -> None:
    """Draw the points of both sides, what they are compared by, and the labels of the last points."""
    panel.set(xscale="log", yscale="log")
    panel.minorticks_off()
    panel.grid(color="#e6e8f0")
    panel.spines[:].set_visible(False)
    for key, label, side in (("ours", "ours", ours), ("peer", case["peer"].replace("`", ""), peer)):
        if side:
            sizes, values = zip(*side, strict=True)
            panel.plot(sizes, values, "o-", ms=4, color=_COLORS[key], label=label, gid=f"{case['name']}-{key}")
    panel.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=2, frameon=False, fontsize=8)
    (left, _), (low, high) = (_decades(values) for values in zip(*ours, *peer, strict=True))
    middle, half = (low + high) / 2, spans[1] / 2 + _AROUND
    panel.set_xlim(10 ** (left - _LEFT), 10 ** (left + spans[0] + _RIGHT))
    panel.set_ylim(10 ** (middle - half), 10 ** (middle + half))
    panel.xaxis.set_major_formatter(lambda n, _: _count(int(n)))
    panel.yaxis.set_major_formatter(lambda value, _: _amount(value, quantity))
    is_below, at_end = True, False
    if peer:
        n, value = peer[-1]
        is_below, at_end = dict(ours)[n] <= value, n == ours[-1][0]
        panel.plot([n, n], [dict(ours)[n], value], ":", color="grey", linewidth=1)
        # On the line of the name, above the title.
        comparison = _comparison(quantity, n, dict(ours)[n], value) + "\n" * len(_wrapped(case["title"]))
        panel.set_title(comparison, loc="right", pad=20, fontweight="bold")
        # Beside the last point, or above or below it where ours continue.
        shift, align = ((6, 7), "left") if at_end else ((0, 9), "center")
        _label(panel, quantity, peer, "peer", (shift[0], shift[1] if is_below else -shift[1]), align)
    _label(panel, quantity, ours, "ours", (6, (-7 if is_below else 7) * at_end), "left")
    failures = [failure for row in case["rows"] for failure in row["failures"]]
    if failures:
        panel.text(1, 0, failures[0], color="#be123c", ha="right", va="bottom", transform=panel.transAxes)


def _comparison(quantity: Quantity, n: int, ours: float, peer: float) -> str:
    """Compare the two sides at the largest size that both ran; empty where one is noise."""
    if min(ours, peer) <= quantity.least:
        return ""
    times = max(ours / peer, peer / ours)
    words = quantity.less if ours < peer else quantity.more
    return f"{quantity.same if times < 1.05 else f'{times:.{1 if times < 9.95 else 0}f}× {words}'} at {_count(n)}"


def _label(panel: Axes, quantity: Quantity, side: Points, key: str, shift: tuple[float, float], align: str) -> None:
    """Label the last point with its value and the growth exponent of all values above noise."""
    value = side[-1][1]
    shown = _amount(value, quantity) if value > quantity.least else f"< {_amount(value, quantity)}"
    exponent = growth([point for point in side if point[1] > quantity.least])
    words = shown if exponent is None else f"{shown}, n^{exponent:.2f}"
    weight = "bold" if key == "ours" else "normal"
    style: dict[str, Any] = {"ha": align, "va": "center", "color": _COLORS[key], "fontweight": weight}
    panel.annotate(words, side[-1], shift, textcoords="offset points", gid=f"label-{key}", **style)


def _amount(value: float, quantity: Quantity) -> str:
    """Format seconds or megabytes to two digits."""
    unit, name = next((pair for pair in quantity.units if value >= 0.9999 * pair[0]), quantity.units[-1])
    return f"{float(f'{value / unit:.2g}'):g} {name}"


def _count(n: int) -> str:
    return f"{n // 10**6}M" if n >= 10**6 else f"{n // 1000}k" if n >= 1000 else str(n)
