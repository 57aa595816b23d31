"""What self_bleu adds on request: repetition=, vocabulary_size= (EAD) and homogenization= (mean ROUGE-L of pairs)."""

import itertools
import sys
import zlib

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.conftest import SETS, approx, own_data
from tests.references import diversity as reference

ADDED = {"compression_ratio", *(f"self_repetition_{n}" for n in range(1, 5))}


def test_equals_the_package_diversity(load):
    """Values of the package diversity 0.3.1, with where they come from."""
    sets = own_data("repetition_examples.json")["sets"]
    result = load("self_bleu").compute(predictions=[row["texts"] for row in sets], details=True, repetition=True)
    for detail, expected in zip(result["details"], sets, strict=True):
        for n in range(1, 5):
            assert detail[f"self_repetition_{n}"] == pytest.approx(expected[f"self_repetition_{n}"], abs=1e-12)
        # It compresses twice, and so divides by a little more.
        assert 0.5 < detail["compression_ratio"] / expected["compression_ratio"] < 2


@pytest.mark.parametrize("aggregate", ["set", "sentence", "corpus"])
def test_repetition_of_sets_and_of_a_corpus(load, aggregate):
    def plain(texts):
        words = [text.split() for text in texts]
        repetitions = {f"self_repetition_{n}": reference.self_repetition(words, n) for n in range(1, 5)}
        return repetitions | {"compression_ratio": reference.compression_ratio(texts)}

    result = load("self_bleu").compute(predictions=SETS, aggregate=aggregate, details=True, repetition=True)
    by_set = [plain(texts) for texts in SETS]
    assert [{name: detail[name] for name in ADDED} for detail in result["details"]] == approx(by_set)
    mean = {}
    for name in ADDED:
        mean[name] = float(np.mean([row[name] for row in by_set]))
    whole = plain(list(itertools.chain.from_iterable(SETS)))
    assert {name: result[name] for name in ADDED} == approx(whole if aggregate == "corpus" else mean)


def test_nothing_is_compressed_without_repetition(load, monkeypatch):
    result = load("self_bleu").compute(predictions=SETS, details=True, repetition=True)
    monkeypatch.setattr(zlib, "compress", None)
    plain = load("self_bleu").compute(predictions=SETS, details=True)
    entry = f"|compression:gzip-9-zlib{zlib.ZLIB_RUNTIME_VERSION}"
    assert entry in result["signature"]
    result["signature"] = result["signature"].replace(entry, "")
    for whole, part in zip([*result["details"], result], [*plain["details"], plain], strict=True):
        for name in ADDED:
            del whole[name]
        assert whole == part


# EAD and ROUGE-L.

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
def test_reported_scores_of_sets(load, aggregate):
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


def test_mean_rouge_of_equal_texts(load):
    assert load("self_bleu").compute(predictions=["a dog"] * 3, homogenization=True)["rouge_l"] == 1.0
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
