"""Detect texts that models of English prose cannot read: other languages, by py3langid, and source code."""

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

# A shorter text does not tell its language; a longer one tells it by its beginning.
_LEAST_LETTERS, _READ_CHARACTERS = 20, 1000
# Of 4402 English captions, sentences of CoLA and hotel descriptions, one is below; other languages are far below.
_LEAST_ENGLISH = 0.01
_LEAST_CODE_LINES, _LEAST_CODE_MARKS = 3, 0.08
# Frequent words of English, and of no other language: a text in which they are frequent needs no model. Of 6419 lines
# of English data, 4803 have as many, and py3langid takes none of these for another language.
_ENGLISH_WORDS = frozenset(
    ["the", "and", "of", "with", "that", "this", "from", "they", "she", "you", "were", "which", "would", "his"]
)
_SURE_ENGLISH = 1 / 12
_MOST_OTHER_LETTERS = 1 / 20
_WORD = re.compile(r"[^\W\d_]+")
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE_MARK = re.compile(r"[][{}()<=;+\\]")


class Unread(NamedTuple):
    """Indices of the texts that are in another language, and of those that are source code."""

    other_language: list[int]
    code: list[int]


def find_unread(texts: Sequence[str]) -> Unread:
    """Find the texts that are not English prose.

    A text is in another language if the probability of English is below 0.01, unless one in twelve letters is of words
    such as "the", which no other language has. Texts of fewer than 20 letters are judged
    together, and not at all if they have fewer than 20 letters together. A text of at least three lines, without fenced
    blocks, is source code if more than 8 % of its characters are brackets, semicolons, `<`, `=`, `+` or backslashes.
    """
    code = [i for i, text in enumerate(texts) if _is_code(text)]
    prose = sorted(set(range(len(texts))).difference(code))
    short = [i for i in prose if _n_letters(texts[i]) < _LEAST_LETTERS]
    words: dict[str, None] = {}
    for i in short:
        words.update(dict.fromkeys(texts[i].split()))
    other = set(short) if _is_other_language(" ".join(words)) else set()
    other.update(i for i in prose if _is_other_language(texts[i]))
    return Unread(sorted(other), code)


def _is_other_language(text: str) -> bool:
    beginning = text[:_READ_CHARACTERS]
    if _n_letters(beginning) < _LEAST_LETTERS or _has_english_words(beginning):
        return False
    return dict(_identifier().rank(beginning))["en"] < _LEAST_ENGLISH


def _has_english_words(text: str) -> bool:
    """Tell whether frequent words of English alone have one in twelve letters, and hardly any letter is not ASCII."""
    n_other = sum(letter.isalpha() and not letter.isascii() for letter in text)
    if n_other > _MOST_OTHER_LETTERS * _n_letters(text):
        return False
    words = _WORD.findall(text.lower())
    n_english = sum(len(word) for word in words if word in _ENGLISH_WORDS)
    return n_english >= _SURE_ENGLISH * _n_letters(text)


def _n_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _is_code(text: str) -> bool:
    unfenced = _FENCED.sub("", text)
    lines = [line for line in unfenced.splitlines() if line.strip()]
    n_characters = len("".join(unfenced.split()))
    return len(lines) >= _LEAST_CODE_LINES and len(_CODE_MARK.findall(unfenced)) > _LEAST_CODE_MARKS * n_characters


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
