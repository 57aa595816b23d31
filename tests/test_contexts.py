"""contexts= and context_embeddings=: what the texts of a set answer is projected out of their embeddings."""

import warnings

import numpy as np
import pytest
import torch

from tests.conftest import approx, encode
from text_metrics.metrics._core.core_encoder import project
from text_metrics.metrics._core.core_numbers import unit_vectors

EMBEDDED = ["vendi_embed", "chamfer_diversity"]
SIZES = [4, 2, 5, 3]
TEXTS = [[f"text {i} of {j}" for i in range(size)] for j, size in enumerate(SIZES)]
PROMPTS = ["Tell me about the sea.", None, "What do you eat in the morning?", ""]
ANSWERS = [
    ["The sea is deep.", "Ships sail on it.", "It is full of fish."],
    ["A dog.", "A cat barks."],
    ["I eat bread.", "Nothing at all.", "I drink coffee and read the paper."],
    ["Yes.", "No, never."],
]


def without(rows, context):
    """Remove the context from rows, text by text."""
    if context is None:
        return rows
    context = context / np.linalg.norm(context)
    result = []
    for row in rows:
        unit = row / np.linalg.norm(row)
        rest = unit - (unit @ context) * context
        result.append(rest / np.linalg.norm(rest))
    return np.array(result)


def without_at_once(rows, contexts, sizes, error):
    """Compute what `project` computes in blocks and in place, all rows at once."""
    units = unit_vectors(rows)
    directions = np.repeat(unit_vectors(contexts), sizes, axis=0)
    rest = units - (units * directions).sum(axis=1, keepdims=True) * directions
    lengths = np.linalg.norm(rest, axis=1, keepdims=True)
    return np.where(lengths > error, unit_vectors(rest), units).astype(rows.dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_blocks_of_projected_rows_are_equal_to_the_bit(rng, dtype):
    sizes = rng.integers(1, 9, 400)
    contexts = rng.standard_normal((len(sizes), 384))
    contexts[6::7] = 0
    rows = rng.standard_normal((sizes.sum(), 384)).astype(dtype)
    # Sets of nothing but their context.
    rows[: sizes[:3].sum()] = 5 * np.repeat(contexts[:3], sizes[:3], axis=0)
    before = rows.copy()
    result = project(rows, contexts, sizes, 1e-4)
    assert result.dtype == dtype
    assert np.array_equal(result, without_at_once(rows, contexts, sizes, 1e-4))
    assert np.array_equal(rows, before)


@pytest.fixture
def given(rng):
    """Embeddings of each set, near its context, and the contexts; one set has none."""
    contexts = [*rng.standard_normal((3, 6)), None]
    scales = rng.uniform(0.1, 10, (4, 5, 1))
    rows = [(rng.standard_normal((size, 6)) + 2 * (0 if c is None else c)) * s[:size]
            for size, c, s in zip(SIZES, contexts, scales, strict=True)]  # fmt: skip
    return rows, contexts


WEIGHTS = [[0.7, *[0.3 / (size - 1)] * (size - 1)] for size in SIZES]
QUALITY = [list(np.linspace(0.2, 1, size)) for size in SIZES]


@pytest.mark.parametrize("block_rows", [2, 2048])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vendi_embed", {"q": [0, 0.5, 1, "inf"], "details": True, "confidence": 0.9}),
        ("vendi_embed", {"weights": WEIGHTS, "quality": QUALITY}),
        ("vendi_embed", {"pairs": True}),
        ("chamfer_diversity", {"details": True, "quality": QUALITY}),
        ("semantic_entropy", {"details": True, "same": 0.3, "weights": WEIGHTS}),
    ],
)
def test_equals_the_plain_definition(load, set_block_rows, given, name, settings, block_rows):
    set_block_rows(block_rows)
    rows, contexts = given
    result = load(name).compute(predictions=TEXTS, embeddings=rows, context_embeddings=contexts, **settings)
    projected = [without(part, context) for part, context in zip(rows, contexts, strict=True)]
    expected = load(name).compute(predictions=TEXTS, embeddings=projected, **settings)
    assert result.pop("signature") == expected.pop("signature").replace(
        "|embeddings:given", "|embeddings:given|contexts:projected"
    )
    assert result == approx(expected, 1e-9)


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("long_texts", ["windows", "cut"])
def test_contexts_are_embedded_as_texts_are(load, tiny_model, name, long_texts):
    """One of them is longer than the model reads."""
    model = {"model": tiny_model, "long_texts": long_texts, "device": "cpu"}
    prompts = ["the dog sees the house . " * 40, *PROMPTS[1:]]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = load(name).compute(predictions=ANSWERS, contexts=prompts, **model)
    n_cut = sum("longer than the model reads" in str(warning.message) for warning in caught)
    assert n_cut == (long_texts == "cut")
    rows = [encode(members, **model) for members in ANSWERS]
    contexts = [encode([prompt], **model)[0] if prompt else None for prompt in prompts]
    expected = load(name).compute(predictions=ANSWERS, embeddings=rows, context_embeddings=contexts)
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    plain = load(name).compute(predictions=ANSWERS, **model)
    assert [a == pytest.approx(b, abs=1e-6) for a, b in zip(result["scores"], plain["scores"], strict=True)] == [
        False, True, False, True
    ]  # fmt: skip
    assert "|contexts:projected|" in result["signature"]
    assert "contexts" not in plain["signature"]


@pytest.mark.parametrize("name", EMBEDDED)
def test_forms_of_contexts(load, given, name):
    rows, contexts = given
    metric = load(name)
    first = {"predictions": TEXTS[0], "embeddings": rows[0]}
    expected = metric.compute(predictions=TEXTS[:1], embeddings=rows[:1], context_embeddings=contexts[:1])["scores"]
    for form in (contexts[0], [contexts[0]], contexts[0].tolist(), torch.tensor(contexts[0]), 7 * contexts[0]):
        assert metric.compute(**first, context_embeddings=form)["scores"] == pytest.approx(expected, abs=1e-12)
    answer = metric.compute(predictions=ANSWERS[0], contexts=PROMPTS[0])
    assert answer == metric.compute(predictions=ANSWERS[0], contexts=PROMPTS[:1])
    everything = metric.compute(predictions=ANSWERS, contexts=PROMPTS)
    assert everything["scores"][0] == pytest.approx(answer["scores"][0], abs=1e-6)
    blank = metric.compute(predictions=ANSWERS, contexts=["", None, " \n", None])
    assert blank["scores"] == pytest.approx(metric.compute(predictions=ANSWERS)["scores"], abs=1e-6)


@pytest.mark.discrete
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_text_equal_to_its_context_is_orthogonal_to_all_others(load, rng, kind):
    """It equals its copies, whatever the rounding, and nothing divides by zero."""
    for d in (3, 24, 384):
        context = rng.standard_normal((1, d))
        vectors = np.concatenate([context, rng.standard_normal((1, d)), 3 * context, [[1.0, *[0.0] * (d - 1)]]])
        texts = ["prompt", "one", "prompt again", "two"]
        given = {"embeddings": vectors.astype(kind), "context_embeddings": context.astype(kind)}
        result = load("chamfer_diversity").compute(predictions=texts, details=True, **given)["details"][0]
        assert [result["neighbours"][i] for i in (0, 2)] == [2, 0]
        assert [result["distances"][i] for i in (0, 2)] == pytest.approx([0, 0], abs=1e-6)
        two = {name: rows[:2] if name == "embeddings" else rows for name, rows in given.items()}
        assert load("vendi_embed").compute(predictions=texts[:2], **two)["vendi_embed"] == pytest.approx(2, abs=1e-3)
        same = {**given, "embeddings": given["embeddings"][[0, 2]]}
        assert load("vendi_embed").compute(predictions=texts[:2], q=0, **same)["vendi_embed"] == 1
    everything = load("vendi_embed").compute(predictions=["Say yes.", "Say yes.", "No."], contexts="Say yes.", q=0)
    assert everything["vendi_embed"] == 2


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"contexts": ["a"]}, "contexts .* 4 sets"),
        ({"contexts": "a"}, "contexts"),
        ({"contexts": ["a", "b", 3, None]}, r"contexts\[2\]"),
        ({"contexts": ["a", "b", "\ud800", None]}, r"contexts\[2\]"),
        ({"contexts": 4}, "contexts"),
        ({"contexts": PROMPTS, "embeddings": np.ones((14, 3))}, "contexts and embeddings"),
        ({"contexts": PROMPTS, "context_embeddings": np.ones((4, 3))}, "contexts and context_embeddings"),
        ({"context_embeddings": np.ones((4, 3))}, "context_embeddings needs embeddings"),
        ({"contexts": PROMPTS, "similarity": [np.eye(size) for size in SIZES]}, "contexts and similarity"),
        ({"contexts": PROMPTS, "kernel": "ngram"}, "contexts and kernel"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": np.ones((3, 3))}, "context_embeddings .*4"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": np.ones((4, 2))}, "context_embeddings .*3"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": np.eye(4)[:, :3]}, "context_embeddings .*set 3"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": np.full((4, 3), np.nan)}, "context_embeddings .*set 0"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": "abcd"}, "context_embeddings"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": 3}, "context_embeddings"),
        ({"embeddings": np.ones((14, 3)), "context_embeddings": [None, "a", None, None]}, "context_embeddings"),
    ],
)
def test_errors_name_the_argument_and_the_set(load, name, settings, words):
    if "kernel" in settings and name != "vendi_embed":
        return
    with pytest.raises((TypeError, ValueError), match=words):
        load(name).compute(predictions=TEXTS, **settings)
