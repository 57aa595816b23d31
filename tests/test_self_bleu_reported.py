"""vocabulary_size= and homogenization= of self_bleu: EAD and the mean ROUGE-L of pairs, as papers report them."""

import itertools
import sys

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.conftest import SETS
from text_metrics.metrics.self_bleu.self_bleu_scores import adjusted_distinct

# The example in the card of the authors' module lsy641/distinct, with the values that it shows.
EXAMPLE = ["Hi.", "I am sorry to hear that", "I don't know", "Do you know who that person is?"]
EXAMPLE_EAD, EXAMPLE_DISTINCT = 0.8236605104867569, 0.8235294117647058


def plain_ead(texts, size):
    tokens = [token for text in texts for token in text.split()]
    return len(set(tokens)) / (size * (1 - ((size - 1) / size) ** len(tokens))) if tokens else 0.0


def plain_rouge(texts):
    scorer = RougeScorer(["rougeL"])
    return [scorer.score(*pair)["rougeL"].fmeasure for pair in itertools.permutations(texts, 2)]


def test_the_authors_example(load):
    result = load("self_bleu").compute(predictions=EXAMPLE, vocabulary_size=50257)
    assert result["ead"] == pytest.approx(EXAMPLE_EAD, abs=1e-10)
    assert result["distinct_1"] == pytest.approx(EXAMPLE_DISTINCT, abs=1e-12)
    assert "|vocabulary_size:50257|" in result["signature"]


@pytest.mark.parametrize("aggregate", ["set", "corpus"])
def test_of_sets(load, aggregate):
    given = {"predictions": SETS, "aggregate": aggregate, "details": True}
    result = load("self_bleu").compute(**given, vocabulary_size=60, homogenization=True)
    pairs = [plain_rouge(texts) for texts in SETS]
    for detail, texts, scores in zip(result["details"], SETS, pairs, strict=True):
        assert detail["ead"] == pytest.approx(plain_ead(texts, 60), abs=1e-12)
        assert detail["rouge_l"] == pytest.approx(np.mean(scores), abs=1e-12)
    if aggregate == "set":
        assert result["ead"] == pytest.approx(np.mean([plain_ead(texts, 60) for texts in SETS]))
        assert result["rouge_l"] == pytest.approx(np.mean([np.mean(scores) for scores in pairs]))
    else:
        assert result["ead"] == pytest.approx(plain_ead(list(itertools.chain.from_iterable(SETS)), 60))
        assert result["rouge_l"] == pytest.approx(np.mean(list(itertools.chain.from_iterable(pairs))))
    plain = load("self_bleu").compute(**given)
    assert "ead" not in plain
    assert "rouge_l" not in plain
    assert "|homogenization:rougeL-rouge_score" in result["signature"]
    assert plain["scores"] == result["scores"]


def test_random_tokens_score_1_whatever_their_number(rng):
    for n in (50, 500, 5000):
        drawn = [len(np.unique(rng.integers(0, 1000, n))) for _ in range(200)]
        scores = adjusted_distinct(np.array(drawn), np.full(200, n), 1000)
        assert scores.mean() == pytest.approx(1, abs=0.01)


def test_degenerate_texts(load):
    result = load("self_bleu").compute(predictions=["", ""], vocabulary_size=9, homogenization=True)
    assert (result["ead"], result["rouge_l"]) == (0.0, 0.0)
    same = load("self_bleu").compute(predictions=["a dog"] * 3, vocabulary_size=9, homogenization=True)
    assert same["rouge_l"] == 1.0
    with pytest.warns(UserWarning, match="2 of 2"):
        assert load("self_bleu").compute(predictions=["Собака.", "Собака."], homogenization=True)["rouge_l"] == 0.0


def test_settings_that_are_wrong(load, monkeypatch):
    with pytest.raises(ValueError, match="vocabulary_size is 9, but a set has 14 distinct tokens"):
        load("self_bleu").compute(predictions=EXAMPLE, vocabulary_size=9)
    with pytest.raises(ValueError, match="vocabulary_size"):
        load("self_bleu").compute(predictions=EXAMPLE, vocabulary_size=1)
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    with pytest.raises(ImportError, match="rouge-score"):
        load("self_bleu").compute(predictions=EXAMPLE, homogenization=True)
