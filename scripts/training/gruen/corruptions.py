"""Corruptions of sentences: the errors that the compact backbone of `gruen` learns to find."""

import random
from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from scripts.training.gruen.lexicon import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    PREPOSITIONS,
    WORD,
    Lexicon,
)

# The other number of the same word.
_AGREEMENT = {
    "is": ("are", "am"), "are": ("is",), "was": ("were",), "were": ("was",), "has": ("have",), "have": ("has",),
    "does": ("do",), "do": ("does",), "am": ("is", "are"), "isn't": ("aren't",), "aren't": ("isn't",),
    "wasn't": ("weren't",), "weren't": ("wasn't",), "doesn't": ("don't",), "don't": ("doesn't",),
    "hasn't": ("haven't",), "haven't": ("hasn't",), "this": ("these",), "these": ("this",), "that": ("those",),
    "those": ("that",), "a": ("an",), "an": ("a",),
}  # fmt: skip
_PRONOUN_CASE = {
    "he": "him", "him": "he", "she": "her", "they": "them", "them": "they", "i": "me", "me": "i", "we": "us",
    "us": "we", "himself": "hisself", "who": "whom",
}  # fmt: skip
# The kinds that may follow another.
_SECOND = ("shuffled span", "dropped function word", "repeated word", "agreement")


class Corrupted(NamedTuple):
    """A corrupted sentence.

    wrong : for each word, whether it shows the corruption
    how : the kind of corruption
    """

    words: list[str]
    wrong: list[bool]
    how: str


class Corruptor:
    """Corrupt sentences by errors that people and models make; seeded."""

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.random = random.Random(seed)
        # The relative frequency of each kind: larger for errors that are hard to learn.
        self.kinds: dict[str, tuple[float, Callable[[list[str]], tuple[list[str], list[bool]] | None]]] = {
            "shuffled": (1.0, self._shuffle),
            "shuffled span": (1.2, self._shuffle_span),
            "moved word": (0.8, self._move),
            "dropped auxiliary": (1.4, partial(self._drop, AUXILIARIES)),
            "dropped function word": (1.2, partial(self._drop, DETERMINERS[:6] + PREPOSITIONS)),
            "dropped word": (0.6, partial(self._drop, lexicon.verbs | lexicon.nouns)),
            "truncated": (1.5, self._truncate),
            "agreement": (2.4, self._agree),
            "verb form": (1.2, self._verb_form),
            "noun number": (0.6, self._number),
            "pronoun case": (0.4, self._pronoun),
            "repeated word": (1.4, self._repeat_word),
            "repeated phrase": (0.7, self._repeat_phrase),
            "inserted word": (0.8, self._insert),
            "replaced function word": (0.9, self._replace_function_word),
            "replaced word": (0.6, self._replace_word),
            "shuffled nouns": (0.7, self._shuffle_nouns),
            "spliced": (0.5, self._splice),
        }
        self.other: list[str] = []

    def corrupt(self, words: list[str], how: str | None = None) -> Corrupted | None:
        """Corrupt a sentence by one kind, or by a random one; None if it does not apply."""
        for _ in range(8):
            kind = how or self.random.choices(list(self.kinds), [weight for weight, _ in self.kinds.values()])[0]
            result = self.kinds[kind][1](words)
            if result is not None and [w.lower() for w in result[0]] != [w.lower() for w in words]:
                corrupted, wrong = result
                # Sometimes, a second error.
                if how is None and self.random.random() < 0.2:
                    twice = self.kinds[self.random.choice(_SECOND)][1](corrupted)
                    if twice is not None:
                        return Corrupted(twice[0], twice[1], kind)
                self.other = words
                return Corrupted(corrupted, wrong, kind)
            if how:
                return None
        return None

    def _body(self, words: list[str]) -> tuple[list[str], list[str]]:
        """Split off the punctuation at the end."""
        end = len(words)
        while end and not WORD.match(words[end - 1]):
            end -= 1
        return words[:end], words[end:]

    def _at(self, words: list[str], at: int, count: int = 1) -> list[bool]:
        return [at <= i < at + count for i in range(len(words))]

    def _pick(self, words: list[str], fits: Callable[[str], bool]) -> int | None:
        places = [i for i, word in enumerate(words) if fits(word.lower())]
        return self.random.choice(places) if places else None

    def _shuffle(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        order = list(range(len(body)))
        self.random.shuffle(order)
        wrong = [a != b - 1 for a, b in zip(order, [*order[1:], len(body)], strict=True)]
        return [body[i] for i in order] + end, wrong + [False] * len(end)

    def _shuffle_span(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        size = self.random.choice((2, 2, 3, 4, 5))
        if len(body) < size + 1:
            return None
        at = self.random.randrange(len(body) - size + 1)
        span = body[at : at + size]
        self.random.shuffle(span)
        return body[:at] + span + body[at + size :] + end, self._at(words, at, size)

    def _move(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        if len(body) < 5:
            return None
        body = list(body)
        size = self.random.choice((1, 1, 2))
        at = self.random.randrange(len(body) - size)
        span = [body.pop(at) for _ in range(size)]
        to = self.random.choice([i for i in range(len(body) + 1) if abs(i - at) > 1] or [0])
        moved = body[:to] + span + body[to:] + end
        return moved, self._at(moved, to, size)

    def _drop(self, droppable: Collection[str], words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, droppable.__contains__)
        if at is None or len(words) < 4:
            return None
        left = words[:at] + words[at + 1 :]
        return left, [i in (at - 1, at) for i in range(len(left))]

    def _truncate(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        if len(body) < 4:
            return None
        cuts = [i + 1 for i in range(1, len(body) - 1) if body[i].lower() in FUNCTION_WORDS]
        if not cuts or self.random.random() < 0.3:
            cuts = list(range(max(2, len(body) // 3), len(body)))
        left = body[: self.random.choice(cuts)] + (end if self.random.random() < 0.7 else [])
        return left, [i >= len(left) - 2 for i in range(len(left))]

    def _replace(self, words: list[str], at: int, word: str) -> tuple[list[str], list[bool]]:
        if words[at][0].isupper():
            word = word[:1].upper() + word[1:]
        return [*words[:at], word, *words[at + 1 :]], self._at(words, at)

    def _agree(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        known = _AGREEMENT if self.random.random() < 0.5 else self.lexicon.agreement
        at = self._pick(words, lambda word: word in known and word not in ("that", "those", "a", "an"))
        if at is None or self.random.random() < 0.08:
            known = _AGREEMENT
            at = self._pick(words, known.__contains__)
        if at is None:
            return None
        word = self.random.choice(known[words[at].lower()])
        if word in ("have", "do") and at and words[at - 1].lower() in AUXILIARIES | {"to"}:
            return None
        # After "will", "to" or "make him" the bare form is right and the s-form wrong: an error all the same.
        return self._replace(words, at, word)

    def _verb_form(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, self.lexicon.verb_forms.__contains__)
        if at is None:
            return None
        forms = self.lexicon.verb_forms[words[at].lower()]
        # A past tense in place of a present one may be right.
        both = {words[at].lower()[-1:], *(form[-1:] for form in forms)}
        forms = tuple(form for form in forms if form.endswith("ing") or words[at].lower().endswith("ing")) or (
            forms if "d" not in both else ()
        )
        return self._replace(words, at, self.random.choice(forms)) if forms else None

    def _number(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        places = [
            i
            for i in range(1, len(words))
            if words[i].lower() in self.lexicon.noun_number
            and words[i - 1].lower()
            in ("a", "an", "these", "those", "this", "many", "several", "two", "three", "every")
        ]
        if not places:
            return None
        at = self.random.choice(places)
        return self._replace(words, at, self.lexicon.noun_number[words[at].lower()])

    def _pronoun(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, _PRONOUN_CASE.__contains__)
        return None if at is None else self._replace(words, at, _PRONOUN_CASE[words[at].lower()])

    def _repeat_word(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, lambda word: bool(WORD.match(word)) and word not in ("that", "had", "very", "so", "no"))
        if at is None:
            return None
        twice = [*words[: at + 1], words[at].lower(), *words[at + 1 :]]
        return twice, self._at(twice, at, 2)

    def _repeat_phrase(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        size = self.random.choice((2, 3, 4))
        if len(body) < size + 2:
            return None
        at = self.random.randrange(len(body) - size + 1)
        link = self.random.choice(([], [], [], ["and"]))
        twice = [*body[: at + size], *link, *body[at : at + size], *body[at + size :], *end]
        return twice, self._at(twice, at + size, size + len(link))

    def _insert(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        body, end = self._body(words)
        at = self.random.randrange(1, len(body) + 1)
        word = self.random.choice(sorted(FUNCTION_WORDS) if self.random.random() < 0.7 else self.lexicon.frequent)
        more = [*body[:at], word, *body[at:], *end]
        return more, self._at(more, at)

    def _replace_function_word(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, FUNCTION_WORDS.__contains__)
        if at is None:
            return None
        groups = (PREPOSITIONS, CONJUNCTIONS, tuple(sorted(AUXILIARIES)), DETERMINERS[:7])
        return self._replace(words, at, self.random.choice(self.random.choice(groups)))

    def _replace_word(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, lambda word: word.isalpha() and word not in FUNCTION_WORDS)
        return None if at is None else self._replace(words, at, self.random.choice(self.lexicon.frequent))

    def _shuffle_nouns(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        places = [i for i, word in enumerate(words) if word.lower() in self.lexicon.nouns]
        if len(places) < 2:
            return None
        order = list(places)
        self.random.shuffle(order)
        shuffled = list(words)
        for to, source in zip(places, order, strict=True):
            shuffled[to] = words[source]
        return shuffled, [word.lower() != old.lower() for word, old in zip(shuffled, words, strict=True)]

    def _splice(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        if len(self.other) < 6 or len(words) < 6:
            return None
        at, to = self.random.randrange(2, len(words) - 2), self.random.randrange(2, len(self.other) - 2)
        spliced = words[:at] + self.other[to:]
        return spliced, self._at(spliced, at - 1, 2)
