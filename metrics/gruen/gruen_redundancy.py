"""Pairs of sentences of a text that repeat each other: by words that carry content, and as GRUEN's code finds them.

Any two English sentences share function words and marks, so the paper's measures of characters and of all words raise
the more false alarms the longer the text. By default every flag needs content words in common, and what is compared
with a threshold is a share of the longer sentence. With parity, the four measures are those of the released code.
"""

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import NamedTuple

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
_LISTED_PAIRS = 10_000  # for one text; their number grows with the square of its sentences
# The released code's thresholds; below five words in both, only equal and contained sentences count.
_NEAR, _EDIT_SHARE, _LEAST_WORDS = 0.8, 0.6, 5

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
_LEAST_RUN = 3  # words in a row that count as taken over
# Equal sentences of fewer words count only where one comes three times among five.
_LEAST_EQUAL, _AGAIN, _AMONG = 5, 3, 5

# The thresholds of `find_repeats`, calibrated on edited English: the card has the rates of false alarms.
_CONTENT, _CLAUSE, _PASSAGE = 3, 8, 10
_SENTENCES, _GROWTH = 20, 4
_IN_ORDER, _CONTAINED, _SHARE = 0.4, 0.6, 0.75
REPEATS_IDENTITY = f"{_CONTENT}/{_CLAUSE}/{_PASSAGE}/{_SENTENCES}/{_GROWTH}/{_IN_ORDER}/{_CONTAINED}/{_SHARE}"


class Redundancy(NamedTuple):
    """The pairs of sentences of one text that repeat each other.

    n_flags : number of flags that all pairs raise
    n_pairs : number of these pairs
    pairs : the first 10 000 of them, by position: the positions of both sentences, and their flags
    """

    n_flags: int
    n_pairs: int
    pairs: list[tuple[int, int, list[str]]]


class _Sentence(NamedTuple):
    """The words of a sentence, whether a clause ends with each, its content words, and its runs of three words."""

    words: list[str]
    ends: list[bool]
    content: frozenset[str]
    triples: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, text: str) -> "_Sentence":
        found = _WORD.findall(text.lower())
        words = [word for word, _ in found]
        ends = [bool(mark) for _, mark in found[:-1]] + [True] * bool(found)
        triples = frozenset(zip(words, words[1:], words[2:], strict=False))
        return cls(words, ends, frozenset(words) - FUNCTION_WORDS, triples)


def find_repeats(sentences: list[str]) -> Redundancy:
    """Find the pairs of sentences of a text that repeat each other.

    The weight of a passage is the number of its words, content words counted twice. Sentences of the same words raise
    all four flags if they have five words, or if one comes three times among five. Two others need three content words
    in common. They raise all flags if one is more than 0.6 of the other, and else

    - `longest_substring` if their longest common run of words is more than 0.75 of the longer;
    - `substring_words` if the content words of this run are more than 0.75 of those of the longer;
    - `edit_distance` if more than 0.4 of the longer stays in order, in runs of three words or more, of a weight of 10;
      or if both begin with the same passage, of a weight of 8 where a clause of one of both ends with it, else of 10;
      this 10 grows by 4 with each doubling of the sentences beyond 20;
    - `common_words` if the content words in common, in any order, are more than 0.75 of those of the longer.
    """
    read = [_Sentence.of(sentence) for sentence in sentences]
    places: dict[Hashable, list[int]] = {}
    for i, (one, text) in enumerate(zip(read, sentences, strict=True)):
        # What has no words is compared as it stands.
        places.setdefault(tuple(one.words) or text.strip(), []).append(i)
    owners = list(places.values())
    different = [read[own[0]] for own in owners]
    passage = _PASSAGE + _GROWTH * math.log2(max(1.0, len(sentences) / _SENTENCES))
    raised = {(u, u): list(FLAGS) for u, own in enumerate(owners) if _is_said_again(different[u], own)}
    for u, v, n_common in _candidates(different):
        if flags := _raised(different[u], different[v], n_common, passage):
            raised[u, v] = flags
    # Each counts for all pairs of places of its two different sentences, which may be the same.
    times = {(u, v): math.comb(len(owners[u]), 2) if u == v else len(owners[u]) * len(owners[v]) for u, v in raised}
    n_flags = sum(n * len(raised[pair]) for pair, n in times.items())
    return Redundancy(n_flags, sum(times.values()), _list_pairs(raised, owners))


def _list_pairs(raised: dict[tuple[int, int], list[str]], owners: list[list[int]]) -> list[tuple[int, int, list[str]]]:
    """List the first 10 000 pairs of places from the flags of different sentences and their places."""
    partners: dict[int, dict[int, list[str]]] = {}
    for (u, v), flags in raised.items():
        partners.setdefault(u, {})[v] = partners.setdefault(v, {})[u] = flags
    listed: list[tuple[int, int, list[str]]] = []
    places = sorted((i, u) for u, own in enumerate(owners) if u in partners for i in own)
    for i, u in places:
        listed += sorted((i, j, flags) for v, flags in partners[u].items() for j in owners[v] if j > i)
        if len(listed) >= _LISTED_PAIRS:
            break
    return listed[:_LISTED_PAIRS]


def shared_passages(first: str, second: str) -> list[str]:
    """List what a sentence has in common with another: its passages of three words or more, else its content words."""
    a, b = _Sentence.of(first), _Sentence.of(second)
    spans = [match.span(1) for match in _WORD.finditer(first)]
    runs = [(start, size) for start, size in _runs(a, b) if a.content.intersection(a.words[start : start + size])]
    if runs:
        return [first[spans[start][0] : spans[start + size - 1][1]] for start, size in runs]
    common = a.content & b.content
    return [first[start:end] for word, (start, end) in zip(a.words, spans, strict=True) if word in common]


def _is_said_again(sentence: _Sentence, places: list[int]) -> bool:
    if len(places) < 2 or not sentence.words:
        return False
    if len(sentence.words) >= _LEAST_EQUAL:
        return True
    return any(last - first < _AMONG for first, last in zip(places, places[_AGAIN - 1 :], strict=False))


def _candidates(sentences: list[_Sentence]) -> Iterator[tuple[int, int, int]]:
    """Find the pairs u < v with enough content words in common, and how many these are."""
    holders: dict[str, list[int]] = {}
    for v, sentence in enumerate(sentences):
        common: Counter[int] = Counter()
        for word in sentence.content:
            common.update(holders.get(word, ()))
            holders.setdefault(word, []).append(v)
        yield from ((u, v, n) for u, n in common.items() if n >= _CONTENT)


def _raised(a: _Sentence, b: _Sentence, n_common: int, passage: float) -> list[str]:
    flags = _run_flags(a, b, passage)
    if _begin_alike(a, b, passage):
        flags.add("edit_distance")
    if n_common > _SHARE * max(len(a.content), len(b.content)):
        flags.add("common_words")
    return [flag for flag in FLAGS if flag in flags]


def _begin_alike(a: _Sentence, b: _Sentence, passage: float) -> bool:
    pairs = enumerate(zip(a.words, b.words, strict=False))
    n_same = next((i for i, (word, other) in pairs if word != other), min(len(a.words), len(b.words)))
    n_content = _n_content(a, 0, n_same)
    if n_content < _CONTENT:
        return False
    is_clause = a.ends[n_same - 1] or b.ends[n_same - 1]
    return n_same + n_content >= (_CLAUSE if is_clause else passage)


def _run_flags(a: _Sentence, b: _Sentence, passage: float) -> set[str]:
    longer, shorter = max(len(a.words), len(b.words)), min(len(a.words), len(b.words))
    # The shorter one has all that is kept.
    if shorter <= _IN_ORDER * longer:
        return set()
    runs = [(size, _n_content(a, start, size)) for start, size in _runs(a, b)]
    n_kept, n_content = sum(size for size, _ in runs), sum(content for _, content in runs)
    if n_content < _CONTENT or n_kept <= _IN_ORDER * longer:
        return set()
    run, content = max(runs)
    if run == shorter and run > _CONTAINED * longer:
        return set(FLAGS)
    if n_kept + n_content < passage:
        return set()
    flags = {"edit_distance"}
    if run > _SHARE * longer:
        flags.add("longest_substring")
    if content > _SHARE * max(len(a.content), len(b.content)):
        flags.add("substring_words")
    return flags


def _runs(a: _Sentence, b: _Sentence) -> list[tuple[int, int]]:
    """Find the runs of three words or more that are in both, in the same order: where in `a` each begins, its size."""
    if a.triples.isdisjoint(b.triples):
        return []
    blocks = difflib.SequenceMatcher(None, a.words, b.words, autojunk=False).get_matching_blocks()
    return [(block.a, block.size) for block in blocks if block.size >= _LEAST_RUN]


def _n_content(sentence: _Sentence, start: int, size: int) -> int:
    return sum(word in sentence.content for word in sentence.words[start : start + size])


def find_redundancy(sentences: list[str]) -> Redundancy:
    """Judge all pairs of sentences of a text, as the released code does."""
    texts = [sentence.strip() for sentence in sentences]
    raised = [(i, j, raised_flags(texts[i], texts[j])) for i, j in itertools.combinations(range(len(texts)), 2)]
    pairs = [pair for pair in raised if pair[2]]
    return Redundancy(sum(len(flags) for _, _, flags in pairs), len(pairs), pairs[:_LISTED_PAIRS])


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
