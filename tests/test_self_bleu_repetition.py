"""repetition= of self_bleu: the package diversity, plain definitions, and every way of aggregating."""

import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT, SETS
from tests.references import diversity as reference
from tests.test_self_bleu import GROUPS
from text_metrics.metrics._core import core_ngrams
from text_metrics.metrics.self_bleu import self_bleu_repetition as repetition

WITH = {"repetition": True}
ADDED = {"compression_ratio", *(f"self_repetition_{n}" for n in range(1, 5))}


@pytest.fixture(scope="module")
def peer():
    """Values of the package diversity 0.3.1, with where they come from."""
    return json.loads((ROOT / "tests/data/repetition_examples.json").read_text(encoding="utf-8"))["sets"]


def test_equals_the_package_diversity(load, peer):
    result = load("self_bleu").compute(predictions=[own["texts"] for own in peer], details=True, **WITH)
    for detail, own in zip(result["details"], peer, strict=True):
        for n in range(1, 5):
            assert detail[f"self_repetition_{n}"] == pytest.approx(own[f"self_repetition_{n}"], abs=1e-12)
        # It compresses twice, so that it divides by a little more, and rounds to three digits. What is compressed the
        # second time holds the time of day, which changes its size by some bytes of about 30.
        assert reference.twice_compressed_ratio(own["texts"]) == pytest.approx(own["compression_ratio"], rel=0.06)
        assert detail["compression_ratio"] == reference.compression_ratio(own["texts"])
        assert 0.5 * own["compression_ratio"] < detail["compression_ratio"] < 2 * own["compression_ratio"]


@given(GROUPS, st.integers(1, 3))
def test_self_repetition_equals_the_plain_definition(groups, n):
    tokens = core_ngrams.number_tokens([text for group in groups for text in group])
    sizes = np.array([len(group) for group in groups])
    *_, table = core_ngrams.ngram_tables(tokens, sizes, n)
    expected = [reference.self_repetition(group, n) for group in groups]
    np.testing.assert_allclose(repetition.self_repetition(table, sizes), expected, atol=1e-12)
    everything = [text for group in groups for text in group]
    merged = table._replace(set_groups=table.corpus_groups)
    (whole,) = repetition.self_repetition(merged, np.array([len(everything)]))
    assert whole == pytest.approx(reference.self_repetition(everything, n), abs=1e-12)


@pytest.mark.parametrize("aggregate", ["set", "sentence"])
def test_of_sets(load, aggregate):
    result = load("self_bleu").compute(predictions=SETS, aggregate=aggregate, details=True, **WITH)
    for detail, texts in zip(result["details"], SETS, strict=True):
        assert detail["compression_ratio"] == reference.compression_ratio(texts)
        words = [text.split() for text in texts]
        for n in range(1, 5):
            assert detail[f"self_repetition_{n}"] == pytest.approx(reference.self_repetition(words, n))
    for name in ADDED:
        assert result[name] == pytest.approx(np.mean([detail[name] for detail in result["details"]]))


def test_of_a_corpus(load):
    result = load("self_bleu").compute(predictions=SETS, aggregate="corpus", **WITH)
    everything = [text for texts in SETS for text in texts]
    assert result["compression_ratio"] == reference.compression_ratio(everything)
    words = [text.split() for text in everything]
    assert result["self_repetition_2"] == pytest.approx(reference.self_repetition(words, 2))


def test_nothing_else_changes_and_nothing_is_compressed_unasked(load, monkeypatch):
    asked = load("self_bleu").compute(predictions=SETS, details=True, **WITH)
    monkeypatch.setattr(zlib, "compress", None)
    plain = load("self_bleu").compute(predictions=SETS, details=True)
    assert asked.keys() - plain.keys() == ADDED
    assert {name: asked[name] for name in plain if name not in ("details", "signature")} == {
        name: plain[name] for name in plain if name not in ("details", "signature")
    }
    assert [detail.keys() - ADDED for detail in asked["details"]] == [detail.keys() for detail in plain["details"]]
    entry = f"|compression:gzip-9-zlib{zlib.ZLIB_RUNTIME_VERSION}"
    assert asked["signature"].replace(entry, "") == plain["signature"]
    assert entry in asked["signature"]


def test_one_text_four_times_repeats_more_than_four_texts(load):
    texts = SETS[0]
    same, different = (load("self_bleu").compute(predictions=own, **WITH) for own in (texts[:1] * 4, texts))
    for name in ADDED:
        assert same[name] > different[name]
    # Each bigram of a text is in three other texts.
    n_bigrams = len(texts[0].split()) - 1
    assert same["self_repetition_2"] == pytest.approx(np.log(1 + 3 * n_bigrams))


def test_texts_without_tokens(load):
    result = load("self_bleu").compute(predictions=["", ""], **WITH)
    assert result["self_repetition_1"] == 0.0
    assert 0 < result["compression_ratio"] < 1
    skipped = load("self_bleu").compute(predictions=[["a"]], singletons="skip", **WITH)
    assert [skipped[name] for name in ADDED] == [None] * len(ADDED)
