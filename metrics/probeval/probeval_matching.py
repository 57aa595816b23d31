"""Match a model's answers to clusters of gold answers.

Every matcher returns weights: ndarray of shape (u, c + 1), a row for each answer that sums to 1, with `wrong` last.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .probeval_wordnet import Phrase, WordNet, candidate_pairs, partition_score, tokenize

# Scores closer than this count as a tie, for rounding in float64.
_TIE = 1e-9
_NOISE = 1e-7
# Embeddings whose squared distance is below this are equal but for the rounding of the encoder.
_EQUAL = 1e-12
# The original cuts answers to this length, and looks them up by their first characters.
_PARITY_LENGTH = 50
_PARITY_PREFIX = 40


def assign(scores: np.ndarray, threshold: float, *, strict: bool = False) -> np.ndarray:
    """Assign each answer to its best cluster, to several in equal parts if they tie, or to `wrong` below the threshold.

    Parameters
    ----------
    scores : ndarray of shape (u, c)
    threshold : the least score of a match
    strict : a match must exceed the threshold

    Returns
    -------
    ndarray of shape (u, c + 1)
    """
    best = scores.max(axis=1, keepdims=True)
    matched = best > threshold if strict else best >= threshold
    chosen = (scores >= best - _TIE) & matched
    return np.hstack([chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1), ~matched])


def cluster_maximum(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Take the maximum of the scores (u, g) over the answers of each cluster, by `members` (g, c), bool: (u, c)."""
    return np.stack([scores[:, column].max(axis=1) for column in members.T], axis=1)


def cosine_scores(answers: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Cosine of each answer with each gold answer: (u, d) and (g, d), unit rows, to (u, g)."""
    return np.clip(answers @ gold.T, -1.0, 1.0)


def gp_scores(answers: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Predict the cluster of each answer by Gaussian-process regression from the gold answers.

    The kernel is fixed, exp(-|x - y|² / 2) with noise 1e-7, and the targets are one-hot, so that one Cholesky
    factor serves all clusters. Gold answers with one embedding, given n times in all, are one observation with a noise
    of 1e-7 / n, whose target is their mean; apart, they would make the kernel singular where n is large.

    Parameters
    ----------
    answers : ndarray of shape (u, d)
    gold : ndarray of shape (g, d)
    counts : ndarray of shape (g, c), how often people gave each gold answer, by cluster

    Returns
    -------
    ndarray of shape (u, c)
    """
    first, same = np.unique((_squared_distances(gold, gold) < _EQUAL).argmax(axis=1), return_inverse=True)
    gold, merged = gold[first], np.zeros((len(first), counts.shape[1]))
    np.add.at(merged, same, counts)
    counts, times = merged, merged.sum(axis=1, keepdims=True)
    factor = cho_factor(_rbf(gold, gold) + np.diag(_NOISE / times[:, 0]), lower=True)
    return _rbf(answers, gold) @ cho_solve(factor, counts / times)


def _squared_distances(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
    return np.maximum(squares, 0.0)


def _rbf(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.exp(-_squared_distances(left, right) / 2)


class WordNetMatcher:
    """WordNet scores of answers; each phrase is parsed once."""

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        self._phrases: dict[str, Phrase] = {}

    def scores(self, answers: list[str], gold: list[str]) -> np.ndarray:
        """Score each answer against each gold answer: (u, g), in [0, 1], after lower-casing and stripping."""
        return self.pair_scores([_plain(text) for text in answers], [_plain(text) for text in gold])

    def parity_scores(self, answers: list[str], gold: list[str]) -> np.ndarray:
        """Score as the original does: answers cut to 50 characters, gold answers as they are."""
        cut = [text.lower()[:_PARITY_LENGTH].strip() for text in answers]
        # It looks up an answer among all by its first 40 characters, and uses the first match.
        first: dict[str, str] = {}
        for text in cut:
            first.setdefault(text[:_PARITY_PREFIX], text)
        return self.pair_scores([first[text[:_PARITY_PREFIX]] for text in cut], gold)

    def lemmas(self, text: str) -> tuple[str, ...]:
        """Return the lemmas of a phrase, without stop words and punctuation."""
        return tuple(self._wordnet.lemma(token) for token in tokenize(_plain(text)) if any(map(str.isalnum, token)))

    def pair_scores(self, answers: list[str], gold: list[str]) -> np.ndarray:
        """Score each answer against each gold answer as they are: (u, g), in [0, 1]."""
        left, right = ([self._phrase(text) for text in texts] for texts in (answers, gold))
        scores = np.zeros((len(left), len(right)))
        for i, j in candidate_pairs(left, right):
            scores[i, j] = partition_score(left[i], right[j])
        return scores

    def _phrase(self, text: str) -> Phrase:
        if text not in self._phrases:
            self._phrases[text] = Phrase(text, self._wordnet)
        return self._phrases[text]


def cascade(
    answers: list[str],
    gold: list[str],
    members: np.ndarray,
    matcher: WordNetMatcher,
    cosine: np.ndarray,
    wordnet_threshold: float,
    cosine_threshold: float,
) -> np.ndarray:
    """Match by the first of four tests that an answer passes: equal text, equal lemmas, WordNet, cosine.

    Parameters
    ----------
    answers, gold : lists of u and of g str
    members : ndarray of shape (g, c), bool
    cosine : ndarray of shape (u, g)
    wordnet_threshold, cosine_threshold : the least scores of a match

    Returns
    -------
    ndarray of shape (u, c + 1)
    """
    weights = _equal([_plain(text) for text in answers], [_plain(text) for text in gold], members)
    for stage in (
        lambda rest: _equal(
            [matcher.lemmas(answers[i]) or None for i in rest], [matcher.lemmas(text) for text in gold], members
        ),
        lambda rest: assign(
            cluster_maximum(matcher.scores([answers[i] for i in rest], gold), members), wordnet_threshold
        ),
        lambda rest: assign(cluster_maximum(cosine[rest], members), cosine_threshold),
    ):
        rest = np.flatnonzero(weights[:, -1] == 1)
        if rest.size:
            weights[rest] = stage(rest)
    return weights


def _equal(answers: list, gold: list, members: np.ndarray) -> np.ndarray:
    equal = np.array([[answer == text for text in gold] for answer in answers], dtype=np.float64)
    return assign(cluster_maximum(equal.reshape(len(answers), len(gold)), members), 1.0)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
