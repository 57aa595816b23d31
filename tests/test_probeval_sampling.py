"""probeval at different numbers of answers: the jackknife of debias, and samples drawn down to equal numbers."""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from tests.test_probeval import unclustered
from text_metrics.metrics._core.core_intervals import mean_estimate
from text_metrics.metrics.probeval.probeval_sampling import Side, jackknife_bias, kl_divergence, smooth

PEOPLE = {"kettle": 9, "pot": 5, "cup": 2}


def test_rarefy_is_the_mean_over_subsets(probeval):
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
    drawn = []
    for entry in combinations(people, 3):
        drawn.append([Counter(entry)[label] for label in clusters])
    expected = kl_divergence(smooth(np.array(drawn), 1.0), q)
    result = unclustered(probeval, model, {"kettle": 3, "pot": 2}, rarefy_people=3)
    assert result["probeval"] == pytest.approx(expected.mean(), abs=4 * expected.std() / math.sqrt(1000))


def leave_one_out(gold, model):
    """The jackknife by its definition, from the divergence without each answer."""
    p, q = (side.distributions(side.times[None])[0] for side in (gold, model))
    bias = 0.0
    for side in (gold, model):
        n = side.times.sum()
        without = []
        for k in np.repeat(np.arange(len(side.times)), side.times.astype(int)):
            other = smooth(side.times @ side.weights - side.weights[k], side.smoothing)
            without.append(kl_divergence(other, q) if side is gold else kl_divergence(p, other))
        bias += (n - 1) * (np.mean(without) - kl_divergence(p, q))
    return bias


def test_bias_is_that_of_leaving_out_each_answer(rng):
    """Of kinds of answers that belong to one cluster each, and to several."""
    for weights in (np.eye(7), rng.dirichlet(np.full(7, 0.3), 12)):
        times = rng.integers(1, 9, (2, len(weights))).astype(float)
        gold, model = (Side(row, weights, rng.random(7)) for row in times)
        assert jackknife_bias(gold, model) == pytest.approx(leave_one_out(gold, model), abs=1e-10)


def test_bias_of_large_counts_is_small():
    """The bias falls as 1/n, and rounding does not: n times a difference of two rounded scores is noise in the end."""
    times = np.array([6.0, 3.0, 1.0])
    other = np.array([4.0, 4.0, 2.0])
    weights = np.eye(3, 4)
    smoothing = np.ones(4)

    def bias(n):
        return jackknife_bias(Side(times * n, weights, smoothing), Side(other * n, weights, smoothing))

    assert bias(10**5) * 10**5 == pytest.approx(bias(10**3) * 10**3, rel=1e-2)
    assert all(abs(bias(10**power)) < 10**-power + 1e-7 for power in range(3, 15))


def test_only_debias_lets_an_interval_fall_below_zero(probeval):
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
