"""Divergences of answers counted by cluster: of all, and of samples; and the bias of sampling, by the jackknife."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

DRAWS = 1_000
MOST_DRAWN = 10**9  # of numpy's multivariate_hypergeometric
_BLOCK = 10**6  # cells of the draws that are held at a time


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


def divergences(
    gold: Side, model: Side, gold_times: np.ndarray, model_times: np.ndarray, *, debias: bool = False
) -> np.ndarray:
    """Score samples of the answers to a question, by the clusters, weights and smoothing of both sides.

    Parameters
    ----------
    gold_times : ndarray of shape (n, k) or (1, k), people's number of answers of each kind in each sample
    model_times : ndarray of shape (n, u) or (1, u), the same for the model

    Returns
    -------
    ndarray of shape (n,), in nats; with `debias` less the bias, which may put a small divergence below 0
    """
    values = kl_divergence(gold.distributions(gold_times), model.distributions(model_times))
    if debias:
        n = len(values)
        pairs = zip(
            *(np.broadcast_to(side_times, (n, side_times.shape[1])) for side_times in (gold_times, model_times)),
            strict=True,
        )
        # A smoothing that underflows makes the scores without an answer infinite.
        with np.errstate(invalid="ignore"):
            bias = np.array([jackknife_bias(gold._replace(times=a), model._replace(times=b)) for a, b in pairs])
        values = np.where(np.isfinite(bias), values - np.where(np.isfinite(bias), bias, 0.0), np.inf)
    return values


def jackknife_bias(gold: Side, model: Side) -> float:
    """Estimate by how much finite samples raise the divergence, by leaving out one answer of either side at a time.

    Quenouille's (1956) estimate, (n - 1) (mean of the n values without one answer - value), summed over both sides, in
    nats. It is right to the first order in 1 / n. A side with fewer than two answers adds nothing.
    """
    (p,), (q,) = gold.distributions(gold.times[None]), model.distributions(model.times[None])
    bias = 0.0
    n, total = float(model.times.sum()), float((model.times @ model.weights + model.smoothing).sum())
    if n >= 2:
        # KL depends on the model by the logarithms of its counts, and of their sum.
        changes = np.log1p(-1 / total) - np.where(p > 0, p * np.where(p > 0, _log_without(model), 0.0), 0.0).sum(axis=1)
        bias += (n - 1) * float(model.times @ changes) / n
    n, total = float(gold.times.sum()), float((gold.times @ gold.weights + gold.smoothing).sum())
    if n >= 2:
        moved = (p - gold.weights) / (total - 1)
        ratio = np.log(p, out=np.zeros_like(p), where=p > 0) - np.log(q, out=np.full_like(q, -np.inf), where=q > 0)
        logs = _log_without(gold) - np.log1p(-1 / total)
        left = np.maximum(p + moved, 0.0)
        changes = np.where(p > 0, moved * np.where(p > 0, ratio, 0.0), 0.0).sum(axis=1)
        changes += np.where(np.isfinite(logs), left * np.where(np.isfinite(logs), logs, 0.0), 0.0).sum(axis=1)
        bias += (n - 1) * float(gold.times @ changes) / n
    return bias


def _log_without(side: Side) -> np.ndarray:
    """Return the logarithm of the ratio of each smoothed count without one answer to that with it: (k, c + 1).

    It keeps its digits for large counts, where the bias is a small difference, and for a small smoothing.
    """
    counts = side.times @ side.weights
    raised = counts + side.smoothing
    without = np.maximum(counts - side.weights, 0.0) + side.smoothing
    share = np.divide(side.weights, raised, out=np.zeros_like(side.weights), where=raised > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(share < 0.5, np.log1p(-np.minimum(share, 0.5)), np.log(without) - np.log(raised))


def drawn_down(
    gold: Side, model: Side, sizes: tuple[int | None, int | None], seeds: tuple[int, int]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Draw people's answers and the model's down to these numbers, without replacement; None keeps a side as it is.

    Yields
    ------
    pairs of ndarrays of shape (n, k) or (1, k), and (n, u) or (1, u): DRAWS samples in blocks, or one of all answers
    """
    drawn = [size is not None and size < side.times.sum() for side, size in zip((gold, model), sizes, strict=True)]
    block = max(_BLOCK // max(len(gold.times), len(model.times)), 1) if any(drawn) else DRAWS
    rngs = [np.random.default_rng(seed) for seed in seeds]
    for start in range(0, DRAWS, block):
        n = min(block, DRAWS - start)
        first, second = (
            rng.multivariate_hypergeometric(np.rint(side.times).astype(np.int64), size or 0, n).astype(np.float64)
            if is_drawn
            else side.times[None]
            for side, size, rng, is_drawn in zip((gold, model), sizes, rngs, drawn, strict=True)
        )
        yield first, second


def content_seed(who: str, texts: Sequence[str], times: np.ndarray) -> int:
    """Derive a seed from the answers of one side: draws are independent between questions, and reproducible."""
    said = sorted(zip(texts, np.rint(times).astype(np.int64).tolist(), strict=True))
    return int.from_bytes(hashlib.blake2b(repr((who, said)).encode(), digest_size=8).digest(), "little")


def redrawn(side: Side, n_draws: int, rng: np.random.Generator) -> tuple[Side, np.ndarray]:
    """Draw new samples of the same size from the smoothed distribution of a side.

    The smoothing stands for further answers, one kind for each cluster and for `wrong`, so that new samples may have
    answers in clusters where this one has none. Clusters, weights and smoothing stay as they are.

    Returns
    -------
    side : with these further kinds
    times : ndarray of shape (n_draws, k + c + 1), the count of each kind in each sample
    """
    weights = np.vstack([side.weights, np.eye(len(side.smoothing))])
    every = side._replace(times=np.append(side.times, side.smoothing), weights=weights)
    times = rng.multinomial(round(side.times.sum()), every.times / every.times.sum(), n_draws)
    return every, times.astype(np.float64)


def sides(detail: Mapping[str, Any]) -> tuple[Side, Side]:
    """Read people's side and the model's, in this order, from the details of a question."""
    labels = {label: i for i, label in enumerate(detail["gold_distribution"])}
    read = []
    for name, who in (("gold_assignments", "gold"), ("assignments", "model")):
        rows = detail[name]
        weights = np.zeros((len(rows), len(labels)))
        for row, assignment in zip(weights, rows, strict=True):
            for label, weight in assignment["clusters"].items():
                row[labels[label]] = weight
        times = np.array([assignment["count"] for assignment in rows], dtype=np.float64)
        smoothing = np.array([detail["smoothing"][who][label] for label in labels])
        read.append(Side(times, weights, smoothing))
    return read[0], read[1]
