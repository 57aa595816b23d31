"""The parts that `parity=True` replaces: sentences, grammaticality, redundancy and focus as in GRUEN's released code.

Their quirks are the original's (github.com/WanzhengZhu/GRUEN): they are kept, so that its numbers are reproduced.
"""

import difflib
import itertools
import math
import re
from collections import Counter
from typing import Any

import numpy as np

from .gruen_backbone import Forward, Loaded, SentenceScores
from .gruen_bert import BertBackbone, tokenize_cut
from .gruen_focus import WordMover
from .gruen_redundancy import FLAGS, LISTED_PAIRS, Redundancy
from .gruen_text import Text, is_of_two_words

# Most tokens of a sentence that are read, by model.
_TOKENS = {"lm_model": 512, "cola_model": 128}
_NEAR, _EDIT_SHARE, _LEAST_WORDS = 0.8, 0.6, 5
_SHIFT = 7.0
_BROKEN_DECIMAL = re.compile(r"\d+\. \d+")


def split(text: str) -> Text:
    """Normalize a text and split it with NLTK's Punkt.

    Raises a LookupError if Punkt's data is missing; the message says how to get it.
    """
    sentences = [piece for piece in _punkt().tokenize(normalize(text)) if is_of_two_words(piece)]
    return Text(sentences, [False] * len(sentences), [0] * len(sentences))


def normalize(text: str) -> str:
    """Join the lines of a text, with a space after each full stop.

    A number with a decimal point becomes "UNK". The steps and their order are the original's, because they show:
    "U.S." becomes "U. S.", and an ellipsis one full stop.
    """
    text = text.strip().replace("\n\n", ". ").replace("\n", ". ")
    text = text.replace("..", ".").replace(".", ". ").replace(". . ", ". ").replace(".  . ", ". ")
    while "  " in text:
        text = text.replace("  ", " ")
    while decimal := _BROKEN_DECIMAL.search(text):
        text = text.replace(decimal.group(), "UNK")
    return text.strip()


def _punkt() -> Any:
    from nltk.tokenize import PunktTokenizer

    try:
        return PunktTokenizer("english")
    except LookupError:
        raise LookupError(
            "parity=True splits sentences with NLTK's Punkt, whose data is not installed. Get it with: python -m "
            "nltk.downloader punkt_tab, or set NLTK_DATA to the folder that holds tokenizers/punkt_tab."
        ) from None


class ReleasedBackbone(BertBackbone):
    """The paper's models: sentences are cut, class 1 is acceptable, and grammaticality has no upper bound."""

    def grade_text(self, scores: SentenceScores, rows: list[int]) -> float:
        """Grade a text: the mean loss is taken before the exponential, and is 0 without sentences."""
        if not rows:
            return float(self.grammaticality(np.ones(1), np.zeros(1))[0])
        likelihood = np.exp(-0.5 * np.exp(scores.loss[rows]).mean())
        return float(self.grammaticality(likelihood, scores.acceptability[rows].mean()))

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Combine both scores of n sentences: (n,), at least 0."""
        return np.maximum(0.0, self.rescale(likelihood, acceptability))

    def _acceptable_label(self) -> int:
        return 1

    def _read(self, parameter: str, loaded: Loaded, sentences: list[str], forward: Forward) -> np.ndarray:
        limited = loaded._replace(limit=min(loaded.limit, _TOKENS[parameter]))
        tokens = tokenize_cut(limited, [(sentence,) for sentence in sentences], "different sentences", "the original")
        return limited.run(tokens, forward, self._settings, parameter)


class ReleasedWordMover(WordMover):
    """Takes the distance for a similarity, and keeps unknown words as zero vectors."""

    def _similarity(self, distance: float) -> float:
        return 1 / (1 + math.exp(_SHIFT - distance))

    def _count(self, tokens: list[Any]) -> Counter[Any]:
        return Counter(token.orth for token in tokens)


def find_redundancy(sentences: list[str]) -> Redundancy:
    """Judge all pairs of sentences of a text."""
    texts = [sentence.strip() for sentence in sentences]
    raised = [(i, j, raised_flags(texts[i], texts[j])) for i, j in itertools.combinations(range(len(texts)), 2)]
    pairs = [pair for pair in raised if pair[2]]
    return Redundancy(sum(len(flags) for _, _, flags in pairs), len(pairs), pairs[:LISTED_PAIRS])


def raised_flags(first: str, second: str) -> list[str]:
    """Return the flags that a sentence raises with a later one.

    Two sentences raise all four flags if one contains the other. Else, where one has five words or more: a
    longest common substring of more than 0.8 of the shorter; more than 0.8 of its words; an edit distance below 0.6 of
    the longer; and more than 0.8 of the words of the one with fewer in common. The substring is `difflib`'s,
    which leaves out the characters that are frequent in a second sentence of 200 characters or more.
    """
    from rapidfuzz.distance import Levenshtein

    if first in second or second in first:
        return list(FLAGS)
    words = first.split()
    other_words = second.split()
    if max(len(words), len(other_words)) < _LEAST_WORDS:
        return []
    fewer = min(len(words), len(other_words))
    match = difflib.SequenceMatcher(None, first, second).find_longest_match()
    n_words_of_match = len(first[match.a : match.a + match.size].split())
    edits = Levenshtein.distance(first, second)
    n_common = sum(word in other_words for word in words)
    is_raised = (
        match.size > _NEAR * min(len(first), len(second)),
        n_words_of_match > _NEAR * fewer,
        edits < _EDIT_SHARE * max(len(first), len(second)),
        n_common > _NEAR * fewer,
    )
    return [flag for flag, raised in zip(FLAGS, is_raised, strict=True) if raised]
