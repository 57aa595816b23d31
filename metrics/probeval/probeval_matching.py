"""Match a model's answers to clusters of gold answers.

Every matcher returns weights: ndarray of shape (u, c + 1), a row for each answer that sums to 1, with `wrong` last.
"""

import numpy as np
from scipy.spatial.distance import cdist

from .probeval_wordnet import WordNet, phrase_scores

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


def gp_scores(answers: np.ndarray, gold: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Predict the cluster of each answer by Gaussian-process regression from the gold answers.

    The kernel is fixed, exp(-|x - y|² / 2) with noise 1e-7, and the targets are one-hot. Gold answers with one
    embedding, given n times in all, are one observation with a noise of 1e-7 / n, whose target is their mean; apart,
    they would make the kernel singular where n is large.

    Parameters
    ----------
    answers : ndarray of shape (u, d)
    gold : ndarray of shape (g, d)
    counts : ndarray of shape (g, c), how often people gave each gold answer, by cluster

    Returns
    -------
    ndarray of shape (u, c)
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    first, same = np.unique((cdist(gold, gold, "sqeuclidean") < _EQUAL).argmax(axis=1), return_inverse=True)
    merged = np.zeros((len(first), counts.shape[1]))
    np.add.at(merged, same, counts)
    times = merged.sum(axis=1)
    regressor = GaussianProcessRegressor(RBF(), alpha=_NOISE / times, optimizer=None)
    regressor.fit(gold[first], merged / times[:, None])
    return np.asarray(regressor.predict(answers)).reshape(len(answers), -1)


def wordnet_scores(answers: list[str], gold: list[str], wordnet: WordNet, parity: bool = False) -> np.ndarray:
    """Score each answer against each gold answer by WordNet: (u, g), in [0, 1], after lower-casing and stripping.

    With `parity` as the original does: answers are cut to 50 characters, and gold answers stay as they are.
    """
    if not parity:
        answers, gold = ([" ".join(text.lower().split()) for text in side] for side in (answers, gold))
        return phrase_scores(answers, gold, wordnet)
    cut = [text.lower()[:_PARITY_LENGTH].strip() for text in answers]
    # It looks up an answer among all by its first 40 characters, and uses the first match.
    first: dict[str, str] = {}
    for text in cut:
        first.setdefault(text[:_PARITY_PREFIX], text)
    return phrase_scores([first[text[:_PARITY_PREFIX]] for text in cut], gold, wordnet)
