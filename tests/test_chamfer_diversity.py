"""chamfer_diversity: the plain definition, large sets in tiles, quality, details."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.references import diversity as reference
from text_metrics.metrics.chamfer_diversity.chamfer_diversity_scores import measure_embeddings


def compute(load, vectors, **settings):
    texts = [f"text {i}" for i in range(len(vectors))]
    return load("chamfer_diversity").compute(predictions=texts, embeddings=vectors, **settings)


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8), elements=st.integers(-3, 3)
    )
)
def test_equals_the_plain_definition(vectors):
    vectors[:, 0] += 3.5  # no zero vector
    sizes = np.array([len(vectors)])
    distances, neighbours, (pairwise,) = measure_embeddings(vectors, sizes)
    np.testing.assert_allclose(distances, reference.nearest_distances(vectors), atol=1e-9)
    to_neighbours = 1 - reference.cosines(vectors)[np.arange(len(vectors)), neighbours]
    np.testing.assert_allclose(to_neighbours, distances, atol=1e-9)
    assert (neighbours != np.arange(len(vectors))).all()
    assert pairwise == pytest.approx(reference.mean_pairwise_distance(vectors), abs=1e-9)


@pytest.mark.discrete
@pytest.mark.parametrize("block_rows", [8, 2048])
@pytest.mark.parametrize("is_given", [False, True])
def test_the_first_of_tied_neighbours_is_named(load, rng, set_block_rows, block_rows, is_given):
    """Whatever else is in the call, in small batches, in blocks and from matrices; rounding must not decide."""
    set_block_rows(block_rows)
    sets = []
    for i in range(40):
        # Copies are tied, and orthogonal directions. A rotation gives the cosines other roundings.
        rows = np.eye(32)[:14] if i % 2 else rng.standard_normal((12, 32))[[*range(12), 5, 0]]
        sets.append((rows @ np.linalg.qr(rng.standard_normal((32, 32)))[0]).astype(np.float32))
    texts = [[str(i) for i in range(14)]] * len(sets)

    def neighbours(texts, sets):
        values = {"similarity": list(map(reference.cosines, sets))} if is_given else {"embeddings": sets}
        result = load("chamfer_diversity").compute(predictions=texts, details=True, **values)
        return [detail["neighbours"] for detail in result["details"]]

    together = neighbours(texts, sets)
    for vectors, indices in zip(sets, together, strict=True):
        cosines = reference.cosines(vectors.astype(np.float64)) - 3 * np.eye(14)
        assert indices == [int(np.flatnonzero(row >= row.max() - 1e-6)[0]) for row in cosines]
    assert [neighbours([members], [vectors])[0] for members, vectors in zip(texts, sets, strict=True)] == together


@pytest.mark.parametrize("spread", [1e-1, 1e-3, 1e-4])
def test_blocks_tell_texts_apart_that_are_nearly_alike(rng, set_block_rows, spread):
    vectors = rng.standard_normal(48) + spread * rng.standard_normal((600, 48))
    sizes = np.array([len(vectors)])
    set_block_rows(100)
    distances, neighbours, _ = measure_embeddings(vectors, sizes)
    set_block_rows(1000)
    whole, right, _ = measure_embeddings(vectors, sizes)
    np.testing.assert_allclose(distances, whole, atol=1e-14)
    assert (neighbours == right).mean() > 0.99


@pytest.mark.parametrize("n", [30, 700])
def test_float32_is_as_good_as_float64(load, rng, n):
    vectors = rng.standard_normal((n, 64)) ** 3
    double, single = (compute(load, vectors.astype(kind)) for kind in (np.float64, np.float32))
    for key in ("chamfer_diversity", "mean_pairwise_distance"):
        assert single[key] == pytest.approx(double[key], abs=1e-6)


def test_sets_of_many_sizes_in_small_blocks(rng, set_block_rows):
    set_block_rows(64)
    sizes = np.array([3, 200, 2, 3, 1500, 2])
    vectors = rng.standard_normal((sizes.sum(), 5))
    vectors[1000] = 3 * vectors[300]
    distances, neighbours, means = measure_embeddings(vectors, sizes)
    ends = np.cumsum(sizes)[:-1]
    for part, nearest, mean in zip(np.split(vectors, ends), np.split(distances, ends), means, strict=True):
        np.testing.assert_allclose(nearest, reference.nearest_distances(part), atol=1e-12)
        assert mean == pytest.approx(reference.mean_pairwise_distance(part), abs=1e-12)
    # Of the set that starts at row 208.
    assert [neighbours[300], neighbours[1000]] == [1000 - 208, 300 - 208]


def test_quality_weighs_each_distance(load):
    vectors = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    result = compute(load, vectors, quality=[1.0, 1.0, 0.5])
    assert result["scores"] == pytest.approx([1 / 3])
    assert result["quality_scores"] == pytest.approx([0.5 / 3])
    assert result["quality_chamfer_diversity"] == pytest.approx(0.5 / 3)
