"""probeval at different numbers of answers: the jackknife of debias, and samples drawn down to equal numbers.

The simulations draw people's and a model's answers from known distributions, with the clusters given. The truth is the
divergence of the distributions, which the smoothed one tends to as both numbers grow.
"""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq

from tests.fuzzing import TIMES
from tests.test_probeval import TARGETS, cfc, probeval, unclustered  # noqa: F401
from text_metrics.metrics._core.core_results import mean_estimate
from text_metrics.metrics.probeval.probeval_sampling import (
    Side,
    drawn_down,
    jackknife_bias,
    kl_divergence,
    smooth,
)

PEOPLE = {"kettle": 9, "pot": 5, "cup": 2}


def soft_kinds(n_kinds, n_clusters):
    """Memberships of kinds of answers in clusters, with `wrong` last, and what each cluster keeps."""
    shares = np.random.default_rng(5).dirichlet(np.full(n_clusters, 0.15), n_kinds)
    weights = np.zeros((n_kinds + 1, n_clusters + 1))
    weights[:-1, :-1], weights[-1, -1] = shares, 1
    return weights, np.append((shares**2).sum(axis=0) / shares.sum(axis=0), 1)


SOFT, KEPT = soft_kinds(40, 12)
KINDS = {
    "clusters": (np.append([0.4, 0.25, 0.15, 0.1, 0.06, 0.04], 0), np.eye(7), np.ones(7)),
    "soft": (np.append(1 / np.arange(1, 41), 0) / (1 / np.arange(1, 41)).sum(), SOFT, KEPT),
}


def truths(kind, divergence):
    """Return people's distribution over kinds, and one of a model at a divergence with 30 % wrong answers."""
    people, weights, _ = KINDS[kind]
    direction = np.random.default_rng(3).normal(size=len(people))

    def tilted(t):
        actual = people * np.exp(t * direction)
        actual *= 0.7 / actual.sum()
        actual[-1] += 0.3
        return actual

    at = brentq(lambda t: kl_divergence(people @ weights, tilted(t) @ weights) - divergence, 0, 30)
    return people, tilted(at)


def draw(kind, divergence, n, m, rng):
    """Draw the answers of n people and m of the model."""
    _, weights, smoothing = KINDS[kind]
    drawn = (rng.multinomial(k, p) for k, p in zip((n, m), truths(kind, divergence), strict=True))
    return (Side(times.astype(float), weights, smoothing) for times in drawn)


def plain(gold, model):
    return float(kl_divergence(*(side.distributions(side.times) for side in (gold, model))))


def rarefied(gold, model, size, seeds):
    drawn = (drawn_down(side, size, seed) for side, seed in zip((gold, model), seeds, strict=True))
    shares = (side.distributions(times) for side, times in zip((gold, model), drawn, strict=True))
    return float(kl_divergence(*shares).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_equal_numbers_compare_and_debias_does_not(kind):
    """Drawn down to 20 and 20, samples of any numbers have the mean of samples of 20 and 20; debias leaves a bias."""
    rng, rounds, divergence = np.random.default_rng(7), 60 * TIMES, 0.862
    actual = {}
    for n, m in ((20, 20), (20, 500), (500, 20), (500, 500)):
        rows = []
        for _ in range(rounds):
            gold, model = draw(kind, divergence, n, m, rng)
            value = plain(gold, model)
            seeds = rng.integers(2**60, size=2).tolist()
            rows.append((value, value - jackknife_bias(gold, model), rarefied(gold, model, 20, seeds)))
        actual[n, m] = np.array(rows).T
    expected = actual[20, 20][0]
    removed = {sizes: (debiased - plains).mean() for sizes, (plains, debiased, _) in actual.items()}
    for (_, m), (plains, debiased, rare) in actual.items():
        assert abs(rare.mean() - expected.mean()) < 4 * math.hypot(rare.std(), expected.std()) / math.sqrt(rounds)
        # Nor does drawing add noise.
        assert rare.std() < 1.3 * expected.std()
        if m == 20:
            assert abs(debiased.mean() - divergence) < 0.7 * abs(plains.mean() - divergence)
    # With few people and many answers, little is removed, and noise is added: 0 to 0.35 and 1.18 to 1.28 over 8 seeds.
    assert removed[20, 500] < 0.5 * removed[20, 20]
    assert actual[20, 500][1].std() > 1.1 * actual[20, 500][0].std()
    # What debias leaves differs by the numbers of answers.
    few, many = actual[20, 20][1], actual[500, 500][1]
    assert abs(few.mean() - many.mean()) > 3 * math.hypot(few.std(), many.std()) / math.sqrt(rounds)
    assert abs(many.mean() - divergence) < 0.06


def test_rarefy_is_the_mean_over_subsets(probeval):  # noqa: F811
    model = {"kettle": 2, "pot": 2, "spoon": 1}
    answers = list(Counter(model).elements())
    expected = [unclustered(probeval, Counter(entry), PEOPLE)["probeval"] for entry in combinations(answers, 3)]
    result = unclustered(probeval, model, PEOPLE, rarefy=3, details=True)
    assert result["probeval"] == pytest.approx(np.mean(expected), abs=4 * np.std(expected) / math.sqrt(1000))
    assert result["n_answers"] == [5]
    assert result["wrong_rate"] == pytest.approx(1 / 5)
    coverage = [unclustered(probeval, Counter(entry), PEOPLE)["coverage"] for entry in combinations(answers, 3)]
    assert result["coverage"] == pytest.approx(np.mean(coverage), abs=4 * np.std(coverage) / math.sqrt(1000))
    assert "|rarefy:3|draws:1000|" in result["signature"]
    # People's answers are drawn down alike, in the clusters of all of them.
    people = list(Counter({"kettle": 3, "pot": 2}).elements())
    clusters = ["kettle", "pot", "wrong"]
    q = smooth(np.array([2, 2, 1]), 1.0)
    drawn = [[Counter(entry)[label] for label in clusters] for entry in combinations(people, 3)]
    expected = kl_divergence(smooth(np.array(drawn), 1.0), q)
    result = unclustered(probeval, model, {"kettle": 3, "pot": 2}, rarefy_people=3)
    assert result["probeval"] == pytest.approx(expected.mean(), abs=4 * expected.std() / math.sqrt(1000))


def leave_one_out(gold, model):
    """The jackknife by its definition, from the divergence without each answer."""
    bias = 0.0
    for place, side in enumerate((gold, model)):
        n = side.times.sum()
        without = []
        for k in np.repeat(np.arange(len(side.times)), side.times.astype(int)):
            counts = np.maximum(side.times @ side.weights - side.weights[k], 0)
            other = smooth(counts, side.smoothing)
            p, q = (entry.distributions(entry.times[None])[0] for entry in (gold, model))
            without.append(kl_divergence(other, q) if place == 0 else kl_divergence(p, other))
        bias += (n - 1) * (np.mean(without) - plain(gold, model))
    return bias


@pytest.mark.parametrize("kind", KINDS)
def test_bias_is_that_of_leaving_out_each_answer(kind, rng):
    for divergence in (0.7, 0.862):
        gold, model = draw(kind, divergence, 37, 23, rng)
        assert jackknife_bias(gold, model) == pytest.approx(leave_one_out(gold, model), abs=1e-10)


def test_bias_of_large_counts_is_small():
    """The bias falls as 1/n, and rounding does not: n times a difference of two rounded scores is noise in the end."""
    times, other, weights, smoothing = np.array([6.0, 3.0, 1.0]), np.array([4.0, 4.0, 2.0]), np.eye(3, 4), np.ones(4)

    def bias(n):
        return jackknife_bias(Side(times * n, weights, smoothing), Side(other * n, weights, smoothing))

    assert bias(10**5) * 10**5 == pytest.approx(bias(10**3) * 10**3, rel=1e-2)
    assert all(abs(bias(10**power)) < 10**-power + 1e-7 for power in range(3, 15))


@pytest.mark.parametrize("clustering", ["human", "soft", "hac", "none"])
def test_details_hold_what_the_score_is_computed_from(probeval, cfc, clustering):  # noqa: F811
    for detail in probeval.compute(**cfc, clustering=clustering, details=True)["details"]:
        shares = {}
        for side, rows in (("gold", detail["gold_assignments"]), ("model", detail["assignments"])):
            counts = detail["smoothing"][side].copy()
            for row in rows:
                for label, weight in row["clusters"].items():
                    counts[label] += weight * row["count"]
            shares[side] = smooth(np.array(list(counts.values())), 0.0)
            assert list(detail[f"{side}_distribution"].values()) == pytest.approx(shares[side].tolist(), abs=1e-12)
        assert detail["score"] == pytest.approx(float(kl_divergence(shares["gold"], shares["model"])), abs=1e-12)


def test_only_debias_lets_an_interval_fall_below_zero(probeval):  # noqa: F811
    """One range for what is passed at once and what is added before."""
    given = [{"kettle": 8, "pot": 5, "cup": 2}, {"kettle": 9, "pot": 4, "cup": 3}, {"kettle": 4, "pot": 9, "cup": 2}]
    inputs = {"predictions": given, "references": [PEOPLE] * 3}
    for debias in (False, True):
        settings = {"clustering": "none", "matcher": "wordnet", "debias": debias, "confidence": 0.95}
        result = probeval.compute(**inputs, **settings)
        low, high = result["confidence_interval"]
        assert low < result["probeval"] < high
        assert low < 0 if debias else low == 0
        expected = mean_estimate(np.array(result["scores"])).interval(0.95)
        assert [low, high] == (expected if debias else [0, expected[1]])
        probeval.add_batch(**inputs)
        assert probeval.compute(**settings)["confidence_interval"] == [low, high]
