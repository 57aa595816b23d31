"""Forked children score as their parent does, whatever threads and locks it has."""

import os
import threading

import numpy as np
import pytest
import torch
from transformers import EvalPrediction

import text_metrics
from tests import programs
from tests.conftest import approx, inputs_of, items_of, metrics_of
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core import core_models


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_child_scores_with_each_library_that_has_threads(load, two_threads, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    rng = np.random.default_rng(0)
    texts = [" ".join(words) for words in rng.choice(["a", "dog", "runs", "far"], (32, 6))]
    rows = rng.normal(size=(600, 256))
    tokenizer = build_tokenizer()
    ids = rng.integers(3, len(tokenizer), (32, 6))

    def load_encoder():
        with monkeypatch.context() as patch:
            patch.setattr(core_models.model_registry(), "models", {})
            return ways["encoder"]()

    def score_clusters():
        answers = {"predictions": [texts[:9]], "references": [texts[10:]]}
        return load("probeval").compute(clustering="xmeans", **answers)["scores"]

    def evaluate_in_training():
        compute_metrics = text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)
        return compute_metrics(EvalPrediction(ids, ids))

    ways = {
        "encoder": lambda: load("vendi_embed").compute(predictions=texts, set_size=4)["scores"],
        "encoder that is not loaded": load_encoder,
        "embeddings": lambda: load("chamfer_diversity").compute(predictions=["a"] * 600, embeddings=rows)["scores"],
        "clusters": score_clusters,
        "rewards": lambda: text_metrics.for_rewards(load("vendi_embed"), 4)(completions=texts),
        "trainer": evaluate_in_training,
    }
    expected = {name: compute() for name, compute in ways.items()}
    for name, compute in ways.items():
        child = programs.in_fork(lambda compute=compute: (compute(), torch.get_num_threads(), dict(os.environ)))
        assert child[0] == pytest.approx(expected[name], abs=1e-6), name
        # The settings of threads are those of before.
        assert child[1] == torch.get_num_threads() == 2
        assert child[2]["TOKENIZERS_PARALLELISM"] == "true"


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(load, gruen_models, nli_model, monkeypatch):
    registry = core_models.model_registry()
    # The models of other tests must not hide those that load after another.
    monkeypatch.setattr(registry, "models", {})

    cases = [(name, {}) for name in metrics_of()]
    cases += [("gruen", gruen_models), ("semantic_entropy", {"same": f"nli:{nli_model}"})]
    calls = [(load(name), inputs_of(load(name), items_of(load(name))) | settings) for name, settings in cases]

    def compute():
        return [metric.compute(**arguments) for metric, arguments in calls]

    expected = compute()
    holds = threading.Event()
    release = threading.Event()

    def hold():
        with registry.lock:
            holds.set()
            release.wait(120)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    try:
        results = programs.in_fork(compute)
    finally:
        release.set()
        thread.join()
    assert results == approx(expected)
