"""Pairs of sentences of a text that repeat each other, by the four measures of GRUEN's released code."""

import difflib
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import NamedTuple

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
_NEAR, _EDIT_SHARE = 0.8, 0.6
# Below this many words in both, only equal and contained sentences count.
_LEAST_WORDS = 5


class Redundancy(NamedTuple):
    """The pairs of sentences of one text that raise a flag, by their different sentences.

    numbers : for each sentence the number of the different sentence that it is, counted in order of occurrence
    flags : the flags of different sentences u and v, which may be the same, where u comes before v
    """

    numbers: list[int]
    flags: dict[tuple[int, int], list[str]]

    def n_flags(self) -> int:
        """Count the flags over all pairs of sentences of the text."""
        return sum(n * len(self.flags[pair]) for pair, n in self._times().items())

    def n_pairs(self) -> int:
        """Count the pairs that raise a flag."""
        return sum(self._times().values())

    def pairs(self, limit: int) -> list[tuple[int, int, list[str]]]:
        """List the first pairs, at most `limit`, by position: the positions of both sentences, and their flags."""
        listed: list[tuple[int, int, list[str]]] = []
        for i, u in enumerate(self.numbers):
            for j in range(i + 1, len(self.numbers)):
                if len(listed) == limit:
                    return listed
                if flags := self.flags.get((u, self.numbers[j])):
                    listed.append((i, j, flags))
        return listed

    def _times(self) -> dict[tuple[int, int], int]:
        """Count for each pair of different sentences the pairs of positions of which the first comes first."""
        places = positions(self.numbers)
        return {
            (u, v): sum(len(places[v]) - bisect_right(places[v], place) for place in places[u]) for u, v in self.flags
        }


def number(keys: Sequence[Hashable]) -> list[int]:
    """Return the number of each key, in order of occurrence; equal keys have one number."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def positions(numbers: list[int]) -> list[list[int]]:
    """List the positions of each number, in order."""
    places: list[list[int]] = [[] for _ in set(numbers)]
    for place, u in enumerate(numbers):
        places[u].append(place)
    return places


def find_redundancy(sentences: list[str]) -> Redundancy:
    """Judge all pairs of sentences of a text."""
    texts = [sentence.strip() for sentence in sentences]
    numbers = number(texts)
    flags: dict[tuple[int, int], list[str]] = {}
    for i, first in enumerate(texts):
        for j in range(i + 1, len(texts)):
            pair = numbers[i], numbers[j]
            if pair not in flags:
                flags[pair] = raised_flags(first, texts[j])
    return Redundancy(numbers, {pair: raised for pair, raised in flags.items() if raised})


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
