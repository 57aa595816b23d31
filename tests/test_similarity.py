"""similarity=: given matrices in vendi_embed and chamfer_diversity, against embeddings and plain loops."""

import re

import numpy as np
import pytest
import torch

from tests.conftest import approx
from tests.references import diversity as reference

SIZES = [4, 2, 5, 3, 4]
METRICS = ("vendi_embed", "chamfer_diversity")


@pytest.fixture
def sets():
    sets = []
    for i, size in enumerate(SIZES):
        sets.append([f"set {i}, text {j}" for j in range(size)])
    return sets


@pytest.fixture
def vectors(rng):
    rows = rng.standard_normal((sum(SIZES), 6))
    rows[5] = 2 * rows[4]
    return rows


def matrices(vectors):
    return [reference.cosines(part) for part in np.split(vectors, np.cumsum(SIZES)[:-1])]


def shaped(values):
    return [part.tolist() for part in np.split(np.asarray(values), np.cumsum(SIZES)[:-1])]


# The kernel matrix decides all.


QUALITY = shaped(np.linspace(0.1, 1, sum(SIZES)))
WEIGHTS = [[1 / 2, *[1 / 2 / (size - 1)] * (size - 1)] for size in SIZES]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vendi_embed", {"q": [0.5, 1, 2, "inf"], "details": True, "confidence": 0.9}),
        ("vendi_embed", {"q": [0.5, 1, 2, "inf"], "quality": QUALITY, "weights": WEIGHTS}),
        ("chamfer_diversity", {"quality": QUALITY, "details": True, "confidence": 0.9}),
    ],
)
def test_cosines_score_as_their_embeddings(load, sets, vectors, name, settings):
    """Whatever `embeddings=` can be combined with."""
    result = load(name).compute(predictions=sets, similarity=matrices(vectors), **settings)
    expected = load(name).compute(predictions=sets, embeddings=vectors, **settings)
    assert result.keys() == expected.keys()
    for key in result.keys() - {"signature"}:
        assert result[key] == approx(expected[key], 1e-7), key
    entry = "kernel:embedding|embeddings:given" if name == "vendi_embed" else "embeddings:given"
    assert result["signature"] == expected["signature"].replace(entry, "similarity:given")
    assert "|model:" not in result["signature"]


# Forms.


@pytest.mark.parametrize("name", METRICS)
def test_forms_of_matrices(load, rng, name):
    stack = np.stack([reference.cosines(part) for part in rng.standard_normal((3, 4, 6))])
    flat = ["x"] * 12
    nested = [["x"] * 4] * 3
    metric = load(name)
    expected = metric.compute(predictions=nested, similarity=list(stack))
    assert metric.compute(predictions=flat, set_size=4, similarity=stack) == expected
    assert metric.compute(predictions=nested, similarity=stack.tolist()) == expected
    # One flat set has one matrix.
    alone = metric.compute(predictions=flat[:4], similarity=stack[0])
    assert alone["scores"] == pytest.approx(expected["scores"][:1], abs=1e-12)
    before = stack.copy()
    metric.add_batch(predictions=nested[:2])
    metric.add_batch(predictions=nested[2:])
    assert metric.compute(similarity=stack) == expected
    np.testing.assert_array_equal(stack, before)


def test_singletons_have_matrices_too(load):
    two = [[1.0, 0.25], [0.25, 1.0]]
    result = load("chamfer_diversity").compute(
        predictions=[["x"], ["x", "y"]], similarity=[[[1.0]], two], singletons="skip"
    )
    assert result["scores"] == [None, 0.75]
    result = load("chamfer_diversity").compute(predictions=[["x"]], similarity=[[[1.0]]], singletons="skip")
    assert result["scores"] == [None]
    assert load("vendi_embed").compute(predictions=["x"], similarity=[[1.0]])["vendi_embed"] == 1.0


# What is refused.

GOOD = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]


def changed(*places, value):
    matrix = np.array(GOOD)
    for i, j in places:
        matrix[i, j] = value
    return matrix


@pytest.mark.parametrize("name", METRICS)
def test_a_matrix_that_is_no_similarity(load, name):
    bad = [
        (np.eye(2), ""),
        (np.ones((3, 4)), ""),
        (np.ones(3), ""),
        ([["a"] * 3] * 3, ""),
        (None, ""),
        (changed((2, 0), value=np.nan), "[2][0]"),
        (changed((1, 1), value=0.9), "[1][1]"),
        (changed((0, 2), (2, 0), value=1.2), "[0][2]"),
        (changed((1, 2), value=0.4), "[1][2]"),
    ]
    if name == "vendi_embed":  # Chamfer needs no kernel.
        bad.append((np.where(np.eye(3) > 0, 1.0, -0.9), ""))
    for matrix, entry in bad:
        with pytest.raises((TypeError, ValueError), match=re.escape(f"similarity[1]{entry} ")):
            load(name).compute(predictions=[["x"] * 3] * 2, similarity=[GOOD, matrix])
    for settings in ({"similarity": [GOOD]}, {"similarity": 3}, {"similarity": [GOOD] * 2, "embeddings": np.eye(6)}):
        with pytest.raises((TypeError, ValueError), match="similarity"):
            load(name).compute(predictions=[["x"] * 3] * 2, **settings)


@pytest.mark.parametrize("name", METRICS)
def test_the_tolerance(load, name):
    for off in (9e-5, 2e-4):
        near = [changed((0, 1), value=0.5 + off), np.array(GOOD) + np.diag([off, 0, 0])]
        # Of three texts at -1/2 from each other, one direction is lost; a little more is an eigenvalue below 0.
        near.append(np.where(np.eye(3) > 0, 1.0, -0.5 - off / 2))
        for matrix in near:
            if off < 1e-4 or (name == "chamfer_diversity" and matrix is near[-1]):
                assert load(name).compute(predictions=["x"] * 3, similarity=matrix)[name] > 0
            else:
                with pytest.raises(ValueError, match=r"^similarity"):
                    load(name).compute(predictions=["x"] * 3, similarity=matrix)


# Rounding.

# Texts by text, and their dimensions: kernels of full rank, of a lower one, and of texts that are nearly alike.
SHAPES = [(60, 20, 0.0), (150, 200, 0.0), (400, 60, 0.3), (100, 10, 3.0)]


def orders_of(load, kernel, orders=(0.5, 1, 2)):
    result = load("vendi_embed").compute(predictions=["x"] * len(kernel), similarity=kernel, q=list(orders))
    return np.array(list(result["by_order"].values()))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize(("n", "d", "mean"), SHAPES)
def test_the_type_of_a_matrix_makes_no_score_worse(load, rng, n, d, mean, kind):
    kernel = reference.cosines(rng.standard_normal((n, d)) + mean)
    declared = torch.from_numpy(kernel).to(getattr(torch, kind))
    expected = orders_of(load, kernel)
    actual = orders_of(load, declared)
    assert actual == pytest.approx(expected, rel=1e-2)
    cast = orders_of(load, declared.float())
    assert (abs(actual - expected) <= abs(cast - expected) + 1e-9).all()
    assert orders_of(load, declared, [0])[0] <= min(n, d)


@pytest.mark.parametrize("digits", [3, 4])
@pytest.mark.parametrize(("n", "d", "mean"), SHAPES)
def test_a_matrix_of_any_size_may_be_rounded(load, rng, n, d, mean, digits):
    kernel = reference.cosines(rng.standard_normal((n, d)) + mean)
    rounded = kernel.round(digits)
    expected = orders_of(load, kernel)
    for values in (rounded, rounded.astype(np.float32), rounded.astype(np.float16), rounded.tolist()):
        assert orders_of(load, values) == pytest.approx(expected, rel=1e-2)


def test_errors_that_rounding_cannot_cause_are_named(load, rng):
    kernel = reference.cosines(rng.standard_normal((60, 20)))
    noise = np.tril(rng.uniform(-5e-4, 5e-4, kernel.shape), -1)
    off = kernel + noise + noise.T
    assert orders_of(load, kernel.round(3))[0] > 1
    # The same errors, but of entries with more digits.
    with pytest.raises(ValueError, match=r"^similarity must be positive semi-definite"):
        orders_of(load, off)
    with pytest.raises(ValueError, match=r"^similarity must be positive semi-definite"):
        orders_of(load, np.clip(kernel + 40 * (noise + noise.T), -1, 1).round(3))
