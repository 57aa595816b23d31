"""Corruptions that keep a sentence's grammar and break its sense: other nouns, other verbs, swapped roles."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from scripts.training.gruen.corruptions import Corrupted

WORDNET = Path("/usr/share/wordnet")
_NOUNS, _VERBS = ("NN", "NNS"), ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
Tagger = Callable[[list[str]], list[tuple[str, str]]]
# Minimum number of occurrences of a replacement.
_FREQUENT = 5


def noun_classes(folder: Path = WORDNET) -> dict[str, str]:
    """Read the lexicographer's class of each noun's first sense in WordNet, such as "05" for animals."""
    files = {name: (folder / name).read_text(encoding="utf-8").split("\n") for name in ("index.noun", "data.noun")}
    entries = {name: [line.split() for line in lines if line and line[0] != " "] for name, lines in files.items()}
    by_offset = {entry[0]: entry[1] for entry in entries["data.noun"]}
    # A line of the index ends with as many offsets as the word has senses, the commonest first.
    return {entry[0]: by_offset[entry[-int(entry[2])]] for entry in entries["index.noun"]}


class SenseCorruptor:
    """Corrupt the sense of sentences; seeded. Replaces `Corruptor` in a `Corpus`.

    Parameters
    ----------
    sentences : where frequent words are learned, as words
    classes : the class of each noun, see `noun_classes`
    tagger : gives the words of a sentence with their Penn Treebank tags, as nltk.pos_tag does
    """

    def __init__(self, sentences: Iterable[list[str]], classes: dict[str, str], tagger: Tagger, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: dict[str, Callable[[list[str], list[str]], list[str] | None]] = {
            "noun of another class": self._replace_noun,
            "all nouns of other classes": self._replace_nouns,
            "other verb": self._replace_verb,
            "swapped roles": self._swap_roles,
        }
        self._classes = classes
        self._tagger = tagger
        self._tags: dict[tuple[str, ...], list[str]] = {}
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for words in sentences:
            for word, tag in zip(words, self.tags(words), strict=True):
                counts[word.lower(), tag] += 1
        self._frequent: dict[str, list[str]] = defaultdict(list)
        for (word, tag), count in sorted(counts.items()):
            if count >= _FREQUENT and word.isalpha() and len(word) > 2 and (tag in _VERBS or self._class(word)):
                self._frequent[tag].append(word)

    def tags(self, words: list[str]) -> list[str]:
        """Tag the words of a sentence, once."""
        key = tuple(words)
        if key not in self._tags:
            self._tags[key] = [tag for _, tag in self._tagger(words)]
        return self._tags[key]

    def corrupt(self, words: list[str], how: str | None = None) -> Corrupted | None:
        """Corrupt a sentence by one kind, or by a random one; None if it does not apply."""
        for kind in [how] if how else self.random.sample(list(self.kinds), len(self.kinds)):
            changed = self.kinds[kind](words, self.tags(words))
            if changed is not None:
                return Corrupted(changed, [a != b for a, b in zip(words, changed, strict=True)], kind)
        return None

    def _class(self, word: str) -> str | None:
        word = word.lower()
        return self._classes.get(word) or (self._classes.get(word[:-1]) if word.endswith("s") else None)

    def _places(self, words: list[str], tags: list[str]) -> list[int]:
        return [i for i, word in enumerate(words) if tags[i] in _NOUNS and self._class(word)]

    def _other(self, word: str, tag: str) -> str | None:
        """Draw a word of the same tag, and for nouns of another class, that "a" or "an" fits as well."""
        vowel, noun_class = word[0].lower() in "aeiou", self._class(word)
        for _ in range(20):
            other = self.random.choice(self._frequent[tag] or [word])
            fits = tag in _VERBS or ((other[0] in "aeiou") == vowel and self._class(other) != noun_class)
            if fits and other != word.lower():
                return other.capitalize() if word[0].isupper() else other
        return None

    def _replace(self, words: list[str], tags: list[str], places: list[int]) -> list[str] | None:
        replaced = list(words)
        for i in places:
            replaced[i] = self._other(words[i], tags[i]) or words[i]
        return replaced if replaced != words else None

    def _replace_noun(self, words: list[str], tags: list[str]) -> list[str] | None:
        places = self._places(words, tags)
        return self._replace(words, tags, [self.random.choice(places)]) if places else None

    def _replace_nouns(self, words: list[str], tags: list[str]) -> list[str] | None:
        places = self._places(words, tags)
        return self._replace(words, tags, places) if len(places) > 1 else None

    def _replace_verb(self, words: list[str], tags: list[str]) -> list[str] | None:
        places = [i for i, tag in enumerate(tags) if tag in _VERBS and words[i].lower() in self._frequent[tag]]
        return self._replace(words, tags, [self.random.choice(places)]) if places else None

    def _swap_roles(self, words: list[str], tags: list[str]) -> list[str] | None:
        """Swap a noun before a verb and one after it, of the same number and of different classes."""
        places = self._places(words, tags)
        pairs = [
            (i, j)
            for i in places
            for j in places
            if i < j
            and tags[i] == tags[j]
            and self._class(words[i]) != self._class(words[j])
            and any(tag in _VERBS for tag in tags[i:j])
            and (words[i][0].lower() in "aeiou") == (words[j][0].lower() in "aeiou")
        ]
        if not pairs:
            return None
        i, j = self.random.choice(pairs)
        swapped = list(words)
        swapped[i], swapped[j] = (
            words[j].capitalize() if words[i][0].isupper() else words[j],
            words[i].lower() if i == 0 else words[i],
        )
        return swapped
