"""Plots of the benchmark: a small panel for each case, on logarithmic axes.

They are written as SVG, with a style sheet for light and dark mode, and with text that stays text.
"""

import math
import textwrap
from collections.abc import Callable
from html import escape
from string import Template
from typing import Any, NamedTuple

from scripts.reports.benchmark.report import growth, points

_COLUMNS = 3
_MARGIN, _GAP, _HEAD, _FOOT = 28, 36, 112, 34
# Of a panel: its width, the height of its title and of its plot, and what is between two.
_WIDTH, _TITLE, _HEIGHT, _BETWEEN = 288, 74, 160, 54
# Room in a plot: for the labels of its axis, and around the points for those of the lines.
_AXIS, _LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 88, 24, 16
# Characters in a line of a title; pixels of the label of a line.
_TITLE_CHARACTERS, _LABEL = 46, 82

_STYLE = Template("""
text { font: 11px "IBM Plex Sans", system-ui, -apple-system, "Segoe UI", sans-serif; fill: $quiet }
.paper { fill: $paper } .rule { stroke: $rule } .end { text-anchor: end } .middle { text-anchor: middle }
.title { font-size: 19px; font-weight: 700; fill: $ink }
.name { font-size: 13.5px; font-weight: 700; fill: $ink }
.label { paint-order: stroke; stroke: $paper; stroke-width: 4px; stroke-linejoin: round }
.strong { font-weight: 700 } .times { font-size: 13.5px; font-weight: 700; fill: $ink } .up { font-size: 8.5px }
.small { font-size: 11px; font-weight: 400; fill: $quiet }
.empty { fill: none; stroke: $rule; stroke-width: 1.5; stroke-dasharray: 4 4 }
.ours { fill: $ours } .peer { fill: $peer } .wrong { fill: $wrong }
path { fill: none; stroke: $quiet; stroke-width: 1.5; stroke-linejoin: round; stroke-linecap: round }
path.ours { fill: none; stroke: $ours; stroke-width: 2.5 } path.peer { fill: none; stroke: $peer; stroke-width: 2 }
path.gap { stroke-width: 1; stroke-dasharray: 1 4 }
circle.peer { fill: $paper; stroke: $peer; stroke-width: 2 }
""")
_LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2033",
    "quiet": "#575d75",
    "rule": "#e6e8f0",
    "ours": "#4f46e5",
    "peer": "#737990",
    "wrong": "#be123c",
}
_DARK = {
    "paper": "#11141d",
    "ink": "#e9eaf2",
    "quiet": "#a5abc2",
    "rule": "#272c3d",
    "ours": "#9aa5ff",
    "peer": "#8e95af",
    "wrong": "#fb7185",
}


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


Points = list[tuple[int, float]]
# A size and a value to where they are drawn.
Place = Callable[[float, float], tuple[float, float]]


class Scale(NamedTuple):
    """Pixels for a factor of ten, horizontally and vertically: equal in all panels, so that slopes are comparable."""

    along: float
    up: float


def picture(report: dict[str, Any], kind: str) -> str:
    """Draw the time or the memory of all cases, as SVG."""
    quantity, cases = QUANTITIES[kind], report["cases"]
    columns = min(_COLUMNS, len(cases))
    n_rows = -(-len(cases) // columns)
    width = 2 * _MARGIN + columns * _WIDTH + (columns - 1) * _GAP
    height = _HEAD + n_rows * (_TITLE + _HEIGHT + _BETWEEN) + _FOOT
    scale = _scale(cases, quantity)
    panels = [
        f'<g transform="translate({_MARGIN + i % columns * (_WIDTH + _GAP)} '
        f'{_HEAD + i // columns * (_TITLE + _HEIGHT + _BETWEEN)})">{"".join(_panel(case, quantity, scale))}</g>'
        for i, case in enumerate(cases)
    ]
    machine = report["machine"]
    style = f"{_STYLE.substitute(_LIGHT)}@media (prefers-color-scheme: dark) {{{_STYLE.substitute(_DARK)}}}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="{quantity.title} of each case">',
        f'<style>{style}</style><rect class="paper" width="{width}" height="{height}" rx="10"/>',
        *_heading(quantity, scale, width),
        *panels,
        _text(_MARGIN, height - 24, f"{machine['Processor'].split(';')[0]}; {machine['Memory']}; {machine['Date']}"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _heading(quantity: Quantity, scale: Scale, width: int) -> list[str]:
    """Draw the title, and the slopes of linear and of quadratic growth."""
    parts = [
        _text(_MARGIN, 44, f"{quantity.title} by the size n of the input", "title"),
        _text(_MARGIN, 68, "The label of a line: the value at the largest size, and its growth with n."),
    ]
    if width > 2 * _MARGIN + _WIDTH:
        x, y = width - _MARGIN - 54, 74
        along = min(36.0, 22 * scale.along / scale.up)
        parts.append(_text(x - 12, y - 6, "slopes, equal in all panels", "end"))
        for power, label in ((1, "n"), (2, "n²")):
            up = along * scale.up / scale.along * power
            parts += [_line([(x, y), (x + along, y - up)], "key"), _text(x + along + 5, y - up + 4, label)]
    return parts


def _scale(cases: list[dict[str, Any]], quantity: Quantity) -> Scale:
    """Choose the scale by the case of the widest range."""
    spans = [(1.0, 1.0)]
    for case in cases:
        all_points = _points(case, "ours", quantity) + _points(case, "peer", quantity)
        if all_points:
            logs = [[math.log10(value) for value in values] for values in zip(*all_points, strict=True)]
            spans.append((max(logs[0]) - min(logs[0]), max(logs[1]) - min(logs[1])))
    along, up = map(max, zip(*spans, strict=True))
    return Scale((_WIDTH - _AXIS - _LEFT - _RIGHT) / along, (_HEIGHT - _TOP - _BOTTOM) / up)


def _points(case: dict[str, Any], side: str, quantity: Quantity) -> Points:
    return [(n, max(value, quantity.least)) for n, value in points(case, side, quantity.name)]


def _panel(case: dict[str, Any], quantity: Quantity, scale: Scale) -> list[str]:
    """Draw a case: its title, and the points of both sides."""
    lines = textwrap.wrap(case["title"].replace("`", ""), _TITLE_CHARACTERS)
    parts = [_text(0, 12, case["name"], "name"), *(_text(0, 29 + 14 * i, words) for i, words in enumerate(lines))]
    ours, peer = (_points(case, side, quantity) for side in ("ours", "peer"))
    if not ours:
        notes = dict.fromkeys(note for row in case["rows"] for note in row["failures"] + row["unmeasured"])
        reasons = textwrap.wrap(f"Not measured: {'; '.join(notes) or 'no memory figures on this system'}", 40)
        parts.append(f'<rect class="empty" y="{_TITLE}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>')
        middle = _TITLE + _HEIGHT / 2 - 7 * len(reasons) + 11
        return parts + [_text(_WIDTH / 2, middle + 15 * i, words, "middle") for i, words in enumerate(reasons)]

    under = 32 + 14 * len(lines)
    parts += [_mark(4, under - 4, "ours"), _text(13, under, "ours", "ours strong")]
    if peer:
        parts += [
            _mark(54, under - 4, "peer"),
            _text(63, under, case["peer"], "peer"),
            _comparison(quantity, ours, peer),
        ]
    values = [math.log10(value) for _, value in ours + peer]
    left = math.log10(min(n for n, _ in ours + peer)) - _LEFT / scale.along
    # The range of a case is centred in that of the widest.
    free = _HEIGHT - _TOP - _BOTTOM - (max(values) - min(values)) * scale.up
    low = min(values) - (_BOTTOM + free / 2) / scale.up
    bottom = _TITLE + _HEIGHT

    def place(n: float, value: float) -> tuple[float, float]:
        return _AXIS + (math.log10(n) - left) * scale.along, bottom - (math.log10(value) - low) * scale.up

    for power in range(math.ceil(low), math.floor(low + _HEIGHT / scale.up) + 1):
        y = place(1, 10.0**power)[1]
        parts += [_rule(_AXIS, y, _WIDTH, y), _text(_AXIS - 6, y + 4, _amount(10.0**power, quantity), "end")]
    right = math.ceil(math.log10(max(n for n, _ in ours + peer)))
    for power in range(math.ceil(left), min(right, math.floor(left + (_WIDTH - _AXIS) / scale.along)) + 1):
        x = place(10.0**power, 1)[0]
        parts += [_rule(x, _TITLE, x, bottom), _text(x, bottom + 15, _count(10**power), "middle")]
    for side, own in (("peer", peer), ("ours", ours)):
        placed = [place(*point) for point in own]
        parts += [_line(placed, side), *(_mark(x, y, side) for x, y in placed)]
    if peer:
        n = peer[-1][0]
        parts.append(_line([place(n, dict(ours)[n]), place(n, dict(peer)[n])], "gap"))
    failed = [failure for row in case["rows"] for failure in row["failures"]]
    if failed:
        parts.append(_text(_WIDTH, bottom - 6, failed[0], "wrong label end"))
    return parts + _labels(quantity, ours, peer, place)


def _comparison(quantity: Quantity, ours: Points, peer: Points) -> str:
    """Compare the two sides at the largest size that both ran."""
    n, value = peer[-1]
    own = dict(ours)[n]
    if min(own, value) <= quantity.least:
        return ""
    times = max(own / value, value / own)
    words = quantity.less if own < value else quantity.more
    shown = quantity.same if times < 1.05 else f"{times:.{1 if times < 9.95 else 0}f}× {words}"
    return f'<text x="{_WIDTH}" y="12" class="times end">{shown}<tspan class="small"> at {_count(n)}</tspan></text>'


def _labels(quantity: Quantity, ours: Points, peer: Points, place: Place) -> list[str]:
    """Label the last points of both sides with their value and their growth."""
    x, y = place(*ours[-1])
    parts = []
    if peer:
        peer_x, peer_y = place(*peer[-1])
        if peer[-1][0] == ours[-1][0]:
            # Side by side, so one above the other.
            lower = 1 if y >= peer_y else -1
            apart = max(0.0, 15 - abs(y - peer_y)) / 2 * lower
            y, peer_y, peer_x = y + apart, peer_y - apart + 4, peer_x + 9
        elif peer_y <= place(peer[-1][0], dict(ours)[peer[-1][0]])[1]:
            peer_x, peer_y = max(_AXIS + 3, peer_x - _LABEL), peer_y - 9
        else:
            peer_x, peer_y = peer_x + 5, peer_y + 17
        parts.append(_label(peer_x, peer_y, "peer label", quantity, peer))
    parts.append(_label(x + 9, y + 4, "ours strong label", quantity, ours))
    return parts


def _label(x: float, y: float, kind: str, quantity: Quantity, own: Points) -> str:
    """Label a line with the value at the largest size, and the growth exponent of all values above noise."""
    value = own[-1][1]
    shown = _amount(value, quantity) if value > quantity.least else f"< {_amount(value, quantity)}"
    return _text(x, y, shown, kind, growth([point for point in own if point[1] > quantity.least]))


def _amount(value: float, quantity: Quantity) -> str:
    """Format seconds or megabytes to two digits."""
    unit, name = next((pair for pair in quantity.units if value >= 0.9999 * pair[0]), quantity.units[-1])
    return f"{float(f'{value / unit:.2g}'):g} {name}"


def _count(n: int) -> str:
    return f"{n // 10**6}M" if n >= 10**6 else f"{n // 1000}k" if n >= 1000 else str(n)


def _text(x: float, y: float, words: str, kind: str = "", exponent: float | None = None) -> str:
    power = ""
    if exponent is not None:
        power = f'{", " if words else ""}n<tspan class="up" dy="-4">{exponent:.2f}</tspan>'
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}{power}</text>'


def _line(placed: list[tuple[float, float]], kind: str) -> str:
    return f'<path class="{kind}" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in placed)}"/>' if placed else ""


def _mark(x: float, y: float, side: str) -> str:
    return f'<circle class="{side}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="rule" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'
