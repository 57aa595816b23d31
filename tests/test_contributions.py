"""Scores of a set without each of its texts, against the plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics._core import core_contributions, core_neighbours, core_spectra
from tests.references import classes as reference
from tests.references import diversity

ORDERS = [0, 0.5, 1, 2, float("inf")]


def plain_without(sizes, score, least=1):
    """Score each set anew without each of its texts; NaN where fewer than `least` are left."""
    found = []
    for start, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        for i in range(size):
            rest = np.delete(np.arange(start, start + size), i)
            found.append(score(rest) if len(rest) >= least else np.nan)
    return np.array(found, dtype=float)


def renormalized(weights, rest):
    return None if weights is None else weights[rest] / weights[rest].sum()


def kernels(vectors, sizes):
    for member, (start, size) in enumerate(zip(np.cumsum(sizes) - sizes, sizes, strict=True)):
        yield np.array([member]), diversity.cosines(vectors[start : start + size])[None]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", ORDERS)
def test_vendi_without_each_text(rng, q, weighted):
    # Sets below, at and above the number of dimensions, in blocks and whole.
    sizes = np.array([1, 2, 5, 5, 6, 7, 20, 2])
    vectors = rng.standard_normal((sizes.sum(), 6))
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes]) if weighted else None
    expected = plain_without(sizes, lambda rest: diversity.vendi(vectors[rest], q, renormalized(weights, rest)))
    for block_rows in (5, 2048):
        found = core_contributions.embedding_without(vectors, sizes, q, weights, block_rows=block_rows)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = core_contributions.kernel_without(kernels(vectors, sizes), sizes, q, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = core_contributions.function_without(diversity.cosines, vectors, sizes, q, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_kernel_that_depends_on_its_set_is_called_anew(rng):
    def kernel(x):
        squares = ((x[:, None] - x[None]) ** 2).sum(-1)
        return np.exp(-squares / np.median(squares)) if squares.any() else np.ones_like(squares)

    vectors = rng.standard_normal((5, 3))
    found = core_contributions.function_without(kernel, vectors, np.array([5]), 1)
    for i, score in enumerate(found):
        own = kernel(np.delete(vectors, i, axis=0))
        batch = [(np.array([0]), own[None])]
        (expected,) = core_spectra.vendi_scores(core_spectra.kernel_matrices(batch, np.array([4])), 1, [1])[0]
        assert score == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("size", [4, 9])
def test_texts_without_probability(rng, size):
    # d = 5: one set is scored from its kernel, the other from its second moments.
    vectors = rng.standard_normal((size, 5))
    weights = np.zeros(size)
    weights[:3] = 0.2, 0.3, 0.5
    found = core_contributions.embedding_without(vectors, np.array([size]), 1, weights)
    whole = diversity.vendi(vectors[:3], 1, weights[:3])
    assert found[3:] == pytest.approx([whole] * (size - 3))
    assert found[0] == pytest.approx(diversity.vendi(vectors[1:3], 1, [0.375, 0.625]))
    only = np.eye(size)[0]
    found = core_contributions.embedding_without(vectors, np.array([size]), 1, only)
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([1.0] * (size - 1))


@pytest.mark.parametrize("size", [4, 9])
def test_one_text_with_nearly_all_the_probability(rng, size):
    vectors = rng.standard_normal((size, 5))
    weights = np.full(size, 1e-13 / (size - 1))
    weights[0] = 1 - 1e-13
    found = core_contributions.embedding_without(vectors, np.array([size]), 0.5, weights)
    assert found[0] == pytest.approx(diversity.vendi(vectors[1:], 0.5), rel=1e-9)


@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_repeated_text_may_be_taken_out_of_mostly_one(n, d, seed):
    # Texts that coincide: eigenvalues that are zero, before and after.
    rng = np.random.default_rng(seed)
    vectors = np.eye(d + 1)[rng.integers(0, d + 1, n)]
    found = core_contributions.embedding_without(vectors, np.array([n]), 0)
    expected = [len(np.unique(np.delete(vectors, i, axis=0), axis=0)) for i in range(n)]
    assert found.tolist() == expected


@pytest.mark.parametrize("weighted", [False, True])
def test_chamfer_without_each_text(rng, weighted):
    sizes = np.array([1, 2, 3, 3, 9, 40])
    vectors = rng.standard_normal((sizes.sum(), 4))
    vectors[8:11] = vectors[8]  # nearest neighbours that are tied
    factors = rng.random(sizes.sum()) if weighted else None
    expected = plain_without(
        sizes, lambda rest: reference.chamfer(vectors[rest], None if factors is None else factors[rest]), least=2
    )
    for block_rows in (10, 2048):
        found = core_neighbours.nearest_without(vectors, sizes, factors, block_rows=block_rows)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_chamfer_of_a_large_set_in_blocks(rng, monkeypatch):
    vectors = rng.standard_normal((60, 5))
    whole = core_neighbours.nearest_without(vectors, np.array([60]))
    monkeypatch.setattr(core_neighbours, "_ENTRIES", 420)
    blocks = core_neighbours.nearest_without(vectors, np.array([60]), block_rows=30)
    np.testing.assert_allclose(blocks, whole, rtol=1e-12)
