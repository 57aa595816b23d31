"""The diversity of pairs of different texts: against all pairs, at any number of texts, and its interval."""

import numpy as np
import pytest

SIZES = (2, 3, 5, 9)


def squares(embeddings):
    """Return the mean squared cosine of two different rows."""
    rows = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    left, right = np.triu_indices(len(rows), 1)
    return np.mean(np.sum(rows[left] * rows[right], axis=1) ** 2)


def sample(generator, n_sets, size):
    """Draw sets that have topics of their own, of texts with embeddings in four dimensions."""
    topics = generator.normal(size=(n_sets, 1, 4))
    return topics + generator.normal(size=(n_sets, size, 4))


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


def squares_of_many(sets):
    return np.mean([squares(rows[:40]) for rows in sets])


def test_its_interval_covers(load):
    generator = np.random.default_rng(2)
    true = 1 / squares_of_many(sample(generator, 4000, 40))
    n_covered = 0
    for _ in range(200):
        low, high = compute(load, sample(generator, 30, 4), confidence=0.9)["pairs_confidence_interval"]
        n_covered += low <= true <= high
    assert 0.85 <= n_covered / 200 <= 0.95


def test_sets_that_are_not_independent_widen_the_interval(load):
    sets = np.repeat(sample(np.random.default_rng(3), 10, 4), 4, axis=0)
    alone = compute(load, sets, confidence=0.9)["pairs_confidence_interval"]
    labels = np.repeat(np.arange(10), 4).tolist()
    together = compute(load, sets, confidence=0.9, confidence_by=labels)["pairs_confidence_interval"]
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])


def test_degenerate_sets(load):
    single, equal, apart = [[1.0, 0.0]], [[1.0, 0.0]] * 3, [[1.0, 0.0], [0.0, 1.0]]
    result = compute(load, [single, equal, apart], confidence=0.9)
    assert result["pairs_scores"] == [None, pytest.approx(1), None]
    assert result["pairs"] == pytest.approx(2)
    assert result["pairs_confidence_interval"][0] == 1
    nothing = compute(load, [single, apart])
    assert (nothing["pairs"], nothing["pairs_scores"]) == (None, [None, None])


def test_weights_cannot_be_combined_with_it(load):
    with pytest.raises(ValueError, match="pairs"):
        compute(load, [[[1.0, 0.0], [0.0, 1.0]]], weights=[0.5, 0.5])
