"""Corrupt sentences in the ways that people and models do; seeded."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from nltk.stem import PorterStemmer

_WORDS = """
am is are was were be been has have had do does did will would can could should may must
the a an this that these those his her their its my your our
of in to for with on at by from into about over after under
and but or which who because if when while as than
"""
# A preposition is never replaced by another: "the train from Rome" is "the train to Rome", which is correct.
_CLASSES = _AUXILIARIES, _ARTICLES, _PREPOSITIONS, _ = [line.split() for line in _WORDS.strip().splitlines()]
_FUNCTION_WORDS = sorted({word for words in _CLASSES for word in words})
_FORMS = "is are was were has have does do this these isn't aren't doesn't don't he him she her they them we us i me"
# Brown's tags whose words are exchanged for each other.
_EXCHANGED = (("vb", "vbz"), ("vbz", "vbg"), ("vbd", "vbg"), ("vb", "vbg"), ("nn", "nns"))
# How often each kind is drawn.
_KINDS = {"shuffled": 3, "nouns": 1, "moved": 1, "dropped": 4, "truncated": 2, "form": 4, "replaced": 2} | {
    "repeated": 2, "inserted": 1, "spliced": 1
}  # fmt: skip


class Corruptor:
    """Corrupts sentences, lists of words that end with a mark; learns forms of words from Brown's tagged sentences."""

    def __init__(self, tagged: Iterable[list[tuple[str, str]]], seed: int) -> None:
        self.chance, stem = random.Random(seed), PorterStemmer().stem
        counts = Counter((word.lower(), tag) for sentence in tagged for word, tag in sentence)
        main: dict[str, str] = {}
        families: dict[str, dict[str, str]] = defaultdict(dict)
        for word, tag in (pair for pair, count in counts.most_common() if count > 1):
            if word.isalpha() and len(word) > 2 and word not in _FUNCTION_WORDS and main.setdefault(word, tag) == tag:
                families[stem(word)].setdefault(tag, word)
        closed, self.forms = _FORMS.split(), defaultdict(list)
        pairs = [(own[a], own[b]) for own in families.values() for a, b in _EXCHANGED if a in own and b in own]
        for a, b in pairs + list(zip(closed[::2], closed[1::2], strict=True)):
            self.forms[a].append(b)
            self.forms[b].append(a)
        self.verbs = {word for word, tag in main.items() if tag.startswith("vb")}.union(_AUXILIARIES)
        self.nouns = {word for word, tag in main.items() if tag in ("nn", "nns", "np")}
        self.frequent = [word for word, tag in main.items() if counts[word, tag] >= 20]
        self.previous: list[str] = []

    def corrupt(self, words: list[str]) -> list[str] | None:
        """Corrupt a sentence of four words or more; None if the draws change nothing."""
        for kind in self.chance.choices(list(_KINDS), list(_KINDS.values()), k=8):
            corrupted = getattr(self, f"_{kind}")(words[:-1]) + words[-1:]
            if [word.lower() for word in corrupted] != [word.lower() for word in words]:
                self.previous = words
                return corrupted
        return None

    def _shuffled(self, body: list[str]) -> list[str]:
        start, stop = self._span(body, (2, 2, 3, 4, 5, len(body), len(body)))
        return body[:start] + self.chance.sample(body[start:stop], stop - start) + body[stop:]

    def _nouns(self, body: list[str]) -> list[str]:
        nouns = [word for word in body if word.lower() in self.nouns]
        drawn = iter(self.chance.sample(nouns, len(nouns)))
        return [next(drawn) if word.lower() in self.nouns else word for word in body]

    def _moved(self, body: list[str]) -> list[str]:
        at, to = self.chance.randrange(len(body)), self.chance.randrange(len(body))
        rest = body[:at] + body[at + 1 :]
        return [*rest[:to], body[at], *rest[to:]] if abs(to - at) > 1 else body

    def _dropped(self, body: list[str]) -> list[str]:
        words = self.chance.choice((_AUXILIARIES, _AUXILIARIES, _ARTICLES + _PREPOSITIONS, self.nouns | self.verbs))
        return self._at_one(body, words.__contains__, lambda _: [])

    def _truncated(self, body: list[str]) -> list[str]:
        cuts = [i + 1 for i in range(1, len(body) - 1) if body[i].lower() in _FUNCTION_WORDS]
        return body[: self.chance.choice(cuts if cuts and self.chance.random() < 0.7 else range(1, len(body)) or [1])]

    def _form(self, body: list[str]) -> list[str]:
        return self._at_one(body, self.forms.__contains__, self.forms.__getitem__)

    def _replaced(self, body: list[str]) -> list[str]:
        if self.chance.random() < 0.4:
            return self._at_one(body, str.isalpha, lambda _: self.frequent)
        new = self.chance.choice(_CLASSES)
        return self._at_one(body, set(_FUNCTION_WORDS).difference(new).__contains__, lambda _: new)

    def _repeated(self, body: list[str]) -> list[str]:
        start, stop = self._span(body, (1, 1, 1, 2, 3, 4))
        return [*body[:stop], body[start].lower(), *body[start + 1 : stop], *body[stop:]]

    def _inserted(self, body: list[str]) -> list[str]:
        at = self.chance.randrange(1, len(body) + 1)
        word = self.chance.choice(_FUNCTION_WORDS if self.chance.random() < 0.7 else self.frequent)
        return [*body[:at], word, *body[at:]]

    def _spliced(self, body: list[str]) -> list[str]:
        return body[: len(body) // 2] + self.previous[len(self.previous) // 2 : -1]

    def _span(self, body: list[str], sizes: tuple[int, ...]) -> tuple[int, int]:
        size = min(self.chance.choice(sizes), len(body))
        return (start := self.chance.randrange(len(body) - size + 1)), start + size

    def _at_one(self, body: list[str], fits: Callable[[str], bool], new: Callable[[str], list[str]]) -> list[str]:
        """Put one of the new words in the place of one word that fits, or nothing if there are none."""
        if not (places := [i for i, word in enumerate(body) if fits(word.lower())]):
            return body
        at = self.chance.choice(places)
        words = [self.chance.choice(words)] if (words := new(body[at].lower())) else []
        return [*body[:at], *(word.capitalize() if body[at][0].isupper() else word for word in words), *body[at + 1 :]]
