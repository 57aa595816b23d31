"""Lin's similarity of words and phrases, by WordNet's hierarchies of nouns and verbs."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np

from .probeval_wordnet import WordNet

_PARTS_OF_SPEECH = ("noun", "verb")


class LinSimilarity:
    """Lin's similarity ("An Information-Theoretic Definition of Similarity", 1998), without a corpus.

    The similarity of two synsets is 2 IC(s) / (IC(a) + IC(b)), where s is the common hypernym with the largest IC, or
    a or b itself. The information content IC of a synset is 1 - log(h + 1) / log(n), with the number h of its hyponyms
    and the number n of synsets of its part of speech (Seco, Veale and Hayes, "An Intrinsic Information Content Metric
    for Semantic Similarity in WordNet", 2004). Words are as similar as their most similar synsets. Adjectives and
    adverbs have no hypernyms: two of them have a similarity of 1 if they share a synset, else 0.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._hypernyms = {part: wordnet.hypernyms(part) for part in _PARTS_OF_SPEECH}
        self._content: dict[tuple[str, str], float] = {}
        for part, hypernyms in self._hypernyms.items():
            sizes = dict.fromkeys(hypernyms, 0)
            for synset in hypernyms:
                for ancestor in _ancestors(synset, hypernyms):
                    sizes[ancestor] += 1
            contents = 1 - np.log(list(sizes.values())) / np.log(len(sizes))
            self._content |= {(part, synset): content for synset, content in zip(sizes, contents.tolist(), strict=True)}
        self._profile = lru_cache(maxsize=100_000)(self._make_profile)

    def phrases(self, texts: Sequence[str], gold: Sequence[str]) -> np.ndarray:
        """Compare phrases, whose words are divided by single spaces.

        The similarity is the mean of two directions, each the mean over the words of one phrase of the highest
        similarity with a word of the other; or the similarity of both phrases as collocations, if that is higher.

        Returns
        -------
        ndarray of shape (n, g), in [0, 1]; 1 for equal phrases
        """
        (first, rows), (second, columns) = _distinct_words(texts), _distinct_words(gold)
        words = self.words(first, second)
        means = (_mean_of_best(words, rows, columns) + _mean_of_best(words.T, columns, rows).T) / 2
        collocations = ([text.replace(" ", "_") for text in side] for side in (texts, gold))
        return np.maximum(means, self.words(*collocations))

    def words(self, texts: Collection[str], gold: Collection[str]) -> np.ndarray:
        """Compare words, or collocations such as `hot_dog`, in any inflected form: (n, g), in [0, 1].

        The similarity is 1 for equal words, else 0 for a word that WordNet lacks.
        """
        left, right = ([self._profile(text) for text in side] for side in (texts, gold))
        return np.array(
            [
                [1.0 if text == other else self._similarity(a, b) for other, b in zip(gold, right, strict=True)]
                for text, a in zip(texts, left, strict=True)
            ]
        )

    def _make_profile(self, text: str) -> dict[tuple[str, str], float]:
        """Find the ancestors of the synsets of a word, each with the least content of a synset of the word below it."""
        profile: dict[tuple[str, str], float] = {}
        for part, synset in self._wordnet.synsets(text):
            content = self._content.get((part, synset), 1.0)
            for ancestor in _ancestors(synset, self._hypernyms.get(part, {synset: ()})):
                profile[part, ancestor] = min(content, profile.get((part, ancestor), content))
        return profile

    def _similarity(self, a: Mapping[tuple[str, str], float], b: Mapping[tuple[str, str], float]) -> float:
        # Below a common ancestor, the two synsets of the least content are the most similar pair. An ancestor with less
        # content than another one gives a pair a lower value, so the maximum over all is Lin's similarity.
        common = ((self._content.get(key, 1.0), a[key] + b[key]) for key in a.keys() & b.keys())
        return max((2 * content / total for content, total in common if content > 0), default=0.0)


def _ancestors(synset: str, hypernyms: Mapping[str, Sequence[str]]) -> set[str]:
    """Return a synset and all above it; WordNet's verbs have a cycle."""
    ancestors, new = {synset}, [synset]
    while new:
        new = [above for below in new for above in hypernyms[below] if above not in ancestors]
        ancestors.update(new)
    return ancestors


def _distinct_words(phrases: Sequence[str]) -> tuple[dict[str, int], list[list[int]]]:
    """Return the different words of phrases, and for each phrase the places of its words among them."""
    places: dict[str, int] = {}
    return places, [[places.setdefault(word, len(places)) for word in phrase.split(" ")] for phrase in phrases]


def _mean_of_best(words: np.ndarray, rows: list[list[int]], columns: list[list[int]]) -> np.ndarray:
    """Average over the words of each left phrase the highest similarity with a word of each right phrase."""
    best = np.stack([words[:, places].max(axis=1) for places in columns], axis=1)
    return np.stack([best[places].mean(axis=0) for places in rows])


@lru_cache(maxsize=1)
def load_lin(wordnet: WordNet) -> LinSimilarity:
    """Count the hyponyms of WordNet, which takes a second."""
    return LinSimilarity(wordnet)
