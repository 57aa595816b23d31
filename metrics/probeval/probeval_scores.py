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


def jackknife_bias(value: float, without_one: np.ndarray, times: np.ndarray) -> float:
    """Estimate by how much a finite sample raises a statistic, by leaving out one observation at a time.

    Quenouille's estimate, (n - 1) (mean of the n values without one - value), right to the first order in 1/n.

    Parameters
    ----------
    value : the statistic of all n observations
    without_one : ndarray of shape (k,), the statistic without one observation of each kind
    times : ndarray of shape (k,), how many observations are of each kind; n in all

    Returns
    -------
    float; 0 for fewer than two observations
    """
    total = float(times.sum())
    if total < 2:
        return 0.0
    return (total - 1) * (float(without_one @ times) / total - value)


def mean(values: Sequence[float]) -> float | None:
    """Average exactly, so that the order does not matter; None without values."""
    return math.fsum(values) / len(values) if values else None
