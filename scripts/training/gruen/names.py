"""Replacement of names, which leaves a sentence as grammatical as it was."""

import random

from scripts.training.gruen.lexicon import FUNCTION_WORDS, PREPOSITIONS, Lexicon


class Renamer:
    """Replace names, pronouns and nouns by other names and by the placeholder of delexicalized text; seeded.

    Grammar does not depend on names, so a judge of grammar should accept a name that it has never read.

    Parameters
    ----------
    made : the share of new names that consist of common words, at most 0.6
    """

    def __init__(self, lexicon: Lexicon, sentences: list[list[str]], seed: int, made: float = 0.0) -> None:
        self.nouns = lexicon.nouns
        self.random = random.Random(seed)
        self.made = made
        self.common = [word for word in lexicon.frequent if word in lexicon.noun_number]
        runs = (words[start:end] for words in sentences for start, end in _names(words))
        self.names = [list(run) for run in dict.fromkeys(map(tuple, runs)) if len(run) <= 4]

    def rename(self, words: list[str]) -> list[str]:
        """Replace about half of the names, and some pronouns and nouns."""
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
        """Draw the placeholder, a name of the corpora, or one of common words: "the river house", "inn on castro"."""
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
        """Say whether a name can replace the words here: a pronoun at the start, or a determiner and its noun."""
        if i == 0:
            return words[0].lower() in ("he", "she", "it")
        return (
            i + 2 < len(words)
            and words[i].lower() in ("the", "his", "her", "their", "our")
            and words[i + 1].lower() in self.nouns
            # Not before a verb, with which the name might not agree in number.
            and (words[i + 2].lower() in PREPOSITIONS or not words[i + 2].isalpha())
        )


def _names(words: list[str]) -> list[tuple[int, int]]:
    """Find the runs of capitalized words after the first word: start and end of each."""
    names: list[tuple[int, int]] = []
    for i in range(1, len(words)):
        if words[i][0].isupper() and words[i].isalpha() and words[i] != "I" and words[i].lower() not in FUNCTION_WORDS:
            if names and names[-1][1] == i:
                names[-1] = (names[-1][0], i + 1)
            else:
                names.append((i, i + 1))
    return names
