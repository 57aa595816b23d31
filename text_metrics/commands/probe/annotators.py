"""`text-metrics probe annotators`: how many people's answers a question needs."""

import argparse
from typing import Any

import numpy as np

from text_metrics.commands.probe.comparing import Scorer
from text_metrics.commands.probe.files import Rows, Sections
from text_metrics.commands.shared.formats import NONE, number, percent
from text_metrics.metrics.probeval.probeval_pipeline import gold_side, model_side
from text_metrics.metrics.probeval.probeval_sampling import divergences, kl_divergence, smooth
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DESCRIPTION = """\
Estimate how many people's answers a question needs.

    text-metrics probe annotators targets.jsonl
    text-metrics probe annotators targets.jsonl --divergences 0.05 0.1 0.2

All people who answered a question stand for everyone: m people are drawn from them with replacement. First: the
divergence of the m people from all. Second: the error of the best test, that of Neyman and Pearson, that tells by m
answers whether they come from people's distribution or from one a given divergence away from it.
"""
SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
DIVERGENCES = (0.02, 0.05, 0.1, 0.2, 0.5)
# Type I error of the test, and type II error to reach.
ALPHA, ERROR = 0.05, 0.05
# Samples of people; other distributions for each question and divergence; samples for a test.
_DRAWS, _DIRECTIONS, _SAMPLES = 200, 5, 1000
_MOST = 20_000


def divergence(scorer: Scorer, debias: bool, m: int, rng: np.random.Generator) -> float:
    """Draw m people of each question, with replacement, and score them against all: mean over questions and draws."""
    scores = []
    for clusters, _ in scorer.matched.values():
        counts = clusters.counts.sum(axis=0)
        samples = rng.multinomial(m, counts / counts.sum(), size=_DRAWS).astype(np.float64)
        weights = np.eye(len(counts), len(counts) + 1)
        gold, model = gold_side(clusters, scorer.settings), model_side(counts, weights, clusters, scorer.settings)
        scores.append(divergences(gold, model, gold.times[None], samples, debias=debias))
    return float(np.mean(scores))


def tilt(p: np.ndarray, direction: np.ndarray, distance: float) -> np.ndarray:
    """Find the distribution p exp(t · direction), normalized, t > 0, with KL(p ‖ q) equal to a distance in nats.

    All are ndarrays of shape (k,), k >= 2; p is positive and the direction not constant.
    """
    from scipy.optimize import brentq
    from scipy.special import softmax

    def excess(t: float) -> float:
        return float(kl_divergence(p, softmax(np.log(p) + t * direction))) - distance

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return softmax(np.log(p) + brentq(excess, 0.0, high) * direction)


def second_kind(p: np.ndarray, q: np.ndarray, m: int, rng: np.random.Generator, samples: int = _SAMPLES) -> float:
    """Estimate the type II error of the most powerful test of p against q by m answers, from samples of both.

    By the lemma of Neyman and Pearson, that test rejects p if the likelihood ratio q/p is above a threshold, and at the
    threshold with a probability that makes the type I error equal to ALPHA. The type II error, in [0, 1], is the
    probability that answers of q are taken for answers of p.
    """
    ratio = np.log(q) - np.log(p)
    # Rounded, so that equal counts tie whatever their order of summation.
    under_p, under_q = (np.round(rng.multinomial(m, distribution, size=samples) @ ratio, 9) for distribution in (p, q))
    threshold = np.sort(under_p)[::-1][int(ALPHA * samples)]
    share = (ALPHA - np.mean(under_p > threshold)) / np.mean(under_p == threshold)
    return float(np.mean(under_q < threshold) + (1 - share) * np.mean(under_q == threshold))


def mean_error(distributions: list[np.ndarray], distance: float, m: int, rng: np.random.Generator) -> float:
    """Average the type II error over questions, and over other distributions in random directions."""
    rates = []
    for p in distributions:
        for _ in range(_DIRECTIONS):
            q = tilt(p, rng.normal(size=len(p)), distance)
            rates.append(second_kind(p, q, m, rng))
    return float(np.mean(rates))


def needed(distributions: list[np.ndarray], distance: float, rng: np.random.Generator) -> int | None:
    """Find the least number of answers, to within 5 %, whose mean error is at most ERROR; None above 20 000."""
    low, high = 0, 5
    while mean_error(distributions, distance, high, rng) > ERROR:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > max(1, 0.05 * high):
        middle = (low + high) // 2
        if mean_error(distributions, distance, middle, rng) > ERROR:
            low = middle
        else:
            high = middle
    return high


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="M", help="numbers of people")
    parser.add_argument("--divergences", nargs="+", type=float, default=DIVERGENCES, metavar="NATS")
    parser.add_argument("--seed", type=int, default=0)


def measure(arguments: argparse.Namespace, references: Rows, settings: ProbevalSettings) -> dict[str, Any]:
    """Compute both curves, at some numbers of people and divergences."""
    sizes, nats = arguments.sizes, arguments.divergences
    if min(sizes) < 1 or min(nats) <= 0:
        raise ValueError("--sizes must be at least 1, and --divergences above 0.")
    rng = np.random.default_rng(arguments.seed)
    scorer = Scorer(references, {}, settings)
    clusters = [clusters.counts.sum(axis=0) for clusters, _ in scorer.matched.values()]
    smoothing = max(scorer.settings.smoothing, 1e-9)
    # A question with one cluster has but one distribution.
    distributions = [smooth(counts, smoothing) for counts in clusters if len(counts) > 1]
    if not distributions:
        raise ValueError("no question has two clusters.")
    return {
        "signature": scorer.signature,
        "n_questions": len(clusters),
        "n_people": float(np.mean([counts.sum() for counts in clusters])),
        "n_clusters": float(np.mean([len(counts) for counts in clusters])),
        "sizes": list(sizes),
        "smoothed": [divergence(scorer, False, m, rng) for m in sizes],
        "debiased": [divergence(scorer, True, m, rng) for m in sizes],
        "divergences": list(nats),
        "errors": [[mean_error(distributions, distance, m, rng) for m in sizes] for distance in nats],
        "needed": [needed(distributions, distance, rng) for distance in nats],
    }


def sections(result: dict[str, Any]) -> Sections:
    """Lay both curves out."""
    header = ["m", *map(str, result["sizes"])]
    curves = [
        [title, *(number(mean, 3) for mean in result[kind])]
        for kind, title in (("smoothed", "KL(all ‖ m people)"), ("debiased", "the same, debias=True"))
    ]
    rates = [
        [f"{distance:g} nats", *map(percent, errors), str(m or NONE)]
        for distance, errors, m in zip(result["divergences"], result["errors"], result["needed"], strict=True)
    ]
    people = f"{result['n_questions']} questions with {result['n_people']:.0f} people and {result['n_clusters']:.1f}"
    tested = "that m answers come from people's distribution and not from one at this divergence"
    return [
        ("Divergence of m people from all", f"{people} clusters each, mean over questions.", [header, *curves]),
        (
            "Error of the best test",
            f"Type II error of the best test, at a type I error of {percent(ALPHA)}, {tested}.",
            [[*header, f"m for {percent(ERROR)}"], *rates],
        ),
    ]
