"""What a signature says of what the caller gives: digests of embeddings and similarities, names of functions."""

import json
import re
import time

import numpy as np
import pytest
import torch

from tests.test_encoder import Counting
from text_metrics.commands.score import main as score
from text_metrics.metrics._core import core_results
from text_metrics.metrics._core.core_results import MergedResult, format_callable, merge_signatures

SIZES = [3, 2, 4, 3]
TEXTS = [[f"set {i}, text {j}" for j in range(size)] for i, size in enumerate(SIZES)]


@pytest.fixture
def rows(rng):
    return np.split(rng.standard_normal((sum(SIZES), 8)).astype(np.float32), np.cumsum(SIZES)[:-1])


def given(kind, rows):
    """Give the rows of some sets as embeddings, or as similarities."""
    if kind == "embeddings":
        return {kind: np.concatenate(rows)}
    unit = [own / np.linalg.norm(own.astype(np.float64), axis=1, keepdims=True) for own in rows]
    return {kind: [own @ own.T for own in unit]}


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
@pytest.mark.parametrize("kind", ["embeddings", "similarity"])
def test_what_is_given_has_a_digest(load, rows, name, kind):
    metric = load(name)

    def sign(texts, rows):
        return metric.compute(predictions=texts, **given(kind, rows))["signature"]

    whole = sign(TEXTS, rows)
    assert re.search(rf"\b{kind}:given\([0-9a-f]{{12}}\)\|", whole)
    assert sign(TEXTS[::-1], rows[::-1]) == whole
    other = [own.copy() for own in rows]
    other[2][1, 3] += 1e-3
    assert sign(TEXTS, other) != whole
    assert sign(TEXTS, [rows[0][::-1], *rows[1:]]) != whole
    for cut in (1, 2, 3):
        parts = [sign(TEXTS[:cut], rows[:cut]), sign(TEXTS[cut:], rows[cut:])]
        assert merge_signatures(*parts) == merge_signatures(*parts[::-1]) == whole
    # Equal parts are two parts, not one.
    assert merge_signatures(whole, whole) == sign(TEXTS * 2, rows * 2) != whole


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_equal_numbers_have_one_digest(load, rows, name):
    vectors = np.concatenate(rows)
    forms = [
        vectors,
        vectors.astype(np.float64),
        vectors.tolist(),
        torch.from_numpy(vectors),
        np.asfortranarray(vectors),
    ]
    found = {load(name).compute(predictions=TEXTS, embeddings=form)["signature"] for form in forms}
    assert len(found) == 1
    kernels = given("similarity", rows)["similarity"]
    forms = [kernels, [own.tolist() for own in kernels], [torch.from_numpy(own) for own in kernels]]
    found = {load(name).compute(predictions=TEXTS, similarity=form)["signature"] for form in forms}
    assert len(found) == 1
    # What counts as noise depends on the type.
    single = load(name).compute(predictions=TEXTS, similarity=[own.astype(np.float32) for own in kernels])["signature"]
    assert single not in found


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_file_has_the_signature_of_one_call(load, rows, tmp_path, size):
    kernels = given("similarity", rows)["similarity"]
    path, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    with path.open("w") as file:
        for own, kernel in zip(TEXTS, kernels, strict=True):
            file.write(json.dumps({"texts": own, "near": kernel.tolist()}) + "\n")
    words = [
        path,
        "--metric",
        "vendi_embed",
        "--text-key",
        "texts",
        "--column",
        "similarity=near",
        "--out",
        out,
        "--quiet",
    ]
    assert score.main([*map(str, words), "--batch-size", str(size)]) == 0
    summary = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert summary["signature"] == load("vendi_embed").compute(predictions=TEXTS, similarity=kernels)["signature"]


def test_merging_keeps_its_digest_in_its_state():
    signatures = [f"m|embeddings:given({digit * 12})|model:given(abcabcabcabc)|set_size:2" for digit in "7ff"]
    merged = MergedResult()
    for signature in signatures:
        merged = MergedResult(json.loads(json.dumps(merged.state)))
        merged.add({"m": 1.0, "signature": signature}, lambda *_: 1)
    total = (int("7" * 12, 16) + 2 * int("f" * 12, 16)) % 16**12
    # The name of an encoder is no digest.
    assert merged.result()["signature"] == f"m|embeddings:given({total:012x})|model:given(abcabcabcabc)|set_size:2"
    with pytest.raises(ValueError, match="scored under different settings"):
        merge_signatures("m|embeddings:given(aaaaaaaaaaaa)", "m|similarity:given(aaaaaaaaaaaa)")


def test_a_digest_costs_little(rng):
    vectors = rng.standard_normal((200_000, 96)).astype(np.float32)
    parts = np.split(vectors, 50_000)
    start = time.process_time()
    core_results.given_digest(parts)
    assert time.process_time() - start < 1.0


class Named(Counting):
    """An encoder with a name."""

    signature_name = "vowels, int8"


def test_an_encoder_says_its_name(load):
    texts = ["a dog", "the house", "a bird"]
    calls = {
        "vendi_embed": {"predictions": texts},
        "chamfer_diversity": {"predictions": texts},
        "probeval": {"predictions": [["pot", "a kettle"]], "references": [["a pot", "kettle", "spoon"]]},
        "gruen": {"predictions": ["A dog barks. The house is old."], "components": ["focus"]},
    }
    for name, call in calls.items():
        assert "|model:given(vowels, int8)|" in load(name).compute(**call, model=Named())["signature"]
        assert "|model:given(Counting)|" in load(name).compute(**call, model=Counting())["signature"]
    encoder = Counting()
    encoder.signature_name = "vowels"
    assert "|model:given(vowels)|" in load("vendi_embed").compute(predictions=texts, model=encoder)["signature"]


def test_functions_say_their_names(load):
    def kernel(x):
        return np.eye(len(x))

    def same(left, right):
        return [False] * len(left)

    def tokenizer(text):
        return text.split()

    for function, name in ((kernel, "rbf 0.5"), (same, "judge v2"), (tokenizer, "blanks")):
        assert format_callable(function).endswith(f"<locals>.{function.__name__})")
        function.signature_name = name
    texts = ["a b", "c d e"]
    metric = load("vendi_embed")
    rows = np.eye(2)
    assert "|kernel:custom(rbf 0.5)|" in metric.compute(predictions=texts, embeddings=rows, kernel=kernel)["signature"]
    assert "|same:custom(judge v2)|" in metric.compute(predictions=texts, kernel="classes", same=same)["signature"]
    result = load("self_bleu").compute(predictions=texts, max_order=1, tokenizer=tokenizer)
    assert "|tokenizer:custom(blanks)|" in result["signature"]


@pytest.mark.parametrize("name", ["", "a|b", "a(b", "a)", "a\nb", 3])
def test_a_name_that_would_break_a_signature(load, name):
    encoder = Counting()
    encoder.signature_name = name
    with pytest.raises(ValueError, match="signature_name must be a string"):
        load("vendi_embed").compute(predictions=["a", "b"], model=encoder)
