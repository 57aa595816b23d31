"""What counts as equal in a Vendi score, at every order; and kernels that are not quite positive semi-definite."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from text_metrics.metrics._core import core_spectra
from text_metrics.metrics._core.core_inputs import parse_sets
from text_metrics.metrics._core.core_similarity import parse_similarity
from text_metrics.metrics.vendi_embed.vendi_embed_definite import definite_similarities
from text_metrics.metrics.vendi_embed.vendi_embed_settings import VendiSettings

# From 0 to infinity, close together where formulas meet.
ORDERS = [0, 1e-9, 1e-3, 0.01, 0.5, 0.98999, 0.99001, 1 - 1e-9, 1, 1 + 1e-9, 1.00999, 1.01001, 1.999, 2, 2.001, 9, 1e4]
ORDERS += [1e300, 1.7e308, math.inf]


def compute(load, vectors, **settings):
    texts = [f"text {i}" for i in range(len(vectors))]
    return load("vendi_embed").compute(predictions=texts, embeddings=vectors, **settings)


def near_duplicates(rng, counts, d, error, in_one_direction=False):
    """Make different unit rows, each `counts[i]` times, with errors of a length."""
    rows = np.repeat(rng.standard_normal((len(counts), d)), counts, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    errors = rng.standard_normal((1 if in_one_direction else len(rows), d))
    errors = errors / np.linalg.norm(errors, axis=1, keepdims=True) * error
    return rows + errors * (np.arange(len(rows)) % 2)[:, None]


# Errors of a row in float32 that the default model was seen to make: 1e-6. Those of larger models are a few times that.


@pytest.mark.parametrize("counts", [[2, 1], [3, 2, 1, 1], [100, 1], [40] * 8])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("in_one_direction", [False, True])
@pytest.mark.parametrize("d", [16, 384, 1024])
def test_near_duplicates_in_float32_are_equal(load, rng, counts, kind, in_one_direction, d):
    vectors = near_duplicates(rng, counts, d, 4e-6, in_one_direction).astype(kind)
    assert compute(load, vectors, q=0)["vendi_embed"] == len(counts)
    exact = np.repeat(vectors[np.cumsum(counts) - 1], counts, axis=0)
    expected = compute(load, exact, q=[0.001, 0.01, 0.1, 1])["by_order"]
    assert compute(load, vectors, q=[0.001, 0.01, 0.1, 1])["by_order"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("d", [3, 24, 384])
def test_norms_do_not_matter(load, rng, size, d):
    """Rows of one direction, in float32, in float64, and rounded to six digits, as in a file."""
    vectors = (rng.standard_normal((300, 1, d)) * rng.uniform(0.01, 100, (300, size, 1))).reshape(-1, d)
    for rows in (vectors, vectors.astype(np.float32), vectors.astype(np.float32).astype(np.float64)):
        assert compute(load, rows, set_size=size, q=0)["scores"] == [1.0] * 300
    long = np.round(100 * vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 6)
    assert compute(load, long, set_size=size, q=0)["scores"] == [1.0] * 300


@pytest.mark.parametrize(
    ("kind", "error"), [(torch.float16, 1e-3), (torch.bfloat16, 8e-3), (torch.float32, 1e-6), (torch.float64, 1e-6)]
)
def test_the_precision_of_given_rows_decides_what_is_equal(load, rng, kind, error):
    vectors = torch.from_numpy(near_duplicates(rng, [2, 3, 1], 384, error)).to(kind)
    result = compute(load, vectors, q=[0, 2], details=True)
    assert result["vendi_embed"] == 3.0
    assert [value > 0 for value in result["details"][0]["eigenvalues"]] == [True] * 3 + [False] * 3
    assert sum(result["details"][0]["eigenvalues"]) == pytest.approx(1, abs=1e-12)
    assert result["by_order"]["2"] == compute(load, vectors, q=2)["vendi_embed"]

    class Encoder:
        def encode(self, texts):
            return vectors

    texts = [f"text {i}" for i in range(6)]
    for encode in (Encoder.encode, lambda self, texts: list(vectors)):
        Encoder.encode = encode
        encoded = load("vendi_embed").compute(predictions=texts, model=Encoder(), q=[0, 2])
        assert encoded["by_order"] == result["by_order"]
    narrow = str(kind).removeprefix("torch.")
    if narrow != "bfloat16":
        as_list = compute(load, [row.numpy() for row in vectors], q=[0, 2])
        assert as_list["signature"] == result["signature"]
    if narrow in ("float16", "bfloat16"):
        assert compute(load, vectors.double(), q=0)["vendi_embed"] > 3


def test_different_texts_are_not_equal(load, rng):
    """As many texts as dimensions, or more, whose kernels have small eigenvalues."""
    for n, kind in itertools.product((50, 300), (torch.float32, torch.float16, torch.bfloat16)):
        vectors = torch.from_numpy(rng.standard_normal((n, 256))).to(kind)
        assert compute(load, vectors, q=0)["vendi_embed"] == min(n, 256)


# Kernels.


def read(kernel):
    return definite_similarities(parse_sets(["x"] * len(kernel)), VendiSettings(similarity=kernel))[0][0]


def indefinite(seed, n, mean, spread, digits):
    """Make a kernel of similarities around a mean, rounded; it may be slightly indefinite."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, max(2, n // 3))) * spread + math.sqrt(mean)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    kernel = np.round(vectors @ vectors.T, digits)
    np.fill_diagonal(kernel, 1.0)
    return kernel


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 60),
    st.floats(0, 1),
    st.floats(1e-4, 1),
    st.integers(3, 6),
    st.lists(st.floats(0, 50), min_size=2, max_size=2),
)
@settings(max_examples=150)
def test_a_score_never_rises_with_the_order_and_has_no_jump(seed, n, mean, spread, digits, orders):
    kernel = indefinite(seed, n, mean, spread, digits)
    eigenvalues = np.linalg.eigvalsh(kernel)
    assume(eigenvalues[0] > -0.9e-4 * eigenvalues[-1])
    (even,) = parse_similarity(kernel, parse_sets(["x"] * len(kernel)))
    definite = read(kernel)
    assert np.linalg.eigvalsh(definite)[0] > -1e-8
    assert np.abs(np.diag(definite) - 1).max() < 1e-9
    # The noise that is taken away is no larger than the eigenvalue that shows it.
    shown = max(-np.linalg.eigvalsh(even)[0], 0.0)
    assert np.abs(np.linalg.eigvalsh(definite - even)).max() < 5 * n * shown + 1e-8
    tried = sorted({*ORDERS, *orders})
    for matrix in (even, definite):
        batches = core_spectra.kernel_spectra([(np.arange(1), matrix[None])], np.array([n]))
        scores = core_spectra.vendi_scores(list(batches), 1, tried)[0]
        assert (np.diff(scores) <= 1e-9 * n).all()
        assert (scores >= 1).all()
        by_order = dict(zip(tried, scores, strict=True))
        for below, above in [(0.98999, 0.99001), (1 - 1e-9, 1), (1, 1 + 1e-9), (1.00999, 1.01001)]:
            assert by_order[below] == pytest.approx(by_order[above], rel=1e-3)


def test_the_noise_of_rounding_is_no_text(load, rng):
    """30 texts, ten different ones, their cosines rounded to three digits or computed in a narrower type."""
    unit = near_duplicates(rng, [3] * 10, 16, 0)
    kernel = unit @ unit.T
    for rounded in (
        np.round(kernel, 3),
        kernel.astype(np.float32),
        kernel.astype(np.float16),
        torch.tensor(kernel).bfloat16(),
    ):
        result = load("vendi_embed").compute(predictions=["x"] * 30, similarity=rounded, q=[0, 0.01, 1])
        assert result["vendi_embed"] == 10
        expected = load("vendi_embed").compute(predictions=["x"] * 30, similarity=kernel, q=[0, 0.01, 1])
        assert result["by_order"] == pytest.approx(expected["by_order"], rel=2e-2)


def test_a_kernel_is_repaired_alike_in_any_company(load, rng):
    kernels = [indefinite(seed, 6, 0.9, 0.05, 4) for seed in range(40)]
    texts = [["x"] * 6] * 40
    together = load("vendi_embed").compute(predictions=texts, similarity=kernels, q=[0, 1])
    alone = [load("vendi_embed").compute(predictions=["x"] * 6, similarity=kernel, q=[0, 1]) for kernel in kernels]
    assert [result["vendi_embed"] for result in alone] == pytest.approx(together["scores"], abs=1e-9)
    assert min(np.linalg.eigvalsh(kernel)[0] for kernel in kernels) < -2e-5


def test_a_text_apart_does_not_vanish_in_noise():
    """Of 400 texts that are nearly alike, one is different: an eigenvalue of 1 where the noise reaches 0.01."""
    rng = np.random.default_rng(0)
    n = 400
    noise = np.tril(rng.uniform(-1, 1, (n, n)), -1)
    kernel = 0.999 + 5e-4 * (noise + noise.T)
    kernel[-1] = kernel[:, -1] = 0.0
    np.fill_diagonal(kernel, 1.0)
    assert np.linalg.eigvalsh(read(kernel))[-2] == pytest.approx(1, abs=1e-6)


def test_a_set_is_scored_from_the_sums_of_its_parts(rng):
    """As for a file that does not fit into memory."""
    vectors = rng.standard_normal((300, 16))
    orders = [0.5, 1, 2, math.inf]
    sums = sum(core_spectra.gram_sums(part) for part in np.split(vectors, [7, 120]))
    (expected,) = core_spectra.vendi_scores(core_spectra.embedding_spectra(vectors, np.array([300])), 1, orders)
    (actual,) = core_spectra.vendi_scores(core_spectra.spectra_from_sums(sums, 300), 1, orders)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
