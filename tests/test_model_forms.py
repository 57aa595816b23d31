"""A model by name, by path and as an object, in everything that calls `compute`."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from transformers import EvalPrediction

import text_metrics
from tests.conftest import encode as embed
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core.core_models import DEFAULT_NAMES

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
@pytest.mark.parametrize(
    ("metric", "argument"),
    [("vendi_embed", "embeddings"), ("vendi_embed", "similarity"), ("chamfer_diversity", "similarity")],
)
def test_questions_keep_the_tolerance_of_a_narrow_type(load, kind, metric, argument, nested):
    values = as_type(COPIES * SCALES if argument == "embeddings" else COPIES @ COPIES.T, kind)
    texts = [str(i) for i in range(18)]
    settings = {"q": 0} if argument == "embeddings" else {}
    given = {"predictions": [texts] if nested else texts, argument: [values] if nested else values, **settings}
    whole = load(metric).compute(**given)[metric]
    assert text_metrics.rarefied(metric, k=18, **given)[metric] == pytest.approx(whole, abs=1e-9)
    (contributions,) = text_metrics.contributions(metric, **given)
    rest = values[1:] if argument == "embeddings" else values[1:, 1:]
    without = load(metric).compute(predictions=texts[1:], **{argument: rest}, **settings)[metric]
    assert contributions[0] == pytest.approx(whole - without, abs=1e-9)
    if argument == "embeddings":
        assert (whole, contributions) == (pytest.approx(6), pytest.approx([0] * 18))
        groups = [0] * 9 + [1] * 9
        given |= {"groups": [groups] if nested else groups, "q": 1}
        pooled = text_metrics.between_groups(metric, permutations=2, **given)["pooled"]
        assert pooled == pytest.approx(load(metric).compute(predictions=texts, embeddings=values)[metric], abs=1e-6)
