"""vendi_embed: parity with vendi-score, every order and kernel, weights and quality."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from vendi_score import vendi

from tests.conftest import SETS
from tests.references import diversity as reference
from text_metrics.metrics._core import core_spectra
from text_metrics.metrics._core.core_intervals import ratio_estimate

ORDERS = [0, 0.3, 0.5, 1, 1.000001, 1.5, 2, 7, 300, "inf"]


def texts(n):
    return [f"text {i}" for i in range(n)]


def compute(load, vectors, **settings):
    return load("vendi_embed").compute(predictions=texts(len(vectors)), embeddings=vectors, **settings)


@pytest.mark.parametrize("q", [0.5, 1, 2, "inf"])
@pytest.mark.parametrize(("n", "d"), [(5, 16), (40, 16)])
def test_equals_vendi_score(load, rng, q, n, d):
    vectors = rng.standard_normal((n, d))
    score = compute(load, vectors, q=q)["vendi_embed"]
    assert score == pytest.approx(vendi.score_dual(vectors, q=q), abs=1e-6)
    if n <= d:  # beyond, the kernel is singular, and its noise counts in the original
        weights = rng.dirichlet(np.ones(n))
        for p in (None, weights):
            expected = vendi.score_K(reference.cosines(vectors), q=q, p=p)
            assert compute(load, vectors, q=q, weights=p)["vendi_embed"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("block_rows", [2, 2048])
def test_weights_equal_repeated_texts(load, rng, set_block_rows, block_rows, n):
    set_block_rows(block_rows)
    vectors = rng.standard_normal((n, 8))
    counts = rng.integers(1, 4, n)
    by_weight = compute(load, vectors, weights=counts / counts.sum(), q=ORDERS)
    by_repeats = compute(load, np.repeat(vectors, counts, axis=0), q=ORDERS)
    assert by_weight["by_order"] == pytest.approx(by_repeats["by_order"], rel=1e-6)


def test_ngram_kernel_equals_vendi_score(load, original_scores):
    sets = [row["texts"] for row in original_scores]
    result = load("vendi_embed").compute(predictions=sets, kernel="ngram", q=[0.5, 1, 2, "inf"], details=True)
    for detail, expected in zip(result["details"], original_scores, strict=True):
        for order, score in detail["by_order"].items():
            assert score == pytest.approx(expected[f"vendi_ngram_{order}"], abs=1e-6)


def test_ngram_kernel_of_short_texts(load):
    # No text holds a trigram: the original fails there, and with rows of zeros would score four equal texts 1.41.
    score = load("vendi_embed").compute(predictions=["a b"] * 4, kernel="ngram")["vendi_embed"]
    assert score == pytest.approx(1.0)
    score = load("vendi_embed").compute(predictions=["", "a b c d", "", "e f g h"], kernel="ngram", q=0)["vendi_embed"]
    assert score == 3.0


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(-3, 3)),
    st.sampled_from([0.2, 0.5, 1, 2, 3, math.inf]),
)
def test_equals_the_plain_definition(vectors, q):
    vectors[:, 0] += 3.5  # no zero vector
    n = np.array([len(vectors)])
    score = core_spectra.vendi_scores(core_spectra.embedding_spectra(vectors, n), 1, [q])[0, 0]
    assert score == pytest.approx(np.clip(reference.vendi(vectors, q), 1, len(vectors)), rel=1e-6)


@pytest.mark.parametrize("kernel", ["embedding", "ngram"])
@pytest.mark.parametrize("k", [1, 2, 4, 33])
def test_one_meaning_scores_one(load, kernel, k):
    result = load("vendi_embed").compute(predictions=["A dog barks."] * k, kernel=kernel, q=ORDERS)
    assert list(result["by_order"].values()) == pytest.approx([1.0] * len(ORDERS), abs=1e-9)


@pytest.mark.parametrize("repeats", [1, 50])
def test_orthogonal_texts_score_their_number(load, repeats):
    result = compute(load, np.tile(np.eye(5), (repeats, 1)), q=ORDERS)
    assert list(result["by_order"].values()) == pytest.approx([5.0] * len(ORDERS))


def test_orders_are_named_and_the_first_is_the_main_one(load, rng):
    vectors = rng.standard_normal((4, 8))
    result = compute(load, vectors, q=[2.0, float("inf"), "inf", 0.5])
    assert list(result["by_order"]) == ["2", "inf", "0.5"]
    assert result["vendi_embed"] == result["by_order"]["2"] == compute(load, vectors, q=2)["vendi_embed"]


def test_quality_weighs_the_score(load):
    quality = [[1.0] * len(members) for members in SETS]
    quality[0] = [0.5, 0.5, 0.0, 0.0]
    result = load("vendi_embed").compute(predictions=SETS, quality=quality)
    expected = [0.25 * result["scores"][0], *result["scores"][1:]]
    assert result["quality_scores"] == pytest.approx(expected)
    assert result["quality_vendi_embed"] == pytest.approx(np.mean(expected))
    plain = load("vendi_embed").compute(predictions=SETS)
    assert plain["scores"] == result["scores"]
    assert "quality_scores" not in plain


def test_quality_is_averaged_by_weight(load, rng):
    vectors = rng.standard_normal((2, 4))
    result = compute(load, vectors, quality=[1.0, 0.0], weights=[0.9, 0.1])
    assert result["quality_vendi_embed"] == pytest.approx(0.9 * result["vendi_embed"])


def test_details(load, rng):
    vectors = rng.standard_normal((4, 8))
    (detail,) = compute(load, vectors, q=[1, 2], details=True)["details"]
    assert detail["size"] == 4
    assert sum(detail["eigenvalues"]) == pytest.approx(1.0)
    assert detail["eigenvalues"] == sorted(detail["eigenvalues"], reverse=True)
    assert 1 / np.square(detail["eigenvalues"]).sum() == pytest.approx(detail["by_order"]["2"])


# The diversity of pairs of different texts: against all pairs, at any number of texts, and its interval.

PAIR_SIZES = (2, 3, 5, 9)


def squares(embeddings):
    """Return the mean squared cosine of two different rows."""
    cosines = reference.cosines(embeddings)
    return np.mean(cosines[np.triu_indices(len(cosines), 1)] ** 2)


def compute_pairs(load, sets, **settings):
    texts = [["text"] * len(rows) for rows in sets]
    return load("vendi_embed").compute(predictions=texts, embeddings=list(sets), pairs=True, **settings)


def test_all_pairs_are_counted(load):
    generator = np.random.default_rng(0)
    sets = [generator.normal(size=(size, 4)) + 1 for size in PAIR_SIZES]
    result = compute_pairs(load, sets)
    expected = [squares(rows) for rows in sets]
    assert result["pairs_scores"] == pytest.approx([1 / value for value in expected], rel=1e-9)
    assert result["pairs"] == pytest.approx(1 / np.mean(expected), rel=1e-9)
    plain = load("vendi_embed").compute(predictions=[["text"] * size for size in PAIR_SIZES], embeddings=sets)
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
    result = compute_pairs(load, sets, confidence=0.9, confidence_by=labels)
    assert result["pairs_confidence_interval"] == pytest.approx(expected)


def test_degenerate_sets(load):
    single = [[1.0, 0.0]]
    equal = [[1.0, 0.0]] * 3
    apart = [[1.0, 0.0], [0.0, 1.0]]
    result = compute_pairs(load, [single, equal, apart], confidence=0.9)
    assert result["pairs_scores"] == [None, pytest.approx(1), None]
    assert result["pairs"] == pytest.approx(2)
    assert result["pairs_confidence_interval"][0] == 1
    nothing = compute_pairs(load, [single, apart])
    assert (nothing["pairs"], nothing["pairs_scores"]) == (None, [None, None])


def test_weights_cannot_be_combined_with_it(load):
    with pytest.raises(ValueError, match="pairs"):
        compute_pairs(load, [[[1.0, 0.0], [0.0, 1.0]]], weights=[0.5, 0.5])
