"""Scores of a set without each of its texts, against the plain loop."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SETS
from tests.largest_tensor import LargestTensor
from tests.references import classes as reference
from tests.references import diversity
from tests.test_vendi_classes import first_letter
from text_metrics.metrics._core import (
    core_contributions,
    core_leave_one_out,
    core_secular,
    core_spectra,
)
from text_metrics.metrics.vendi_embed.vendi_embed_kernels import FunctionKernel

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
def test_vendi_without_each_text(rng, set_block_rows, q, weighted):
    # Sets below, at and above the number of dimensions, in blocks and whole.
    sizes = np.array([1, 2, 5, 5, 6, 7, 20, 2])
    vectors = rng.standard_normal((sizes.sum(), 6))
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes]) if weighted else None
    expected = plain_without(sizes, lambda rest: diversity.vendi(vectors[rest], q, renormalized(weights, rest)))
    for block_rows in (5, 2048):
        set_block_rows(block_rows)
        found = core_contributions.embedding_without(vectors, sizes, q, weights)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = core_contributions.kernel_without(kernels(vectors, sizes), sizes, q, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = FunctionKernel(sizes, "cpu", vectors, diversity.cosines).score_without(q, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("q", ORDERS)
def test_vendi_of_a_large_set_without_each_text(rng, q, weighted):
    # From the spectrum of the whole set: more dimensions than texts, fewer, duplicates, and texts without probability.
    for size, d in ((70, 90), (70, 5), (200, 70)):
        vectors = rng.standard_normal((size, d)) * np.arange(1, d + 1) ** -1.0
        vectors[40:50] = vectors[50:60]
        weights = None
        if weighted:
            # No eigenvalue is so small that it counts as rounding.
            weights = rng.dirichlet(np.full(size, 5.0))
            weights[:5] = 0.0
            weights[60] = 3 * weights.sum()
            weights /= weights.sum()
        texts = np.r_[0, 1, 45, 55, 60:64, size - 1]
        sizes = np.array([size])
        expected = [
            diversity.vendi(vectors[rest], q, renormalized(weights, rest))
            for rest in (np.delete(np.arange(size), i) for i in texts)
        ]
        found = core_contributions.embedding_without(vectors, sizes, q, weights)
        np.testing.assert_allclose(found[texts], expected, rtol=1e-9)
        found = core_contributions.kernel_without(kernels(vectors, sizes), sizes, q, weights)
        np.testing.assert_allclose(found[texts], expected, rtol=1e-9)


def spread(eigenvalues, rng):
    axes = np.linalg.qr(rng.standard_normal((len(eigenvalues), len(eigenvalues))))[0]
    return axes * eigenvalues @ axes.T


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: np.eye(40),
        lambda rng: np.ones((40, 40)),
        lambda rng: np.kron(np.eye(4), np.ones((10, 10))),
        lambda rng: spread(rng.standard_normal(60), rng),
        lambda rng: spread(0.5 ** np.arange(60), rng),
        lambda rng: spread(np.repeat([1.0, 0.5, 0.5 + 1e-12, 1e-9, 0.0, -1e-5], 10), rng),
        lambda rng: np.diag(np.arange(30.0)) + 1e-9 * diversity.cosines(rng.standard_normal((30, 4))),
        lambda rng: diversity.cosines(rng.standard_normal((150, 200))),
    ],
)
def test_the_eigenvalues_of_a_matrix_without_each_row(rng, make):
    matrix = make(rng)
    eigenvalues, vectors = np.linalg.eigh(matrix)
    found = core_secular.eigenvalues_without(torch.from_numpy(eigenvalues), torch.from_numpy(vectors**2)).numpy()
    for i, own in enumerate(found):
        expected = np.linalg.eigvalsh(np.delete(np.delete(matrix, i, axis=0), i, axis=1))
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-13 * np.abs(eigenvalues).max())


def test_one_decomposition_serves_all_texts_and_memory_is_bounded(rng, monkeypatch):
    monkeypatch.setattr(core_contributions, "_ENTRIES", 2**14)
    vectors = rng.standard_normal((12_000, 8)).astype(np.float32)
    largest = []
    for size in (3_000, 12_000):
        with LargestTensor() as made:
            core_contributions.embedding_without(vectors[:size], np.array([size]), 1)
        assert made.decompositions == 1
        largest.append(made.entries)
    assert largest[1] == largest[0]


def test_a_kernel_that_depends_on_its_set_is_called_anew(rng):
    def kernel(x):
        squares = ((x[:, None] - x[None]) ** 2).sum(-1)
        return np.exp(-squares / np.median(squares)) if squares.any() else np.ones_like(squares)

    vectors = rng.standard_normal((5, 3))
    found = FunctionKernel(np.array([5]), "cpu", vectors, kernel).score_without(1, None)
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


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_repeated_text_may_be_taken_out_of_mostly_one(n, d, seed):
    # Texts that coincide: eigenvalues that are zero, before and after.
    rng = np.random.default_rng(seed)
    vectors = np.eye(d + 1)[rng.integers(0, d + 1, n)]
    found = core_contributions.embedding_without(vectors, np.array([n]), 0)
    expected = [len(np.unique(np.delete(vectors, i, axis=0), axis=0)) for i in range(n)]
    assert found.tolist() == expected


@pytest.mark.parametrize("weighted", [False, True])
def test_chamfer_without_each_text(rng, set_block_rows, weighted):
    sizes = np.array([1, 2, 3, 3, 9, 40])
    vectors = rng.standard_normal((sizes.sum(), 4))
    vectors[8:11] = vectors[8]  # nearest neighbours that are tied
    factors = rng.random(sizes.sum()) if weighted else None
    expected = plain_without(
        sizes, lambda rest: reference.chamfer(vectors[rest], None if factors is None else factors[rest]), least=2
    )
    for block_rows in (10, 2048):
        set_block_rows(block_rows)
        found = core_leave_one_out.nearest_without(vectors, sizes, factors)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_chamfer_of_a_large_set_in_blocks(rng, monkeypatch, set_block_rows):
    vectors = rng.standard_normal((60, 5))
    whole = core_leave_one_out.nearest_without(vectors, np.array([60]))
    monkeypatch.setattr(core_leave_one_out, "_ENTRIES", 420)
    set_block_rows(30)
    blocks = core_leave_one_out.nearest_without(vectors, np.array([60]))
    np.testing.assert_allclose(blocks, whole, rtol=1e-12)


def test_memory_of_chamfer_does_not_grow_with_the_square(rng):
    for find in (
        core_leave_one_out.nearest_without,
        core_leave_one_out.nearest_neighbours,
        lambda vectors, sizes: core_leave_one_out.expected_nearest(vectors, sizes, 3),
    ):
        largest = []
        for size in (3000, 6000):
            vectors, sizes = rng.standard_normal((size, 4)), np.array([size])
            with LargestTensor() as made:
                find(vectors, sizes)
            largest.append(made.entries)
        assert max(largest) <= core_leave_one_out._ENTRIES


def gaussian(x):
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))


VECTORS = np.random.default_rng(3).standard_normal((sum(map(len, SETS)), 5))
LABELS = [[text[-2] for text in members] for members in SETS]
QUALITY = [[(7 * i + 3 * j) % 10 / 10 for j in range(len(members))] for i, members in enumerate(SETS)]
WEIGHTS = [(np.arange(1, len(members) + 1) / np.arange(1, len(members) + 1).sum()).tolist() for members in SETS]

PER_TEXT = ("embeddings", "quality", "weights", "classes")


def without(settings, i, j):
    """Take text j out of what a caller gives for set i alone."""
    own = dict(settings)
    for name in PER_TEXT:
        if name in settings:
            values = settings[name]
            if name == "embeddings":
                start = sum(map(len, SETS[:i]))
                values = [values[start : start + len(SETS[i])]]
                own[name] = np.delete(values[0], j, axis=0)
                continue
            rest = [value for place, value in enumerate(values[i]) if place != j]
            own[name] = [[value / sum(rest) for value in rest]] if name == "weights" else [rest]
    return own


def plain_contributions(metric, settings, scores, key="scores"):
    """Score each set anew without each of its texts."""
    found = []
    for i, members in enumerate(SETS):
        found.append([])
        for j in range(len(members)):
            rest = members[:j] + members[j + 1 :]
            if not rest or (metric.name == "chamfer_diversity" and len(rest) < 2):
                found[-1].append(None)
                continue
            (score,) = metric.compute(predictions=[rest], **without(settings, i, j))[key]
            found[-1].append(scores[i] - score)
    return found


def assert_close(found, expected):
    assert [[value is None for value in row] for row in found] == [[value is None for value in row] for row in expected]
    flat, wanted = ([value for row in rows for value in row if value is not None] for rows in (found, expected))
    assert flat == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vendi_embed", {}),
        ("vendi_embed", {"q": [0.5, 2]}),
        ("vendi_embed", {"embeddings": VECTORS, "q": 0}),
        ("vendi_embed", {"embeddings": VECTORS, "weights": WEIGHTS}),
        ("vendi_embed", {"embeddings": VECTORS, "quality": QUALITY}),
        ("vendi_embed", {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.4, "weights": WEIGHTS}),
        ("vendi_embed", {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.85}),
        ("vendi_embed", {"embeddings": VECTORS, "kernel": gaussian}),
        ("vendi_embed", {"kernel": "ngram", "weights": WEIGHTS, "quality": QUALITY}),
        ("vendi_embed", {"kernel": "ngram", "quality": QUALITY, "min_quality": 0.4}),
        ("vendi_embed", {"kernel": "classes", "classes": LABELS, "weights": WEIGHTS}),
        ("vendi_embed", {"kernel": "classes", "same": 0.3, "embeddings": VECTORS, "q": 0}),
        ("vendi_embed", {"kernel": "classes", "same": first_letter, "quality": QUALITY, "min_quality": 0.4}),
        ("vendi_embed", {"kernel": "classes", "same": first_letter, "quality": QUALITY, "grouping": "greedy"}),
        ("chamfer_diversity", {}),
        ("chamfer_diversity", {"embeddings": VECTORS, "quality": QUALITY}),
        ("chamfer_diversity", {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.4}),
        ("chamfer_diversity", {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.85}),
    ],
)
def test_contributions_equal_the_plain_loop(load, tmp_path, name, settings):
    metric = load(name)
    if not {"embeddings", "kernel"} & settings.keys():
        # So that an embedding is the same to the last digit in all calls.
        settings = {**settings, "cache_dir": tmp_path}
    result = metric.compute(predictions=SETS, contributions=True, **settings)
    plain = metric.compute(predictions=SETS, **settings)
    assert {key: value for key, value in result.items() if not key.endswith("contributions")} == plain
    assert_close(result["contributions"], plain_contributions(metric, settings, plain["scores"]))
    if "quality" in settings:
        expected = plain_contributions(metric, settings, plain["quality_scores"], "quality_scores")
        assert_close(result["quality_contributions"], expected)


def test_a_text_alone_adds_nothing_known(load):
    result = load("vendi_embed").compute(predictions=[["x"], ["x", "y"]], kernel="ngram", contributions=True)
    assert result["contributions"] == [[None], pytest.approx([result["scores"][1] - 1.0] * 2)]
    result = load("vendi_embed").compute(predictions=["x", "y"], kernel="ngram", weights=[1.0, 0.0], contributions=True)
    assert result["contributions"] == [[None, 0.0]]
    result = load("chamfer_diversity").compute(predictions=[["x"], ["x", "y"]], singletons="skip", contributions=True)
    assert result["contributions"] == [[None], [None, None]]


def test_a_contribution_may_be_negative(load):
    # A third text between two that are opposed brings both nearer to a neighbour.
    vectors = [[1, 0], [-1, 0], [0, 1]]
    result = load("chamfer_diversity").compute(predictions=list("xyz"), embeddings=vectors, contributions=True)
    assert result["contributions"][0][2] == pytest.approx(1 - 2)
    assert not any(math.isnan(value) for value in result["contributions"][0])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"kernel": "classes", "same": 0.83}])
def test_many_sets_take_bounded_memory(load, rng, settings):
    import tracemalloc

    metric = load("vendi_embed")
    vectors = rng.standard_normal((80_000, 32)).astype(np.float32)
    texts = [f"text {i}" for i in range(80_000)]
    tracemalloc.start()
    metric.compute(predictions=texts, set_size=4, embeddings=vectors, contributions=True, **settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
