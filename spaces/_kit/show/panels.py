"""HTML for results. All text of a visitor passes through `escape`."""

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Braces, dollars and backticks are syntax in the templates of Gradio.
_TEMPLATE = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", "`": "&#96;"})

# Where `add_notes` inserts caveats; `escape` lets no visitor write it.
_NOTES = "<!-- notes -->"

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


def escape(text: str) -> str:
    """Escape text for HTML, attributes included."""
    return html.escape(str(text), quote=True).translate(_TEMPLATE)


def in_words(number: int) -> str:
    """Spell out a small integer."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else f"{number:,}"


def shorten(text: str, length: int = 70) -> str:
    """Truncate a text for a label."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def answer(
    cards: Sequence[Card], verdict: str = "", notes: Sequence[str] = (), signature: str = "", facts: str = ""
) -> str:
    """Return the answer: scores with their interpretation, caveats and the signature."""
    said = " ".join([verdict, *(f"{card.name} {card.shown} {card.unit}. {card.meaning}" for card in cards)])
    parts = [f'<section class="tm-answer" aria-label="The answer" data-said="{escape(said.strip())}">']
    if verdict:
        parts.append(f'<p class="tm-verdict">{escape(verdict)}</p>')
    parts.append(f'<div class="tm-cards tm-cards-{min(len(cards), 3)}">' + "".join(map(_card, cards)) + "</div>")
    parts += [note(text) for text in notes]
    parts += [_NOTES, facts]
    if signature:
        parts.append(f'<p class="tm-signature">Signature <code>{escape(signature)}</code></p>')
    return "".join(parts) + "</section>"


def add_notes(answer: str, texts: Iterable[str]) -> str:
    """Insert caveats into an answer, below the scores."""
    return answer.replace(_NOTES, "".join(map(note, texts)), 1)


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


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Return a row of facts: value, name and explanation of each."""
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(meaning)}</dd></div>"
        for value, name, meaning in facts
    )
    return f'<dl class="tm-tiles">{cells}</dl>'


def note(text: str) -> str:
    """Return a caveat."""
    return f'<p class="tm-note">{escape(text)}</p>'


def preview(text: str) -> str:
    """Return what was read of an input."""
    return f'<p class="tm-read">{escape(text)}</p>'


def mark(text: str, tip: str, strength: float, series: int = 0) -> str:
    """Highlight a piece of text by strength in [0, 1]; the tip opens by pointer, keyboard and touch."""
    # Within the mark, the hidden text could begin a line, with a stub of colour.
    return (
        f'<mark class="tm-mark tm-series-{series}" tabindex="0" data-tip="{escape(tip)}" style="{_strength(strength)}">'
        f'{escape(text)}</mark><span class="tm-sr"> ({escape(tip)}) </span>'
    )


def _strength(strength: float) -> str:
    return f"--tm-strength:{8 + 47 * min(max(strength, 0.0), 1.0):.0f}%"


def texts(lines: Sequence[str], key: Sequence[tuple[str, float]] = ()) -> str:
    """Return a numbered list of highlighted texts, with a legend."""
    items = "".join(f'<li><b>{i}</b><span dir="auto">{line}</span></li>' for i, line in enumerate(lines, 1))
    return f'<ol class="tm-texts">{items}</ol>{_key(key, 0)}'


def _key(key: Sequence[tuple[str, float]], series: int) -> str:
    marks = "".join(
        f'<li><i class="tm-mark tm-series-{series}" style="{_strength(strength)}">{escape(name)}</i></li>'
        for name, strength in key
    )
    return f'<ul class="tm-key">{marks}</ul>' if marks else ""


def sentence(
    place: int, text: str, tip: str, strength: float, linked: Sequence[int] = (), is_lost: bool = False
) -> str:
    """Highlight a sentence of a passage, with links to the sentences that it repeats."""
    links = "".join(
        f'<a class="tm-link" href="#sentence-{j + 1}" aria-label="Repeats sentence {j + 1}">↔ {j + 1}</a>'
        for j in linked
    )
    lost = '<i class="tm-lost" title="Leaves the subject">⤳ </i>' if is_lost else ""
    return f'<span class="tm-sentence" id="sentence-{place + 1}">{lost}{mark(text, tip, strength, 1)}{links}</span>'


def passage(pieces: Sequence[str], key: Sequence[tuple[str, float]]) -> str:
    """Return a passage of highlighted sentences, with a legend."""
    return f'<p class="tm-passage" dir="auto">{" ".join(pieces)}</p>{_key(key, 1)}'


def ledger(items: Sequence[tuple[str, str]], nothing: str) -> str:
    """Return a list of deductions and their reasons."""
    rows = "".join(f"<li><b>{escape(points)}</b><span>{escape(text)}</span></li>" for points, text in items)
    return f'<ul class="tm-ledger">{rows}</ul>' if items else f'<p class="tm-nothing">{escape(nothing)}</p>'


def groups(
    blocks: Sequence[tuple[str, Sequence[tuple[str, Sequence[tuple[str, float | None]], int]]]], most: int
) -> str:
    """Return named groups with the texts of each side.

    blocks : name of the group, and for each side its name, its texts with counts, or None, and its series
    most : upper bound on the texts of a side that are shown
    """
    parts = []
    for name, sides in blocks:
        rows = []
        for side, items, series in sides:
            chips = "".join(
                f"<li><bdi>{escape(text)}</bdi>{'' if count is None else f' <b>× {count:g}</b>'}</li>"
                for text, count in items[:most]
            )
            chips += f"<li>and {len(items) - most:,} more</li>" if len(items) > most else ""
            chips = chips or "<li>–</li>"
            rows.append(
                f'<div class="tm-series-{series}"><h4 class="tm-name"><span class="tm-dot"></span>{escape(side)}</h4>'
                f'<ul class="tm-chips">{chips}</ul></div>'
            )
        parts.append(f'<section class="tm-group"><h3 dir="auto">{escape(name)}</h3>{"".join(rows)}</section>')
    return f'<div class="tm-groups">{"".join(parts)}</div>'


def error(text: str) -> str:
    """Return an error message in place of the answer."""
    return (
        '<section class="tm-message tm-error" role="alert"><h2>That did not work</h2>'
        f'<p dir="auto">{escape(text)}</p></section>'
    )


def message(title: str, text: str) -> str:
    """Return a message in place of the answer."""
    return (
        f'<section class="tm-message" data-said="{escape(title)}. {escape(text)}"><h2>{escape(title)}</h2>'
        f"<p>{escape(text)}</p></section>"
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
