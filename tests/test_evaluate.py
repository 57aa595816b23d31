"""The ways `evaluate` brings input: combine, add, add_batch, several processes."""

import multiprocessing
import time

import evaluate
import pytest

from tests.conftest import METRICS, SETS, inputs_of, items_of, metrics_of

FLAT = [text for members in SETS for text in members][:12]


def score_second_half(paths, settings):
    """What the second process does."""
    for path in paths:
        metric = evaluate.load(path, process_id=1, **settings)
        assert metric.compute(**inputs_of(metric, items_of(metric)[3:])) is None


def test_two_processes_score_as_one(tmp_path):
    settings = {"num_process": 2, "experiment_id": "two", "cache_dir": str(tmp_path)}
    paths = [str(METRICS / name) for name in metrics_of()]
    other = multiprocessing.get_context("fork").Process(target=score_second_half, args=(paths, settings), daemon=True)
    other.start()
    for path in paths:
        metric = evaluate.load(path, process_id=0, **settings)
        # The first process asks for the other's lock file once: so it waits for it here.
        deadline = time.monotonic() + 60
        while not list(tmp_path.rglob(f"{metric.name}/**/*-2-1.arrow.lock")) and time.monotonic() < deadline:
            time.sleep(0.1)
        items = items_of(metric)
        result = metric.compute(**inputs_of(metric, items[:3]))
        expected = evaluate.load(path).compute(**inputs_of(metric, items))
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    other.join(120)
    assert other.exitcode == 0


def test_combine(load):
    names = metrics_of("sets")
    together = evaluate.combine([str(METRICS / name) for name in names])
    result = together.compute(predictions=FLAT, set_size=4)
    for name in names:
        alone = load(name).compute(predictions=FLAT, set_size=4)
        assert result[name] == alone[name]
        assert result[f"{name}_scores"] == alone["scores"]
        assert result[f"{name}_signature"] == alone["signature"]
    for text in FLAT[:6]:
        together.add(text)
    together.add_batch(FLAT[6:])
    assert together.compute(set_size=4) == result
    # References, of which these metrics have no use, do no harm.
    assert together.compute(predictions=FLAT, references=FLAT, set_size=4) == result
    together.add_batch(FLAT, FLAT)
    assert together.compute(set_size=4) == result


def test_references_of_other_metrics_do_no_harm(load):
    metric = load("self_bleu")
    expected = metric.compute(predictions=FLAT)
    assert metric.compute(predictions=FLAT, references=FLAT) == expected
    metric.add_batch(predictions=FLAT[:2], references=FLAT[:2])
    metric.add(prediction=FLAT[2], reference=FLAT[2])
    metric.add_batch(predictions=FLAT[3:])
    assert metric.compute() == expected
