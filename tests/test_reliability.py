"""Accidents that must not cost a number: forks, refused settings, extreme numbers, odd arrays."""

import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress

import evaluate
import numpy as np
import pytest
import torch
from transformers import EvalPrediction

import text_metrics
from tests.conftest import METRICS, SETS
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core import core_models, core_numbers, core_vectors

FLAT = SETS[0]
PEOPLE = [["a kettle"] * 3 + ["a pot"] * 2 + ["a cup"]]
ANSWERS = [["kettle", "pot", "helicopter"]]
# A child that hangs is killed after this time.
SECONDS = 120


# Forks.


def calls(load):
    """Calls that use each of the libraries with threads of their own."""
    rng = np.random.default_rng(0)
    many = [" ".join(rng.choice(["a", "dog", "cat", "runs", "sleeps"], 6)) for _ in range(64)]
    given = rng.normal(size=(1500, 256))
    return {
        "encoder": lambda: load("vendi_embed").compute(predictions=many),
        "embeddings": lambda: load("chamfer_diversity").compute(predictions=["a"] * 1500, embeddings=given),
        "clusters": lambda: load("probeval").compute(
            predictions=[many[:9]], references=[many[20:50]], clustering="xmeans"
        ),
    }


def in_fork(work):
    """Run a function in a forked child; returns what it returns, or None if the child hangs or fails."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=lambda: theirs.send(work()))
    child.start()
    found = ours.recv() if ours.poll(SECONDS) else None
    child.kill()
    child.join()
    return found


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["encoder", "embeddings", "clusters"])
def test_a_forked_child_scores_the_same(load, two_threads, name):
    compute = calls(load)[name]
    expected = compute()
    found, threads = in_fork(lambda: (compute(), torch.get_num_threads()))
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert found["signature"] == expected["signature"]
    # The settings of torch are those of before, here and there.
    assert threads == torch.get_num_threads() == 2


def test_a_forked_child_scores_the_same_as_a_reward_or_for_the_trainer(load, two_threads):
    texts = [" ".join(words) for words in np.random.default_rng(0).choice(["a", "dog", "runs", "far"], (64, 6))]
    tokenizer = build_tokenizer()
    ids = np.random.default_rng(0).integers(3, len(tokenizer), (64, 6))
    ways = {
        "compute": lambda: load("vendi_embed").compute(predictions=texts, set_size=4)["scores"],
        "for_rewards": lambda: text_metrics.for_rewards(load("vendi_embed"), 4)(completions=texts),
        "for_trainer": lambda: text_metrics.for_trainer(load("vendi_embed"), tokenizer, set_size=4)(
            EvalPrediction(ids, None)
        ),
    }
    for name, compute in ways.items():
        expected = compute()
        assert in_fork(compute) == pytest.approx(expected, abs=1e-6), name


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
            found, _ = parent.communicate(timeout=SECONDS)
        finally:
            # With its child, if that hangs.
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
    assert float(found) == pytest.approx(expected["vendi_embed"], abs=1e-6)


def test_a_forked_child_does_not_wait_for_the_threads_of_a_tokenizer(load, two_threads, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    compute = calls(load)["encoder"]
    scores = compute()["scores"]
    found, setting = in_fork(lambda: (compute()["scores"], os.environ["TOKENIZERS_PARALLELISM"]))
    assert found == pytest.approx(scores, abs=1e-6)
    assert setting == "true"


def save_nli(gruen_models, folder):
    """Give the classifier of gruen's backbone a class named "entailment"."""
    shutil.copytree(gruen_models["cola_model"], folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {"0": "other", "1": "entailment"}, "label2id": {"other": 0, "entailment": 1}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(load, gruen_models, tmp_path, monkeypatch):
    registry = core_models.model_registry()
    # The models of other tests must not hide those that load after another.
    monkeypatch.setattr(registry, "models", {})
    nli = save_nli(gruen_models, tmp_path / "nli")

    def compute():
        return [
            load("gruen").compute(predictions=FLAT),
            load("gruen").compute(predictions=FLAT, **gruen_models),
            load("semantic_entropy").compute(predictions=FLAT, same=f"nli:{nli}"),
            load("vendi_embed").compute(predictions=FLAT),
            load("chamfer_diversity").compute(predictions=FLAT),
            load("self_bleu").compute(predictions=FLAT),
            load("probeval").compute(predictions=ANSWERS, references=PEOPLE),
        ]

    expected = compute()
    locks = {id(loaded.lock): loaded.lock for loaded in registry.models.values()}
    # The compact backbone of gruen, its three transformers, a classifier and an encoder.
    assert len(locks) == 6
    held, release = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as stack:
            for lock in (registry.lock, *locks.values()):
                stack.enter_context(lock)
            held.set()
            release.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        found = in_fork(compute)
    finally:
        release.set()
        thread.join()
    assert [result["signature"] for result in found] == [result["signature"] for result in expected]
    for result, other in zip(found, expected, strict=True):
        assert result["scores"] == pytest.approx(other["scores"], abs=1e-6)


# Settings, before what was added is consumed.

REFUSED = [
    ("vendi_embed", {"q": -1}, "q must be in"),
    ("vendi_embed", {"model": "./nowhere"}, "model must be a folder"),
    ("vendi_embed", {"kernel": "word"}, "kernel must be"),
    ("vendi_embed", {"orders": 2}, "vendi_embed has no argument 'orders'"),
    ("semantic_entropy", {"patience": 2}, "patience must be in"),
    ("chamfer_diversity", {"set_size": 1.5}, "set_size must be an integer"),
    ("chamfer_diversity", {"singletons": "drop"}, "singletons must be one of"),
    ("chamfer_diversity", {"device": "abacus"}, "device must be"),
    ("self_bleu", {"max_order": 0}, "max_order must be at least 1"),
    ("self_bleu", {"confidence": 2}, "confidence must be between"),
    ("probeval", {"threshold": 2}, r"threshold must be in \[0, 1\]"),
    ("probeval", {"vectors": "nowhere.vec"}, "vectors must be the path"),
    ("gruen", {"focus": "vibes"}, "focus must be one of"),
    ("gruen", {"details": "yes"}, "details must be True or False. Got str 'yes'"),
]


@pytest.mark.parametrize(("name", "settings", "message"), REFUSED)
def test_what_was_added_is_there_after_settings_are_refused(name, settings, message):
    metric = evaluate.load(str(METRICS / name))
    added = {"predictions": FLAT}
    if name == "probeval":
        added = {"predictions": ANSWERS, "references": PEOPLE}
    metric.add_batch(**added)
    with pytest.raises((TypeError, ValueError), match=message):
        metric.compute(**settings)
    assert metric.compute() == metric.compute(**added)


# Numbers.


def test_a_smoothing_near_the_smallest_float_gives_no_nan(load):
    probeval = load("probeval")
    settings = {"predictions": [["a kettle"] * 3], "references": PEOPLE, "clustering": "none"}
    for smoothing in (1e-300, 1e-310):
        for debias in (False, True):
            result = probeval.compute(**settings, smoothing=smoothing, debias=debias)
            # KL ~ share of the missing clusters times -log of their smoothed share.
            assert 0 <= result["probeval"] < 800
            json.dumps(result, allow_nan=False)
    share = 1e-300 / 3
    expected = (
        0.5 * math.log(0.5) + 2 / 6 * (math.log(2 / 6) - math.log(share)) + 1 / 6 * (math.log(1 / 6) - math.log(share))
    )
    assert probeval.compute(**settings, smoothing=1e-300)["probeval"] == pytest.approx(expected)
    for debias in (False, True):
        with pytest.raises(ValueError, match=r"smoothing is \S+e-324, .*: the divergence is infinite\. Pass a larger"):
            probeval.compute(**settings, smoothing=5e-324, debias=debias)
    with pytest.raises(ValueError, match=r"smoothing must be at most 1e\+300\. Got 1e\+308"):
        probeval.compute(**settings, smoothing=1e308)


HUGE = 10**400
LONG = 10**5000  # more digits than Python prints


@pytest.mark.parametrize("value", [HUGE, -HUGE, LONG], ids=["huge", "minus huge", "too long to print"])
@pytest.mark.parametrize(
    ("name", "parameter", "more"),
    [
        ("vendi_embed", "q", {}),
        ("vendi_embed", "confidence", {}),
        ("vendi_embed", "set_size", {}),
        ("vendi_embed", "batch_size", {}),
        ("semantic_entropy", "same", {}),
        ("semantic_entropy", "patience", {"quality": [0.5] * len(FLAT)}),
        ("chamfer_diversity", "confidence", {}),
        ("self_bleu", "max_order", {}),
        ("probeval", "threshold", {}),
        ("probeval", "smoothing", {}),
        ("probeval", "distance", {"clustering": "hac"}),
        ("probeval", "seed", {"clustering": "xmeans"}),
        ("gruen", "focus_threshold", {}),
    ],
)
def test_numbers_beyond_all_floats_are_named(load, name, parameter, more, value):
    inputs = {"predictions": FLAT} if name != "probeval" else {"predictions": ANSWERS, "references": PEOPLE}
    with pytest.raises(ValueError, match=rf"{parameter} .*Got .{{,90}}\.$"):
        load(name).compute(**inputs, **more, **{parameter: value})


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([["a"]], [[{"text": "a", "cluster": LONG}]], r"references\[0\], answer 0: the cluster has too many digits"),
        ([{"id": LONG, "answers": ["a"]}], [["a"]], r"predictions\[0\]: the id has too many digits"),
    ],
)
def test_numbers_in_place_of_names_are_named(load, predictions, references, message):
    with pytest.raises(ValueError, match=message):
        load("probeval").compute(predictions=predictions, references=references)


def test_a_released_file_that_is_one_long_number_is_named(load, tmp_path):
    path = tmp_path / "ranked.jsonl"
    path.write_text("9" * 5_000)
    with pytest.raises(ValueError, match=r"ranked\.jsonl is not valid JSON: Exceeds the limit"):
        load("probeval").from_protoqa([], str(path))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("self_bleu", {"max_order": 10**30}, r"max_order must be at most 100\. Got 1000000"),
        ("self_bleu", {"max_order": 101}, r"max_order must be at most 100\. Got 101"),
        ("probeval", {"clustering": "xmeans", "seed": 2**40}, r"seed must be at most 4294967295\. Got 1099511627776"),
        ("probeval", {"clustering": "xmeans", "seed": -1}, r"seed must be at least 0\. Got -1"),
        ("probeval", {"smoothing": math.inf}, r"smoothing must be in \[0, 1e\+300\]\. Got inf"),
        ("probeval", {"threshold": 1 + 0j}, r"threshold must be a number\. Got complex"),
        ("probeval", {"threshold": np.complex128(1)}, r"threshold must be a number\. Got complex128"),
    ],
)
def test_numbers_out_of_range_are_named(load, name, settings, message):
    inputs = {"predictions": FLAT} if name != "probeval" else {"predictions": ANSWERS, "references": PEOPLE}
    with pytest.raises((TypeError, ValueError), match=message):
        load(name).compute(**inputs, **settings)


def test_a_count_that_no_file_of_evaluate_holds_is_named_when_it_comes():
    metric = evaluate.load(str(METRICS / "probeval"))
    for count in (2**63, 2**53 + 1):
        answers = [{"text": "kettle", "count": count}]
        with pytest.raises(ValueError, match=r"answer 0: the count must be at most 9007199254740992\. Got \d+"):
            metric.add(prediction=answers, reference=PEOPLE[0])
        with pytest.raises(ValueError, match="answer 0: the count must be at most"):
            metric.compute(predictions=[answers], references=PEOPLE)
    metric.add(prediction=[{"text": "kettle", "count": 2**53}], reference=PEOPLE[0])
    assert metric.compute()["n_answers"] == [2**53]


# Arrays.


def masked(rows):
    return np.ma.masked_greater(np.array(rows, dtype=float), 5)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_masked_entries_are_refused(load, name):
    rows = [[1.0, 0.0], [9.0, 1.0], [0.0, 1.0]]
    for given in (masked(rows), [masked(row) for row in rows]):
        with pytest.raises(ValueError, match="embeddings has masked entries"):
            load(name).compute(predictions=FLAT[:3], embeddings=given)
    with pytest.raises(TypeError, match=r"quality \(text 1\) must be a number\. Got None"):
        load(name).compute(predictions=FLAT[:2], quality=masked([0.5, 9]))
    nothing_masked = np.ma.array(rows)
    expected = load(name).compute(predictions=FLAT[:3], embeddings=rows)
    assert load(name).compute(predictions=FLAT[:3], embeddings=nothing_masked) == expected


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_tensors_with_gradients_are_numbers_too(load, name):
    rows = torch.eye(3, dtype=torch.float64).requires_grad_()
    expected = load(name).compute(predictions=FLAT[:3], embeddings=np.eye(3))
    assert load(name).compute(predictions=FLAT[:3], embeddings=rows) == expected
    assert load(name).compute(predictions=FLAT[:3], embeddings=list(rows)) == expected
    quality = torch.full((3,), 0.5, requires_grad=True)
    expected = load(name).compute(predictions=FLAT[:3], embeddings=np.eye(3), quality=[0.5] * 3)
    assert load(name).compute(predictions=FLAT[:3], embeddings=rows, quality=quality) == expected
    with pytest.raises(TypeError, match=r"embeddings must be an \(n, d\) array of numbers\. Got Tensor"):
        load(name).compute(predictions=FLAT[:3], embeddings=torch.empty(3, 2, device="meta"))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (
            {"kettle": [1.0, 0.0], "pot": [1.0]},
            r"vectors must all have the same length\. Got 2 for 'kettle', and 1 for 'pot'",
        ),
        ({"kettle": [1.0, 0.0], "pot": [math.nan, 1.0]}, r"vectors must hold an array .* finite .* for 'pot'"),
        ({"kettle": [1.0, 0.0], "pot": [1e300, 1.0]}, r"vectors must hold an array .* for 'pot'"),
        ({"kettle": [[1.0, 0.0]]}, r"vectors must hold an array of shape \(d,\) .* for 'kettle'"),
        ({"kettle": "up"}, "vectors must hold an array .* Got str 'up' for 'kettle'"),
        ({"kettle": masked([9.0, 1.0])}, "vectors must hold an array .* for 'kettle'"),
        ({"kettle": []}, "vectors must hold an array .* for 'kettle'"),
    ],
)
def test_word_vectors_are_checked(load, vectors, message):
    texts = {"predictions": [["kettle pot"]], "references": [["kettle", "pot"]]}
    with pytest.raises(ValueError, match=message):
        load("probeval").compute(**texts, vectors=vectors)
    if "pot" in vectors:
        with pytest.raises(ValueError, match=message):
            load("gruen").compute(
                predictions=["A kettle boils. A pot boils."], components=["focus"], focus="wms", vectors=vectors
            )


def test_odd_models_and_names_are_named(load):
    with pytest.raises(ValueError, match=r"model must be at most 1000 characters\. Got str 'aaa"):
        load("chamfer_diversity").compute(predictions=FLAT[:2], model="a" * 5000)
    with pytest.raises(ValueError, match="vectors must be the path of a fastText or word2vec file"):
        core_vectors.load_vectors("a" * 5000)
    with pytest.raises(TypeError, match=r"predictions must be a list of texts .* Got Tensor"):
        load("self_bleu").compute(predictions=torch.empty(2, 2, device="meta"))
    with pytest.raises(ValueError, match=r"tokenizer must be one of .* Got ndarray"):
        load("self_bleu").compute(predictions=FLAT, tokenizer=np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"device must be a torch device: .* Got int 1000"):
        load("vendi_embed").compute(predictions=FLAT, device=HUGE)


def test_word_vectors_may_be_tensors_with_gradients():
    vectors = core_vectors.load_vectors({"kettle": torch.ones(3, requires_grad=True)})
    assert vectors["Kettle"].tolist() == [1.0] * 3
    assert vectors["pot"] is None


def test_a_value_that_cannot_be_printed_is_still_named():
    class Shy:
        def __repr__(self):
            raise RuntimeError

    with pytest.raises(TypeError, match=r"q must be a number\. Got a value that cannot be printed"):
        core_numbers.parse_number(Shy(), "q", 0)
