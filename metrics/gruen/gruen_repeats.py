"""Pairs of sentences of a text that repeat each other: the four measures of GRUEN, taken of words that carry content.

Any two English sentences share function words and marks, so the paper's measures of characters and of all words raise
the more false alarms the longer the text. Here every flag needs content words in common, and what is compared with a
threshold is a share of the longer sentence.
"""

import itertools
import math
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .gruen_redundancy import (
    ALL_FLAGS,
    COMMON,
    EDITS,
    SUBSTRING,
    WORDS,
    Redundancy,
    longest_common_substring,
    refuse_too_many,
)

# Words of closed classes, and what is left of contractions.
_FUNCTION_WORDS = """
a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself yourselves he him
his himself she her hers herself it its itself they them their theirs themselves one ones who whom whose which what
and or but nor so yet if because as until while although though unless since whether than then of at by for with about
against between among into through during before after above below to from up down in out on off over under upon
within without toward towards across along around behind beside besides beyond near per via onto is am are was were be
been being isn aren wasn weren have has had having hasn haven hadn do does did doing done doesn don didn will would
shall should can could may might must ought won wouldn shan shouldn couldn mightn mustn cannot ain ca wo not no never
here there where when why how again once ever now all any both each few more most other others another some such only
own same too very just even also still much many every either neither several something anything nothing everything
someone anyone everyone nobody s t d ll m re ve
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
# A word, such as "well-known" or "example.com", and the mark that ends a clause with it.
_WORD = re.compile(r"([^\W_]+(?:[-.][^\W_]+)*)(?:[\"'”’)\]]*\s*([,;:.!?–—]|--|$))?")
# Words in a row that count as taken over.
_LEAST_RUN = 3
# Equal sentences of fewer words count only where one comes three times among five.
_LEAST_EQUAL, _AGAIN, _AMONG = 5, 3, 5
# Words of an opening that are looked at; a common one that long counts anyway.
_OPENING = 24
# Pairs of sentences held at a time, of a product of matrices and of what is judged.
_PRODUCT_PAIRS, _JUDGED_PAIRS = 2**21, 2**17


class RepeatRule(NamedTuple):
    """Thresholds from which on two sentences repeat each other, chosen by scripts/training/calibrate_gruen.py.

    The weight of a passage is the number of its words, content words counted twice.

    content : content words that a passage, or what both have in common, needs
    clause : weight of an opening of both with which a clause of one of them ends
    passage : weight of any other opening, and of what is kept, in a text of `sentences` sentences or fewer
    growth : what is added to that with each doubling of the sentences: of more pairs, more are alike by chance
    in_order : share of the words of the longer that the other has in the same order, in runs of three words or more
    contained : share of the longer that another one makes up as a whole
    share : share of the longer that is in one run, of its content words in that run, and of those in any order
    """

    content: float = 3
    clause: float = 8
    passage: float = 10
    sentences: float = 20
    growth: float = 4
    in_order: float = 0.4
    contained: float = 0.6
    share: float = 0.75

    @property
    def identity(self) -> str:
        """The thresholds in their order, for the signature."""
        return "/".join(f"{value:g}" for value in self)

    def for_text(self, n_sentences: int) -> "RepeatRule":
        """Return the rule for a text of this many sentences."""
        doublings = math.log2(max(1.0, n_sentences / self.sentences))
        return self._replace(passage=self.passage + self.growth * doublings)


REPEAT_RULE = RepeatRule()


def find_repeats(sentences: list[str], rule: RepeatRule = REPEAT_RULE) -> Redundancy:
    """Find the pairs of sentences of a text that repeat each other.

    Sentences of the same words raise all four flags if they have five words, or if one comes three times among five.
    Two others need three content words in common. They raise all flags if one is more than 0.6 of the other, and else

    - `longest_substring` if their longest common run of words is more than 0.75 of the longer;
    - `substring_words` if the content words of this run are more than 0.75 of those of the longer;
    - `edit_distance` if more than 0.4 of the longer stays in order, in runs of three words or more, of a weight of 10;
      or if both begin with the same passage, of a weight of 8 where a clause of one of both ends with it, else of 10;
      this 10 grows by 4 with each doubling of the sentences beyond 20;
    - `common_words` if the content words in common, in any order, are more than 0.75 of those of the longer.

    Raises
    ------
    ValueError
        If there are more different sentences than MAX_SENTENCES.
    """
    sentence_words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    places: dict[object, list[int]] = {}
    for place, pairs in enumerate(sentence_words):
        # What has no words is compared as it stands.
        key = tuple(word for word, _ in pairs) or sentences[place].strip()
        places.setdefault(key, []).append(place)
    refuse_too_many(len(places))
    different = [sentence_words[positions[0]] for positions in places.values()]
    again = np.array(
        [u for u, positions in enumerate(places.values()) if _is_said_again(different[u], positions)], dtype=np.int64
    )
    repeated = again, again, np.full(len(again), ALL_FLAGS)
    near_equal = _Judge(different, rule.for_text(len(sentences))).flags()
    return Redundancy.of(list(places.values()), itertools.chain([repeated], near_equal))


def shared_passages(first: str, second: str) -> list[str]:
    """List what a sentence has in common with another: its passages of three words or more, else its content words."""
    a, b = ([match[1].lower() for match in _WORD.finditer(sentence)] for sentence in (first, second))
    spans = [match.span(1) for match in _WORD.finditer(first)]
    runs = [
        (start, size)
        for start, size in _runs(*_as_characters([a, b]))
        if any(word not in FUNCTION_WORDS for word in a[start : start + size])
    ]
    if runs:
        return [first[spans[start][0] : spans[start + size - 1][1]] for start, size in runs]
    common = set(a) & set(b) - FUNCTION_WORDS
    return [first[start:end] for word, (start, end) in zip(a, spans, strict=True) if word in common]


def _is_said_again(words: list[tuple[str, str]], places: list[int]) -> bool:
    if len(places) < 2 or not words:
        return False
    if len(words) >= _LEAST_EQUAL:
        return True
    return any(last - first < _AMONG for first, last in zip(places, places[_AGAIN - 1 :], strict=False))


def _as_characters(sentences: list[list[str]]) -> list[str]:
    """Write each sentence with one character for each word, the same for the same word.

    Raises a ValueError if there are more different words than characters.
    """
    characters: dict[str, str] = {}
    for word in itertools.chain.from_iterable(sentences):
        if word not in characters:
            if len(characters) > sys.maxunicode:
                raise ValueError(f"has more than {len(characters)} different words, which non_redundancy takes at most")
            characters[word] = chr(len(characters))
    return ["".join(map(characters.__getitem__, words)) for words in sentences]


def _runs(a: str, b: str) -> list[tuple[int, int]]:
    """Find the runs of three words or more that are in both, in the same order: where in `a` each begins, and its size.

    They are difflib's matching blocks: the longest run, the first of equal ones, and then what is before it in both and
    after it in both.
    """
    runs = []
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        low, high, other_low, other_high = waiting.pop()
        start, size = longest_common_substring(a[low:high], b[other_low:other_high], least=_LEAST_RUN)
        if size:
            start += low
            other = b.index(a[start : start + size], other_low)
            runs.append((start, size))
            waiting += [(low, start, other_low, other), (start + size, high, other + size, other_high)]
    return sorted(runs)


class _Judge:
    """All pairs of n different sentences, given by their words and the marks after them."""

    def __init__(self, sentences: list[list[tuple[str, str]]], rule: RepeatRule) -> None:
        self.sentences, self.rule = sentences, rule
        self.words = [[word for word, _ in pairs] for pairs in sentences]
        ids: dict[str, int] = {}
        self.ids = [[ids.setdefault(word, len(ids)) for word in words] for words in self.words]
        self.characters = _as_characters(self.words)
        self.is_content = np.array([word not in FUNCTION_WORDS for word in ids], dtype=bool)
        self.counts = np.array(list(map(len, self.words)), dtype=np.int64)
        self.content = [sorted({i for i in word_ids if self.is_content[i]}) for word_ids in self.ids]
        self.contents = np.array(list(map(len, self.content)), dtype=np.int64)
        # The content words before each position.
        self.content_sums = [
            list(itertools.accumulate(self.is_content[word_ids].tolist(), initial=0)) if word_ids else [0]
            for word_ids in self.ids
        ]
        triples: dict[tuple[int, ...], int] = {}
        numbered = [
            triples.setdefault(word_ids[i : i + _LEAST_RUN], len(triples))
            for word_ids in map(tuple, self.ids)
            for i in range(len(word_ids) - _LEAST_RUN + 1)
        ]
        self.triples, self.n_triples = np.array(numbered, dtype=np.int64), len(triples)
        self.ends = np.cumsum(np.maximum(self.counts - _LEAST_RUN + 1, 0))

    def flags(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Give both orders of each pair that raises a flag, with its flags."""
        words, ends = self._openings()
        for us, vs, common in self._candidates():
            longer = np.maximum(self.counts[us], self.counts[vs])
            longer_content = np.maximum(self.contents[us], self.contents[vs])
            flags = np.where(self._same_opening(words, ends, us, vs), EDITS, 0)
            flags |= np.where(common > self.rule.share * longer_content, COMMON, 0)
            # The shorter one has all that is kept.
            near = np.minimum(self.counts[us], self.counts[vs]) > self.rule.in_order * longer
            flags[near] |= self._run_flags(us[near], vs[near])
            raised = flags > 0
            yield us[raised], vs[raised], flags[raised]
            yield vs[raised], us[raised], flags[raised]

    def _candidates(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Find the pairs u < v with enough content words in common, and how many these are."""
        from scipy import sparse

        columns = [word for word_ids in self.content for word in word_ids]
        edges = np.cumsum([0, *map(len, self.content)])
        shape = (len(self.content), len(self.is_content))
        table = sparse.csr_array((np.ones(len(columns), dtype=np.int32), columns, edges), shape=shape)
        transposed = table.T.tocsr()
        step = max(1, _PRODUCT_PAIRS // max(1, len(self.content)))
        for start in range(0, len(self.content), step):
            products = (table[start : start + step] @ transposed).tocoo()
            us, vs = products.row + start, products.col
            enough = np.flatnonzero((us < vs) & (products.data >= self.rule.content))
            for first in range(0, len(enough), _JUDGED_PAIRS):
                part = enough[first : first + _JUDGED_PAIRS]
                yield us[part], vs[part], products.data[part]

    def _openings(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the first words of each sentence, padded with what equals nothing, and whether a clause ends with each.

        Both are ndarrays of shape (n, 24).
        """
        words = np.arange(-len(self.ids), 0)[:, None].repeat(_OPENING, axis=1)
        ends = np.zeros(words.shape, dtype=bool)
        for i, (word_ids, sentence) in enumerate(zip(self.ids, self.sentences, strict=True)):
            words[i, : len(word_ids)] = word_ids[:_OPENING]
            ends[i, : len(word_ids)] = [bool(mark) for _, mark in sentence[:_OPENING]]
            ends[i, len(word_ids) - 1 : len(word_ids)] = True
        return words, ends

    def _same_opening(self, words: np.ndarray, ends: np.ndarray, us: np.ndarray, vs: np.ndarray) -> np.ndarray:
        same = np.logical_and.accumulate(words[us] == words[vs], axis=1)
        n_same = same.sum(axis=1)
        n_content = (np.append(self.is_content, False)[np.maximum(words[us], -1)] & same).sum(axis=1)
        last = np.maximum(n_same - 1, 0)
        is_clause = ends[us, last] | ends[vs, last]
        least = np.where(is_clause, self.rule.clause, self.rule.passage)
        return (n_content >= self.rule.content) & (n_same + n_content >= least)

    def _run_flags(self, us: np.ndarray, vs: np.ndarray) -> np.ndarray:
        """Find the flags of the runs of words that two sentences have in common, for pairs sorted by the first.

        Pairs whose words are in common at the same positions have the same flags: of near-equal sentences, nearly all.
        """
        flags = np.zeros(len(us), dtype=np.int64)
        known: dict[bytes, dict[tuple[bytes, int], int]] = {}
        place_of = np.zeros(self.n_triples, dtype=np.int32)
        starts = self.ends - np.maximum(self.counts - _LEAST_RUN + 1, 0)
        for rows in np.split(np.arange(len(us)), np.flatnonzero(np.diff(us)) + 1) if len(us) else ():
            u, partners = int(us[rows[0]]), vs[rows]
            triples = self.triples[starts[u] : self.ends[u]]
            # Backwards, so that the first of equal ones counts.
            place_of[triples[::-1]] = np.arange(len(triples), 0, -1, dtype=np.int32)
            sizes = self.ends[partners] - starts[partners]
            edges = np.concatenate([[0], np.cumsum(sizes)])
            flat = place_of[self.triples[np.repeat(starts[partners] - edges[:-1], sizes) + np.arange(edges[-1])]]
            # Each position in common stands for three words at most.
            n_common = np.diff(np.concatenate([[0], np.cumsum(flat > 0)])[edges])
            enough = n_common * _LEAST_RUN > self.rule.in_order * np.maximum(self.counts[u], self.counts[partners])
            pattern = place_of[triples].tobytes() + np.diff(self.content_sums[u]).astype(np.int8).tobytes()
            pattern += self.contents[u].tobytes()
            judged = known.setdefault(pattern, {})
            line, cuts = flat.tobytes(), (edges * flat.itemsize).tolist()
            contents = self.contents[partners].tolist()
            for i in np.flatnonzero(enough).tolist():
                key = (line[cuts[i] : cuts[i + 1]], contents[i])
                if key not in judged:
                    judged[key] = self._judge_runs(u, int(partners[i]))
                flags[rows[0] + i] = judged[key]
            place_of[triples] = 0
        return flags

    def _judge_runs(self, u: int, v: int) -> int:
        rule = self.rule
        longer = max(self.counts[u], self.counts[v])
        runs = _runs(self.characters[u], self.characters[v])
        sums = self.content_sums[u]
        contents = [sums[start + size] - sums[start] for start, size in runs]
        n_kept, n_content = sum(size for _, size in runs), sum(contents)
        if n_content < rule.content or n_kept <= rule.in_order * longer:
            return 0
        run, content = max((size, run_content) for (_, size), run_content in zip(runs, contents, strict=True))
        if run == min(self.counts[u], self.counts[v]) and run > rule.contained * longer:
            return ALL_FLAGS
        if n_kept + n_content < rule.passage:
            return 0
        flags = EDITS
        if run > rule.share * longer:
            flags |= SUBSTRING
        if content > rule.share * max(self.contents[u], self.contents[v]):
            flags |= WORDS
        return flags
