"""Pairs of sentences of a text that repeat each other: the four measures of GRUEN, taken of words that carry content.

Any two English sentences share function words and marks, so the paper's measures of characters and of all words raise
the more false alarms the longer the text. Here every flag needs content words in common, and what is compared with a
threshold is a share of the longer sentence.
"""

import difflib
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .gruen_redundancy import ALL_FLAGS, COMMON, EDITS, SUBSTRING, WORDS, Redundancy, refuse_too_many

# Words of closed classes, and what is left of contractions. UNK stands for a number.
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
someone anyone everyone nobody s t d ll m re ve unk
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
# A word, and the mark that ends a clause with it.
_WORD = re.compile(r"([^\W_]+(?:-[^\W_]+)*)(?:[\"'”’)\]]*\s*([,;:.!?–—]|--|$))?")
# Words in a row that count as taken over.
_LEAST_RUN = 3
# Equal sentences of fewer words count only where one comes three times among five.
_LEAST_EQUAL, _AGAIN, _AMONG = 5, 3, 5
# Words of an opening that are looked at; a common one that long counts anyway.
_OPENING = 24
_BLOCK_ROWS = 512


class RepeatRule(NamedTuple):
    """Thresholds from which on two sentences repeat each other, chosen by scripts/training/calibrate_gruen.py.

    The weight of a passage is the number of its words, content words counted twice.

    content : content words that a passage, or what both have in common, needs
    clause : weight of an opening of both with which a clause of one of them ends
    passage : weight of any other opening, and of what is kept, in a text of `sentences` sentences or fewer
    growth : what is added to that with each doubling of the sentences: of more pairs, more are alike by chance
    kept : share of the words of the longer that the other has in the same order, in runs of three words or more
    contained : share of the longer that another one makes up as a whole
    share : share of the longer that is in one run, of its content words in that run, and of those in any order
    """

    content: float = 3
    clause: float = 8
    passage: float = 10
    sentences: float = 20
    growth: float = 4
    kept: float = 0.4
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
    found = [_WORD.findall(sentence.lower()) for sentence in sentences]
    places: dict[object, list[int]] = {}
    for place, own in enumerate(found):
        # What has no words is compared as it stands.
        key = tuple(word for word, _ in own) or sentences[place].strip()
        places.setdefault(key, []).append(place)
    refuse_too_many(len(places))
    different = [found[own[0]] for own in places.values()]
    raised = [(u, u, ALL_FLAGS) for u, own in enumerate(places.values()) if _is_said_again(different[u], own)]
    raised += _Judge(different, rule.for_text(len(sentences))).flags()
    ordered = np.array(raised, dtype=np.int64).reshape(-1, 3)
    return Redundancy(list(places.values()), *ordered.T)


def shared_passages(first: str, second: str) -> list[str]:
    """List what a sentence has in common with another: its passages of three words or more, else its content words."""
    a, b = ([match[1].lower() for match in _WORD.finditer(sentence)] for sentence in (first, second))
    spans = [match.span(1) for match in _WORD.finditer(first)]
    runs = [
        block
        for block in _blocks(a, b)
        if any(word not in FUNCTION_WORDS for word in a[block.a : block.a + block.size])
    ]
    if runs:
        return [first[spans[run.a][0] : spans[run.a + run.size - 1][1]] for run in runs]
    common = set(a) & set(b) - FUNCTION_WORDS
    return [first[start:end] for word, (start, end) in zip(a, spans, strict=True) if word in common]


def _is_said_again(words: list[tuple[str, str]], places: list[int]) -> bool:
    if len(places) < 2 or not words:
        return False
    if len(words) >= _LEAST_EQUAL:
        return True
    return any(last - first < _AMONG for first, last in zip(places, places[_AGAIN - 1 :], strict=False))


def _blocks(a: list[str], b: list[str]) -> list[difflib.Match]:
    """Find the runs of three words or more that are in both, in the same order."""
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return [block for block in matcher.get_matching_blocks() if block.size >= _LEAST_RUN]


class _Judge:
    """All pairs of n different sentences, given by their words and the marks after them."""

    def __init__(self, sentences: list[list[tuple[str, str]]], rule: RepeatRule) -> None:
        self.sentences, self.rule = sentences, rule
        self.words = [[word for word, _ in own] for own in sentences]
        ids: dict[str, int] = {}
        self.ids = [[ids.setdefault(word, len(ids)) for word in own] for own in self.words]
        self.is_content = np.array([word not in FUNCTION_WORDS for word in ids], dtype=bool)
        self.counts = np.array(list(map(len, self.words)), dtype=np.int64)
        self.content = [sorted({i for i in own if self.is_content[i]}) for own in self.ids]
        self.contents = np.array(list(map(len, self.content)), dtype=np.int64)

    def flags(self) -> Iterator[tuple[int, int, int]]:
        """Give both orders of each pair that raises a flag, with its flags."""
        words, ends = self._openings()
        for us, vs, common in self._candidates():
            longer = np.maximum(self.counts[us], self.counts[vs])
            longer_content = np.maximum(self.contents[us], self.contents[vs])
            flags = np.where(self._same_opening(words, ends, us, vs), EDITS, 0)
            flags |= np.where(common > self.rule.share * longer_content, COMMON, 0)
            # The shorter one has all that is kept.
            near = np.minimum(self.counts[us], self.counts[vs]) > self.rule.kept * longer
            for i in np.flatnonzero(near):
                flags[i] |= self._run_flags(int(us[i]), int(vs[i]))
            for u, v, raised in zip(us.tolist(), vs.tolist(), flags.tolist(), strict=True):
                if raised:
                    yield u, v, raised
                    yield v, u, raised

    def _candidates(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Find the pairs u < v with enough content words in common, and how many these are."""
        from scipy import sparse

        columns = [word for own in self.content for word in own]
        edges = np.cumsum([0, *map(len, self.content)])
        shape = (len(self.content), len(self.is_content))
        table = sparse.csr_array((np.ones(len(columns), dtype=np.int32), columns, edges), shape=shape)
        others = table.T.tocsr()
        for start in range(0, len(self.content), _BLOCK_ROWS):
            found = (table[start : start + _BLOCK_ROWS] @ others).tocoo()
            us, vs = found.row + start, found.col
            enough = (us < vs) & (found.data >= self.rule.content)
            yield us[enough], vs[enough], found.data[enough]

    def _openings(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the first words of each sentence, padded with what equals nothing, and whether a clause ends with each.

        Both are ndarrays of shape (n, 24).
        """
        words = np.arange(-len(self.ids), 0)[:, None].repeat(_OPENING, axis=1)
        ends = np.zeros(words.shape, dtype=bool)
        for i, (own, sentence) in enumerate(zip(self.ids, self.sentences, strict=True)):
            words[i, : len(own)] = own[:_OPENING]
            ends[i, : len(own)] = [bool(mark) for _, mark in sentence[:_OPENING]]
            ends[i, len(own) - 1 : len(own)] = True
        return words, ends

    def _same_opening(self, words: np.ndarray, ends: np.ndarray, us: np.ndarray, vs: np.ndarray) -> np.ndarray:
        same = np.logical_and.accumulate(words[us] == words[vs], axis=1)
        n_same = same.sum(axis=1)
        n_content = (np.append(self.is_content, False)[np.maximum(words[us], -1)] & same).sum(axis=1)
        last = np.maximum(n_same - 1, 0)
        is_clause = ends[us, last] | ends[vs, last]
        least = np.where(is_clause, self.rule.clause, self.rule.passage)
        return (n_content >= self.rule.content) & (n_same + n_content >= least)

    def _run_flags(self, u: int, v: int) -> int:
        """Give the flags of the runs of words that two sentences have in common."""
        rule = self.rule
        longer = max(self.counts[u], self.counts[v])
        blocks = _blocks(self.words[u], self.words[v])
        contents = [int(self.is_content[self.ids[u][block.a : block.a + block.size]].sum()) for block in blocks]
        n_kept, n_content = sum(block.size for block in blocks), sum(contents)
        if n_content < rule.content or n_kept <= rule.kept * longer:
            return 0
        run, content = max((block.size, own) for block, own in zip(blocks, contents, strict=True))
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
