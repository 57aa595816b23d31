"""Soft clusters: the probability that two answers to a question say the same, and clusters with degrees of membership.

The probability is a logistic regression on similarities of two answers: of their embeddings, relative to the question's
other answers, of their spelling and of their words. It is fitted to people's clusters of the development set of
Commonsense Frame Completion.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.process import cdist
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .probeval_vectors import Embeddings
from .probeval_wordnet import STOP_WORDS

FEATURES = (
    "cosine",
    "centred cosine",
    "cosine above the neighbours'",
    "cosine of the content words",
    "their centred cosine",
    "their cosine above the neighbours'",
    "spelling",
    "spelling above 0.8",
    "shared words",
    "same head",
    "head in the other",
)


# Of the features, in this order.
WEIGHTS = np.array([2.210, -0.121, -0.060, -0.085, 2.042, 1.288, 1.485, 14.434, -2.550, 0.793, 0.560])
INTERCEPT = -2.027
CUT = 0.5  # of the tree, in 1 - probability
# How far below and above the threshold the share of an answer that is `wrong` falls from all to nothing.
_TOLERANCE = 0.125
_SHARPNESS = 2.0
_NEIGHBOURS = 6
_SIMILAR_SPELLING = 0.8
_PREPOSITIONS = "near behind beside around inside outside next without within onto upon via using as"
_FUNCTION_WORDS = STOP_WORDS | frozenset(_PREPOSITIONS.split())
_word = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")


@cache
def _stemmer() -> Any:
    # NLTK takes seconds to import.
    from nltk.stem import SnowballStemmer

    return SnowballStemmer("english")


class Words(NamedTuple):
    """An answer as words.

    content : its words without function words, or all words if all are function words
    squeezed : all its words without spaces, to compare answers that differ in punctuation and spaces only
    stems : of the content words
    head : stem of the last content word before a function word that follows a content word
    """

    content: str
    squeezed: str
    stems: frozenset[str]
    head: str


@lru_cache(maxsize=100_000)
def words(text: str) -> Words:
    """Read an answer as words; an answer without words is read as its text in lower case."""
    tokens = [word.replace("’", "'").removesuffix("'s").replace(".", "") for word in _word.findall(text.lower())]
    tokens = tokens or [" ".join(text.lower().split())]
    content = [word for word in tokens if word not in _FUNCTION_WORDS] or tokens
    start = tokens.index(content[0])
    end = next((i for i in range(start, len(tokens)) if tokens[i] not in content), len(tokens))
    return Words(
        content=" ".join(content),
        squeezed="".join(tokens),
        stems=frozenset(map(_stem, content)),
        head=_stem(tokens[end - 1]),
    )


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


def pair_features(texts: Sequence[str], gold: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """Compare texts with the gold answers of their question.

    Parameters
    ----------
    texts : n answers, not blank
    gold : g different gold answers
    embeddings : of all texts, and of their content words

    Returns
    -------
    ndarray of shape (n, g, 11), in the order of `FEATURES`; higher is more similar
    """
    left, right = [words(text) for text in texts], [words(text) for text in gold]
    features: list[np.ndarray] = []
    for group, reference in (
        (list(texts), list(gold)),
        ([answer.content for answer in left], [answer.content for answer in right]),
    ):
        features += _cosines(*embeddings.look_up(group, reference))
    joined = [[answer.content.replace(" ", "") for answer in side] for side in (left, right)]
    spelling = cdist(*joined, scorer=fuzz.ratio).astype(np.float64) / 100
    features += [spelling, np.maximum(spelling - _SIMILAR_SPELLING, 0.0)]
    features += _word_features(left, right)
    return np.stack(features, axis=-1)


def _word_features(left: list[Words], right: list[Words]) -> list[np.ndarray]:
    """Compare words: the share of stems in both answers, equal heads, and a head among the stems of the other."""
    numbers = {
        stem: i for i, stem in enumerate(dict.fromkeys(stem for answer in (*left, *right) for stem in answer.stems))
    }

    def has(side: list[Words]) -> np.ndarray:
        return np.array([[stem in answer.stems for stem in numbers] for answer in side]).reshape(
            len(side), len(numbers)
        )

    stems, gold_stems = has(left), has(right)
    heads, gold_heads = (np.array([numbers[answer.head] for answer in side], dtype=np.intp) for side in (left, right))
    both = stems.astype(np.float64) @ gold_stems.T.astype(np.float64)
    either = stems.sum(axis=1)[:, None] + gold_stems.sum(axis=1) - both
    return [both / either, heads[:, None] == gold_heads, stems[:, gold_heads] | gold_stems[:, heads].T]


def _cosines(texts: np.ndarray, gold: np.ndarray) -> list[np.ndarray]:
    """Compare embeddings as they are, relative to the mean of the gold answers, and to the nearest ones of both."""
    cosine = np.clip(texts @ gold.T, -1.0, 1.0)
    center = gold.mean(axis=0)
    centred = _unit(texts - center) @ _unit(gold - center).T
    near, near_gold = (_neighbours(np.clip(side @ gold.T, -1.0, 1.0)) for side in (texts, gold))
    return [cosine, centred, 2 * cosine - near[:, None] - near_gold]


def _unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 1e-9)


def _neighbours(cosine: np.ndarray) -> np.ndarray:
    """Average the largest cosines of each row, without the very largest, which may be that with itself."""
    ordered = -np.sort(-cosine, axis=1)
    return (ordered[:, 1 : 1 + _NEIGHBOURS] if cosine.shape[1] > 1 else ordered).mean(axis=1)


def same_probability(texts: Sequence[str], gold: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """Estimate the probability that people put two answers into one cluster: (n, g).

    It is 1 for answers that differ in case, punctuation and spaces only.
    """
    logits = pair_features(texts, gold, embeddings) @ WEIGHTS + INTERCEPT
    given, reference = (np.array([words(text).squeezed for text in side], dtype=object) for side in (texts, gold))
    return np.maximum(1 / (1 + np.exp(-logits)), given[:, None] == reference)


def matched_shares(probability: np.ndarray, threshold: float) -> np.ndarray:
    """Return the share of each answer that is not `wrong`: 0.5 where its highest probability is the threshold.

    It rises from 0 to 1 linearly, from 0.125 below the threshold to 0.125 above it, or nearer, so that both ends are in
    [0, 1]. Maps probabilities (n, g) to (n, 1).
    """
    best = probability.max(axis=1, keepdims=True)
    tolerance = min(_TOLERANCE, threshold, 1 - threshold)
    if tolerance == 0:
        return (best >= threshold).astype(np.float64)
    return np.clip(0.5 + (best - threshold) / (2 * tolerance), 0.0, 1.0)


def soft_groups(probability: np.ndarray) -> np.ndarray:
    """Group gold answers by complete linkage of 1 - probability (g, g): (g,), group numbers from 0."""
    if len(probability) == 1:
        return np.zeros(1, dtype=np.int64)
    distances = 1 - (probability + probability.T) / 2
    np.fill_diagonal(distances, 0.0)
    return fcluster(linkage(squareform(distances, checks=False), "complete"), CUT, criterion="distance") - 1


def memberships(probability: np.ndarray, members: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Divide answers among the groups of gold answers.

    The membership in a group is proportional to the square of the mean probability of saying the same as its answers,
    weighted by the square roots of their counts. In the group of an equal answer it is also proportional to the square
    root of how often people gave that answer: people rarely put two frequent answers into one cluster.

    Parameters
    ----------
    probability : ndarray of shape (n, g); 1 for equal answers only
    members : ndarray of shape (g, c), bool
    counts : ndarray of shape (g,), how often people gave each gold answer

    Returns
    -------
    ndarray of shape (n, c), rows summing to 1
    """
    weights = members * np.sqrt(counts)[:, None]
    # The bound keeps a row of probabilities that underflow from being divided by 0.
    raised = np.maximum(probability @ (weights / weights.sum(axis=0)), 1e-9) ** _SHARPNESS
    raised *= np.sqrt(np.maximum((probability == 1) * counts @ members, 1.0))
    return raised / raised.sum(axis=1, keepdims=True)
