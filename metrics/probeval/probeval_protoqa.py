"""ProtoQA's own scores (Boratko et al., 2020): the share of a game's points that ranked answers win."""

import itertools

import numpy as np
from scipy.optimize import linear_sum_assignment

from .probeval_matching import cut_text
from .probeval_wordnet import WordNet, phrase_scores

MAX_ANSWERS = (1, 3, 5, 10)
MAX_INCORRECT = (1, 3, 5)


def ranked_scores(matches: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Score ranked answers against clusters by ProtoQA's rules.

    Each answer wins at most one cluster, and each cluster is won once, by the best assignment. The gain is
    divided by the score of the best answers: the clusters in order of size.

    Parameters
    ----------
    matches : ndarray of shape (u, c), bool; whether an answer, in order of rank, matches a cluster
    counts : ndarray of shape (c,), people's answers in each cluster

    Returns
    -------
    dict from a rule to a score in [0, 1]; higher is better
        "max_answers_k": only the first k answers count; "max_answers_all": all do
        "max_incorrect_k": answers count up to the k-th that matches nothing
        "set_intersection": all answers and all clusters count 1
        "dcg": the gain of the answer of rank r is divided by log2(r + 1)
    """
    scores = {}
    best = np.sort(counts)[::-1]
    total = float(counts.sum())
    for k in MAX_ANSWERS:
        scores[f"max_answers_{k}"] = _won(matches[:k] * counts) / float(best[:k].sum())
    scores["max_answers_all"] = _won(matches * counts) / total
    wrong = np.flatnonzero(~matches.any(axis=1))
    for k in MAX_INCORRECT:
        end = wrong[k - 1] if len(wrong) >= k else len(matches)
        scores[f"max_incorrect_{k}"] = _won(matches[:end] * counts) / total
    scores["set_intersection"] = _won(matches.astype(np.float64)) / len(counts)
    discounts = 1 / np.log2(np.arange(max(matches.shape)) + 2)
    gains = matches * counts * discounts[: len(matches), None]
    scores["dcg"] = _won(gains) / float(best @ discounts[: len(best)])
    return scores


def _won(gains: np.ndarray) -> float:
    return float(gains[linear_sum_assignment(gains, maximize=True)].sum())


def protoqa_matches(ranked: list[str], gold: list[str], wordnet: WordNet) -> dict[str, np.ndarray]:
    """Match answers to gold answers by equal text and by WordNet: bool arrays of shape (u, g).

    As in ProtoQA's evaluator, answers are put in lower case and cut, and a WordNet score is rounded, 0.5 down.
    """
    cut = [cut_text(text) for text in ranked]
    is_equal = [text == other for text, other in itertools.product(cut, gold)]
    exact = np.array(is_equal, dtype=bool).reshape(len(cut), len(gold))
    return {"exact": exact, "wordnet": phrase_scores(cut, gold, wordnet) > 0.5}
