"""Clean sentences of public text, and the ways to spoil them: what the compact backbone of `gruen` learns from."""

import random
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_FINITE = ("am", "is", "are", "was", "were", "has", "have", "had", "do", "does", "did")
_MODALS = ("will", "would", "can", "could", "shall", "should", "may", "might", "must")
AUXILIARIES = frozenset((*_FINITE, *_MODALS, "be", "been", "being"))
DETERMINERS = ("the", "a", "an", "this", "that", "these", "those", "his", "her", "their", "its", "my", "your", "our")
PREPOSITIONS = ("of", "in", "to", "for", "with", "on", "at", "by", "from", "into", "about", "over", "after", "under")
CONJUNCTIONS = ("and", "but", "or", "that", "which", "who", "because", "if", "when", "while", "as", "than")
FUNCTION_WORDS = frozenset(DETERMINERS + PREPOSITIONS + CONJUNCTIONS) | AUXILIARIES
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
_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z])")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")
_WORD = re.compile(r"\w")


class Spoiled(NamedTuple):
    """A spoiled sentence; `wrong` marks the words that show it."""

    words: list[str]
    wrong: list[bool]
    how: str


class Lexicon(NamedTuple):
    """What Brown's tags say of words: forms of a verb or a noun, by form, and the nouns."""

    verb_forms: dict[str, tuple[str, ...]]
    agreement: dict[str, tuple[str, ...]]
    noun_number: dict[str, str]
    nouns: frozenset[str]
    verbs: frozenset[str]
    frequent: tuple[str, ...]


def split_words(text: str) -> list[str]:
    """Words and marks of a text."""
    return _TOKEN.findall(text)


def read_brown(path: Path) -> Iterator[list[list[list[tuple[str, str]]]]]:
    """Yield the documents of the tagged Brown corpus: paragraphs of sentences of (word, tag)."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not re.fullmatch(r"brown/c[a-r]\d\d", name):
                continue
            paragraphs: list[list[list[tuple[str, str]]]] = [[]]
            for line in archive.read(name).decode("utf-8").split("\n"):
                pairs = [token.rsplit("/", 1) for token in line.split()]
                if pairs:
                    sentence = [(word, tag) for word, tag in pairs if word not in ("``", "''")]
                    if sentence:
                        paragraphs[-1].append(sentence)
                # Two empty lines and more stand between paragraphs; here, an indented line begins one.
            yield [paragraph for paragraph in paragraphs if paragraph]


def read_plain(path: Path, pattern: str, tokenized: bool = False) -> Iterator[list[str]]:
    """Yield documents as lists of sentences, from the files of an archive whose names match."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if re.search(pattern, name):
                text = archive.read(name).decode("utf-8", errors="replace")
                lines = [" ".join(line.split()) for line in text.split("\n")]
                yield [sentence for line in lines if line for sentence in ([line] if tokenized else _END.split(line))]


def documents(folder: Path) -> list[list[list[str]]]:
    """Documents of all corpora, each a list of sentences, each a list of words.

    Overheard talk has its speakers taken off.
    """
    found = [
        [[word for word, _ in sentence] for paragraph in document for sentence in paragraph]
        for document in read_brown(folder / "brown.zip")
    ]
    for archive, pattern, tokenized in (
        ("abc.zip", r"\.txt$", False),
        ("state_union.zip", r"\.txt$", False),
        ("movie_reviews.zip", r"\.txt$", True),
        ("webtext.zip", r"(overheard|wine)\.txt$", False),
    ):
        for document in read_plain(folder / archive, pattern, tokenized):
            found.append([split_words(re.sub(r"^[A-Z][\w #']{0,20}: ", "", sentence)) for sentence in document])
    return found


def is_clean(words: list[str], lexicon: "Lexicon") -> bool:
    """Say whether this looks like a whole sentence of ordinary length."""
    if not 4 <= len(words) <= 34 or words[-1] not in ".!?" or not words[0][0].isalpha():
        return False
    lower = [word.lower() for word in words]
    real = sum(bool(_WORD.match(word)) for word in words)
    if real < 0.75 * len(words) or any(mark in words for mark in ("(", ")", "[", "]", "*", "--", ":", "/", "=", "_")):
        return False
    return any(word in AUXILIARIES or word in lexicon.verbs for word in lower)


def learn_lexicon(path: Path) -> Lexicon:
    """Read forms of words off Brown's tags."""
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for document in read_brown(path):
        for paragraph in document:
            for sentence in paragraph:
                for word, tag in sentence:
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
    for root, others in forms.items():
        family = {root, *others}
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
    agreement.update({word: forms_ for word, forms_ in agreement.items() if word not in _AGREEMENT})
    return Lexicon(verb_forms, agreement, noun_number, nouns, verbs, frequent)


class Renamer:
    """Put other names, and the placeholder of delexicalized text, in the place of names, pronouns and nouns; seeded.

    What is right stays right: a judge of grammar should not mind a name that it has never read.

    Parameters
    ----------
    made : the share of new names that are made of common words, up to 0.6
    """

    def __init__(self, lexicon: Lexicon, sentences: list[list[str]], seed: int, made: float = 0.0) -> None:
        self.nouns = lexicon.nouns
        self.random = random.Random(seed)
        self.made = made
        self.common = [word for word in lexicon.frequent if word in lexicon.noun_number]
        runs = (words[start:end] for words in sentences for start, end in _names(words))
        self.names = [list(run) for run in dict.fromkeys(map(tuple, runs)) if len(run) <= 4]

    def rename(self, words: list[str]) -> list[str]:
        """Change about half of the names, and some of the rest."""
        renamed: list[str] = []
        names = dict(_names(words))
        i = 0
        while i < len(words):
            end = names.get(i)
            if end is None and self._stands_for_a_name(words, i) and self.random.random() < 0.4:
                end = i + (1 if i == 0 else 2)
            elif end is not None and self.random.random() < 0.4:
                end = None
            if end is None:
                renamed.append(words[i])
                i += 1
            else:
                renamed += self._name()
                i = end
        return renamed

    def _name(self) -> list[str]:
        """Draw the placeholder, a name that occurs, or one made of common words: "the river house", "inn on castro"."""
        kind = self.random.random()
        if kind < 0.4 - self.made / 3:
            return ["X"]
        if kind < 1 - self.made:
            return self.random.choice(self.names)
        words = [self.random.choice(self.common) for _ in range(self.random.choice((2, 2, 2, 3)))]
        if self.random.random() < 0.3:
            words[-1:] = self.random.choice(self.names)[:1]
        if self.random.random() < 0.4:
            words.insert(1, self.random.choice(("on", "in", "of", "at", "by", "and")))
        return ["the", *words] if self.random.random() < 0.2 else words

    def _stands_for_a_name(self, words: list[str], i: int) -> bool:
        """Say whether a name can stand here: for a pronoun that begins, or a determiner and its noun."""
        if i == 0:
            return words[0].lower() in ("he", "she", "it")
        return (
            i + 2 < len(words)
            and words[i].lower() in ("the", "his", "her", "their", "our")
            and words[i + 1].lower() in self.nouns
            # Not before a verb: the name might be of the other number.
            and (words[i + 2].lower() in PREPOSITIONS or not words[i + 2].isalpha())
        )


def _names(words: list[str]) -> list[tuple[int, int]]:
    """Find the runs of capitalized words behind the first: start and end of each."""
    found: list[tuple[int, int]] = []
    for i in range(1, len(words)):
        if words[i][0].isupper() and words[i].isalpha() and words[i] != "I" and words[i].lower() not in FUNCTION_WORDS:
            if found and found[-1][1] == i:
                found[-1] = (found[-1][0], i + 1)
            else:
                found.append((i, i + 1))
    return found


class Spoiler:
    """Spoil sentences in ways that people and models do; seeded."""

    def __init__(self, lexicon: Lexicon, seed: int) -> None:
        self.lexicon = lexicon
        self.random = random.Random(seed)
        # Of each: how often it is tried, for what is hard to learn more often.
        self.ways: dict[str, tuple[float, Callable[[list[str]], tuple[list[str], list[bool]] | None]]] = {
            "shuffled": (1.0, self._shuffle),
            "shuffled span": (1.2, self._shuffle_span),
            "moved word": (0.8, self._move),
            "dropped auxiliary": (1.4, self._drop_auxiliary),
            "dropped function word": (1.2, self._drop_function_word),
            "dropped word": (0.6, self._drop_word),
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

    def spoil(self, words: list[str], how: str | None = None) -> Spoiled | None:
        """Spoil a sentence in one way, or in a way drawn by chance; None if it does not apply."""
        for _ in range(8):
            way = how or self.random.choices(list(self.ways), [weight for weight, _ in self.ways.values()])[0]
            result = self.ways[way][1](words)
            if result is not None and [w.lower() for w in result[0]] != [w.lower() for w in words]:
                spoiled, wrong = result
                # Once in a while, a second fault.
                if how is None and self.random.random() < 0.2:
                    again = self.random.choice(
                        (self._shuffle_span, self._drop_function_word, self._repeat_word, self._agree)
                    )
                    twice = again(spoiled)
                    if twice is not None:
                        return Spoiled(twice[0], twice[1], way)
                self.other = words
                return Spoiled(spoiled, wrong, way)
            if how:
                return None
        return None

    def _body(self, words: list[str]) -> tuple[list[str], list[str]]:
        """Split off the marks at the end."""
        end = len(words)
        while end and not _WORD.match(words[end - 1]):
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

    def _drop(self, words: list[str], at: int | None) -> tuple[list[str], list[bool]] | None:
        if at is None or len(words) < 4:
            return None
        left = words[:at] + words[at + 1 :]
        return left, [i in (at - 1, at) for i in range(len(left))]

    def _drop_auxiliary(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        return self._drop(words, self._pick(words, AUXILIARIES.__contains__))

    def _drop_function_word(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        return self._drop(words, self._pick(words, (set(DETERMINERS[:6]) | set(PREPOSITIONS)).__contains__))

    def _drop_word(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        return self._drop(words, self._pick(words, (self.lexicon.verbs | self.lexicon.nouns).__contains__))

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
        # "will have", "to go", "make him go": a bare form there is right, and its s form is wrong, which is as well.
        return self._replace(words, at, word)

    def _verb_form(self, words: list[str]) -> tuple[list[str], list[bool]] | None:
        at = self._pick(words, self.lexicon.verb_forms.__contains__)
        if at is None:
            return None
        forms = self.lexicon.verb_forms[words[at].lower()]
        # A past for a present may well be right.
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
        at = self._pick(words, lambda word: bool(_WORD.match(word)) and word not in ("that", "had", "very", "so", "no"))
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
