"""Expected scores of subsets, against brute force over all subsets of small sets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics._core import core_inputs, core_neighbours, core_rarefaction
from tests.references import classes as reference
from tests.references import diversity


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_expected_number_of_classes(labels, data):
    k = data.draw(st.integers(1, len(labels)))
    holders = np.unique(labels, return_counts=True)[1]
    owners = np.zeros(len(holders), dtype=np.int64)
    (found,) = core_rarefaction.expected_distinct(holders, owners, np.array([len(labels)]), k)
    expected = reference.expected(lambda places: len({labels[i] for i in places}), len(labels), k)
    assert found == pytest.approx(expected, rel=1e-12)


def test_expected_number_of_classes_of_several_sets():
    holders, owners, sizes = np.array([2, 1, 3, 4]), np.array([0, 0, 1, 1]), np.array([3, 7])
    found = core_rarefaction.expected_distinct(holders, owners, sizes, 2)
    assert found == pytest.approx([1 + 2 / 3, 1 + 12 / 21])


@pytest.mark.parametrize("n", [2, 3, 6, 30])
def test_chances_of_the_nearest(n):
    for k in range(2, n + 1):
        found = core_rarefaction.nearest_chances(n, k)
        expected = [math.comb(n - 2 - r, k - 2) / math.comb(n - 1, k - 1) for r in range(n - 1)]
        assert found == pytest.approx(expected, abs=1e-15)
        assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_expected_chamfer(rng, k, weighted):
    sizes = np.array([5, 8, 5, 7])
    vectors = rng.standard_normal((sizes.sum(), 4))
    vectors[1] = vectors[0]
    factors = rng.random(sizes.sum()) if weighted else np.ones(sizes.sum())
    for block_rows in (6, 2048):
        found = core_inputs.mean_by_set(
            factors * core_neighbours.expected_nearest(vectors, sizes, k, block_rows=block_rows), sizes
        )
        for start, size, score in zip(np.cumsum(sizes) - sizes, sizes, found, strict=True):

            def chamfer(places, start=start):
                rows = start + np.array(places)
                return reference.chamfer(vectors[rows], factors[rows])

            assert score == pytest.approx(reference.expected(chamfer, size, k), rel=1e-12)


def test_mean_pairwise_distance_needs_no_rarefaction(rng):
    vectors = rng.standard_normal((7, 3))

    def pairwise(places):
        return np.mean([1 - diversity.cosines(vectors[list(pair)])[0, 1] for pair in itertools.combinations(places, 2)])

    for k in (2, 4, 7):
        assert reference.expected(pairwise, 7, k) == pytest.approx(pairwise(range(7)))


def test_all_subsets_are_taken_where_there_are_few():
    places, complete = core_rarefaction.subsets(6, 3)
    assert complete
    assert sorted(map(tuple, places.tolist())) == list(itertools.combinations(range(6), 3))
    places, complete = core_rarefaction.subsets(40, 7)
    assert not complete
    assert places.shape == (core_rarefaction.DRAWS, 7)
    assert all(len(set(row)) == 7 and min(row) >= 0 and max(row) < 40 for row in places.tolist())
    np.testing.assert_array_equal(places, core_rarefaction.subsets(40, 7)[0])


def test_expected_over_subsets(rng):
    sizes = np.array([2, 6, 3, 6, 1])
    vectors = rng.standard_normal((sizes.sum(), 3))
    ranks = rng.permutation(sizes.sum())

    def score(rows):
        return np.array([[diversity.vendi(vectors[row], q) for q in (0.5, 2)] for row in rows])

    found = core_rarefaction.expected_over_subsets(score, ranks, sizes, 3)
    assert np.isnan(found.means[[0, 4]]).all()
    assert np.isnan(found.errors[[0, 4]]).all()
    for start, size, means, errors in zip(np.cumsum(sizes) - sizes, sizes, *found, strict=True):
        if size >= 3:
            expected = reference.expected(lambda places: score([start + np.array(places)])[0], size, 3)  # noqa: B023
            assert means == pytest.approx(expected, rel=1e-12)
            assert errors.tolist() == [0, 0]


def test_a_sample_is_within_its_standard_error(rng):
    n, k = 12, 5
    values = rng.standard_normal(n)

    def score(rows):
        return values[rows].max(axis=1, keepdims=True)

    deviations = []
    for seed in range(30):
        values = np.random.default_rng(seed).standard_normal(n)
        found = core_rarefaction.expected_over_subsets(score, np.arange(n), np.array([n]), k)
        expected = reference.expected(lambda places: values[places].max(), n, k)  # noqa: B023
        assert found.errors[0, 0] > 0
        deviations.append((found.means[0, 0] - expected) / found.errors[0, 0])
    assert 0.5 < np.std(deviations) < 1.6
    assert np.abs(deviations).max() < 4


def test_a_sample_depends_on_neither_order_nor_company(rng, monkeypatch):
    values = rng.standard_normal(40)

    def score(rows):
        return values[rows].max(axis=1, keepdims=True)

    alone = core_rarefaction.expected_over_subsets(score, np.arange(20), np.array([20]), 6)
    together = core_rarefaction.expected_over_subsets(score, np.arange(40), np.array([20, 3, 17]), 6)
    assert together.means[0] == alone.means[0]
    monkeypatch.setattr(core_rarefaction, "_TEXTS_AT_ONCE", 1)
    assert (
        core_rarefaction.expected_over_subsets(score, np.arange(40), np.array([20, 20]), 6).means[0] == alone.means[0]
    )
    order = rng.permutation(20)
    values = values[:20][order]
    shuffled = core_rarefaction.expected_over_subsets(score, order, np.array([20]), 6)
    assert shuffled.means[0] == pytest.approx(alone.means[0], rel=1e-12)


def test_no_set_is_large_enough():
    found = core_rarefaction.expected_over_subsets(lambda rows: rows, np.arange(3), np.array([2, 1]), 3)
    assert np.isnan(found.means).all()


def test_rarefy_is_checked():
    sizes = np.array([2, 3, 1])
    assert core_rarefaction.parse_rarefy(None, sizes) is None
    with pytest.warns(UserWarning, match="2 of 3 sets have fewer than rarefy=3 texts"):
        assert core_rarefaction.parse_rarefy(3, sizes) == 3
    with pytest.raises(ValueError, match=r"rarefy must be at least 2: .* Got 1"):
        core_rarefaction.parse_rarefy(1, sizes, 2)
    with pytest.raises(TypeError, match="rarefy must be a whole number"):
        core_rarefaction.parse_rarefy(2.5, sizes)
