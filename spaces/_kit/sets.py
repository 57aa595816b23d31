"""Parts that the demos over sets of texts share: input, examples, names of sets, figures and tables."""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import gradio as gr
import numpy as np
import pandas as pd

from . import panels, plots, reading, scoring
from .core import TIE, first_maximum, tied_ranks
from .inputs import InputError, Limits, Row, lines_of
from .page import Drawn, Picture, Result, text_box
from .panels import Card, Ranked

LIMITS = Limits()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EXAMPLE = "A man walks his dog in the park.\nIn the park, a man is walking his dog."
BOXES = (
    text_box("Name of A", "A", 1),
    text_box("Texts of A", _EXAMPLE, 6, "One text a line."),
    text_box("Name of B", "B", 1),
    text_box("Texts of B (optional)", "The couple take a train to the sea.", 4, "A second set, to compare."),
)
# The prompt that all sets answer.
PROMPT_BOX = text_box(
    "What were they asked? (optional)", "", 1, "What the texts share with it is not counted as likeness."
)
MARKER_BOX = gr.Checkbox(
    True, label="Remove list markers", info="Without “1.”, “-” or “•”, if each text of a set begins with one."
)
NO_QUALITY = "The score counts differences, not sense: shuffled words or nonsense can score higher than good texts."
ADDS = "The score with the text less the score without it. Below 0, the set is more diverse without the text."
# A figure of more texts is slow and illegible.
MOST_DRAWN = 60
FIGURES = (
    Picture("Map of the texts"),
    Picture("Similarity of the texts"),
    Picture("Most and least alike", is_html=True, is_wide=True),
)
# A marker of a list: a bullet, or a number or letter with a point or in brackets.
_MARKER = re.compile(r"(?:[-*•‣▪·–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")


class Sets(NamedTuple):
    """Sets of texts with their names, and the number of texts whose list marker was removed."""

    texts: list[list[str]]
    names: list[str]
    n_stripped: int = 0

    def letter(self, i: int) -> str:
        """Return the letter of a set, or its number if there are more than letters."""
        return LETTERS[i] if i < len(LETTERS) else f"{i + 1}."

    def name(self, i: int) -> str:
        """Return the letter and the name of a set; "" if it is alone."""
        if len(self.texts) == 1:
            return ""
        letter = self.letter(i)
        name = self.names[i]
        return f"{letter}: {panels.shorten(name, 30)}" if name else letter

    def text_name(self, i: int, j: int) -> str:
        """Return the label of a text in a figure: set and text, such as "B3"."""
        return f"{self.letter(i)}{j + 1}" if len(self.texts) > 1 else f"{j + 1}"

    def members(self, i: int) -> range:
        """Return the positions of the texts of a set among all texts."""
        start = sum(map(len, self.texts[:i]))
        return range(start, start + len(self.texts[i]))

    def blocks(self, similarity: np.ndarray) -> list[np.ndarray]:
        """Return the cosines of the k texts of each set, (k, k), from those of all n texts, (n, n)."""
        return [similarity[np.ix_(of_set, of_set)] for of_set in map(self.members, range(len(self.texts)))]


def rows_of(name_a: str, a: str, name_b: str, b: str) -> list[Row]:
    """Return a row for each line of the boxes of texts, with the name of its set."""
    names = [name.strip() or letter for name, letter in ((name_a, "A"), (name_b, "B"))]
    texts = [list(filter(None, lines_of(box))) for box in (a, b)]
    if all(texts) and names[0] == names[1]:
        raise InputError(f"Sets A and B must have different names. Both are “{names[0][:40]}”.")
    return [Row(text, name) for name, lines in zip(names, texts, strict=True) for text in lines]


def group(rows: Sequence[Row], *, strip: bool = False) -> Sets:
    """Group rows into sets, in order of first appearance.

    strip : remove the markers of a list, such as "1." and "-", if each of two or more texts of a set begins with one
    """
    members: dict[str, list[str]] = {}
    for row in rows:
        members.setdefault(row.set, []).append(row.text)
    # A name that is the letter says nothing more.
    names = ["" if name == LETTERS[i : i + 1] else name for i, name in enumerate(members)]
    n_stripped = 0
    for name, texts in members.items():
        if strip and len(texts) > 1 and all(map(_MARKER.match, texts)):
            members[name] = [_MARKER.sub("", text, count=1) for text in texts]
            n_stripped += len(texts)
    return Sets(list(members.values()), names, n_stripped)


def contexts_of(sets: Sets, prompt: str | None) -> list[str] | None:
    """Return the prompt for each set, if there is one."""
    return [prompt] * len(sets.texts) if prompt and prompt.strip() else None


# Fields of a `Space` that all demos over sets of texts share. The examples are sentences of ours.
SHARED: dict[str, Any] = {"limits": LIMITS, "boxes": BOXES, "rows": rows_of}


def shown_of(scores: Sequence[float | None]) -> list[int]:
    """Select the sets that figures show: both of two, and the highest and the lowest of more."""
    known = [i for i, value in enumerate(scores) if value is not None]
    if len(known) < 3:
        return known
    values = np.array([scores[i] for i in known], dtype=float)
    return [known[int(first_maximum(values))], known[int(first_maximum(-values))]]


def result(
    sets: Sets,
    scored: scoring.Scored,
    pictures: Sequence[Drawn | None],
    table: pd.DataFrame,
    card_of: Callable[[int, float], Card],
    mean: Card,
    said: str,
    of_sizes: str,
    notes: Sequence[str] = (),
    facts: Sequence[str] = (),
) -> Result:
    """Return the result of sets: cards of one or two that have a score, or the mean and the ranking of more.

    card_of : returns the card of a set, from its index and its score
    said : what is said of all, if the model reads the texts
    of_sizes : what is said of two sets that differ in size
    facts : of each set, for the ranking
    """
    scores = scored.result["scores"]
    known = [(i, value) for i, value in enumerate(scores) if value is not None]
    cards = [mean]
    if 0 < len(known) < 3:
        cards = [card_of(i, value)._replace(name=sets.name(i), series=j) for j, (i, value) in enumerate(known)]
    if not scored.is_read:
        cards = [card._replace(headline="", meter=None) for card in cards]
    notes = list(notes)
    if sets.n_stripped:
        notes.append(f"List markers were removed from {panels.count(sets.n_stripped, 'text')}.")
    if len(scores) == 2 and len(sets.texts[0]) != len(sets.texts[1]):
        notes.append(f"The sets differ in size: {of_sizes}")
    if len(known) < len(scores):
        notes.append(f"Sets of a single text are not scored: {len(scores) - len(known)} of {len(scores)}.")
    ranking = []
    for i, value in known:
        fact = facts[i] if facts else ""
        ranking.append(Ranked(sets.name(i), panels.count(len(sets.texts[i]), "text"), value, fact))
    return Result(
        scored=scored,
        texts={"predictions": sets.texts},
        pictures=pictures,
        details=table,
        cards=cards,
        ranking=rank(ranking) if len(scores) > 2 else (),
        verdict=said if scored.is_read else scoring.NOT_READ,
        notes=notes,
    )


def rank(items: Sequence[Ranked]) -> list[Ranked]:
    """Order items by their scores, the highest first; equal scores have one place."""
    places = tied_ranks([-item.value for item in items])
    largest = max((item.value for item in items), default=0.0)
    return [
        items[i]._replace(place=int((places < places[i]).sum()) + 1, meter=items[i].value / max(largest, TIE))
        for i in np.argsort(places, kind="stable")
    ]


def verdict(sets: Sets, scores: Sequence[float | None], equal: float, more: str, same: str) -> str:
    """Say which of two sets, or of more, has the highest score; "" for one.

    equal : smaller differences between the two highest are not named
    more, same : what the set with the highest score has more of, and what is said of two equal ones
    """
    known = [(i, value) for i, value in enumerate(scores) if value is not None]
    if len(known) < 2:
        return ""
    values = np.array([value for _, value in known])
    if np.ptp(np.sort(values)[-2:]) < equal:
        return same if len(known) == 2 else ""
    best = int(first_maximum(values))
    than = f"any other of {len(known)} sets" if len(known) > 2 else sets.name(known[1 - best][0])
    return f"{more} in {sets.name(known[best][0])} than in {than}."


def figures(
    metric: Any, sets: Sets, shown: Sequence[int], similarity: np.ndarray, near: float, prompt: str | None
) -> list[Drawn | None]:
    """Draw the map, the similarities, and the most and least alike texts of one or two sets; None if there are none.

    similarity : cosines of all texts, of shape (n, n)
    near : the cosine from which on the map joins two texts
    prompt : what the texts were asked
    """
    places = [(i, j) for i in shown for j in range(len(sets.texts[i]))]
    drawn = places[:MOST_DRAWN]
    if len(drawn) < 2:
        return [None, None, None]
    rows = [sets.members(i)[j] for i, j in drawn]
    square = similarity[np.ix_(rows, rows)]
    names = [sets.text_name(i, j) for i, j in drawn]
    texts = [sets.texts[i][j] for i, j in drawn]
    groups: dict[str, list[int]] = {sets.name(i): [] for i in shown}
    for k, (i, _) in enumerate(drawn):
        groups[sets.name(i)].append(k)
    cut = first_of(len(drawn), len(places))
    joined = f"Alike texts are close, and joined from a similarity of {near:.2f} on. Point at a mark to read its text."
    unrelated = panels.decimals(scoring.unrelated_cosine(metric))
    scale = f"1 is the same meaning. Unrelated texts have {unrelated} on average."
    if prompt and prompt.strip():
        scale += " What the texts share with the prompt is not counted."
    return [
        Drawn(plots.text_map(square, names, texts, groups, near), joined + cut),
        Drawn(plots.heat_map(square, names, texts), scale + cut),
        _alike(sets, shown, similarity),
    ]


def _alike(sets: Sets, shown: Sequence[int], similarity: np.ndarray) -> Drawn | None:
    """Show the most and the least alike pair of each set, in words."""
    items = []
    squares = sets.blocks(similarity)
    for series, i in enumerate(shown):
        firsts, seconds = np.triu_indices(len(sets.texts[i]), 1)
        cosines = squares[i][firsts, seconds]
        ends = (("Most alike", cosines), ("Least alike", -cosines))
        # Two texts are the only pair, and one text has none.
        for title, signed in ends[: len(cosines)]:
            place = first_maximum(signed)
            pair = [panels.shorten(sets.texts[i][j[place]], 200) for j in (firsts, seconds)]
            items.append((f"{title}: {panels.decimals(cosines[place])}", [(sets.name(i), pair, series)]))
    return Drawn(panels.render("groups", items)) if items else None


def unseen(sets: Sets, alike: Sequence[np.ndarray], remark: Callable[[int, int, int], str]) -> dict[int, list[str]]:
    """Return for each set notes on texts that the metric takes for alike, but that differ in what changes a meaning.

    alike : for each set of k texts, which pairs are alike to the metric, bool of shape (k, k)
    remark : what the metric makes of texts j and k of set i
    """
    notes: dict[int, list[str]] = {}
    for i, (texts, pairs) in enumerate(zip(sets.texts, alike, strict=True)):
        notes[i] = []
        for kind, (j, k) in reading.differences(texts, pairs).items():
            notes[i].append(f"{_both(texts, j, k)} differ only in {kind}: {remark(i, j, k)}")
    return notes


def _both(texts: Sequence[str], i: int, j: int) -> str:
    return f"“{panels.shorten(texts[i], 80)}” and “{panels.shorten(texts[j], 80)}”"


def contained_notes(sets: Sets, alike: Sequence[np.ndarray]) -> list[str]:
    """Return a note on texts that are not alike to the metric although one contains the other."""
    for texts, pairs in zip(sets.texts, alike, strict=True):
        found = reading.contained(texts, pairs)
        if found:
            reason = "The model compares whole texts: compare answers of one form, all short or all in sentences."
            return [f"{_both(texts, *found)} count as two meanings, although one contains the other. {reason}"]
    return []


def text_bars(
    sets: Sets, shown: Sequence[int], values: Sequence[Sequence[float | None] | None], title: str, caption: str
) -> Drawn | None:
    """Draw a value of each text of one or two sets, in the order of the tables; None if no text has one.

    values : for each set, a number for each text, or None
    """
    known = [(i, j) for i in shown for j, value in enumerate(values[i] or []) if value is not None]
    drawn = [(i, j) for i, j in known if j < MOST_DRAWN]
    if not drawn:
        return None
    groups: dict[str, list[float | None]] = {sets.name(i): [None] * len(drawn) for i in shown}
    for k, (i, j) in enumerate(drawn):
        groups[sets.name(i)][k] = values[i][j]  # type: ignore[index]
    names = [f"{sets.text_name(i, j)}  {sets.texts[i][j]}" for i, j in drawn]
    figure = plots.bars(groups, names, [sets.texts[i][j] for i, j in drawn], title)
    return Drawn(figure, caption + first_of(len(drawn), len(known)))


def details(sets: Sets, columns: dict[str, list[list[Any]]]) -> pd.DataFrame:
    """Return the table of all texts, with columns that have a value for each text of each set."""
    rows = [(sets.name(i), j, text) for i, texts in enumerate(sets.texts) for j, text in enumerate(texts, 1)]
    table = pd.DataFrame(rows, columns=["Set", "No.", "Text"])
    for name, cells in columns.items():
        table[name] = list(chain.from_iterable(cells))
    return table if len(sets.texts) > 1 else table.drop(columns="Set")


def first_of(shown: int, total: int, what: str = "texts", which: str = "first") -> str:
    """Return a remark for a caption if not all items are shown."""
    return f" Only the {which} {shown:,} of {total:,} {what} are shown." if shown < total else ""
