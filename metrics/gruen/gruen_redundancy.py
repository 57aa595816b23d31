"""Pairs of sentences of a text that repeat each other, by the four measures of GRUEN.

All pairs are judged, exactly. Most never reach a measure: each flag has a condition without which it cannot be raised,
and which one search, one matrix product or one call of a library checks for many pairs.
"""

import difflib
import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
# Pairs grow with the square: 20 000 different sentences are 200 million, a quarter of an hour.
MAX_SENTENCES = 20_000

ALL_FLAGS = 15
SUBSTRING, WORDS, EDITS, COMMON = 1, 2, 4, 8
_NEAR, _EDIT_SHARE = 0.8, 0.6
# Below this many words in both, only equal and contained sentences count.
_LEAST_WORDS = 5
# From this length on, difflib by default leaves out what is frequent.
_AUTOJUNK_LENGTH = 200
_SEPARATOR = "\n"
# Rows of the matrices of all pairs that are held at a time.
_BLOCK_ROWS = 512


class Redundancy(NamedTuple):
    """The pairs of sentences of one text that raise a flag, by their different sentences.

    places : for each different sentence, its positions in the text, in order
    first, second : ndarrays of shape (p,), different sentences u and v; u = v stands for a repeated one
    flags : ndarray of shape (p,), what a pair raises where u comes before v: a bit for each of FLAGS
    """

    places: list[list[int]]
    first: np.ndarray
    second: np.ndarray
    flags: np.ndarray

    def n_flags(self) -> int:
        """Count the flags over all pairs of sentences of the text."""
        raised = [flags.bit_count() for flags in self.flags.tolist()]
        return sum(self._times(u, v) * n for u, v, n in zip(self.first, self.second, raised, strict=True))

    def n_pairs(self) -> int:
        """Count the pairs that raise a flag."""
        return sum(self._times(u, v) for u, v in zip(self.first, self.second, strict=True))

    def pairs(self, limit: int) -> list[tuple[int, int, list[str]]]:
        """List the first pairs, at most `limit`, by position: the positions of both sentences, and their flags."""
        found: list[tuple[int, int, list[str]]] = []
        partners: dict[int, list[tuple[int, int]]] = {}
        for u, v, flags in zip(self.first.tolist(), self.second.tolist(), self.flags.tolist(), strict=True):
            partners.setdefault(u, []).append((v, flags))
        sentence_at = {place: u for u, places in enumerate(self.places) for place in places}
        for i in sorted(sentence_at):
            later = [
                (j, flags)
                for v, flags in partners.get(sentence_at[i], [])
                for j in self.places[v][bisect_right(self.places[v], i) :]
            ]
            for j, flags in sorted(later):
                if len(found) == limit:
                    return found
                found.append((i, j, [name for bit, name in enumerate(FLAGS) if flags >> bit & 1]))
        return found

    def _times(self, u: int, v: int) -> int:
        """Count the pairs of positions of which u's comes first."""
        if len(self.places[u]) == len(self.places[v]) == 1:
            return int(self.places[u][0] < self.places[v][0])
        if u == v:
            return math.comb(len(self.places[u]), 2)
        return int(len(self.places[u]) * len(self.places[v]) - np.searchsorted(self.places[v], self.places[u]).sum())


def find_redundancy(sentences: list[str], autojunk: bool = False) -> Redundancy:
    """Judge all pairs of sentences of a text.

    Two sentences that are equal, or of which one contains the other, raise all four flags. Else, where the longer has
    five words or more: a longest common substring of more than 0.8 of the shorter; more than 0.8 of its words; an edit
    distance below 0.6 of the longer; and more than 0.8 of the words of the one with fewer in common.

    Parameters
    ----------
    autojunk : take the substring that the original takes: difflib leaves out characters that are frequent in a second
        sentence of 200 characters or more, which makes it miss what two long sentences share

    Raises
    ------
    ValueError
        If there are more different sentences than MAX_SENTENCES.
    """
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        places.setdefault(sentence.strip(), []).append(place)
    texts = list(places)
    refuse_too_many(len(texts))
    raised: dict[tuple[int, int], int] = {(u, u): ALL_FLAGS for u, text in enumerate(texts) if len(places[text]) > 1}
    if len(texts) > 1:
        _Judge(texts, autojunk).collect(raised)
    ordered = np.array([(u, v, flags) for (u, v), flags in raised.items() if flags], dtype=np.int64).reshape(-1, 3)
    return Redundancy(list(places.values()), *ordered.T)


def refuse_too_many(n_different: int) -> None:
    """Raise a ValueError if there are more different sentences than MAX_SENTENCES."""
    if n_different > MAX_SENTENCES:
        raise ValueError(f"has {n_different} different sentences, and non_redundancy takes {MAX_SENTENCES} at most")


class _Judge:
    """All pairs of n different sentences."""

    def __init__(self, texts: list[str], autojunk: bool) -> None:
        self.texts, self.autojunk = texts, autojunk
        self.words = [text.split() for text in texts]
        self.lengths = np.array(list(map(len, texts)))
        self.counts = np.array(list(map(len, self.words)))

    def collect(self, raised: dict[tuple[int, int], int]) -> None:
        """Put the flags of each ordered pair, (u, v) for u before v in the text, into `raised`."""
        for u, v in self._substring_candidates():
            if self.texts[u] in self.texts[v] or self.texts[v] in self.texts[u]:
                raised[u, v] = raised[v, u] = ALL_FLAGS
            elif max(self.counts[u], self.counts[v]) >= _LEAST_WORDS:
                raised[u, v] = self._substring_flags(u, v)
                raised[v, u] = self._substring_flags(v, u)
        for bit, found in ((EDITS, self._near_edits()), (COMMON, self._common_words())):
            for us, vs in found:
                for u, v in zip(us.tolist(), vs.tolist(), strict=True):
                    raised[u, v] = raised.get((u, v), 0) | bit

    def _substring_flags(self, u: int, v: int) -> int:
        a, b = self.texts[u], self.texts[v]
        start, size = longest_common_substring(a, b, self.autojunk)
        flags = SUBSTRING if size > _NEAR * min(len(a), len(b)) else 0
        words = len(a[start : start + size].split())
        return flags | (WORDS if words > _NEAR * min(self.counts[u], self.counts[v]) else 0)

    def _substring_candidates(self) -> set[tuple[int, int]]:
        """Find the pairs u < v of which one may contain the other, or that may share a long substring.

        A substring of more than 0.8 of a sentence holds that sentence's middle; one of more than 0.8 of its words holds
        a run of them, but for the outer letters of the first and the last.
        """
        starts = np.cumsum([0, *(len(text) + len(_SEPARATOR) for text in self.texts)]).tolist()
        joined = _SEPARATOR.join(self.texts)
        found: set[tuple[int, int]] = set()
        for u, text in enumerate(self.texts):
            least = math.floor(_NEAR * len(text)) + 1
            found.update(
                (min(u, v), max(u, v))
                for v in _holders(text[len(text) - least : least], joined, starts)
                if v != u and self.lengths[v] >= self.lengths[u]
            )
            for run in _word_runs(text, self.words[u]):
                found.update(
                    (min(u, v), max(u, v))
                    for v in _holders(run, joined, starts)
                    if v != u and self.counts[v] >= max(self.counts[u], _LEAST_WORDS)
                )
        return found

    def _near_edits(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Find the ordered pairs whose edit distance is below 0.6 of the longer."""
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist

        order = np.argsort(self.lengths, kind="stable")
        lengths, counts = self.lengths[order], self.counts[order]
        texts = [self.texts[i] for i in order]
        for start in range(0, len(texts), _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, len(texts)))
            # The difference of lengths bounds the distance from below: the longer is the column, and bounded too.
            columns = slice(start, int(np.searchsorted(lengths, lengths[rows][-1] / (1 - _EDIT_SHARE), "right")))
            limits = _EDIT_SHARE * lengths[columns]
            distances = cdist(
                texts[rows],
                texts[columns],
                scorer=Levenshtein.distance,
                score_cutoff=int(limits[-1]) + 1,
                dtype=np.int32,
                workers=-1,
            )
            near = distances < np.maximum(limits[None], _EDIT_SHARE * lengths[rows, None])
            near &= np.maximum(counts[rows, None], counts[None, columns]) >= _LEAST_WORDS
            us, vs = np.nonzero(np.triu(near, 1))
            us, vs = order[us + start], order[vs + start]
            yield us, vs
            yield vs, us

    def _common_words(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Find the ordered pairs with more than 0.8 of the words in common: repeats count in the first of the two."""
        from scipy import sparse

        ids = {word: i for i, word in enumerate(dict.fromkeys(itertools.chain.from_iterable(self.words)))}
        tables = [Counter(words) for words in self.words]
        columns = [ids[word] for table in tables for word in table]
        edges = np.cumsum([0, *map(len, tables)])
        repeats = np.array([n for table in tables for n in table.values()], dtype=np.int32)
        shape = (len(self.texts), len(ids))
        table = sparse.csr_array((repeats, columns, edges), shape=shape)
        present = sparse.csr_array((np.ones_like(repeats), columns, edges), shape=shape).T.tocsr()
        for start in range(0, len(self.texts), _BLOCK_ROWS):
            common = (table[start : start + _BLOCK_ROWS] @ present).tocoo()
            us, vs = common.row + start, common.col
            near = common.data > _NEAR * np.minimum(self.counts[us], self.counts[vs])
            near &= (us != vs) & (np.maximum(self.counts[us], self.counts[vs]) >= _LEAST_WORDS)
            yield us[near], vs[near]


def longest_common_substring(a: str, b: str, autojunk: bool = False) -> tuple[int, int]:
    """Find where in `a` the longest substring of both begins, the first of equal ones, and its length."""
    if autojunk and len(b) >= _AUTOJUNK_LENGTH:
        match = difflib.SequenceMatcher(None, a, b).find_longest_match()
        return match.a, match.size
    start = size = 0
    for i in range(len(a)):
        # Searching is C; each step either lengthens what was found or leaves a place behind.
        while i + size < len(a) and a[i : i + size + 1] in b:
            start, size = i, size + 1
    return start, size


def _word_runs(text: str, words: list[str]) -> Iterator[str]:
    """Give what a common substring of more than 0.8 of the words must hold, one of them."""
    least = math.floor(_NEAR * len(words)) + 1
    if least < 2:
        # One word, and a single letter of it is enough.
        yield from dict.fromkeys("".join(words))
        return
    ends, starts, place = [], [], 0
    for word in words:
        starts.append(text.index(word, place))
        place = starts[-1] + len(word)
        ends.append(place)
    for i in range(len(words) - least + 1):
        yield text[ends[i] - 1 : starts[i + least - 1] + 1]


def _holders(needle: str, joined: str, starts: list[int]) -> Iterator[int]:
    """Find the sentences that hold a string, among those joined; a string may also seem to lie across two."""
    place = joined.find(needle)
    while place >= 0:
        sentence = bisect_right(starts, place) - 1
        yield sentence
        place = joined.find(needle, starts[sentence + 1]) if sentence + 2 < len(starts) else -1
