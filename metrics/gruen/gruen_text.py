"""Texts to sentences: the original's normalization, and two ways to split."""

import importlib.metadata
import re
import string
import unicodedata
from typing import Any, NamedTuple

from .gruen_markup import read_blocks

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_BROKEN_DECIMAL = re.compile(r"\d+\. \d+")
# All control characters but those that are space.
_CONTROLS = dict.fromkeys(i for i in range(160) if unicodedata.category(chr(i)) == "Cc" and not chr(i).isspace())
# Latin letters end here, but for those of Latin Extended Additional.
_LAST_LATIN, _MORE_LATIN = 0x24F, (0x1E00, 0x1EFF)


def normalize(text: str) -> str:
    """Bring a text to one line, with a space behind each full stop, as GRUEN's code does.

    A number with a decimal point becomes "UNK". The steps and their order are those of the original, for they show:
    "U.S." becomes "U. S.", and an ellipsis one full stop.
    """
    text = text.strip().replace("\n\n", ". ").replace("\n", ". ")
    text = text.replace("..", ".").replace(".", ". ").replace(". . ", ". ").replace(".  . ", ". ")
    while "  " in text:
        text = text.replace("  ", " ")
    place = 0
    # Each number that is found goes wherever its characters stand, within a longer number too. What lies before the
    # place of the first holds none, so the search goes on from there.
    while match := _BROKEN_DECIMAL.search(text, place):
        place = match.start()
        text = text.replace(match.group(), "UNK")
    return text.strip()


class SplitText(NamedTuple):
    """The sentences of a text that are scored, those of two words or more, and how many code blocks were left out."""

    sentences: list[str]
    n_code: int


def read_texts(texts: list[str], parity: bool, markup: str = "auto") -> list[SplitText]:
    """Split each text into its sentences.

    Parameters
    ----------
    parity : split as the original does, with NLTK's Punkt; else with sentencex, each block of a text by itself, and
        without control characters
    markup : how `read_blocks` reads a text; the original reads none

    Raises
    ------
    LookupError
        If Punkt's data is missing; the message says how to get it.
    """
    if parity:
        tokenizer = _punkt()
        return [SplitText(_of_two_words(tokenizer.tokenize(normalize(text))), 0) for text in texts]
    import sentencex

    found = []
    for text in texts:
        blocks = read_blocks(text.translate(_CONTROLS), markup)
        parts = [part.strip() for block in blocks.texts for part in sentencex.segment("en", normalize(block))]
        found.append(SplitText(_of_two_words(parts), blocks.n_code))
    return found


def split_texts(texts: list[str], parity: bool) -> list[list[str]]:
    """Return the sentences that `read_texts` finds."""
    return [one.sentences for one in read_texts(texts, parity)]


def splitter_identity(parity: bool) -> str:
    """Name the splitter, for the signature."""
    return "punkt" if parity else f"sentencex-{importlib.metadata.version('sentencex')}"


def _of_two_words(sentences: list[str]) -> list[str]:
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


def is_mostly_other_script(text: str) -> bool:
    """Say whether more than half of a text's letters are not Latin."""
    if text.isascii():
        return False
    letters = [ord(character) for character in text if character.isalpha()]
    other = sum(code > _LAST_LATIN and not _MORE_LATIN[0] <= code <= _MORE_LATIN[1] for code in letters)
    return 2 * other > len(letters)
