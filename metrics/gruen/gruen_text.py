"""Texts to sentences: as the original reads them, and by sentencex without changes to the words."""

import importlib.metadata
import re
import string
import unicodedata
from typing import Any, NamedTuple

from .gruen_markup import read_blocks
from .gruen_repeats import FUNCTION_WORDS

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
# A mark that may be inside an address, a file name or code, as in "ASP.NET"; an ellipsis is not.
_MARK_IN_TOKEN = re.compile(r"(?<![.!?…])[.!?]$")
_CAPITALIZED = re.compile(r"(?:[AI]|[A-Z][a-z]+)(?=[\s,'’])")
_BROKEN_DECIMAL = re.compile(r"\d+\. \d+")
# All control characters but those that are space.
_CONTROLS = dict.fromkeys(i for i in range(160) if unicodedata.category(chr(i)) == "Cc" and not chr(i).isspace())


class Sentences(NamedTuple):
    """The sentences of m texts that are scored, those of two words or more.

    by_text : list of m lists of str
    unique : the different sentences, in order of occurrence
    n_code : list of m ints, the number of code blocks left out of each text
    """

    by_text: list[list[str]]
    unique: list[str]
    n_code: list[int]

    @property
    def sizes(self) -> list[int]:
        """The number of sentences of each text."""
        return list(map(len, self.by_text))


def split(texts: list[str], parity: bool, markup: str = "auto") -> Sentences:
    """Split texts into sentences.

    Parameters
    ----------
    parity : normalize and split as the original does, with NLTK's Punkt; else with sentencex, each block of a text by
        itself, and without control characters
    markup : how `read_blocks` reads a text; the original reads none

    Raises
    ------
    LookupError
        If Punkt's data is missing; the message says how to get it.
    """
    by_text, n_code = [], [0] * len(texts)
    if parity:
        tokenizer = _punkt()
        by_text = [of_two_words(tokenizer.tokenize(normalize(text))) for text in texts]
    else:
        for i, text in enumerate(texts):
            blocks = read_blocks(text.translate(_CONTROLS), markup)
            by_text.append(of_two_words([part for block in blocks.texts for part in split_block(block)]))
            n_code[i] = blocks.n_code
    return Sentences(by_text, list(dict.fromkeys(one for members in by_text for one in members)), n_code)


def split_block(block: str) -> list[str]:
    """Split a block at the boundaries of sentencex that are not inside an address, a file name or code.

    Words and marks are not changed, and space becomes a single space. A single mark without a space after it ends a
    sentence only if the next word is a capitalized function word: "It fell.Nobody knew", but not "typing.Optional".
    """
    import sentencex

    sentences: list[list[str]] = []
    previous = ""
    for part in sentencex.segment("en", " ".join(block.split())):
        if sentences and _is_in_token(previous, part):
            sentences[-1].append(part)
        else:
            sentences.append([part])
        previous = part
    return ["".join(parts).strip() for parts in sentences]


def _is_in_token(before: str, after: str) -> bool:
    if after[:1].isspace() or not _MARK_IN_TOKEN.search(before):
        return False
    word = _CAPITALIZED.match(after)
    return word is None or word.group().lower() not in FUNCTION_WORDS


def normalize(text: str) -> str:
    """Bring a text to one line, with a space after each full stop, as GRUEN's code does; only for parity.

    A number with a decimal point becomes "UNK". The steps and their order are those of the original, for they show:
    "U.S." becomes "U. S.", and an ellipsis one full stop.
    """
    text = text.strip().replace("\n\n", ". ").replace("\n", ". ")
    text = text.replace("..", ".").replace(".", ". ").replace(". . ", ". ").replace(".  . ", ". ")
    while "  " in text:
        text = text.replace("  ", " ")
    while decimal := _BROKEN_DECIMAL.search(text):
        text = text.replace(decimal.group(), "UNK")
    return text.strip()


def splitter_identity(parity: bool) -> str:
    """Name the splitter, for the signature."""
    return "punkt" if parity else f"sentencex-{importlib.metadata.version('sentencex')}"


def of_two_words(sentences: list[str]) -> list[str]:
    """Return the sentences that are scored: those of two words or more."""
    return [sentence for sentence in sentences if len(sentence.translate(_NO_PUNCTUATION).split()) > 1]


def _punkt() -> Any:
    from nltk.tokenize import PunktTokenizer

    try:
        return PunktTokenizer("english")
    except LookupError:
        raise LookupError(
            "parity=True splits sentences with NLTK's Punkt, whose data is not installed. Get it with: python -m "
            "nltk.downloader punkt_tab, or set NLTK_DATA to the folder that holds tokenizers/punkt_tab."
        ) from None
