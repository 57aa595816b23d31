"""Find texts that the encoder misreads: other languages, and small differences that change the meaning."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from .antonyms import PAIRS
from .core import find_unread

# A sentence ends with a mark, or has this many words; lists of dishes, names and formulas have no language to judge.
_LEAST_WORDS = 6
_SENTENCE_END = re.compile(r"""[.!?…]["'”’)\]]*$""")
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LATIN = re.compile(r"[a-zA-Z\u00c0-\u024f\u1e00-\u1eff]")
_NUMBER = re.compile(
    r"\d.*|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    "|hundred|thousand|million|billion|first|second|third|half|twice"
)
_NEGATIONS = frozenset(
    ["not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "hardly", "cannot"]
)
# Words that negation brings along, or replaces.
_AUXILIARIES = frozenset(["do", "does", "did", "can", "ca", "yes"])
_ANTONYMS = frozenset(PAIRS.split())
_NOT = ("n't", "n’t")
_NEGATING = ("un", "in", "im", "ir", "il", "dis", "non")
KINDS = ("the order of words", "numbers", "negation", "names", "the first word")


def find_foreign(texts: Sequence[str]) -> list[str]:
    """Find the sentences in Latin script that are not in English; the metric itself finds other scripts."""
    judged = [text for text in texts if _is_sentence(text)]
    return [judged[i] for i in find_unread(judged).other_language]


def _is_sentence(text: str) -> bool:
    words = _WORD.findall(text)
    n_letters = sum(character.isalpha() for character in text)
    # In a list of names most words are capitalized.
    is_prose = 2 * sum(word[0].islower() for word in words) >= len(words)
    is_latin = 2 * len(_LATIN.findall(text)) >= n_letters
    is_ended = len(words) > 2 and _SENTENCE_END.search(text) is not None
    return is_latin and is_prose and (len(words) >= _LEAST_WORDS or is_ended)


def differences(texts: Sequence[str], is_alike: np.ndarray) -> dict[str, tuple[int, int]]:
    """Find pairs of texts that the metric takes for alike, but that differ in something which changes the meaning.

    Maps n texts, and which pairs are alike, bool of shape (n, n), to the first pair that differs only in each of
    `KINDS` that there is.
    """
    words = [_WORD.findall(text) for text in texts]
    found: dict[str, tuple[int, int]] = {}
    for i, j in combinations(range(len(texts)), 2):
        if is_alike[i, j]:
            kind = kind_of(words[i], words[j])
            if kind:
                found.setdefault(kind, (i, j))
    return found


def contained(texts: Sequence[str], is_alike: np.ndarray) -> tuple[int, int] | None:
    """Find the first pair of texts that are not alike although the words of one are in the other, in their order."""
    words = [[word.lower() for word in _WORD.findall(text)] for text in texts]
    for i, j in combinations(range(len(texts)), 2):
        if is_alike[i, j] or not words[i] or not words[j]:
            continue
        short, long = sorted((words[i], words[j]), key=len)
        starts = range(len(long) - len(short) + 1)
        if any(long[start : start + len(short)] == short for start in starts):
            return i, j
    return None


def kind_of(left: Sequence[str], right: Sequence[str]) -> str:
    """Name the only one of `KINDS` in which two lists of words differ; "" if they are equal or differ in more."""
    counts = [Counter(map(str.lower, words)) for words in (left, right)]
    if counts[0] == counts[1]:
        return KINDS[0] if [*map(str.lower, left)] != [*map(str.lower, right)] else ""
    only = [list((a - b).elements()) for a, b in (counts, counts[::-1])]
    both = only[0] + only[1]
    if all(map(_NUMBER.fullmatch, both)):
        return KINDS[1]
    if _is_negation(*only) or _are_antonyms(*only):
        return KINDS[2]
    names = {word.lower() for words in (left, right) for word in words[1:] if word[0].isupper() and word != "I"}
    if len(only[0]) == len(only[1]) and all(word in names for word in both):
        return KINDS[3]
    # It may be a name, which nothing tells from another word there.
    return KINDS[4] if left[0].istitle() and right[0].istitle() and left[1:] == right[1:] else ""


def _is_negation(left: Sequence[str], right: Sequence[str]) -> bool:
    """Tell whether words differ only by a negation, or by a negating prefix."""
    (short, long) = sorted((left, right), key=lambda words: sum(map(len, words)))
    if len(short) == len(long) == 1 and any(prefix + short[0] == long[0] for prefix in _NEGATING):
        return True
    return _has_negation(left) != _has_negation(right) and _roots(left) == _roots(right)


def _are_antonyms(left: Sequence[str], right: Sequence[str]) -> bool:
    """Tell whether words are one word and its opposite."""
    return len(left) == len(right) == 1 and "/".join(sorted((left[0], right[0]))) in _ANTONYMS


def _has_negation(words: Sequence[str]) -> bool:
    return any(word in _NEGATIONS or word.endswith(_NOT) for word in words)


def _roots(words: Sequence[str]) -> list[str]:
    """Return the words without negations, auxiliary verbs and endings, in order of the alphabet."""
    affirmed = [re.sub("n['’]t$", "", word) if word.endswith(_NOT) else word for word in words]
    return sorted(re.sub("(?<=[^s])s$", "", word) for word in affirmed if word not in _NEGATIONS | _AUXILIARIES)
