"""Match a model's answers to clusters of gold answers.

Weights of answers are ndarrays of shape (u, c + 1), whose rows sum to 1, with `wrong` last.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.distance import cdist

from .core import ROW_ERRORS, TIE
from .probeval_wordnet import WordNet, phrase_scores
from .probeval_words import fold

_NOISE = 1e-7


def assign(scores: np.ndarray, threshold: float, *, strict: bool = False) -> np.ndarray:
    """Assign each answer to its best cluster, to several in equal parts if they tie, or to `wrong`.

    Maps scores (u, c) to (u, c + 1). The threshold is the least score of a match, which `strict` ones must exceed.
    """
    best = scores.max(axis=1, keepdims=True)
    matched = best > threshold + TIE if strict else best >= threshold - TIE
    chosen = (scores >= best - TIE) & matched
    return np.hstack([chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1), ~matched])


def exact_scores(answers: Sequence[str], gold: Sequence[str]) -> np.ndarray:
    """Score each answer against each gold answer: 1 if they are equal, normalized and without case, else 0: (u, g)."""
    left = np.array([fold(text) for text in answers], dtype=object)
    right = np.array([fold(text) for text in gold], dtype=object)
    return (left[:, None] == right).astype(np.float64)


def cluster_maximum(scores: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the largest of the scores (u, g) over the members (g, c), bool, of each cluster: (u, c)."""
    return np.stack([scores[:, column].max(axis=1) for column in members.T], axis=1)


def gp_scores(answers: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Predict the cluster of each answer by Gaussian-process regression from the gold answers.

    The kernel is fixed, exp(-|x - y|² / 2) with noise 1e-7, and the targets are one-hot. n gold answers with one
    embedding, which would make the kernel singular, are one observation with noise 1e-7 / n, whose target is
    their mean. Maps embeddings of answers (u, d) and of gold answers (g, d), and how often people gave each of these by
    cluster, (g, c), to (u, c).
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    is_equal = cdist(gold, gold) <= ROW_ERRORS["float32"]
    first, same = np.unique(is_equal.argmax(axis=1), return_inverse=True)
    merged = np.zeros((len(first), counts.shape[1]))
    np.add.at(merged, same, counts)
    times = merged.sum(axis=1)
    regressor = GaussianProcessRegressor(RBF(), alpha=_NOISE / times, optimizer=None)
    regressor.fit(gold[first], merged / times[:, None])
    return np.asarray(regressor.predict(answers)).reshape(len(answers), -1)


def cut_text(text: str) -> str:
    """Return an answer in lower case, as the originals of `parity` and of ProtoQA's scores cut it."""
    return text.lower()[:50].strip()


def wordnet_scores(answers: list[str], gold: list[str], wordnet: WordNet, parity: bool = False) -> np.ndarray:
    """Score each answer against each gold answer by WordNet, in lower case: (u, g), in [0, 1].

    With `parity` as the original does: answers are cut, and gold answers stay as they are.
    """
    if not parity:
        folded = [fold(text) for text in answers]
        folded_gold = [fold(text) for text in gold]
        return phrase_scores(folded, folded_gold, wordnet)
    # The original looks up an answer among all by its first 40 characters, and uses the first match.
    first: dict[str, str] = {}
    cut = [cut_text(text) for text in answers]
    used = [first.setdefault(text[:40], text) for text in cut]
    return phrase_scores(used, gold, wordnet)
