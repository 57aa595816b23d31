"""Answers as words: the one rule that reads the answers of both sides.

Digits, signs, symbols and combining marks are part of an answer; case, spaces, the form of quotes and dashes, and
punctuation between words are not. Answers that are equal then say the same, whatever an encoder says. Answers whose
numbers, signs, symbols, units of time, vowel signs or tone marks differ never do.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz import fuzz

from .probeval_numbers import TIME, Quantity, Unit, letters_for_marks, plain_word, read_numbers
from .probeval_wordnet import STOP_WORDS

_QUOTES = {"'": "`´‘’‚‛′ʼʹ‹›", '"': "“”„‟″〝〞〟«»「」『』"}
_FORMS = {char: quote for quote, chars in _QUOTES.items() for char in chars}
_FORMS |= {"−": "-", "⁄": "/", "∕": "/", "№": "number "}
# Characters that NFKC would join to the digits before: fractions and powers.
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞↉])")
_POWER = re.compile(r"(?<=[^\W²³¹⁰⁴-⁹])(?=[⁺⁻]?[²³¹⁰⁴-⁹])")
# Invisible characters that are none of Unicode's category Cf, and the frame around a digit of a keycap.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u20e3\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# The flags of regions are tags after a black flag; elsewhere tags are invisible.
_REGION = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
# Marks of Latin, Greek, Cyrillic, Hebrew and Arabic letters, which writers may leave out. Others are part of a letter:
# vowel signs and tones of Indic scripts and of Thai, voiced kana.
_OPTIONAL_MARKS = re.compile("[\u0300-\u08ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*(?:[+#]+(?![^\W_]))?")
_DECIMALS = re.compile(r"\d\.\d")
_PREPOSITIONS = "near behind beside around inside outside next without within onto upon via using as"
_FUNCTION_WORDS = STOP_WORDS | frozenset(_PREPOSITIONS.split())
# Symbols without which an answer says the same.
_PLAIN_SYMBOLS = frozenset(",/:#@")
_LIKE_IN_SPELLING = 80  # of 100, for two words
_AMERICAN = (
    (re.compile(r"(?<=[a-z]{2})our(?=$|s|ed|ing|ful|ite|hood)"), "or"),
    (re.compile(r"(?<=[bt])re(?=$|s$)"), "er"),
    (re.compile(r"(?<=[a-z]{2})is(?=e$|es$|ed$|er$|ing$|ation)"), "iz"),
    (re.compile(r"ogue(?=$|s$)"), "og"),
    (re.compile(r"ll(?=e[dr]|ing|ery)"), "l"),
)


def normalize(text: str) -> str:
    """Return a text in Unicode's form NFKC, with one form of quotes, dashes and spaces, and nothing invisible."""
    if not text.isascii():
        text = _POWER.sub("^", _FRACTION.sub(" ", _visible(text)))
        text = unicodedata.normalize("NFKC", _one_form(text))
        text = unicodedata.normalize("NFKC", _one_form(_visible(text)))
    return " ".join(text.replace("`", "'").split())


def _visible(text: str) -> str:
    """Remove invisible characters."""
    regions = _REGION.findall(text)
    pieces = []
    for piece in _REGION.split(text):
        pieces.append("".join(char for char in _INVISIBLE.sub("", piece) if unicodedata.category(char) != "Cf"))
        pieces += regions[:1]
        regions = regions[1:]
    return "".join(pieces)


def _one_form(text: str) -> str:
    """Replace quotes and dashes by one form of each."""
    return "".join("-" if unicodedata.category(char) == "Pd" else _FORMS.get(char, char) for char in text)


@lru_cache(maxsize=100_000)
def fold(text: str) -> str:
    """Return a normalized text without regard to case: equal for answers that are the same option."""
    folded = normalize(text).casefold()
    return folded if folded.isascii() else normalize(folded)


class Words(NamedTuple):
    """An answer as words.

    tokens : its words as they are
    content : its words without function words, or all words if all are function words
    squeezed : all that it says, without spaces and punctuation: equal for answers that say the same for certain
    stems : of the content words
    head : stem of the last content word before a function word that follows a content word
    details : its numbers, signs and symbols; None if it has none
    """

    tokens: list[str]
    content: str
    squeezed: str
    stems: frozenset[str]
    head: str
    details: "Details | None"


@lru_cache(maxsize=100_000)
def words(text: str) -> Words:
    """Read an answer as words; an answer without words is read as its text in lower case."""
    from nltk.stem import SnowballStemmer  # NLTK takes seconds to import

    text = fold(text)
    shape = letters_for_marks(text)
    found = [text[slice(*match.span())] for match in _WORD.finditer(shape)]
    tokens = [word.removesuffix("'s") if _DECIMALS.search(word) else plain_word(word) for word in found] or [text]
    content = [word for word in tokens if word not in _FUNCTION_WORDS] or tokens
    start = tokens.index(content[0])
    end = next((i for i in range(start, len(tokens)) if tokens[i] not in content), len(tokens))
    stem = SnowballStemmer("english").stem
    squeezed, details = _read_details(text)
    return Words(found, " ".join(content), squeezed, frozenset(map(stem, content)), stem(tokens[end - 1]), details)


class Details(NamedTuple):
    """Details that distinguish answers which an encoder confuses.

    quantities : its numbers, in order
    units : its units of time
    bare : those without a number
    signs : words with the sign at their end, such as ("c", "++")
    symbols : sorted
    words : all else
    """

    quantities: list[Quantity]
    units: set[Unit]
    bare: set[Unit]
    signs: dict[str, str]
    symbols: list[str]
    words: list[str]

    def differ(self, other: "Details") -> bool:
        """Tell whether two answers differ in their numbers, units of time, signs or symbols.

        A detail that one of them lacks does not count as a difference, except for the sign of a word.
        """
        if self.quantities and other.quantities and self._quantities_differ(other):
            return True
        for these, those in ((self, other), (other, self)):
            if these.bare and those.units and not these.bare & those.units:
                return True
        if self.symbols and other.symbols and self.symbols != other.symbols:
            return True
        return bool(self.signs and other.signs and sorted(self.signs.values()) != sorted(other.signs.values()))

    def _quantities_differ(self, other: "Details") -> bool:
        if len(self.quantities) != len(other.quantities):
            return True
        if not any(a.differs(b) for a, b in zip(self.quantities, other.quantities, strict=True)):
            return False
        # "2 eggs and 3 apples" may be given in another order, "2 to 3" may not.
        if self.words == other.words:
            return True
        ordered = (sorted(side.quantities, key=lambda quantity: quantity.value) for side in (self, other))
        return any(a.differs(b) for a, b in zip(*ordered, strict=True))


def _read_details(text: str) -> tuple[str, Details | None]:
    """Return a folded answer without spaces and punctuation, and its numbers, signs and symbols."""
    pieces, bare = read_numbers(text)
    squeezed = []
    quantities = []
    signs: dict[str, str] = {}
    symbols = []
    plain = []
    for piece in pieces:
        if isinstance(piece, Quantity):
            squeezed.append(f"|{piece.form()}|")
            quantities.append(piece)
            continue
        if piece.kind == "word":
            squeezed.append(piece.text)
            plain.append(piece.text)
            continue
        squeezed.append(f"|{piece.text}|")
        if piece.kind == "sign":
            signs[plain[-1] if plain else ""] = piece.text
        elif piece.text not in _PLAIN_SYMBOLS:
            symbols.append(piece.text)
    if not (quantities or bare or signs or symbols):
        return "".join(squeezed) or text, None
    units = bare | {quantity.unit for quantity in quantities if quantity.unit and quantity.unit.dimension in TIME}
    return "".join(squeezed), Details(quantities, units, bare, signs, sorted(symbols), plain)


def equal_pairs(texts: Sequence[str], gold: Sequence[str]) -> np.ndarray:
    """Find which of n texts and g gold texts say the same for certain: bool array of shape (n, g).

    They are equal but for case, punctuation, spaces, and how numbers are written.
    """
    given = np.array([words(text).squeezed for text in texts], dtype=object)
    reference = np.array([words(text).squeezed for text in gold], dtype=object)
    return given[:, None] == reference


def distinct_pairs(texts: Sequence[str], gold: Sequence[str]) -> np.ndarray:
    """Find which of n texts and g gold texts never say the same: bool array of shape (n, g).

    Their numbers, signs, symbols, units of time, vowel signs or tone marks differ.
    """
    pairs = np.zeros((len(texts), len(gold)), dtype=bool)
    right = [words(text) for text in gold]
    columns = range(len(gold))
    with_details = [column for column in columns if _has_details(right[column])]
    for row, text in enumerate(texts):
        answer = words(text)
        for column in columns if _has_details(answer) else with_details:
            pairs[row, column] = _differ(answer, right[column])
    return pairs


def _has_details(answer: Words) -> bool:
    return answer.details is not None or not answer.squeezed.isascii()


def _differ(answer: Words, other: Words) -> bool:
    """Tell whether answers, one of which has details, never say the same."""
    if _differ_in_sign(answer, other) or _differ_in_sign(other, answer):
        return True
    if answer.details and other.details and answer.details.differ(other.details):
        return True
    return _differ_in_marks(answer.squeezed, other.squeezed)


def _differ_in_sign(answer: Words, other: Words) -> bool:
    """Tell whether a word that bears a sign has another one, or none, in another answer."""
    signs = answer.details.signs if answer.details else {}
    others = other.details.signs if other.details else {}
    return any(word in other.tokens and others.get(word) != sign for word, sign in signs.items())


def look_alikes(answer: Words, other: Words) -> list[tuple[str, str]]:
    """Pair the words, in order, that differ in a few letters only, and are not known to be one word.

    Known are forms of a word, British and American spelling, and a word with a prefix.
    """
    sides = answer.content.split(), other.content.split()
    if len(sides[0]) != len(sides[1]):
        return []
    pairs = []
    for word, said in zip(*sides, strict=True):
        is_alike = word != said and fuzz.ratio(word, said) > _LIKE_IN_SPELLING
        is_prefixed = word.endswith(said) or said.endswith(word)
        if is_alike and not is_prefixed and words(_american(word)).stems != words(_american(said)).stems:
            pairs.append((word, said))
    return pairs


def _american(word: str) -> str:
    """Return a word in American spelling, by the common endings."""
    for pattern, spelling in _AMERICAN:
        word = pattern.sub(spelling, word)
    return word


@lru_cache(maxsize=100_000)
def _letters_and_marks(text: str) -> tuple[str, list[str]]:
    """Return a text without combining marks, and the marks of each letter."""
    letters = ""
    marks: list[str] = []
    for char in unicodedata.normalize("NFD", text):
        if unicodedata.category(char).startswith("M") and marks:
            marks[-1] += char
        else:
            letters += char
            marks.append("")
    return letters, marks


def _differ_in_marks(text: str, other: str) -> bool:
    """Tell whether texts of the same letters differ in combining marks; accents may be left out."""
    letters, marks = _letters_and_marks(text)
    other_letters, other_marks = _letters_and_marks(other)
    if letters != other_letters:
        return False
    for these, those in zip(marks, other_marks, strict=True):
        if _OPTIONAL_MARKS.sub("", these) != _OPTIONAL_MARKS.sub("", those):
            return True
        if these and those and these != those:
            return True
    return False
