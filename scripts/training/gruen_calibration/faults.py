"""Faults inserted into texts: repetition, and sentences from another document."""

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from scripts.training.gruen_calibration.corpora import Text

# Positions between a sentence and its repetition.
_APART = 3
# Words of an opening clause, and of a sentence that is repeated.
_LEAST_CLAUSE, _LEAST_REPEATED = 5, 8
_CLAUSE = re.compile(r"(?<=[,;:])\s|\s(?=--)")


class Fault(NamedTuple):
    """How a text is corrupted.

    insert : maps a text, the texts to take sentences from and a random generator to the corrupted text; None if the
        fault does not apply to the text
    least : minimum number of sentences of a text
    """

    name: str
    insert: Callable[[Text, list[Text], random.Random], list[str] | None]
    least: int = 3


def _n_words(text: str) -> int:
    return len(re.findall(r"\w+", text))


def _clauses(sentence: str) -> list[str]:
    return [clause for part in _CLAUSE.split(sentence) if (clause := part.strip())]


def _other_document(text: Text, sources: list[Text], draw: random.Random) -> Text:
    while (other := draw.choice(sources)).document == text.document:
        pass
    return other


def _repeatable(text: Text, draw: random.Random) -> list[int]:
    """List the positions of sentences that are long enough to be repeated, and not too near to the end, at random."""
    places = [i for i in range(len(text.sentences) - _APART + 1) if _n_words(text.sentences[i]) >= _LEAST_REPEATED]
    return draw.sample(places, len(places))


def _insert(sentences: list[str], place: int, sentence: str) -> list[str]:
    return [*sentences[:place], sentence, *sentences[place:]]


def repeat(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Repeat a sentence three positions later."""
    for i in _repeatable(text, draw):
        return _insert(text.sentences, i + _APART, text.sentences[i])
    return None


def repeat_changed(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Repeat a sentence three positions later, with a clause of at most half its words from another document."""
    for i in _repeatable(text, draw):
        sentence = text.sentences[i]
        clauses = _clauses(sentence)
        short = [k for k, clause in enumerate(clauses) if 2 <= _n_words(clause) <= _n_words(sentence) / 2]
        if short:
            k = draw.choice(short)
            length = _n_words(clauses[k])
            while not (replacements := _clauses(draw.choice(_other_document(text, sources, draw).sentences))):
                pass
            replacements.sort(key=lambda clause: abs(_n_words(clause) - length))
            return _insert(text.sentences, i + _APART, " ".join([*clauses[:k], replacements[0], *clauses[k + 1 :]]))
    return None


def repeat_opening(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Begin the next sentence, too, with the opening clause of a sentence."""
    places = list(range(len(text.sentences) - 1))
    for i in draw.sample(places, len(places)):
        clauses = _clauses(text.sentences[i])
        for k in range(1, len(clauses)):
            opening = " ".join(clauses[:k])
            if _n_words(opening) >= _LEAST_CLAUSE:
                follower = _clauses(text.sentences[i + 1])
                rest = " ".join(follower[1:] or follower)
                return [*text.sentences[: i + 1], f"{opening} {rest}", *text.sentences[i + 2 :]]
    return None


def loop(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Repeat two adjacent sentences alternately, up to the length of the text and at least three times."""
    i = draw.randrange(len(text.sentences) - 1)
    return [text.sentences[i + k % 2] for k in range(max(6, len(text.sentences)))]


def foreign_sentence(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Replace an inner sentence with one of another document."""
    i = draw.randrange(1, len(text.sentences) - 1)
    other = draw.choice(_other_document(text, sources, draw).sentences)
    return [*text.sentences[:i], other, *text.sentences[i + 1 :]]


def foreign_paragraph(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Replace inner sentences with three consecutive ones of another document; two in a text of fewer than ten."""
    size = 2 if len(text.sentences) < 10 else 3
    i = draw.randrange(1, len(text.sentences) - size)
    other = _other_document(text, sources, draw).sentences
    start = draw.randrange(len(other) - size + 1)
    return [*text.sentences[:i], *other[start : start + size], *text.sentences[i + size :]]


def foreign_half(text: Text, sources: list[Text], draw: random.Random) -> list[str] | None:
    """Replace the second half with that of another document."""
    middle = len(text.sentences) // 2
    return [*text.sentences[:middle], *_other_document(text, sources, draw).sentences[middle:]]


AS_WRITTEN = Fault("as people wrote them", lambda text, sources, draw: text.sentences)
REPETITIONS = (
    Fault("repeated word for word", repeat),
    Fault("repeated, one clause changed", repeat_changed),
    Fault("opening clause repeated", repeat_opening),
    Fault("loop of two sentences", loop),
)
DIGRESSIONS = (
    Fault("sentence from another document", foreign_sentence),
    Fault("paragraph from another document", foreign_paragraph, least=5),
    Fault("second half of another document", foreign_half, least=5),
)
