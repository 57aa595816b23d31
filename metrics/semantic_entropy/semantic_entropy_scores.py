"""The entropy of the classes of each set, the weights of its texts, and the utility of a set to a reader."""

from typing import Any

import numpy as np

from .core import TextSets, describe, flatten, starts_of, sum_by_set, to_array
from .semantic_entropy_grouping import Classes


def class_entropies(classes: Classes, weights: np.ndarray | None) -> np.ndarray:
    """Compute the Shannon entropy of the classes of each set, in nats: (m,), in [0, log of the set's size].

    `weights`, (n,), are the probability of each text within its set; uniform if None.
    """
    masses = classes.sums(1 / np.repeat(classes.sizes, classes.sizes) if weights is None else weights)
    terms = -masses * np.log(np.where(masses > 0, masses, 1.0))
    return np.maximum(sum_by_set(terms, classes.counts), 0.0)


def coverage_adjusted_entropies(classes: Classes) -> np.ndarray:
    """Estimate the entropy of the distribution that the texts of each set were sampled from, in nats: (m,), at least 0.

    Shares are scaled by the estimated coverage, 1 minus the share of classes with one text, and each term is divided
    by the probability that its class is seen (Chao and Shen 2003, eq. 8). Where each text has a class of its own, one
    of them counts as seen twice.
    """
    n_texts = classes.sums()
    sizes = classes.sizes
    n_single = sum_by_set((n_texts == 1).astype(np.int64), classes.counts)
    n_single = np.where(n_single == sizes, sizes - 1, n_single)
    totals = np.repeat(sizes, classes.counts)
    shares = np.repeat(1 - n_single / sizes, classes.counts) * n_texts / totals
    seen = -np.expm1(totals * np.log1p(-np.minimum(shares, 1 - 1e-16)))
    return np.maximum(sum_by_set(-shares * np.log(shares) / seen, classes.counts), 0.0)


def utilities(classes: Classes, quality: np.ndarray, patience: float) -> np.ndarray:
    """Compute the utility of each set to a reader who goes on to the next text with this probability: (m,), in [0, 1].

    It is the mean quality of the texts, (n,), 0 for one whose class came before, weighted by patience^(i - 1), which
    sum to 1 (NoveltyBench, arXiv 2504.05228, section 3.3).
    """
    n = len(classes.numbers)
    sizes = classes.sizes
    discounts = np.power(float(patience), np.arange(n) - np.repeat(starts_of(sizes), sizes))
    is_first = np.zeros(n, dtype=bool)
    is_first[np.unique(classes.numbers, return_index=True)[1]] = True
    return sum_by_set(quality * is_first * discounts, sizes) / sum_by_set(discounts, sizes)


def count_good_classes(classes: Classes, is_good: np.ndarray) -> np.ndarray:
    """Count the classes of each set that have a good text, by bools (n,): (m,), in [0, size of the set].

    Over the number of texts, it is the effective diversity at a fixed number of samples of Shypula et al. (2025, arXiv
    2504.12522).
    """
    return sum_by_set((classes.sums(is_good) > 0).astype(np.float64), classes.counts)


def likelihood_weights(log_probs: Any, sets: TextSets) -> tuple[np.ndarray, str]:
    """Normalize the likelihoods of texts within their sets, as semantic entropy does (Farquhar et al. 2024).

    `log_probs` is shaped like the predictions: for each text a list of the natural logarithms of its tokens, which
    are averaged, or for each text a number, which is taken as it is. Returns exp of each mean or number over their
    sum in the set, (n,), and the entry of a signature. A text that was sampled several times counts each time, as in
    the authors' code. Raises a TypeError or ValueError if it is not shaped like the predictions, or has an entry that
    is not a finite number of at most 0.
    """
    rows = flatten(log_probs, sets, "log_probs", "log-probability")
    has_tokens = np.ndim(rows[0]) > 0
    expected = "a list of finite log-probabilities, at most 0" if has_tokens else "a finite log-probability, at most 0"
    values = np.empty(len(rows))
    for i, row in enumerate(rows):
        try:
            numbers = to_array(row)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        is_valid = numbers.ndim == has_tokens and numbers.size > 0 and numbers.dtype.kind in "fiu"
        if not is_valid or not (np.isfinite(numbers) & (numbers <= 0)).all():
            raise ValueError(
                f"log_probs ({sets.where(i)}) must be {expected}, as for the first text. Got {describe(row)}."
            )
        values[i] = numbers.mean(dtype=np.float64)
    # A likelihood may underflow to 0: its text is still eligible.
    largest = np.maximum.reduceat(values, sets.starts)
    likelihoods = np.exp(values - np.repeat(largest, sets.sizes))
    weights = likelihoods / np.repeat(sum_by_set(likelihoods, sets.sizes), sets.sizes)
    return weights, f"exp_log_probs({'token_means' if has_tokens else 'given'})"
