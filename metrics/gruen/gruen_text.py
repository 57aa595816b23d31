"""Texts to sentences: as the original reads them, and by sentencex without changes to the words."""

import importlib.metadata
import math
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
# Numbers with decimal points after which a space has been put, such as a date.
_BROKEN_DECIMALS = re.compile(r"(?<!\d)\d++(?:\. \d+)+")
# All control characters but those that are space.
_CONTROLS = dict.fromkeys(i for i in range(160) if unicodedata.category(chr(i)) == "Cc" and not chr(i).isspace())
# Latin letters end here, but for those of Latin Extended Additional.
_LAST_LATIN, _MORE_LATIN = 0x24F, (0x1E00, 0x1EFF)


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
    decimals = _Decimals()
    return _BROKEN_DECIMALS.sub(lambda match: decimals.replace(match.group()), text).strip()


class _Decimals:
    """The decimals of a text, replaced with "UNK" as the original does.

    The original replaces the first decimal wherever its characters occur, also within a longer number; then the first
    of those left, and so on. Here, runs of digits that ". " joins are read from left to right. In each, known decimals
    are replaced in the order in which they were found; those that remain are new.
    """

    def __init__(self) -> None:
        # For the digits before the point, those after it, and when the decimal was found.
        self._found: dict[str, dict[str, int]] = {}
        self._n_found = 0
        self._lengths: tuple[set[int], set[int]] = (set(), set())

    def replace(self, numbers: str) -> str:
        """Replace all decimals among runs of digits joined by ". "."""
        runs = numbers.split(". ")
        joints = [". "] * (len(runs) - 1)
        for i in range(len(joints)):
            self._replace_known(runs, joints, i)
            # The next decimal may take digits of this one's end.
            self._replace_known(runs, joints, i + 1)
            if joints[i] != "UNK" and runs[i] and runs[i + 1]:
                self._found.setdefault(runs[i], {})[runs[i + 1]] = self._n_found
                self._n_found += 1
                for known, run in zip(self._lengths, runs[i : i + 2], strict=True):
                    known.add(len(run))
                runs[i] = runs[i + 1] = ""
                joints[i] = "UNK"
        return "".join(part for pair in zip(runs, [*joints, ""], strict=True) for part in pair)

    def _replace_known(self, runs: list[str], joints: list[str], place: int) -> None:
        """Replace the decimal at a joint if it was found before, and before it those that take digits of its end."""
        waiting: list[tuple[int, float]] = [(place, self._n_found)]
        while waiting:
            i, limit = waiting[-1]
            when, left, right = self._first(runs, joints, i)
            if when >= limit:
                waiting.pop()
            elif self._first(runs, joints, i + 1)[0] < when:
                waiting.append((i + 1, when))
            else:
                runs[i], runs[i + 1] = runs[i][: len(runs[i]) - left], runs[i + 1][right:]
                joints[i] = "UNK"
                waiting.pop()

    def _first(self, runs: list[str], joints: list[str], i: int) -> tuple[float, int, int]:
        """Return when the first known decimal at a joint was found, and its digits before and after the point."""
        first: tuple[float, int, int] = (math.inf, 0, 0)
        if i >= len(joints) or joints[i] == "UNK":
            return first
        for left in self._lengths[0]:
            rights = self._found.get(runs[i][-left:], {}) if left <= len(runs[i]) else {}
            for right in self._lengths[1] if rights else ():
                when = rights.get(runs[i + 1][:right]) if right <= len(runs[i + 1]) else None
                if when is not None:
                    first = min(first, (when, left, right))
        return first


class SplitText(NamedTuple):
    """The sentences of a text that are scored, those of two words or more, and how many code blocks were left out."""

    sentences: list[str]
    n_code: int


def read_texts(texts: list[str], parity: bool, markup: str = "auto") -> list[SplitText]:
    """Split each text into its sentences.

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
    if parity:
        tokenizer = _punkt()
        return [SplitText(of_two_words(tokenizer.tokenize(normalize(text))), 0) for text in texts]
    texts_split = []
    for text in texts:
        blocks = read_blocks(text.translate(_CONTROLS), markup)
        parts = [sentence for block in blocks.texts for sentence in split_block(block)]
        texts_split.append(SplitText(of_two_words(parts), blocks.n_code))
    return texts_split


def split_texts(texts: list[str]) -> list[list[str]]:
    """Return the sentences that `read_texts` finds without parity."""
    return [split_text.sentences for split_text in read_texts(texts, parity=False)]


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


def is_mostly_other_script(text: str) -> bool:
    """Say whether more than half of a text's letters are not Latin."""
    if text.isascii():
        return False
    letters = [ord(character) for character in text if character.isalpha()]
    other = sum(code > _LAST_LATIN and not _MORE_LATIN[0] <= code <= _MORE_LATIN[1] for code in letters)
    return 2 * other > len(letters)
