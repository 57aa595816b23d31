"""Distinct adjusted for the number of tokens: EAD (Liu et al. 2022, Rethinking and Refining the Distinct Metric)."""

import numpy as np


def adjusted_distinct(n_distinct: np.ndarray, n_tokens: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Divide numbers of distinct tokens by those expected of as many tokens drawn at random: EAD, equation 4.

    Of C tokens drawn uniformly from a vocabulary of V, V (1 - ((V - 1) / V)^C) distinct ones are expected.

    Parameters
    ----------
    n_distinct, n_tokens : ndarrays of shape (m,)
    vocabulary_size : V, at least 2

    Returns
    -------
    ndarray of shape (m,), at least 0; above 1 if fewer tokens are repeated than chance repeats; higher is more diverse

    Raises
    ------
    ValueError
        If a set has more distinct tokens than the vocabulary.
    """
    most = int(n_distinct.max(initial=0))
    if most > vocabulary_size:
        raise ValueError(f"vocabulary_size is {vocabulary_size}, but a set has {most} distinct tokens.")
    expected = -vocabulary_size * np.expm1(n_tokens * np.log1p(-1 / vocabulary_size))
    return n_distinct / np.where(n_tokens > 0, expected, 1.0)
