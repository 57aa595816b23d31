"""The scripts that compare metrics with people's ratings of sets and people's judgements of pairs."""

import numpy as np
import pandas
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import balanced_accuracy_score

from scripts.results import people_sets, same
from tests.conftest import build_gruen_models
from text_metrics import load


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


def test_a_model_of_pairs_is_judged_by_the_same_code(rng, tmp_path, monkeypatch):
    """A tiny model with random weights: nothing follows from its accuracy."""
    monkeypatch.setattr(same, "ROOT", tmp_path)
    model = f"pairs:{build_gruen_models(tmp_path, seed=0)['cola_model']}"
    words = ["ab", "bad", "cab", "dad", "deaf", "face", "fed"]
    texts = [[" ".join(rng.choice(words, size)) for _ in range(2)] for size in [20] * 4 + [200] * 4 + [400] * 4]
    pairs = same.Pairs(texts, np.arange(12) % 2 == 0, [f"say {i}" for i in range(12)])
    table = same.by_length(pairs, model)
    assert table["pairs"].tolist() == [12, 4, 4, 4] * 3
    assert set(table["the same by"]) == {"cosine", "cosine, contexts", model}
    rows = table[table["the same by"] == model].set_index("words of the longer answer")
    answers = load("semantic_entropy").compute(predictions=texts, same=model, contexts=pairs.contexts)
    expected = balanced_accuracy_score(pairs.same, np.array(answers["n_classes_scores"]) == 1)
    assert float(rows["balanced accuracy, %"]["all"]) == pytest.approx(100 * expected, abs=0.05)
