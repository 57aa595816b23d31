"""The HTML of a page, from the macros of panels.html."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

# Braces, dollars and backticks are syntax in the templates of Gradio.
_SYNTAX = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", "`": "&#96;"})
_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


class Card(NamedTuple):
    """A score and its interpretation.

    name : of the set; "" if there is only one
    headline : a sentence that says what the score means
    value : the score in full precision; two decimals of it are displayed
    meaning : a remark below the score
    meter, mark : positions of the score and of a yardstick between the two ends, in [0, 1]
    ends : labels of the two ends
    series : index of the colour
    facts : value, name and explanation of each further fact
    """

    name: str
    headline: str
    value: float
    unit: str
    meaning: str = ""
    meter: float | None = None
    mark: float | None = None
    ends: tuple[str, str] = ("", "")
    series: int = 0
    facts: Sequence[tuple[str, str, str]] = ()


class Ranked(NamedTuple):
    """A score in a ranking: what it is of, a remark, a further fact, its place, and its share of the largest score."""

    name: str
    remark: str
    value: float
    fact: str = ""
    place: int = 0
    meter: float = 0.0


def _escaped(value: Any) -> Any:
    return value if isinstance(value, Markup) else Markup(str(escape(value)).translate(_SYNTAX))


def decimals(value: float) -> str:
    """Write a number with two decimals and a minus sign; zero has none."""
    return f"{value:z.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.1f}"


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, finalize=_escaped
)
_ENVIRONMENT.filters |= {"decimals": decimals, "percent": _percent}


def render(macro: str, *values: Any) -> str:
    """Return the HTML of a macro."""
    return str(getattr(_ENVIRONMENT.get_template("panels.html").module, macro)(*values)).strip()


def data_url(content: bytes, kind: str) -> str:
    """Return a link that holds a file, so the server stores nothing."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def in_words(number: int) -> str:
    """Spell out a small integer."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else f"{number:,}"


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def shorten(text: str, length: int = 70) -> str:
    """Truncate a text for a label."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
