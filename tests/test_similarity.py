"""similarity=: given matrices in vendi_embed and chamfer_diversity, against embeddings and plain loops."""

import re

import numpy as np
import pytest

from tests.conftest import approx
from tests.references import diversity as reference

SIZES = [4, 2, 5, 3, 4]
METRICS = ("vendi_embed", "chamfer_diversity")


@pytest.fixture
def sets():
    return [[f"set {i}, text {j}" for j in range(size)] for i, size in enumerate(SIZES)]


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
    flat, nested = ["x"] * 12, [["x"] * 4] * 3
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
