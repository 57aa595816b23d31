"""Pictures by matplotlib in one style: PDF, and SVG that takes the theme of a page."""

import io
import re
from contextlib import suppress
from typing import Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager, get_font

from text_metrics.core_api import warn
from text_metrics.reporting.formats import printable

# Light and dark values, which stay apart for the colour-blind.
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
SOFT = _LIGHT["soft"]
_HUES = [_LIGHT[f"s{i}"] for i in range(7)]
# A shape for each of 20 systems.
_SHAPES: list[Any] = list("os^DvPX*<p>hd8H")
_SHAPES += [(corners, 1, 0) for corners in range(3, 8)]
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "text-metrics",
    "svg.fonttype": "none",
    # Fonts that publishers accept.
    "pdf.fonttype": 42,
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": _LIGHT["line"],
    "axes.labelcolor": _LIGHT["soft"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _LIGHT["line"],
    "text.parse_math": False,
    "text.color": _LIGHT["ink"],
    "xtick.labelcolor": _LIGHT["soft"],
    "ytick.labelcolor": _LIGHT["ink"],
    "legend.frameon": False,
}


def styled(text: str = "") -> Any:
    """Return the style, as a context or a decorator of functions that draw, with fonts that have the text."""
    return matplotlib.rc_context(_STYLE | ({"font.family": find_fonts(text)} if text else {}))


def find_fonts(text: str) -> list[str]:
    """Return the names of the default font, and of installed ones with the characters of a text that it lacks.

    Warns of characters that no installed font has.
    """
    default = matplotlib.rcParamsDefault["font.sans-serif"][0]
    fonts = [default]
    missing = {ord(character) for character in text if not character.isspace()}
    missing -= get_font(findfont(default)).get_charmap().keys()
    # Last Resort, which comes with matplotlib, has a box for every character.
    entries = [entry for entry in fontManager.ttflist if not entry.name.startswith("Last Resort")]
    for entry in entries if missing else ():
        # Some installed fonts cannot be read.
        with suppress(OSError, RuntimeError):
            drawn = get_font(entry.fname).get_charmap().keys()
            if not missing.isdisjoint(drawn):
                fonts.append(entry.name)
                missing -= drawn
    if missing:
        characters = "".join(map(chr, sorted(missing)))
        warn(
            f"no installed font has the characters {characters!r} of the names: the figures in PDF show boxes. Install "
            "one, such as the package fonts-noto-cjk, and delete the cache of matplotlib."
        )
    return fonts


def new_figure(width: float, height: float) -> Figure:
    """Return a figure without overlap; sizes are in pixels of a page, 72 to an inch."""
    return Figure(figsize=(width / 72, height / 72), layout="constrained")


def system_style(i: int) -> dict[str, Any]:
    """Return the colour and the marker of a system, the same in every picture."""
    return {"color": _HUES[i % len(_HUES)], "marker": _SHAPES[i % len(_SHAPES)]}


def to_svg(figure: Figure, description: str) -> str:
    """Draw a `styled` figure as SVG without a date; its description is for those who cannot see it."""
    file = io.StringIO()
    # Unlike `savefig`, it does not draw twice.
    FigureCanvasSVG(figure).print_svg(file, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    # The PDF has the same layout.
    figure.set_layout_engine("none")
    # Without the declaration and names of groups, a page can hold several.
    svg = re.sub(r'<g id="[^"]*">', "<g>", re.sub(r"^.*?<svg", "", file.getvalue(), flags=re.DOTALL))
    return printable(f'<svg role="img" aria-label="{escape(description)}"{svg}')


def to_pdf(figure: Figure) -> bytes:
    """Draw a `styled` figure as PDF without a date."""
    file = io.BytesIO()
    FigureCanvasPdf(figure).print_pdf(file, metadata=dict.fromkeys(("CreationDate", "Creator", "Producer")))
    return file.getvalue()


def themed(svg: str) -> Markup:
    """Return an SVG of `to_svg` for a page: its colours are the variables of the page's style."""
    for name, light in _LIGHT.items():
        svg = svg.replace(light, f"var(--{name})")
    return Markup(svg)
