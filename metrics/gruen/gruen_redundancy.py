"""Pairs of sentences of a text that repeat each other, by the four measures of GRUEN.

All pairs are judged, exactly. Most never reach a measure: each flag has a condition without which it cannot be raised,
and which one search, one matrix product or one call of a library checks for many pairs.
"""

import difflib
import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
# Pairs grow with the square: 20 000 different sentences are 200 million, a quarter of an hour.
MAX_SENTENCES = 20_000
# Pairs that may share a long substring are compared letter by letter, at 10 µs each, and held in 1 GB.
MAX_NEAR_PAIRS = 4_000_000

ALL_FLAGS = 15
SUBSTRING, WORDS, EDITS, COMMON = 1, 2, 4, 8
_NEAR, _EDIT_SHARE = 0.8, 0.6
# Below this many words in both, only equal and contained sentences count.
_LEAST_WORDS = 5
# From this length on, difflib by default leaves out frequent characters.
_AUTOJUNK_LENGTH = 200
_SEPARATOR = "\n"
_DTYPES = (np.int32, np.int32, np.int8)
_N_RAISED = np.array([flags.bit_count() for flags in range(ALL_FLAGS + 1)])
# Rows of the matrices of all pairs that are held at a time.
_BLOCK_ROWS = 512


class Redundancy(NamedTuple):
    """The pairs of sentences of one text that raise a flag, by their different sentences.

    places : for each different sentence, its positions in the text, in order
    first, second : ndarrays of shape (p,), int32, different sentences u and v, of which u occurs before v somewhere;
        u = v stands for a repeated one
    flags : ndarray of shape (p,), int8, what a pair raises where u comes before v: a bit for each of FLAGS
    """

    places: list[list[int]]
    first: np.ndarray
    second: np.ndarray
    flags: np.ndarray

    @classmethod
    def of(cls, places: list[list[int]], chunks: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> "Redundancy":
        """Concatenate chunks of pairs, each with the first sentences, the second ones and their flags."""
        begins = np.array([positions[0] for positions in places], dtype=np.int64)
        ends = np.array([positions[-1] for positions in places], dtype=np.int64)
        parts = [tuple(np.empty(0, dtype) for dtype in _DTYPES)]
        for us, vs, flags in chunks:
            raised = np.flatnonzero((begins[us] < ends[vs]) & (flags > 0))
            parts.append(
                tuple(column[raised].astype(dtype) for column, dtype in zip((us, vs, flags), _DTYPES, strict=True))
            )
        return cls(places, *(np.concatenate(column) for column in zip(*parts, strict=True)))

    def merged(self) -> "Redundancy":
        """Merge pairs that were found more than once, with different flags."""
        keys = self.first * np.int64(len(self.places)) + self.second
        _, first_rows, inverse = np.unique(keys, return_index=True, return_inverse=True)
        flags = np.zeros(len(first_rows), dtype=np.int8)
        np.bitwise_or.at(flags, inverse, self.flags)
        return Redundancy(self.places, self.first[first_rows], self.second[first_rows], flags)

    def n_flags(self) -> int:
        """Count the flags over all pairs of sentences of the text."""
        return int(_N_RAISED[self.flags] @ self._times())

    def n_pairs(self) -> int:
        """Count the pairs that raise a flag."""
        return int(self._times().sum())

    def pairs(self, limit: int) -> list[tuple[int, int, list[str]]]:
        """List the first pairs, at most `limit`, by position: the positions of both sentences, and their flags."""
        listed: list[tuple[int, int, list[str]]] = []
        order = np.argsort(self.first, kind="stable")
        edges = np.searchsorted(self.first[order], np.arange(len(self.places) + 1))
        sentence_at = {place: u for u, places in enumerate(self.places) for place in places}
        for i in sorted(sentence_at):
            u = sentence_at[i]
            partners = order[edges[u] : edges[u + 1]]
            later = [
                (j, flags)
                for v, flags in zip(self.second[partners].tolist(), self.flags[partners].tolist(), strict=True)
                for j in self.places[v][bisect_right(self.places[v], i) :]
            ]
            for j, flags in sorted(later):
                if len(listed) == limit:
                    return listed
                listed.append((i, j, [name for bit, name in enumerate(FLAGS) if flags >> bit & 1]))
        return listed

    def _times(self) -> np.ndarray:
        """Count for each pair the pairs of positions of which the first comes first: (p,)."""
        times = np.ones(len(self.first), dtype=np.int64)
        is_repeated = np.array([len(positions) > 1 for positions in self.places], dtype=bool)
        for row in np.flatnonzero(is_repeated[self.first] | is_repeated[self.second]).tolist():
            u, v = self.places[self.first[row]], self.places[self.second[row]]
            times[row] = math.comb(len(u), 2) if u is v else len(u) * len(v) - np.searchsorted(v, u).sum()
        return times


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
        If there are more different sentences than MAX_SENTENCES, or more near-equal pairs than MAX_NEAR_PAIRS.
    """
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        places.setdefault(sentence.strip(), []).append(place)
    texts = list(places)
    refuse_too_many(len(texts))
    again = np.array([u for u, text in enumerate(texts) if len(places[text]) > 1], dtype=np.int64)
    repeated = again, again, np.full(len(again), ALL_FLAGS)
    compared = _Judge(texts, list(places.values()), autojunk).flags() if len(texts) > 1 else ()
    return Redundancy.of(list(places.values()), itertools.chain([repeated], compared)).merged()


def refuse_too_many(n_different: int) -> None:
    """Raise a ValueError if there are more different sentences than MAX_SENTENCES."""
    if n_different > MAX_SENTENCES:
        raise ValueError(f"has {n_different} different sentences, and non_redundancy takes {MAX_SENTENCES} at most")


class _Judge:
    """All pairs of n different sentences, with their positions in the text."""

    def __init__(self, texts: list[str], places: list[list[int]], autojunk: bool) -> None:
        self.texts, self.autojunk = texts, autojunk
        self.begins, self.ends = (np.array([positions[end] for positions in places]) for end in (0, -1))
        self.words = [text.split() for text in texts]
        self.lengths = np.array(list(map(len, texts)))
        self.counts = np.array(list(map(len, self.words)))

    def flags(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Give the ordered pairs, (u, v) for u before v in the text, with flags; one may come again with others."""
        raised = []
        for pair in self._substring_candidates():
            is_contained = self.texts[pair[0]] in self.texts[pair[1]] or self.texts[pair[1]] in self.texts[pair[0]]
            if not is_contained and max(self.counts[i] for i in pair) < _LEAST_WORDS:
                continue
            for u, v in (pair, pair[::-1]):
                if self.begins[u] < self.ends[v]:
                    raised.append((u, v, ALL_FLAGS if is_contained else self._substring_flags(u, v)))
        us, vs, flags = np.array(raised, dtype=np.int64).reshape(-1, 3).T
        yield us, vs, flags
        for bit, chunks in ((EDITS, self._near_edits()), (COMMON, self._common_words())):
            for us, vs in chunks:
                yield us, vs, np.full(len(us), bit)

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
        candidates: set[tuple[int, int]] = set()
        for u, text in enumerate(self.texts):
            least = math.floor(_NEAR * len(text)) + 1
            candidates.update(
                (min(u, v), max(u, v))
                for v in _holders(text[len(text) - least : least], joined, starts)
                if v != u and self.lengths[v] >= self.lengths[u]
            )
            for run in _word_runs(text, self.words[u]):
                candidates.update(
                    (min(u, v), max(u, v))
                    for v in _holders(run, joined, starts)
                    if v != u and self.counts[v] >= max(self.counts[u], _LEAST_WORDS)
                )
            if len(candidates) > MAX_NEAR_PAIRS:
                raise ValueError(
                    f"has more than {MAX_NEAR_PAIRS} near-equal pairs of sentences, which parity takes at most"
                )
        return candidates

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


def longest_common_substring(a: str, b: str, autojunk: bool = False, least: int = 1) -> tuple[int, int]:
    """Find where in `a` the longest substring of both begins, the first of equal ones, and its length.

    Parameters
    ----------
    autojunk : leave out frequent characters of a `b` of 200 characters or more, as difflib does by default
    least : the length below which none is looked for, and 0 is returned
    """
    if autojunk and len(b) >= _AUTOJUNK_LENGTH:
        match = difflib.SequenceMatcher(None, a, b).find_longest_match()
        return match.a, match.size
    start, size, end = 0, least - 1, len(a)
    for i in range(end):
        if i + size >= end:
            break
        if a[i : i + size + 1] not in b:
            continue
        # The search is C. Steps double until one is too long, and are then halved.
        start, size, step = i, size + 1, 1
        while step:
            is_in = i + size + step <= end and a[i : i + size + step] in b
            size += step if is_in else 0
            step = 2 * step if is_in else step // 2
    return start, size if size >= least else 0


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
