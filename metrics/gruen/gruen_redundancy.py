"""Pairs of sentences of a text that repeat each other, by the four measures of GRUEN's released code."""

import difflib
import itertools
from typing import NamedTuple

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
# Pairs listed for one text; their number grows with the square of its sentences.
LISTED_PAIRS = 10_000
_NEAR, _EDIT_SHARE = 0.8, 0.6
# Below this many words in both, only equal and contained sentences count.
_LEAST_WORDS = 5


class Redundancy(NamedTuple):
    """The pairs of sentences of one text that repeat each other.

    n_flags : number of flags that all pairs raise
    n_pairs : number of these pairs
    pairs : the first of them, at most LISTED_PAIRS, by position: the positions of both sentences, and their flags
    """

    n_flags: int
    n_pairs: int
    pairs: list[tuple[int, int, list[str]]]


def find_redundancy(sentences: list[str]) -> Redundancy:
    """Judge all pairs of sentences of a text, as the released code does."""
    texts = [sentence.strip() for sentence in sentences]
    raised = [(i, j, raised_flags(texts[i], texts[j])) for i, j in itertools.combinations(range(len(texts)), 2)]
    pairs = [pair for pair in raised if pair[2]]
    return Redundancy(sum(len(flags) for _, _, flags in pairs), len(pairs), pairs[:LISTED_PAIRS])


def raised_flags(first: str, second: str) -> list[str]:
    """Return the flags that a sentence raises with a later one.

    Two sentences of which one contains the other raise all four flags. Else, where one has five words or more: a
    longest common substring of more than 0.8 of the shorter; more than 0.8 of its words; an edit distance below 0.6 of
    the longer; and more than 0.8 of the words of the one with fewer in common. The substring is that of `difflib`,
    which leaves out the characters that are frequent in a second sentence of 200 characters or more.
    """
    from rapidfuzz.distance import Levenshtein

    if first in second or second in first:
        return list(FLAGS)
    words, other_words = first.split(), second.split()
    if max(len(words), len(other_words)) < _LEAST_WORDS:
        return []
    fewer = min(len(words), len(other_words))
    match = difflib.SequenceMatcher(None, first, second).find_longest_match()
    is_raised = (
        match.size > _NEAR * min(len(first), len(second)),
        len(first[match.a : match.a + match.size].split()) > _NEAR * fewer,
        Levenshtein.distance(first, second) < _EDIT_SHARE * max(len(first), len(second)),
        sum(word in other_words for word in words) > _NEAR * fewer,
    )
    return [flag for flag, raised in zip(FLAGS, is_raised, strict=True) if raised]
