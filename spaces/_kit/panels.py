"""HTML for results. All text of a visitor passes through `escape`."""

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Braces, dollars and backticks are syntax in the templates of Gradio.
_TEMPLATE = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", "`": "&#96;"})
_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


class Card(NamedTuple):
    """A score and its interpretation.

    name : of the set; "" if there is only one
    value : the score in full precision; two decimals of it are displayed
    meter : position between the two ends, in [0, 1]
    ends : labels of the two ends
    series : index of the colour
    facts : value, name and explanation of each further fact
    """

    name: str
    value: float
    unit: str
    meaning: str
    meter: float | None = None
    ends: tuple[str, str] = ("", "")
    series: int = 0
    facts: Sequence[tuple[str, str, str]] = ()

    @property
    def shown(self) -> str:
        """The score as it is displayed."""
        return f"{self.value:.2f}".replace("-", "−")


class Group(NamedTuple):
    """A named group of texts: for each side its name, its texts, and its series."""

    name: str
    sides: Sequence[tuple[str, Sequence[str], int]]


def escape(text: str) -> str:
    """Escape text for HTML, attributes included."""
    return html.escape(str(text), quote=True).translate(_TEMPLATE)


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


def answer(
    cards: Sequence[Card], verdict: str = "", notes: Iterable[str] = (), signature: str = "", facts: str = ""
) -> str:
    """Return the answer: scores with their interpretation, caveats and the signature."""
    said = " ".join([verdict, *(f"{card.name} {card.shown} {card.unit}. {card.meaning}" for card in cards)])
    heading = f'<p class="tm-verdict">{escape(verdict)}</p>' if verdict else ""
    return (
        f'<section class="tm-answer" aria-label="The answer" data-said="{escape(said.strip())}">{heading}'
        f'<div class="tm-cards tm-cards-{min(len(cards), 3)}">{"".join(map(_card, cards))}</div>'
        f"{''.join(map(_note, notes))}{facts}"
        f'<p class="tm-signature">Signature <code>{escape(signature)}</code></p></section>'
    )


def _card(card: Card) -> str:
    name = f'<p class="tm-name"><span class="tm-dot"></span>{escape(card.name)}</p>' if card.name else ""
    meter = ""
    if card.meter is not None:
        share = 100 * min(max(card.meter, 0.0), 1.0)
        meter = (
            f'<div class="tm-meter" aria-hidden="true"><i style="width:{share:.1f}%"></i></div>'
            f'<p class="tm-ends"><span>{escape(card.ends[0])}</span><span>{escape(card.ends[1])}</span></p>'
        )
    return (
        f'<div class="tm-card tm-series-{card.series}">{name}<p class="tm-number">'
        f'<strong data-value="{card.value!r}">{card.shown}</strong> <span>{escape(card.unit)}</span></p>'
        f'<p class="tm-meaning">{escape(card.meaning)}</p>{meter}{tiles(card.facts) if card.facts else ""}</div>'
    )


def _note(text: str) -> str:
    return f'<p class="tm-note">{escape(text)}</p>'


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Return a row of facts: value, name and explanation of each."""
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(meaning)}</dd></div>"
        for value, name, meaning in facts
    )
    return f'<dl class="tm-tiles">{cells}</dl>'


def ledger(items: Sequence[tuple[str, str]], nothing: str) -> str:
    """Return a list of deductions and their reasons."""
    rows = "".join(f"<li><b>{escape(points)}</b><span>{escape(text)}</span></li>" for points, text in items)
    return f'<ul class="tm-ledger">{rows}</ul>' if items else f'<p class="tm-nothing">{escape(nothing)}</p>'


def groups(shown: Sequence[Group], most: int) -> str:
    """Return groups with at most `most` texts of each side, and the number of the others."""
    parts = []
    for group in shown:
        sides = ""
        for side, texts, series in group.sides:
            chips = [f"<li><bdi>{escape(text)}</bdi></li>" for text in texts[:most]] or ["<li>–</li>"]
            if len(texts) > most:
                chips.append(f"<li>and {len(texts) - most:,} more</li>")
            sides += (
                f'<div class="tm-series-{series}"><h4 class="tm-name"><span class="tm-dot"></span>{escape(side)}</h4>'
                f'<ul class="tm-chips">{"".join(chips)}</ul></div>'
            )
        parts.append(f'<section class="tm-group"><h3 dir="auto">{escape(group.name)}</h3>{sides}</section>')
    return f'<div class="tm-groups">{"".join(parts)}</div>'


def error(text: str) -> str:
    """Return an error message in place of the answer."""
    return (
        '<section class="tm-message tm-error" role="alert"><h2>That did not work</h2>'
        f'<p dir="auto">{escape(text)}</p></section>'
    )


def empty(steps: Sequence[str]) -> str:
    """Return the instructions shown before the first result."""
    items = "".join(f"<li>{escape(step)}</li>" for step in steps)
    return f'<section class="tm-message tm-empty"><h2>Nothing scored yet</h2><ol>{items}</ol></section>'


def heading(title: str, caption: str = "") -> str:
    """Return the title and caption of a panel."""
    below = f"<p>{escape(caption)}</p>" if caption else ""
    return f'<header class="tm-heading"><h2>{escape(title)}</h2>{below}</header>'


def banner(title: str, lead: str, name: str) -> str:
    """Return the head of the page."""
    return (
        f'<header class="tm-banner"><p class="tm-eyebrow">{escape(name)}</p><h1>{escape(title)}</h1>'
        f"<p>{escape(lead)}</p></header>"
    )
