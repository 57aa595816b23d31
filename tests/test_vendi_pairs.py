"""The diversity of pairs of different texts: against all pairs, at any number of texts, and its interval."""

import numpy as np
import pytest

from text_metrics.metrics._core.core_intervals import ratio_estimate

SIZES = (2, 3, 5, 9)


def squares(embeddings):
    """Return the mean squared cosine of two different rows."""
    rows = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    left, right = np.triu_indices(len(rows), 1)
    return np.mean(np.sum(rows[left] * rows[right], axis=1) ** 2)


def compute(load, sets, **settings):
    texts = [["text"] * len(rows) for rows in sets]
    return load("vendi_embed").compute(predictions=texts, embeddings=list(sets), pairs=True, **settings)


def test_all_pairs_are_counted(load):
    generator = np.random.default_rng(0)
    sets = [generator.normal(size=(size, 4)) + 1 for size in SIZES]
    result = compute(load, sets)
    expected = [squares(rows) for rows in sets]
    assert result["pairs_scores"] == pytest.approx([1 / value for value in expected], rel=1e-9)
    assert result["pairs"] == pytest.approx(1 / np.mean(expected), rel=1e-9)
    plain = load("vendi_embed").compute(predictions=[["text"] * size for size in SIZES], embeddings=sets)
    assert result["scores"] == plain["scores"]
    assert result["signature"] == plain["signature"]


@pytest.mark.parametrize(
    "settings", [{"kernel": "ngram"}, {"q": [0, 2], "details": True}, {"model": "all-MiniLM-L6-v2"}]
)
def test_it_follows_from_order_two_of_any_kernel(load, settings):
    sets = [["a red boat", "a red car", "the sea is calm"], ["one text", "another text"]]
    result = load("vendi_embed").compute(predictions=sets, pairs=True, confidence=0.9, **settings)
    shown = load("vendi_embed").compute(predictions=sets, **{**settings, "q": 2})["scores"]
    expected = [(n - 1) / (n / score - 1) for n, score in zip((3, 2), shown, strict=True)]
    assert result["pairs_scores"] == pytest.approx(expected, rel=1e-6)
    low, high = result["pairs_confidence_interval"]
    assert 1 <= low < result["pairs"] < high
    if "details" in settings:
        assert all(list(row["by_order"]) == ["0", "2"] for row in result["details"])
        assert list(result["by_order"]) == ["0", "2"]


@pytest.mark.parametrize("labels", [list(range(12)), [i // 3 for i in range(12)]])
def test_its_interval_is_that_of_a_ratio_over_units(load, rng, labels):
    sets = rng.normal(size=(12, 1, 4)) + rng.normal(size=(12, 5, 4))
    sums = np.bincount(labels, [squares(rows) for rows in sets])
    counts = np.bincount(labels)
    expected = ratio_estimate(counts, sums).interval(0.9, (1.0, np.inf))
    result = compute(load, sets, confidence=0.9, confidence_by=labels)
    assert result["pairs_confidence_interval"] == pytest.approx(expected)


def test_degenerate_sets(load):
    single = [[1.0, 0.0]]
    equal = [[1.0, 0.0]] * 3
    apart = [[1.0, 0.0], [0.0, 1.0]]
    result = compute(load, [single, equal, apart], confidence=0.9)
    assert result["pairs_scores"] == [None, pytest.approx(1), None]
    assert result["pairs"] == pytest.approx(2)
    assert result["pairs_confidence_interval"][0] == 1
    nothing = compute(load, [single, apart])
    assert (nothing["pairs"], nothing["pairs_scores"]) == (None, [None, None])


def test_weights_cannot_be_combined_with_it(load):
    with pytest.raises(ValueError, match="pairs"):
        compute(load, [[[1.0, 0.0], [0.0, 1.0]]], weights=[0.5, 0.5])
