"""Pictures by matplotlib in one style, as SVG that is the same for the same numbers and takes the theme of a page."""

import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from markupsafe import Markup, escape
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from text_metrics.commands.shared.files import written_whole
from text_metrics.commands.shared.formats import printable

# Light and dark values, which pages declare as variables of CSS. The hues stay apart for the colour-blind.
COLORS = {
    "page": ("#ffffff", "#15181d"),
    "ink": ("#1d2129", "#e8eaee"),
    "soft": ("#59606c", "#a7aeba"),
    "line": ("#dde1e7", "#343a44"),
    "panel": ("#f6f7f9", "#1d2128"),
    "accent": ("#0059a0", "#7cc0f5"),
    "mark": ("#fff1cc", "#453a1b"),
    "s0": ("#0064ad", "#3f9be0"),
    "s1": ("#c2410c", "#ff7f3f"),
    "s2": ("#00806a", "#20b893"),
    "s3": ("#8f3b8f", "#d98bd8"),
    "s4": ("#b08900", "#ecc94b"),
    "s5": ("#3d9bdc", "#b5e0ff"),
    "s6": ("#4a4a4a", "#9aa0a8"),
}
_LIGHT = {name: light for name, (light, _) in COLORS.items()}
_HUES = [light for name, light in _LIGHT.items() if re.fullmatch(r"s\d", name)]
# A shape for each of 20 systems.
_SHAPES: list[Any] = ["o", "s", "^", "D", "v", "P", "X", "*", "<", "p", ">", "h", "d", "8", "H"]
_SHAPES += [(4, 1, 0), (5, 1, 0), (6, 1, 0), (3, 1, 0), (8, 1, 0)]
# Inches of figures are such that one unit of SVG is about one pixel of a page.
UNITS = 72
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "text-metrics",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.edgecolor": _LIGHT["line"],
    "axes.labelcolor": _LIGHT["soft"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=_HUES),
    "grid.color": _LIGHT["line"],
    "text.parse_math": False,
    "text.color": _LIGHT["ink"],
    "xtick.color": _LIGHT["line"],
    "xtick.labelcolor": _LIGHT["soft"],
    "ytick.color": _LIGHT["line"],
    "ytick.labelcolor": _LIGHT["ink"],
    "legend.frameon": False,
    "figure.facecolor": _LIGHT["page"],
    "axes.facecolor": _LIGHT["page"],
}


def styled() -> Any:
    """Return the style, as a context or a decorator of functions that draw."""
    return matplotlib.rc_context(_STYLE)


def new_figure(width: float, height: float) -> Figure:
    """Return a figure whose parts are laid out without overlap; sizes are in pixels of a page."""
    return Figure(figsize=(width / UNITS, height / UNITS), layout="constrained")


def system_style(i: int | None) -> dict[str, Any]:
    """Return the colour and the marker of a system, the same in every picture; those of people for None."""
    if i is None:
        return {"color": _LIGHT["ink"], "marker": "o", "markerfacecolor": _LIGHT["page"]}
    return {"color": _HUES[i % len(_HUES)], "marker": _SHAPES[i % len(_SHAPES)]}


def system_mark(i: int) -> Markup:
    """Return the marker of a system as an SVG of 12 pixels, to stand beside its name."""
    style = MarkerStyle(_SHAPES[i % len(_SHAPES)])
    (outline, *_) = style.get_path().transformed(style.get_transform()).to_polygons()
    points = " ".join(f"{x:.2f},{-y:.2f}" for x, y in outline / np.abs(outline).max())
    fill = f"var(--s{i % len(_HUES)})"
    return Markup(
        '<svg class="mark" viewBox="-1 -1 2 2" width="12" height="12" aria-hidden="true">'
        f'<polygon points="{points}" fill="{fill}"/></svg>'
    )


@styled()
def to_svg(figure: Figure, description: str = "") -> str:
    """Draw a figure as SVG without a date; its description is for those who cannot see it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = file.getvalue()
    said = f'role="img" aria-label="{escape(printable(description))}" ' if description else ""
    # Without the declaration and names of groups, several of them can stand in a page too.
    return re.sub(r'<g id="[^"]*">', "<g>", f"<svg {said}{svg[svg.index('<svg') + len('<svg ') :]}")


def themed(svg: str) -> Markup:
    """Return an SVG of `to_svg` for a page: its colours are the variables of the page's style."""
    for name, light in _LIGHT.items():
        svg = svg.replace(light, f"var(--{name})")
    return Markup(svg)


def save_figure(figure: Figure, path: Path, **options: Any) -> None:
    """Write a figure to a file, atomically, in the format of its extension; `options` are those of `savefig`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary, styled():
        figure.savefig(temporary, format=path.suffix[1:] or None, **options)
