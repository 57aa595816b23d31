"""`text-metrics probe annotators`: how many people's answers a question needs."""

import argparse
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.probe.files import read_references
from text_metrics.commands.probe.output import add_report, check_report, write_outputs
from text_metrics.commands.probe.scoring import Scorer
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics.probeval.probeval_pipeline import gold_side, model_side
from text_metrics.metrics.probeval.probeval_sampling import divergences as scores_of
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence, smooth

DESCRIPTION = """\
Estimate how many people's answers a question needs.

    text-metrics probe annotators targets.jsonl --plot annotators.svg
    text-metrics probe annotators targets.jsonl --divergences 0.05 0.1 0.2 --error 0.05

All people who answered a question stand for everyone: m people are drawn from them with replacement. First: the
divergence of the m people from all. Second: the error of the best test, that of Neyman and Pearson, that tells by m
answers whether they come from people's distribution or from one a given divergence away from it.
"""
SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
DIVERGENCES = (0.02, 0.05, 0.1, 0.2, 0.5)
_MOST = 20_000


class Testing(NamedTuple):
    """How the error of a test is estimated.

    alpha : probability of a type I error: people's distribution is taken for the other one
    draws : samples of each distribution
    directions : distributions at each divergence, in random directions
    """

    alpha: float = 0.05
    draws: int = 1000
    directions: int = 5


def tilt(p: np.ndarray, direction: np.ndarray, divergence: float) -> np.ndarray:
    """Find the distribution p exp(t · direction), normalized, t > 0, with KL(p ‖ q) equal to a divergence in nats.

    All are ndarrays of shape (k,), k >= 2; p is positive and the direction not constant.
    """

    def moved(t: float) -> np.ndarray:
        logits = np.log(p) + t * direction
        weights = np.exp(logits - logits.max())
        return weights / weights.sum()

    from scipy.optimize import brentq

    high = 1.0
    while kl_divergence(p, moved(high)) < divergence:
        high *= 2
    return moved(float(brentq(lambda t: float(kl_divergence(p, moved(t))) - divergence, 0.0, high)))


def second_kind(p: np.ndarray, q: np.ndarray, m: int, testing: Testing, rng: np.random.Generator) -> float:
    """Estimate the type II error of the most powerful test of p against q by m answers.

    By the lemma of Neyman and Pearson, that test rejects p if the likelihood ratio q/p is above a threshold, and at the
    threshold with a probability that makes the type I error equal to alpha. The type II error, in [0, 1], is the
    probability that answers of q are taken for answers of p.
    """
    ratio = np.log(q) - np.log(p)
    # Rounded, so that equal counts tie whatever their order of summation.
    under_p, under_q = (
        np.round(rng.multinomial(m, distribution, size=testing.draws) @ ratio, 9) for distribution in (p, q)
    )
    threshold = np.sort(under_p)[::-1][int(testing.alpha * testing.draws)]
    above, at = np.mean(under_p > threshold), np.mean(under_p == threshold)
    share = (testing.alpha - above) / at
    return float(np.mean(under_q < threshold) + (1 - share) * np.mean(under_q == threshold))


def errors(
    distributions: list[np.ndarray], divergence: float, m: int, testing: Testing, rng: np.random.Generator
) -> float:
    """Average the type II error over questions and directions."""
    rates = []
    for p in distributions:
        for _ in range(testing.directions):
            q = tilt(p, rng.normal(size=len(p)), divergence)
            rates.append(second_kind(p, q, m, testing, rng))
    return float(np.mean(rates))


def needed(
    distributions: list[np.ndarray], divergence: float, wanted: float, testing: Testing, rng: np.random.Generator
) -> int | None:
    """Find the least number of answers, to within 5 %, whose mean error is at most the wanted; None above 20 000."""
    low, high = 0, 5
    while errors(distributions, divergence, high, testing, rng) > wanted:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > max(1, 0.05 * high):
        middle = (low + high) // 2
        if errors(distributions, divergence, middle, testing, rng) > wanted:
            low = middle
        else:
            high = middle
    return high


def divergences(scorer: Scorer, debias: bool, m: int, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Draw m people of each question, with replacement, and score them against all: mean, and 5th to 95th percentile.

    The percentiles are of the mean over questions.
    """
    means = np.zeros(draws)
    for name in scorer.questions:
        clusters = scorer.matched(name).clusters
        counts = clusters.counts.sum(axis=0)
        weights = np.eye(len(counts), len(counts) + 1)
        samples = rng.multinomial(m, counts / counts.sum(), size=draws).astype(np.float64)
        gold, model = gold_side(clusters, scorer.settings), model_side(counts, weights, clusters, scorer.settings)
        means += scores_of(gold, model, gold.times[None], samples, debias=debias)
    means /= len(scorer.questions)
    low, high = np.percentile(means, [5, 95])
    return {"mean": float(means.mean()), "low": float(low), "high": float(high)}


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_report(commands, "annotators", "how many people's answers a question needs", DESCRIPTION, run)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="M", help="numbers of people")
    parser.add_argument("--divergences", nargs="+", type=float, default=DIVERGENCES, metavar="NATS")
    parser.add_argument("--alpha", type=float, default=Testing().alpha, help="type I error of the test")
    parser.add_argument("--error", type=float, default=0.05, help="type II error to reach")
    parser.add_argument("--draws", type=int, default=200, help="samples of people for each size")
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    for name in ("alpha", "error"):
        if not 0 < getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be between 0 and 1. Got {getattr(arguments, name)}.")
    if min(arguments.sizes) < 1 or min(arguments.divergences) <= 0 or arguments.draws < 2:
        raise ValueError("--sizes must be at least 1, --divergences above 0 and --draws at least 2.")
    pipeline = check_report(arguments, [arguments.targets])
    result = measure(Scorer(read_references(arguments.targets), {}, pipeline), arguments)
    write_outputs(arguments, "annotators", "\n".join(lines(result)) + "\n", result)
    return 0


def measure(scorer: Scorer, arguments: argparse.Namespace) -> dict[str, Any]:
    """Compute both curves."""
    rng = np.random.default_rng(arguments.seed)
    testing = Testing(arguments.alpha)
    smoothing = max(scorer.settings.smoothing, 1e-9)
    clusters = [scorer.matched(name).clusters.counts.sum(axis=0) for name in scorer.questions]
    # A question with one cluster has but one distribution.
    distributions = [smooth(counts, smoothing) for counts in clusters if len(counts) > 1]
    if not distributions:
        raise ValueError("no question has two clusters.")
    return {
        "n_questions": len(scorer.questions),
        "n_people": float(np.mean([counts.sum() for counts in clusters])),
        "n_clusters": float(np.mean([len(counts) for counts in clusters])),
        "sizes": list(arguments.sizes),
        "smoothed": [divergences(scorer, False, m, arguments.draws, rng) for m in arguments.sizes],
        "debiased": [divergences(scorer, True, m, arguments.draws, rng) for m in arguments.sizes],
        "alpha": testing.alpha,
        "wanted": arguments.error,
        "divergences": list(arguments.divergences),
        "errors": [
            [errors(distributions, divergence, m, testing, rng) for m in arguments.sizes]
            for divergence in arguments.divergences
        ],
        "needed": [
            needed(distributions, divergence, arguments.error, testing, rng) for divergence in arguments.divergences
        ],
    }


def lines(result: dict[str, Any]) -> list[str]:
    """Write both curves as tables."""
    header = ["m", *map(str, result["sizes"])]
    table = [header]
    for kind, title in (("smoothed", "KL(all ‖ m people)"), ("debiased", "the same, `debias=True`")):
        table.append([title, *(f"{point['mean']:.3f}" for point in result[kind])])
    errors_table = [[*header, f"m for {100 * result['wanted']:g} %"]]
    for divergence, rates, m in zip(result["divergences"], result["errors"], result["needed"], strict=True):
        errors_table.append(
            [f"{divergence:g} nats", *(f"{100 * error:.0f} %" for error in rates), "–" if m is None else str(m)]
        )
    return [
        f"{result['n_questions']} questions with {result['n_people']:.0f} people and "
        f"{result['n_clusters']:.1f} clusters each on average.",
        "",
        "Divergence of m people from all, mean over questions:",
        "",
        *markdown_table(table),
        "",
        f"Type II error of the best test, at a type I error of {100 * result['alpha']:g} %, "
        "that m answers come from people's distribution and not from one at this divergence:",
        "",
        *markdown_table(errors_table),
    ]
