"""Elements of the pictures of a report, as SVG whose colours are variables of CSS: a page gives them a theme."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

FONT = 12
# About the width of a character of a sans-serif font, in units of its size.
_CHARACTER = 0.62
# Light and dark values. The hues stay apart for the colour-blind, and a mark differs by its shape too.
_COLORS = {
    "page": ("#ffffff", "#15181d"),
    "ink": ("#1d2129", "#e8eaee"),
    "soft": ("#59606c", "#a7aeba"),
    "line": ("#dde1e7", "#343a44"),
    "panel": ("#f6f7f9", "#1d2128"),
    "accent": ("#0059a0", "#7cc0f5"),
    "heat": ("#0064ad", "#3f86c4"),
    "mark": ("#fff1cc", "#453a1b"),
    "s0": ("#0064ad", "#3f9be0"),
    "s1": ("#c2410c", "#ff7f3f"),
    "s2": ("#00806a", "#20b893"),
    "s3": ("#8f3b8f", "#d98bd8"),
    "s4": ("#b08900", "#ecc94b"),
    "s5": ("#3d9bdc", "#b5e0ff"),
    "s6": ("#4a4a4a", "#9aa0a8"),
}
# Control characters and surrogates, and those that turn the direction of writing.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_N_HUES = 7
# Outlines of unit radius; 7 hues and 4 shapes make 28 different marks.
_SHAPES: Sequence[Sequence[tuple[float, float]]] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
)


def variables(dark: bool) -> str:
    """Declare the colours of a theme as variables of CSS."""
    return ";".join(f"--{name}:{values[dark]}" for name, values in _COLORS.items())


def standalone(svg: str) -> str:
    """Return a picture as a file of its own: in the light colours, on white."""
    drawn = re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: _COLORS[match[1]][0], svg)
    start = drawn.index(">") + 1
    ground = f'<rect width="100%" height="100%" fill="{_COLORS["page"][0]}"/>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn[:start]}{ground}{drawn[start:]}\n'


class Scale(NamedTuple):
    """A linear map of values, from `low` to `high`, to positions, from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, n: int) -> list[float]:
        """Return about n round values of the range."""
        step = _round_step((self.high - self.low) / n)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def scale(values: Iterable[float], start: float, end: float) -> Scale:
    """Return a scale that holds the values with a small margin."""
    held = list(values)
    low, high = min(held), max(held)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return Scale(low - margin, high + margin, start, end)


def _round_step(width: float) -> float:
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))


def svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """Return a picture; its title describes it to those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_at(width)} {_at(height)}" width="{_at(width)}" '
        f'height="{_at(height)}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        f'font-size="{FONT}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", **options: object) -> str:
    """Return a line of text; options are attributes of SVG, with `_` for `-`."""
    options = {"fill": "var(--ink)", **options}
    return f'<text x="{_at(x)}" y="{_at(y)}" text-anchor="{anchor}"{_attributes(options)}>{escape(words)}</text>'


def name(x: float, y: float, words: str, width: float, **options: object) -> str:
    """Return a text to the left of x that is cut to a width; a pointer shows the whole."""
    room = max(int(width / (_CHARACTER * FONT)), 2)
    if len(words) <= room:
        return text(x, y, words, "end", **options)
    return f"<g><title>{escape(words)}</title>{text(x, y, words[: room - 1] + '…', 'end', **options)}</g>"


def width_of(words: str, size: float = FONT) -> float:
    """Estimate the width of a text."""
    return _CHARACTER * size * len(words)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str = "var(--line)", **options: object) -> str:
    """Return a straight line."""
    ends = f'x1="{_at(x1)}" y1="{_at(y1)}" x2="{_at(x2)}" y2="{_at(y2)}"'
    return f'<line {ends} stroke="{stroke}"{_attributes(options)}/>'


def dots(points: Iterable[tuple[float, float]], **options: object) -> str:
    """Return round dots as one path; `stroke` and `stroke_width` are their colour and diameter."""
    path = "".join(f"M{_at(x)} {_at(y)}h0" for x, y in points)
    return f'<path d="{path}" stroke-linecap="round" fill="none"{_attributes(options)}/>'


def mark(system: int | None, x: float, y: float, title: str = "", radius: float = 5) -> str:
    """Return the mark of a system, or a hollow circle for people; a pointer shows its title."""
    said = f"<title>{escape(title)}</title>" if title else ""
    if system is None:
        shape = f'<circle cx="{_at(x)}" cy="{_at(y)}" r="{_at(radius)}" fill="var(--page)" stroke="var(--ink)"'
        return f'{shape} stroke-width="1.8">{said}</circle>'
    fill = f'fill="{color(system)}" stroke="var(--page)"'
    outline = _SHAPES[system % len(_SHAPES)]
    if not outline:
        return f'<circle cx="{_at(x)}" cy="{_at(y)}" r="{_at(radius)}" {fill}>{said}</circle>'
    points = " ".join(f"{_at(x + radius * dx)},{_at(y + radius * dy)}" for dx, dy in outline)
    return f'<polygon points="{points}" {fill}>{said}</polygon>'


def color(system: int | None) -> str:
    """Return the colour of a system, the same everywhere; that of text for people."""
    return "var(--ink)" if system is None else f"var(--s{system % _N_HUES})"


def axis(horizontal: Scale, top: float, bottom: float, titles: Sequence[str]) -> str:
    """Return vertical grid lines with their values below, and lines of title below these, moved to end at the right."""
    values = horizontal.ticks(5)
    labels = tick_labels(values)
    parts = [line(horizontal(value), top, horizontal(value), bottom) for value in values]
    for value, label in zip(values, labels, strict=True):
        parts.append(text(horizontal(value), bottom + 15, label, "middle", fill="var(--soft)", font_size=11))
    for row, title in enumerate(titles):
        middle = min((horizontal.start + horizontal.end) / 2, horizontal.end + 8 - width_of(title, 11) / 2)
        parts.append(text(middle, bottom + 32 + 14 * row, title, "middle", fill="var(--soft)", font_size=11))
    return "".join(parts)


def tick_labels(values: Sequence[float]) -> list[str]:
    """Format round values with the decimals that tell them apart."""
    step = min((b - a for a, b in pairwise(values)), default=1.0)
    digits = max(-math.floor(math.log10(step) + 1e-9), 0)
    return [f"{value + 0.0:.{digits}f}".replace("-", "−") for value in values]


def escape(words: str) -> str:
    """Escape a text for SVG and HTML; what XML does not allow, or what reorders the text after it, becomes `�`."""
    return html.escape(_FORBIDDEN.sub("\ufffd", words))


def _attributes(options: dict[str, object]) -> str:
    return "".join(f' {key.replace("_", "-")}="{value}"' for key, value in options.items())


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
