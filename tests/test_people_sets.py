"""The scripts that compare metrics with people's ratings of sets and people's judgements of pairs."""

import numpy as np
import pandas
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import balanced_accuracy_score

from scripts.results import people_sets, same


def test_rank_correlations_are_scipys(rng):
    values, people = rng.integers(0, 6, (40, 3)), rng.integers(0, 9, 40) / 2
    expected = [spearmanr(column, people).statistic for column in values.T]
    assert people_sets.spearman(values, people) == pytest.approx(expected)


def test_contexts_are_drawn_together(rng):
    contexts = pandas.Series(["a", "b", "a", "c", "c", "c"])
    first, *drawn = people_sets.resamples(contexts)
    assert first.tolist() == list(range(6))
    for places in drawn[:50]:
        counts = np.bincount(places, minlength=6)
        assert counts[0] == counts[2]
        assert counts[3] == counts[4] == counts[5]
        assert counts[0] + counts[1] + counts[3] == 3


@pytest.fixture
def kinds(rng):
    """Two kinds of pairs, and a similarity of each."""
    made = []
    for n, shift in ((80, 0.3), (60, 0.1)):
        pairs = same.Pairs([], rng.random(n) < 0.4, rng.choice(list("abcdefgh"), n).tolist())
        made.append((pairs, np.clip(rng.normal(0.4, 0.2, n) + shift * pairs.same, -0.2, 1)))
    return made


def test_accuracies_are_those_of_the_pairs_that_reach_a_cosine(kinds):
    for pairs, values in kinds:
        whole = same.Counts.of(pairs, values).balanced(np.ones(8))
        expected = [balanced_accuracy_score(pairs.same, values >= cosine - 1e-6) for cosine in same.GRID]
        assert whole == pytest.approx(expected)


def test_a_prompt_is_judged_by_the_cosine_that_the_others_choose(kinds):
    counts = [same.Counts.of(pairs, values) for pairs, values in kinds]
    fixed = counts[1].balanced(np.ones(8))
    pairs, values = kinds[0]
    names, judged = np.array(pairs.contexts), np.empty(len(values), dtype=bool)
    for name in sorted(set(names)):
        rest = same.Pairs([], pairs.same[names != name], names[names != name].tolist())
        chosen = same.Counts.of(rest, values[names != name]).balanced(np.ones(7)) + fixed
        judged[names == name] = (
            values[names == name] >= same.GRID[np.flatnonzero(chosen >= chosen.max() - 2e-6)[0]] - 1e-6
        )
    assert same.left_out(counts, 0) == pytest.approx(balanced_accuracy_score(pairs.same, judged))
