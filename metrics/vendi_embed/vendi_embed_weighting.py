"""Weights and quality of the texts of vendi_embed."""

from typing import Any, NamedTuple

import numpy as np

from .core_inputs import TextSets, flatten, parse_probabilities, parse_values, sum_by_set
from .core_numbers import describe, to_array
from .vendi_embed_settings import VendiSettings


class Weighting(NamedTuple):
    """Weights and quality of n texts.

    given : ndarray of shape (n,), the probabilities that the caller gave; None for uniform ones
    shares : ndarray of shape (n,), probabilities shared out among the texts that count
    qualities : ndarray of shape (n,), in [0, 1], or None
    counted : ndarray of shape (n,), bool, the texts of at least `min_quality`; None where all count
    empty : ndarray of shape (m,), bool: sets of which no text counts; their shares are as they were
    signed : the entries of a signature
    """

    given: np.ndarray | None
    shares: np.ndarray
    qualities: np.ndarray | None
    counted: np.ndarray | None
    empty: np.ndarray
    signed: dict[str, str]

    @property
    def probabilities(self) -> np.ndarray | None:
        """None where all texts of a set are alike."""
        return None if self.given is None and self.counted is None else self.shares

    def sizes(self, sizes: np.ndarray) -> np.ndarray:
        """Return the number of texts of each set that count: (m,)."""
        return sizes if self.counted is None else sum_by_set(self.counted.astype(np.int64), sizes)

    def present(self, sizes: np.ndarray) -> np.ndarray:
        """Find the texts that have some probability: ndarray of indices."""
        return np.flatnonzero((self.shares > 0) & ~np.repeat(self.empty, sizes))


def read_weighting(sets: TextSets, settings: VendiSettings) -> Weighting:
    """Read weights, quality and min_quality.

    A text of probability 0 adds an eigenvalue of 0: the score is that of the set without it.
    """
    given, signed = None, {"weights": "uniform"}
    if settings.weights is not None:
        given, signed = parse_probabilities(settings.weights, sets, "weights"), {"weights": "given"}
    elif settings.log_probs is not None:
        given, signed = likelihood_weights(settings.log_probs, sets)
    qualities = None if settings.quality is None else parse_values(settings.quality, sets, "quality")
    counted = None if qualities is None or settings.min_quality is None else qualities >= settings.min_quality
    shares = 1 / np.repeat(sets.sizes, sets.sizes) if given is None else given
    empty = np.zeros(len(sets.sizes), dtype=bool)
    if counted is not None:
        left = sum_by_set(shares * counted, sets.sizes)
        empty = left == 0
        scale = np.repeat(np.where(empty, 1.0, left), sets.sizes)
        shares = np.where(np.repeat(empty, sets.sizes), shares, shares * counted / scale)
    return Weighting(given, shares, qualities, counted, empty, signed)


def likelihood_weights(log_probs: Any, sets: TextSets) -> tuple[np.ndarray, dict[str, str]]:
    """Normalize the likelihoods of texts within their sets, as semantic entropy does (Farquhar et al. 2024).

    Parameters
    ----------
    log_probs : shaped like the predictions, natural logarithms: for each text a list of those of its tokens, of which
        the mean is taken, or for each text a number, which is taken as it is

    Returns
    -------
    weights : ndarray of shape (n,), exp of each mean or number over their sum in the set. A text that was sampled
        several times counts each time, as in the authors' code.
    signed : the entries of a signature

    Raises
    ------
    TypeError, ValueError
        If it is not shaped like the predictions, or has an entry that is not a finite number of at most 0.
    """
    rows = flatten(log_probs, sets, "log_probs", "log-probability")
    of_tokens = np.ndim(rows[0]) > 0
    expected = "a finite log-probability, at most 0"
    if of_tokens:
        expected = "a list of finite log-probabilities, at most 0, one for each token"
    values = np.empty(len(rows))
    for i, row in enumerate(rows):
        try:
            numbers = to_array(row)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        is_valid = numbers.ndim == of_tokens and numbers.size > 0 and numbers.dtype.kind in "fiu"
        if not is_valid or not (np.isfinite(numbers) & (numbers <= 0)).all():
            raise ValueError(
                f"log_probs ({sets.where(i)}) must be {expected}, as for the first text. Got {describe(row)}."
            )
        values[i] = numbers.mean(dtype=np.float64)
    largest = np.maximum.reduceat(values, np.cumsum(sets.sizes) - sets.sizes)
    likelihoods = np.exp(values - np.repeat(largest, sets.sizes))
    weights = likelihoods / np.repeat(sum_by_set(likelihoods, sets.sizes), sets.sizes)
    kind = "token_means" if of_tokens else "given"
    return weights, {"weights": f"exp_log_probs({kind})", "repeated_texts": "counted"}


def mean_quality(weighting: Weighting, sizes: np.ndarray) -> np.ndarray:
    """Average the quality of the texts that count: (m,)."""
    assert weighting.qualities is not None
    return sum_by_set(weighting.qualities * weighting.shares, sizes)
