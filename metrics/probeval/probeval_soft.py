"""Soft clusters: the probability that two answers say the same, and clusters with degrees of membership.

The probability is a logistic regression on similarities of two answers: of their embeddings, their spelling and
their words. It is fitted to people's clusters of the development set of Commonsense Frame Completion.
"""

from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.process import cdist
from scipy.spatial.distance import squareform
from scipy.special import expit

from .core import ROUNDING, TIE, unit_vectors
from .probeval_clusters import cut_tree
from .probeval_vectors import Embeddings
from .probeval_words import Words, equal_pairs, look_alikes, words

# Constants of the soft matcher. Changing one changes every score with clustering or matcher "soft".
#
# The features of a pair of answers, in order, with their weights and the intercept: a logistic regression on all pairs
# of people's answers to a question of Commonsense Frame Completion's development set (scripts/calibrate_clusters.py of
# commit 7e8dcb9f), whose AUC the weights maximize.
WEIGHTS = {
    "cosine": 2.210,
    "centred cosine": -0.121,
    "cosine above the neighbours'": -0.060,
    "cosine of the content words": -0.085,
    "their centred cosine": 2.042,
    "their cosine above the neighbours'": 1.288,
    "spelling": 1.485,
    "spelling above 0.8": 14.434,
    "shared words": -2.550,
    "same head": 0.793,
    "head in the other": 0.560,
}
INTERCEPT = -2.027
_SPELLING = [list(WEIGHTS).index(name) for name in ("spelling", "spelling above 0.8")]
# Where the tree is cut, in 1 - probability: answers of a cluster are more likely together than apart. Lower, there are
# more and smaller clusters.
CUT = 0.5
# How far below and above the threshold the share of an answer that is `wrong` falls from 1 to 0: compared on the
# development set at commit 57227e5d. At 0, an answer is wrong or it is not.
_TOLERANCE = 0.125
# Power of a mean probability in a membership, compared at commit 77365d98: higher, answers belong to fewer clusters.
_SHARPNESS = 2.0
# Of features that the weights were fitted with: nearest answers that are averaged, and the similarity of spelling above
# which it counts more. With others, the weights do not hold.
_NEIGHBOURS, _SIMILAR_SPELLING = 6, 0.8
# The probability of what may be one word misspelt, or two words: at the default threshold, half of it matches.
_UNDECIDED = 0.475


def pair_features(texts: Sequence[str], gold: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """Compare n answers, not blank, with the g different gold answers of their question: (n, g, 11).

    The features are in the order of `WEIGHTS`; higher is more similar. Embeddings are of all texts and their content
    words.
    """
    left = [words(text) for text in texts]
    right = [words(text) for text in gold]
    contents = [answer.content for answer in left]
    gold_contents = [answer.content for answer in right]
    joined = [content.replace(" ", "") for content in contents]
    gold_joined = [content.replace(" ", "") for content in gold_contents]
    spelling = cdist(joined, gold_joined, scorer=fuzz.ratio).astype(np.float64) / 100
    # For each stem, which answers have it, and for each answer the place of its head.
    known = set().union(*(answer.stems for answer in left + right))
    stems = {stem: i for i, stem in enumerate(known)}
    has = _has_stems(left, stems)
    gold_has = _has_stems(right, stems)
    head = np.array([stems[answer.head] for answer in left])
    gold_head = np.array([stems[answer.head] for answer in right])
    both = has.astype(np.float64) @ gold_has.T
    either = has.sum(axis=1)[:, None] + gold_has.sum(axis=1) - both
    text_cosines = _cosines(*embeddings.look_up(list(texts), list(gold)))
    content_cosines = _cosines(*embeddings.look_up(contents, gold_contents))
    features = [
        *text_cosines,
        *content_cosines,
        spelling,
        np.maximum(spelling - _SIMILAR_SPELLING, 0.0),
        both / either,
        head[:, None] == gold_head,
        has[:, gold_head] | gold_has[:, head].T,
    ]
    return np.stack(features, axis=-1)


def _has_stems(answers: list[Words], stems: dict[str, int]) -> np.ndarray:
    """Tell which of s stems, numbered, each of n answers has: bool array of shape (n, s)."""
    has = np.zeros((len(answers), len(stems)), dtype=bool)
    for row, answer in enumerate(answers):
        has[row, [stems[stem] for stem in answer.stems]] = True
    return has


def _cosines(texts: np.ndarray, gold: np.ndarray) -> list[np.ndarray]:
    """Compare embeddings: as they are, relative to the mean of the gold answers, and to the nearest ones."""
    cosine = np.clip(texts @ gold.T, -1.0, 1.0)
    center = gold.mean(axis=0)
    centred = unit_vectors(texts - center, ROUNDING) @ unit_vectors(gold - center, ROUNDING).T
    near = _neighbours(cosine)
    near_gold = _neighbours(np.clip(gold @ gold.T, -1.0, 1.0))
    return [cosine, centred, 2 * cosine - near[:, None] - near_gold]


def _neighbours(cosine: np.ndarray) -> np.ndarray:
    """Average the largest cosines of each row, except the maximum, which may be the cosine with itself."""
    ordered = -np.sort(-cosine, axis=1)
    return (ordered[:, 1 : 1 + _NEIGHBOURS] if cosine.shape[1] > 1 else ordered).mean(axis=1)


def same_probability(texts: Sequence[str], gold: Sequence[str], embeddings: Embeddings) -> np.ndarray:
    """Estimate the probability that people put two answers into one cluster: (n, g).

    It is 1 for answers that `equal_pairs` finds, those that differ in case, punctuation and spaces only among them.
    Closeness of spelling alone decides nothing: "baker" and "banker" may be one word misspelt, or two words.
    """
    features = pair_features(texts, gold, embeddings)
    weights = np.array(list(WEIGHTS.values()))
    probability = expit(features @ weights + INTERCEPT)
    spelling = features[..., _SPELLING]
    is_equal = equal_pairs(texts, gold)
    for row, column in np.argwhere((spelling[..., 0] > _SIMILAR_SPELLING) & ~is_equal).tolist():
        pairs = look_alikes(words(texts[row]), words(gold[column]))
        if pairs:
            by_spelling = spelling[row, column] @ weights[_SPELLING]
            otherwise = expit(features[row, column] @ weights + INTERCEPT - by_spelling)
            # The first letter is seldom mistyped.
            is_other = any(word[0] != said[0] for word, said in pairs)
            most = otherwise if is_other else max(otherwise, _UNDECIDED)
            probability[row, column] = min(probability[row, column], most)
    return np.maximum(probability, is_equal)


def matched_shares(probability: np.ndarray, threshold: float) -> np.ndarray:
    """Return the share of each answer that is not `wrong`: 0.5 where its highest probability is the threshold.

    It rises linearly from 0.125 below the threshold to 0.125 above it, or nearer, so that both ends are in [0, 1].
    Maps probabilities (n, g) to (n, 1).
    """
    best = probability.max(axis=1, keepdims=True)
    tolerance = min(_TOLERANCE, threshold, 1 - threshold)
    if tolerance == 0:
        return (best >= threshold - TIE).astype(np.float64)
    return np.clip(0.5 + (best - threshold) / (2 * tolerance), 0.0, 1.0)


def soft_groups(probability: np.ndarray) -> np.ndarray:
    """Group gold answers by complete linkage of 1 - probability (g, g): (g,), group numbers from 0."""
    distances = 1 - (probability + probability.T) / 2
    return cut_tree(squareform(distances, checks=False), "complete", CUT)


def memberships(probability: np.ndarray, members: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Divide answers among the groups of gold answers.

    The membership in a group is proportional to the square of the mean probability of saying the same as its
    answers, weighted by the square roots of their counts. In the group of an equal answer it is also proportional
    to the root of that answer's count: people rarely put two frequent answers into one cluster. Maps probabilities
    (n, g), 1 for equal answers only, members (g, c), bool, and people's counts (g,) to (n, c), rows summing to 1.
    """
    weights = members * np.sqrt(counts)[:, None]
    # The bound keeps a row of probabilities that underflow from being divided by 0.
    raised = np.maximum(probability @ (weights / weights.sum(axis=0)), 1e-9) ** _SHARPNESS
    raised *= np.sqrt(np.maximum((probability == 1) * counts @ members, 1.0))
    return raised / raised.sum(axis=1, keepdims=True)
