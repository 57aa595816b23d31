"""Semantic entropy in full: likelihoods as weights, entropies in nats, and errors."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.files import read_jsonl, write_jsonl
from text_metrics.commands.score import main as score

SETS = [["Paris", "It is Paris.", "Lyon", "Paris"], ["Rome", "Milan"], ["Oslo"]]
LABELS = [["p", "p", "l", "p"], ["r", "m"], ["o"]]
TOKENS = [[[-0.1], [-0.2, -0.4, -0.6], [-3.0, -1.0], [-0.1]], [[-0.5, -0.7], [-2.5]], [[-1.0]]]


def compute(load, **settings):
    given = {"predictions": SETS, "classes": LABELS, "kernel": "classes", "semantic_entropy": True}
    return load("vendi_embed").compute(**{**given, **settings})


def test_log_probs_of_tokens_are_a_column(load, tmp_path):
    expected = load("vendi_embed").compute(predictions=SETS, kernel="classes", log_probs=TOKENS)
    rows = [{"texts": texts, "tokens": tokens} for texts, tokens in zip(SETS, TOKENS, strict=True)]
    write_jsonl(tmp_path / "sets.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "sets.parquet")
    words = ["--metric", "vendi_embed", "--text-key", "texts", "--setting", "kernel=classes", "--quiet", "--restart"]
    for name in ("sets.jsonl", "sets.parquet"):
        out = tmp_path / "out.jsonl"
        assert score.main([str(tmp_path / name), *words, "--column", "log_probs=tokens", "--out", str(out)]) == 0
        assert [row["vendi_embed"] for row in read_jsonl(out)] == pytest.approx(expected["scores"])


def plain_entropy(labels, log_probs):
    """Add up likelihoods by class, one sample at a time, and normalize: - sum p log p in nats."""
    likelihoods = {}
    for label, value in zip(labels, log_probs, strict=True):
        likelihoods[label] = likelihoods.get(label, 0.0) + math.exp(value)
    total = sum(likelihoods.values())
    return -sum(value / total * math.log(value / total) for value in likelihoods.values())


def means(sets):
    return [[sum(tokens) / len(tokens) for tokens in texts] for texts in sets]


def test_likelihoods_weigh_the_classes(load):
    result = compute(load, log_probs=TOKENS, confidence=0.9)
    expected = [plain_entropy(*pair) for pair in zip(LABELS, means(TOKENS), strict=True)]
    assert result["semantic_entropy_scores"] == pytest.approx(expected)
    assert result["semantic_entropy"] == pytest.approx(np.mean(expected))
    assert result["vendi_embed"] == pytest.approx(np.mean(np.exp(expected)))
    normalized = [expected[0] / math.log(4), expected[1] / math.log(2)]
    assert result["normalized_semantic_entropy_scores"] == [*map(pytest.approx, normalized), None]
    assert result["normalized_semantic_entropy"] == pytest.approx(np.mean(normalized))
    # By these numbers the means of batches are merged.
    metric = load("vendi_embed")
    assert metric.n_items(result, "normalized_semantic_entropy") == 2
    assert metric.n_items(result, "semantic_entropy") == metric.n_items(result, "vendi_embed") == 3
    low, high = result["semantic_entropy_confidence_interval"]
    assert low < result["semantic_entropy"] < high
    assert "|weights:exp_log_probs(token_means)|repeated_texts:counted|" in result["signature"]


def test_the_discrete_form_has_no_likelihoods(load):
    result = compute(load, q=2)
    expected = [plain_entropy(labels, [0.0] * len(labels)) for labels in LABELS]
    assert result["semantic_entropy_scores"] == pytest.approx(expected)
    assert "|weights:uniform|" in result["signature"]
    equal = compute(load, q=2, log_probs=[[-7.0] * len(texts) for texts in SETS])
    assert equal["semantic_entropy_scores"] == pytest.approx(expected)
    assert equal["signature"] != result["signature"]


def test_a_number_is_taken_as_it_is(load):
    by_token, given = compute(load, log_probs=TOKENS), compute(load, log_probs=means(TOKENS))
    assert given["scores"] == pytest.approx(by_token["scores"])
    assert "|weights:exp_log_probs(given)|repeated_texts:counted|" in given["signature"]
    totals = [[sum(tokens) for tokens in texts] for texts in TOKENS]
    expected = [plain_entropy(*pair) for pair in zip(LABELS, totals, strict=True)]
    assert compute(load, log_probs=totals)["semantic_entropy_scores"] == pytest.approx(expected)


def test_a_repeated_text_counts_each_time(load):
    settings = {"predictions": ["a", "a", "b"], "classes": [0, 0, 1], "log_probs": [[-1.0], [-1.0], [-1.0]]}
    assert compute(load, **settings)["semantic_entropy"] == pytest.approx(plain_entropy([0, 0, 1], [-1.0] * 3))


def test_improbable_texts_do_not_underflow(load):
    shifted = [[[value - 5000 for value in tokens] for tokens in texts] for texts in TOKENS]
    assert compute(load, log_probs=shifted)["scores"] == pytest.approx(compute(load, log_probs=TOKENS)["scores"])


def test_forms_of_log_probabilities(load):
    expected = compute(load, log_probs=TOKENS)
    arrays = [[np.array(tokens) for tokens in texts] for texts in TOKENS]
    tensors = [[torch.tensor(tokens, dtype=torch.float64) for tokens in texts] for texts in TOKENS]
    assert compute(load, log_probs=arrays) == compute(load, log_probs=tensors) == expected
    flat = compute(load, predictions=["a", "b"], classes=[0, 1], log_probs=np.array([[-1.0, -1.0], [-2.0, -2.0]]))
    assert flat["semantic_entropy"] == pytest.approx(plain_entropy([0, 1], [-1.0, -2.0]))


def test_texts_that_do_not_count_are_left_out(load):
    quality = [[1.0, 1.0, 1.0, 0.0], [0.0, 0.0], [1.0]]
    result = compute(load, log_probs=TOKENS, quality=quality, min_quality=0.5)
    expected = plain_entropy(LABELS[0][:3], means(TOKENS)[0][:3])
    assert result["semantic_entropy_scores"] == [pytest.approx(expected), None, 0.0]
    assert result["normalized_semantic_entropy_scores"] == [pytest.approx(expected / math.log(3)), None, None]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "embedding"}, "log_probs has no effect without kernel='classes'"),
        ({"weights": [0.5, 0.5]}, "log_probs cannot be combined with weights"),
        ({"rarefy": 2}, "log_probs cannot be combined with rarefy"),
        ({"log_probs": [-1.0]}, "log_probs must have one log-probability for each of the 2 texts. Got 1"),
        ({"log_probs": [-1.0, 0.5]}, r"log_probs \(text 1\) must be a finite log-probability, at most 0, .* Got float"),
        (
            {"log_probs": [-1.0, [-1.0]]},
            r"log_probs \(text 1\) must be a finite log-probability, at most 0, as for the",
        ),
        ({"log_probs": [[-1.0], -1.0]}, r"log_probs \(text 1\) must be a list of finite log-probabilities"),
        ({"log_probs": [[-1.0], []]}, r"log_probs \(text 1\) must be a list of finite log-probabilities"),
        ({"log_probs": [[-1.0], [-math.inf]]}, r"log_probs \(text 1\) must be a list of finite log-probabilities"),
        ({"log_probs": [[-1.0], [None]]}, r"log_probs \(text 1\) must be a list of finite log-probabilities"),
        ({"log_probs": ["x", -1.0]}, r"log_probs \(text 0\) must be a finite log-probability"),
    ],
)
def test_errors_name_the_setting(load, settings, message):
    given = {"kernel": "classes", "log_probs": [-1.0, -2.0], **settings}
    classes = {"classes": [0, 1]} if given["kernel"] == "classes" else {}
    with pytest.raises((TypeError, ValueError), match=message):
        load("vendi_embed").compute(predictions=["x", "y"], **classes, **given)


def test_entropy_needs_classes(load):
    with pytest.raises(ValueError, match="semantic_entropy has no effect without kernel='classes'"):
        load("vendi_embed").compute(predictions=["x", "y"], semantic_entropy=True)
    with pytest.raises(ValueError, match="semantic_entropy cannot be combined with rarefy"):
        compute(load, rarefy=2)
