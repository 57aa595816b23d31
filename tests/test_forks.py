"""Forked children score as their parent does, whatever threads and locks it has."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest
import torch
from transformers import EvalPrediction

import text_metrics
from tests.conftest import METRICS, approx, inputs_of, items_of, metrics_of
from tests.programs import in_fork
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core import core_models

# A child that hangs is killed after this time.
SECONDS = 120


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_child_scores_with_each_library_that_has_threads(load, two_threads, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    rng = np.random.default_rng(0)
    texts = [" ".join(words) for words in rng.choice(["a", "dog", "runs", "far"], (64, 6))]
    rows = rng.normal(size=(1500, 256))
    tokenizer = build_tokenizer()
    ids = rng.integers(3, len(tokenizer), (64, 6))
    ways = {
        "encoder": lambda: load("vendi_embed").compute(predictions=texts, set_size=4)["scores"],
        "embeddings": lambda: load("chamfer_diversity").compute(predictions=["a"] * 1500, embeddings=rows)["scores"],
        "clusters": lambda: load("probeval").compute(
            predictions=[texts[:9]], references=[texts[20:50]], clustering="xmeans"
        )["scores"],
        "rewards": lambda: text_metrics.for_rewards(load("vendi_embed"), 4)(completions=texts),
        "trainer": lambda: text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)(
            EvalPrediction(ids, ids)
        ),
    }
    expected = {name: compute() for name, compute in ways.items()}
    for name, compute in ways.items():
        child = in_fork(lambda compute=compute: (compute(), torch.get_num_threads(), dict(os.environ)))
        assert child[0] == pytest.approx(expected[name], abs=1e-6), name
        # The settings of threads are those of before.
        assert child[1] == torch.get_num_threads() == 2
        assert child[2]["TOKENIZERS_PARALLELISM"] == "true"


AFTER_TORCH = """
import os, sys
import evaluate, torch
metric = evaluate.load(sys.argv[1])
torch.set_num_threads(2)
product = torch.ones(500, 500) @ torch.ones(500, 500)
if os.fork() == 0:
    print(metric.compute(predictions=["a dog runs"] * 2 + ["a cat sleeps far away"] * 2)["vendi_embed"])
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


def test_a_child_scores_after_other_work_of_torch(load):
    expected = load("vendi_embed").compute(predictions=["a dog runs"] * 2 + ["a cat sleeps far away"] * 2)
    command = [sys.executable, "-c", AFTER_TORCH, str(METRICS / "vendi_embed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        try:
            printed, _ = parent.communicate(timeout=SECONDS)
        finally:
            # With its child, if that hangs.
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
    assert float(printed) == pytest.approx(expected["vendi_embed"], abs=1e-6)


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(load, gruen_models, nli_model, monkeypatch):
    registry = core_models.model_registry()
    # The models of other tests must not hide those that load after another.
    monkeypatch.setattr(registry, "models", {})

    calls = [(load(name), {}) for name in metrics_of()]
    calls += [(load("gruen"), gruen_models), (load("semantic_entropy"), {"same": f"nli:{nli_model}"})]

    def compute():
        return [metric.compute(**inputs_of(metric, items_of(metric)), **settings) for metric, settings in calls]

    expected = compute()
    holds, release = threading.Event(), threading.Event()

    def hold():
        with registry.lock:
            holds.set()
            release.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait()
    try:
        results = in_fork(compute)
    finally:
        release.set()
        thread.join()
    assert results == approx(expected)
