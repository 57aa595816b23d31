"""Pairs of sentences of a text that repeat each other, by words that carry content.

Any two English sentences share function words and marks, so the paper's measures of characters and of all words
produce more false positives on longer texts. Here every flag needs content words in common, and what is compared with
a threshold is a share of the longer sentence.
"""

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

FLAGS = ("longest_substring", "substring_words", "edit_distance", "common_words")
LISTED_PAIRS = 10_000  # for one text; their number grows with the square of its sentences
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
_WORD = re.compile(r"([^\W_]+(?:[-.][^\W_]+)*)(?:[\"'”’)\]]*\s*([,;:.!?…|·•/–—]|--|$))?")
_LEAST_RUN = 3  # words in a row that count as taken over
# A sentence that repeats this many consecutive words is read clause by clause; chosen with 386 texts of ABC news, State
# of the Union and film reviews: two lose points by it. Lower: set phrases divide sentences.
_LEAST_INNER = 5
# Words between two copies in a loop, such as "and then", and words of all copies; chosen with 54 908 texts of people
# and models, of which 16 more lose points by it. Lower: "over and over and over" is a loop.
_JOINT_WORDS, _LEAST_LOOP = 2, 10
# Of a list; chosen with 900 answers of NoveltyBench: 54 lose points instead of 66. Lower: two lines are a list.
_LEAST_ITEMS = 3
# Numbers are nothing new in an item of a list: "the second day", "the third day".
_COUNTED = re.compile(r"\d[\d.,]*(?:st|nd|rd|th)?")
_COUNT_WORDS = """
two three four five six seven eight nine ten first second third fourth fifth sixth seventh eighth ninth tenth next last
"""
COUNT_WORDS = frozenset(_COUNT_WORDS.split())
# Equal sentences of fewer words count only where one comes three times among five.
_LEAST_EQUAL, _AGAIN, _AMONG = 5, 3, 5

# The thresholds of `find_repeats`: chosen at commit 30f16773 on half of the documents of Brown, ABC news, State of the
# Union and film reviews, by repeated, edited and untouched texts of 3 to 40 sentences. The card has the rates.
_CONTENT = 3  # lower: sentences that share a name are flagged
_CLAUSE, _PASSAGE = 8, 10  # lower: set phrases are flagged; higher: an opening clause that is repeated is not
_SENTENCES, _GROWTH = 20, 4  # lower growth: the longer a text, the more of its untouched sentences are flagged
_IN_ORDER = 0.4  # higher: a sentence with one clause changed is not flagged
_CONTAINED, _SHARE = 0.6, 0.75  # lower: more flags for each pair
# The name of the rule in signatures: a change of a constant, or of how sentences are cut, needs a new one.
REPEATS_RULE = "v3"


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
        matches = _WORD.findall(text.lower())
        words = [word for word, _ in matches]
        ends = [bool(mark) for _, mark in matches[:-1]] + [True] * bool(matches)
        triples = frozenset(zip(words, words[1:], words[2:], strict=False))
        return cls(words, ends, frozenset(words) - FUNCTION_WORDS, triples)


def find_repeats(pieces: list[str], lines: Sequence[int] = ()) -> Redundancy:
    """Find the pairs of sentences of a text that repeat each other.

    The metric card defines the flags, and what is compared. `lines` has the line, list item or table cell that each is
    in; by default, all are in one.
    """
    units: list[tuple[int, _Sentence]] = []
    clause_of: list[int] = []
    n_clauses = 0
    for i, piece in enumerate(pieces):
        for parts in _clauses(_Sentence.of(piece)):
            units += [(i, part) for part in parts]
            clause_of += [n_clauses] * len(parts)
            n_clauses += 1
    places: dict[Hashable, list[int]] = {}
    for k, (i, unit) in enumerate(units):
        # Sentences without words are compared verbatim.
        places.setdefault(tuple(unit.words) or pieces[i].strip(), []).append(k)
    owners = list(places.values())
    different = [units[members[0]][1] for members in owners]
    passage = _PASSAGE + _GROWTH * math.log2(max(1.0, len(units) / _SENTENCES))
    raised = {(u, u): list(FLAGS) for u, members in enumerate(owners) if _is_said_again(different[u], members)}
    for u, v, n_common in _candidates(different):
        if flags := _raised(different[u], different[v], n_common, passage):
            raised[u, v] = flags
    clauses_of = []
    lines_of = []
    for members in owners:
        clauses_of.append({clause_of[k] for k in members})
        lines_of.append({lines[units[k][0]] if lines else 0 for k in members})
    raised = _without_contrasts(raised, different, clauses_of)
    raised = _without_parallel(raised, different, lines_of)
    # Each counts for all pairs of places of its two different sentences, which may be the same.
    times = {(u, v): math.comb(len(owners[u]), 2) if u == v else len(owners[u]) * len(owners[v]) for u, v in raised}
    n_flags = sum(n * len(raised[pair]) for pair, n in times.items())
    pairs = [(units[k][0], units[other][0], flags) for k, other, flags in _list_pairs(raised, owners)]
    return Redundancy(n_flags, sum(times.values()), pairs)


def _clauses(sentence: _Sentence) -> list[list[_Sentence]]:
    """Split a sentence that repeats itself into clauses, cut at each repetition; other sentences are returned whole."""
    if not _recurrences(sentence):
        return [[sentence]]
    ends = [i + 1 for i, is_end in enumerate(sentence.ends) if is_end]
    return [_cut(clause, _recurrences(clause)) for clause in _cut(sentence, ends)]


def _cut(sentence: _Sentence, places: list[int]) -> list[_Sentence]:
    """Cut a sentence before the words at the places, which may be its ends."""
    bounds = sorted({0, *places, len(sentence.words)})
    return [_Sentence.of(" ".join(sentence.words[start:end])) for start, end in itertools.pairwise(bounds)]


def _recurrences(sentence: _Sentence) -> list[int]:
    """Find where a sentence repeats itself: the places of copies in a loop, and of other repeated passages."""
    words = sentence.words
    places: list[int] = []
    last_of: dict[tuple[str, ...], int] = {}
    i = 0
    while i + _LEAST_INNER <= len(words):
        run = tuple(words[i : i + _LEAST_INNER])
        copies = _copies(sentence, last_of[run], i) if run in last_of else []
        if copies:
            places += copies
            # The rest is compared with the last copy only.
            last_of.clear()
            i = copies[-1]
            run = tuple(words[i : i + _LEAST_INNER])
        last_of[run] = i
        i += 1
    return places


def _copies(sentence: _Sentence, first: int, second: int) -> list[int]:
    """Return where copies begin, given two places of the same five words; empty if they do not repeat each other.

    A passage that comes again at once, or after two words, is a loop if it and its copies have ten words. Elsewhere,
    five words count if three of them are content words.
    """
    words = sentence.words
    period = second - first
    end = second
    while end < len(words) and words[end] == words[end - period]:
        end += 1
    if end - second >= period - _JOINT_WORDS and end - first >= _LEAST_LOOP:
        return list(range(first, end, period))
    run = words[second : second + _LEAST_INNER]
    return [second] if len(sentence.content.intersection(run)) >= _CONTENT else []


def _without_contrasts(
    raised: dict[tuple[int, int], list[str]], sentences: list[_Sentence], clauses_of: list[set[int]]
) -> dict[tuple[int, int], list[str]]:
    """Remove pairs of parts of one clause that differ in content: "a day with him and a day with her"."""
    return {
        (u, v): flags
        for (u, v), flags in raised.items()
        if len(clauses_of[u] | clauses_of[v]) > 1 or not _differ(sentences[u], sentences[v])
    }


def _without_parallel(
    raised: dict[tuple[int, int], list[str]], sentences: list[_Sentence], lines_of: list[set[int]]
) -> dict[tuple[int, int], list[str]]:
    """Remove pairs of parallel items, which share a frame and differ in its slots."""
    parallel = {
        (u, v) for u, v in raised if lines_of[u].isdisjoint(lines_of[v]) and _differ(sentences[u], sentences[v])
    }
    items = set(itertools.chain.from_iterable(parallel))
    if len(items) < _LEAST_ITEMS:
        return raised
    return {pair: flags for pair, flags in raised.items() if pair not in parallel}


def _differ(first: _Sentence, second: _Sentence) -> bool:
    """Tell whether each of two sentences says something that the other does not."""
    return _has_news(first, second) and _has_news(second, first)


def _has_news(sentence: _Sentence, other: _Sentence) -> bool:
    """Tell whether a sentence has content words, other than numbers, that another lacks."""
    return any(not _COUNTED.fullmatch(word) for word in sentence.content - other.content - COUNT_WORDS)


def _list_pairs(raised: dict[tuple[int, int], list[str]], owners: list[list[int]]) -> list[tuple[int, int, list[str]]]:
    """List the first pairs of places from the flags of different sentences and their places."""
    partners: dict[int, dict[int, list[str]]] = {}
    for (u, v), flags in raised.items():
        partners.setdefault(u, {})[v] = partners.setdefault(v, {})[u] = flags
    listed: list[tuple[int, int, list[str]]] = []
    places = []
    for u in partners:
        places += [(i, u) for i in owners[u]]
    for i, u in sorted(places):
        later = []
        for v, flags in partners[u].items():
            later += [(i, j, flags) for j in owners[v] if j > i]
        listed += sorted(later)
        if len(listed) >= LISTED_PAIRS:
            break
    return listed[:LISTED_PAIRS]


def shared_passages(first: str, second: str) -> list[str]:
    """List what two sentences share: passages of three words or more, or else content words."""
    a = _Sentence.of(first)
    b = _Sentence.of(second)
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
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(a.words, b.words, strict=False))
    n_same = len(list(same))
    n_content = _n_content(a, 0, n_same)
    if n_content < _CONTENT:
        return False
    is_clause = a.ends[n_same - 1] or b.ends[n_same - 1]
    return n_same + n_content >= (_CLAUSE if is_clause else passage)


def _run_flags(a: _Sentence, b: _Sentence, passage: float) -> set[str]:
    longer = max(len(a.words), len(b.words))
    shorter = min(len(a.words), len(b.words))
    # A common passage is at most as long as the shorter one.
    if shorter <= _IN_ORDER * longer:
        return set()
    runs = [(size, _n_content(a, start, size)) for start, size in _runs(a, b)]
    n_common = sum(size for size, _ in runs)
    n_content = sum(content for _, content in runs)
    if n_content < _CONTENT or n_common <= _IN_ORDER * longer:
        return set()
    run, content = max(runs)
    if run == shorter and run > _CONTAINED * longer:
        return set(FLAGS)
    if n_common + n_content < passage:
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
    # In an order of their own, since difflib finds other runs if its arguments are exchanged.
    is_given = a.words <= b.words
    matcher = difflib.SequenceMatcher(None, *((a.words, b.words) if is_given else (b.words, a.words)), autojunk=False)
    blocks = matcher.get_matching_blocks()
    return [(block.a if is_given else block.b, block.size) for block in blocks if block.size >= _LEAST_RUN]


def _n_content(sentence: _Sentence, start: int, size: int) -> int:
    return sum(word in sentence.content for word in sentence.words[start : start + size])
