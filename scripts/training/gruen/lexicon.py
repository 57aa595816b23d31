"""Function words, and the inflected forms of verbs and nouns as found in the tags of the Brown corpus."""

import itertools
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from scripts.training.gruen.corpora import read_brown

_FINITE = ("am", "is", "are", "was", "were", "has", "have", "had", "do", "does", "did")
_MODALS = ("will", "would", "can", "could", "shall", "should", "may", "might", "must")
AUXILIARIES = frozenset((*_FINITE, *_MODALS, "be", "been", "being"))
DETERMINERS = ("the", "a", "an", "this", "that", "these", "those", "his", "her", "their", "its", "my", "your", "our")
PREPOSITIONS = ("of", "in", "to", "for", "with", "on", "at", "by", "from", "into", "about", "over", "after", "under")
CONJUNCTIONS = ("and", "but", "or", "that", "which", "who", "because", "if", "when", "while", "as", "than")
FUNCTION_WORDS = frozenset(DETERMINERS + PREPOSITIONS + CONJUNCTIONS) | AUXILIARIES
WORD = re.compile(r"\w")


class Lexicon(NamedTuple):
    """Words by grammar.

    verb_forms, agreement, noun_number : the other forms of a word, those of other number, and a noun's other number
    nouns, verbs, frequent : sets of words
    """

    verb_forms: dict[str, tuple[str, ...]]
    agreement: dict[str, tuple[str, ...]]
    noun_number: dict[str, str]
    nouns: frozenset[str]
    verbs: frozenset[str]
    frequent: tuple[str, ...]


def learn_lexicon(path: Path) -> Lexicon:
    """Read the forms of words from the tags of the Brown corpus, a zip file."""
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for document in read_brown(path):
        for word, tag in itertools.chain.from_iterable(document):
            tags[word.lower()][tag.split("-")[0].rstrip("*$")] += 1
    sure = {}
    for word, counts in tags.items():
        tag, count = counts.most_common(1)[0]
        if word.isalpha() and count >= 0.6 * counts.total():
            sure[word] = tag
    base = {word for word, counts in tags.items() if counts["vb"] >= 1 and word.isalpha()}
    forms: dict[str, set[str]] = defaultdict(set)
    agreement: dict[str, tuple[str, ...]] = {}
    for word, counts in tags.items():
        if not word.isalpha() or len(word) < 3 or word in AUXILIARIES:
            continue
        for tag, endings in (("vbz", ("s", "es", "ies")), ("vbg", ("ing",)), ("vbd", ("ed", "d"))):
            if counts[tag] < 0.3 * counts.total() or not counts[tag]:
                continue
            for ending in endings:
                if word.endswith(ending):
                    stem = word[: -len(ending)]
                    for root in (stem, stem + "e", stem[:-1], stem + "y"):
                        if root in base and len(root) > 2:
                            forms[root].add(word)
                            if tag == "vbz":
                                agreement[word] = (root,)
                                if sure.get(root) == "vb":
                                    agreement[root] = (word,)
    verb_forms: dict[str, tuple[str, ...]] = {}
    for root, inflected in forms.items():
        family = {root, *inflected}
        for word in family:
            if sure.get(word, "").startswith("vb"):
                verb_forms[word] = tuple(sorted(family - {word}))
    noun_number = {}
    for word, tag in sure.items():
        if tag == "nns" and word.endswith("s") and sure.get(word[:-1]) == "nn":
            noun_number[word], noun_number[word[:-1]] = word[:-1], word
    nouns = frozenset(word for word, tag in sure.items() if tag in ("nn", "nns", "np", "ppss", "pps", "ppo"))
    verbs = frozenset(word for word, tag in sure.items() if tag in ("vbz", "vbd"))
    frequent = tuple(word for word, counts in tags.items() if word.isalpha() and counts.total() >= 20)
    return Lexicon(verb_forms, agreement, noun_number, nouns, verbs, frequent)


def is_clean(words: list[str], lexicon: Lexicon) -> bool:
    """Say whether words look like a complete sentence of ordinary length."""
    if not 4 <= len(words) <= 34 or words[-1] not in ".!?" or not words[0][0].isalpha():
        return False
    lower = [word.lower() for word in words]
    real = sum(bool(WORD.match(word)) for word in words)
    if real < 0.75 * len(words) or any(mark in words for mark in ("(", ")", "[", "]", "*", "--", ":", "/", "=", "_")):
        return False
    return any(word in AUXILIARIES or word in lexicon.verbs for word in lower)
