"""Distributions of answers over clusters, their divergence, and the bias of sampling."""

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import entr

DRAWS = 1_000
MOST_DRAWN = 10**9  # of numpy's multivariate_hypergeometric
_MOST_LEFT_OUT = 10**8  # answers


def smooth(counts: np.ndarray, smoothing: float | np.ndarray) -> np.ndarray:
    """Convert counts (..., k), >= 0, to distributions (..., k), each row summing to 1; uniform if all are 0.

    `smoothing`, a number or (k,), >= 0, is added to each category; 1 is Laplace's.
    """
    raised = counts + smoothing
    totals = raised.sum(axis=-1, keepdims=True)
    return np.divide(raised, totals, out=np.full_like(raised, 1 / counts.shape[-1]), where=totals > 0)


def kl_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p ‖ q) in nats, over the last axis; infinite if p has mass where q has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # The ratio of a common and a very rare cluster may overflow.
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return np.maximum(terms.sum(axis=-1), 0.0)


def entropy(p: np.ndarray) -> np.ndarray:
    """Shannon entropy in nats, over the last axis."""
    return entr(p).sum(axis=-1)


def mean(values: Sequence[float]) -> float | None:
    """Average exactly, so that the order does not matter; None without values."""
    return math.fsum(values) / len(values) if values else None


class Side(NamedTuple):
    """The answers to a question of people or of a model, by kind: all answers of a kind count in the same way.

    times : ndarray of shape (k,), the number of answers of each kind
    weights : ndarray of shape (k, c + 1), how much each kind counts in each cluster and in `wrong`
    smoothing : ndarray of shape (c + 1,), added to the counts
    """

    times: np.ndarray
    weights: np.ndarray
    smoothing: np.ndarray

    def distributions(self, times: np.ndarray) -> np.ndarray:
        """Smooth the distributions of samples, ndarray of shape (n, k): ndarray of shape (n, c + 1)."""
        return smooth(times @ self.weights, self.smoothing)


def jackknife_bias(gold: Side, model: Side) -> float:
    """Estimate the bias of the divergence of finite samples, by leaving out one answer at a time.

    Quenouille's (1956) correction of the bias of order 1 / n: (n - 1) (mean of the n values without one answer -
    value), in nats, summed over both sides. The term of a side is 0 for fewer than two answers, and for more
    than 10⁸, where it is below rounding.

    In simulations of a divergence of 0.86, it removes about half of a bias of -0.4 with 20 people and 20
    answers. With 20 people and 500 answers, it removes little, and raises the standard deviation by a quarter.
    """
    (p,) = gold.distributions(gold.times[None])
    (q,) = model.distributions(model.times[None])
    value = kl_divergence(p, q)
    bias = 0.0
    for side in (gold, model):
        n = side.times.sum()
        if 2 <= n <= _MOST_LEFT_OUT:
            without = smooth(np.maximum(side.times @ side.weights - side.weights, 0.0), side.smoothing)
            values = kl_divergence(without, q) if side is gold else kl_divergence(p, without)
            bias += (n - 1) * float(side.times @ (values - value)) / n
    return bias


def drawn_down(side: Side, size: int | None, seed: int) -> np.ndarray:
    """Draw DRAWS samples of this many answers without replacement: ndarray of shape (DRAWS, k).

    All answers, of shape (1, k), if `size` is None or there are no more.
    """
    if size is None or size >= side.times.sum():
        return side.times[None]
    times = np.rint(side.times).astype(np.int64)
    return np.random.default_rng(seed).multivariate_hypergeometric(times, size, DRAWS).astype(np.float64)


def content_seed(who: str, texts: Sequence[str], times: np.ndarray) -> int:
    """Derive a seed from the sorted answers of one side, so that questions are drawn independently."""
    said = list(zip(texts, np.rint(times).astype(np.int64).tolist(), strict=True))
    return int.from_bytes(hashlib.blake2b(repr((who, said)).encode(), digest_size=8).digest(), "little")
