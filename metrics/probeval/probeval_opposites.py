"""Phrases that mean the opposite of each other: yes and no, antonyms, and a negating word or prefix."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .probeval_antonyms import PAIRS
from .probeval_wordnet import STOP_WORDS
from .probeval_words import words

PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
_SHORTEST = 3  # of a word after a prefix: "it" is not the opposite of "unit"
_NEGATIONS = frozenset(["no", "not", "nor", "never", "neither", "non", "cannot", "without", "nope", "nah"])
# Words that distinguish no phrase from its opposite: affirmations, degrees, and function words but these.
_CONTENT = "up down in out on off over under above below before after for against more most few all some"
_DEGREES = "yes yeah yep yup always ever quite rather somewhat slightly strongly completely totally fairly extremely"
_DEGREES += " moderately mostly definitely probably really generally absolutely certainly"
_IGNORED = (STOP_WORDS - set(_CONTENT.split())) | set(_DEGREES.split())
# Pairs that WordNet lacks.
_MORE_PAIRS = "support/oppose favor/oppose favour/oppose for/against men/women none/all nobody/everybody before/after"
_MORE_PAIRS += " over/under over/below above/under"
# Words whose prefix negates nothing.
_OTHER_PREFIXES = """
discover discovered discovering discovers disease dismiss display dispose dissever illuminate immigrate impassive
implant import important impose impress imprint improve inborn incoming increase indebted indeed indoor indoors
infamous infield inflammable inform inhabit inhabitable inhabited inland inmate input inset inside insight install
instill intend intent intense interest into invaluable invent invest irradiate unloose unloosen unravel unthaw under
until
"""
_NOT_NEGATED = frozenset(_OTHER_PREFIXES.split())
_SHORTEST_PART = 3  # of a compound, which is the opposite of another if a part is: "grandmother", "grandfather"
# A form of a word is the opposite of the same form of its antonym: "increased" of "decreased".
_ENDINGS = ("", "s", "d", "ed", "ing", "ly")
_ANTONYMS: dict[str, set[str]] = defaultdict(set)
for _pair in f"{PAIRS} {_MORE_PAIRS}".split():
    for _word, _other in (_pair.split("/"), _pair.split("/")[::-1]):
        _ANTONYMS[_word].add(_other)


# The set of the content words of a phrase, and whether a word negates it.
Meaning = tuple[frozenset[str], bool]


@lru_cache(maxsize=100_000)
def meaning(text: str) -> Meaning:
    """Read a phrase as content words and a negation."""
    tokens = words(text).tokens
    negations = {word for word in tokens if word in _NEGATIONS or word.endswith("n't")}
    # "I" of "I'm".
    content = {word.split("'")[0] for word in tokens if word not in negations}
    return frozenset(content - _IGNORED), bool(negations)


@lru_cache(maxsize=100_000)
def _opposites(word: str) -> frozenset[str]:
    """List possible opposites of a word: by a prefix, by antonyms, or by antonyms of a part of it."""
    opposites = {f"{prefix}{word}" for prefix in PREFIXES if len(word) >= _SHORTEST} - _NOT_NEGATED
    if word not in _NOT_NEGATED:
        opposites |= {word.removeprefix(p) for p in PREFIXES if word.startswith(p) and len(word) >= len(p) + _SHORTEST}
    for ending in _ENDINGS:
        if word.endswith(ending):
            opposites |= {f"{other}{ending}" for other in _ANTONYMS.get(word.removesuffix(ending), ())}
    for end in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        first = word[:end]
        last = word[end:]
        opposites |= {f"{first}{other}" for other in _ANTONYMS.get(last, ())}
        opposites |= {f"{other}{last}" for other in _ANTONYMS.get(first, ())}
    return frozenset(opposites)


def opposite_pairs(texts: Sequence[str], gold: Sequence[str]) -> np.ndarray:
    """Find which of n texts and g gold texts are opposites: bool array of shape (n, g).

    Two phrases are opposites if one of them is negated and they are equal otherwise, without regard to function words
    and degrees ("slightly"), or if they differ in one word, and the two words are antonyms, compounds of antonyms, or
    differ by a prefix.
    """
    places: dict[Meaning, list[int]] = defaultdict(list)
    vocabulary = set[str]()
    for column, phrase in enumerate(map(meaning, gold)):
        places[phrase].append(column)
        vocabulary |= phrase[0]
    pairs = np.zeros((len(texts), len(gold)), dtype=bool)
    for row, text in enumerate(texts):
        content, is_negated = meaning(text)
        opposites = [(content, not is_negated)]
        for word in content:
            for other in _opposites(word) & vocabulary:
                if other not in content:
                    opposites.append((content - {word} | {other}, is_negated))
        for opposite in opposites:
            for column in places.get(opposite, ()):
                pairs[row, column] = True
    return pairs
