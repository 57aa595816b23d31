"""A model by name, by path and as an object, in everything that calls `compute`."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from transformers import EvalPrediction

import text_metrics
from tests.commands import run_command
from tests.conftest import SETS
from tests.conftest import encode as embed
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, DEFAULT_NAMES

TEXTS = ["the cat sleeps on the red house .", "a dog runs by the sea .", "it rains", "a man takes the tea ."]
GROUPS = [0, 0, 1, 1]
FORMS = [*DEFAULT_NAMES, "path as a string", "path", "object"]


def ask_trainer(**given):
    tokenizer = build_tokenizer()
    ids = tokenizer(TEXTS, padding=True, return_tensors="np")["input_ids"]
    scores = text_metrics.for_trainer("vendi_embed", tokenizer, **given)(EvalPrediction(ids, ids))
    return [scores["vendi_embed"]]


def compute(**given):
    return text_metrics.load("vendi_embed").compute(predictions=TEXTS, **given)["scores"]


def score_batch(**given):
    return text_metrics.Scorer("vendi_embed", "texts", **given)({"texts": [TEXTS]})["vendi_embed"]


def contributions(name="vendi_embed", **given):
    return text_metrics.contributions(name, TEXTS, **given)[0]


def parts(**given):
    return text_metrics.between_groups("vendi_embed", TEXTS, GROUPS, **given)["within_scores"]


def rarefied(**given):
    return text_metrics.rarefied("semantic_entropy", TEXTS, 3, same=0.6, **given)["scores"]


# What takes a model, and what gives the same from embeddings.
QUESTIONS = {
    "contributions": (contributions, contributions),
    "chamfer": (partial(contributions, "chamfer_diversity"),) * 2,
    "rarefied": (rarefied, rarefied),
    "between_groups": (parts, parts),
    "rewards": (lambda **given: text_metrics.for_rewards("vendi_embed", 4, **given)(completions=TEXTS), contributions),
    "trainer": (ask_trainer, compute),
    "Scorer": (score_batch, compute),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_model_by_name_path_and_as_an_object(question, form, tiny_model):
    from sentence_transformers import SentenceTransformer

    forms = {"path as a string": str, "path": Path, "object": lambda path: SentenceTransformer(str(path), device="cpu")}
    model = forms[form](tiny_model) if form in forms else form
    ask, expected = QUESTIONS[question]
    vectors = embed(TEXTS, str(tiny_model) if form in forms else form)
    assert list(ask(model=model)) == pytest.approx(expected(embeddings=vectors), abs=1e-5)


COMMANDS = {
    "score": "{a} --metric vendi_embed --text-key texts --setting model={model} --out {out}.jsonl --quiet",
    "compare": "{a} {b} --metric vendi_embed --text-key texts --by-line --setting model={model}",
    "report": "{a} {b} --text-key texts --by-line --quality none --setting model={model} --set same=0.6 --out {out}",
    "choose": "{a} --text-key texts --keep 2 --setting model={model} --out {out}.jsonl --quiet",
    "meta-eval": "{pairs} --no-gruen --model {model}",
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name, form, tiny_model, tmp_path, monkeypatch, capsys):
    model = form if form in DEFAULT_NAMES else str(tiny_model)
    others = [[f"{text} Or not." for text in members] for members in SETS]
    pairs = [{"set1": a, "set2": b, "llm_diversity": i % 2} for i, (a, b) in enumerate(zip(SETS, others, strict=True))]
    files = {"a": [{"texts": row} for row in SETS], "b": [{"texts": row} for row in others], "pairs": pairs}
    paths = {key: tmp_path / f"{key}.jsonl" for key in files}
    for key, rows in files.items():
        paths[key].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = COMMANDS[name].format(**paths, out=tmp_path / "out", model=model).split()
    assert run_command(monkeypatch, name, *words) == 0
    printed = capsys.readouterr().out
    written = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json*") if path not in paths.values()]
    identity = f"{DEFAULT_MODEL}@" if form in DEFAULT_NAMES else "local@"
    # meta-eval prints no signature.
    assert name == "meta-eval" or any(identity in text for text in [printed, *written])


# Embeddings of 16 bits.

DIRECTIONS = np.random.default_rng(2).standard_normal((6, 48))
COPIES = np.tile(DIRECTIONS / np.linalg.norm(DIRECTIONS, axis=1, keepdims=True), (3, 1))
SCALES = np.random.default_rng(3).uniform(0.5, 2, (18, 1))


def as_type(values, kind):
    if kind == "float16":
        return values.astype(np.float16)
    import torch

    return torch.from_numpy(values).bfloat16()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("nested", [False, True])
def test_embeddings_keep_the_tolerance_of_their_type(load, kind, nested):
    vectors = as_type(COPIES * SCALES, kind)
    texts = [str(i) for i in range(18)]
    given = {"predictions": [texts] if nested else texts, "q": 0, "embeddings": [vectors] if nested else vectors}
    assert load("vendi_embed").compute(**given)["vendi_embed"] == pytest.approx(6)
    assert text_metrics.rarefied("vendi_embed", k=18, **given)["vendi_embed"] == pytest.approx(6)
    assert text_metrics.contributions("vendi_embed", **given) == [pytest.approx([0] * 18)]
    groups = [[0] * 9 + [1] * 9] if nested else [0] * 9 + [1] * 9
    whole = load("vendi_embed").compute(**(given | {"q": 1}))["vendi_embed"]
    found = text_metrics.between_groups("vendi_embed", groups=groups, permutations=2, **(given | {"q": 1}))
    assert found["pooled"] == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("metric", ["vendi_embed", "chamfer_diversity"])
@pytest.mark.parametrize("nested", [False, True])
def test_similarities_keep_the_tolerance_of_their_type(load, kind, metric, nested):
    matrix = as_type(COPIES @ COPIES.T, kind)
    texts = [str(i) for i in range(18)]
    given = {"predictions": [texts] if nested else texts, "similarity": [matrix] if nested else matrix}
    whole = load(metric).compute(**given)[metric]
    assert text_metrics.rarefied(metric, k=18, **given)[metric] == pytest.approx(whole, abs=1e-9)
    (values,) = text_metrics.contributions(metric, **given)
    rest = matrix[1:, 1:]
    without = load(metric).compute(predictions=texts[1:], similarity=rest)[metric]
    assert values[0] == pytest.approx(whole - without, abs=1e-9)
