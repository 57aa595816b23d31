"""From counts over clusters to distributions, and from two distributions to a score."""

import math
from collections.abc import Sequence

import numpy as np


def smooth(counts: np.ndarray, smoothing: float | np.ndarray) -> np.ndarray:
    """Convert counts to a distribution, with `smoothing` added to each category; uniform if all are 0.

    Parameters
    ----------
    counts : ndarray of shape (..., k), >= 0
    smoothing : >= 0, or ndarray of shape (k,) of such; 1 is Laplace's

    Returns
    -------
    ndarray of shape (..., k), each row summing to 1
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
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=-1)


def mean(values: Sequence[float]) -> float | None:
    """Average exactly, so that the order does not matter; None without values."""
    return math.fsum(values) / len(values) if values else None
