"""Confidence intervals, which all metrics take from one function."""

import json

import numpy as np
import pytest

from tests.conftest import SETS, metrics_of
from text_metrics.metrics._core.core_results import Estimate, Signature, mean_estimate

PEOPLE = [["a kettle"] * 12 + ["a pot"] * 5, ["red"] * 6 + ["blue"] * 6, ["a dog", "a cat", "a cow"]]
MODELS = [["kettle"] * 10 + ["a spoon"] * 5, ["red"] * 9 + ["green"], ["a dog"] * 4]


def calls(name):
    """Give what to score, several items."""
    if name == "gruen":
        return {"predictions": [" ".join(members) for members in SETS]}
    if name == "probeval":
        return {"predictions": MODELS, "references": PEOPLE}
    return {"predictions": SETS, **({"max_order": 1} if name == "self_bleu" else {})}


every_metric = pytest.mark.parametrize("name", metrics_of())


@every_metric
def test_the_interval_is_that_of_the_mean_of_the_scores(load, name):
    plain = load(name).compute(**calls(name))
    result = load(name).compute(**calls(name), confidence=0.9)
    low, high = result["confidence_interval"]
    result = {key: value for key, value in result.items() if not key.endswith("confidence_interval")}
    signature = result.pop("signature")
    assert signature == plain.pop("signature").replace("|version", "|confidence:0.9|version")
    assert result == plain
    scores = np.array(result["scores"])
    bounds = load(name).bounds
    assert bounds[0] <= scores.min()
    assert callable(bounds[1]) or scores.max() <= bounds[1]
    size = np.mean([len(members) for members in SETS])
    assert [low, high] == mean_estimate(scores).interval(0.9, bounds, size)
    assert low < result[name] < high


@every_metric
def test_a_higher_level_is_wider_and_the_same_call_gives_the_same(load, name):
    intervals = [
        load(name).compute(**calls(name), confidence=level)["confidence_interval"] for level in (0.5, 0.99, 0.99)
    ]
    assert intervals[1] == intervals[2]
    assert intervals[1][0] < intervals[0][0] < intervals[0][1] < intervals[1][1]


@every_metric
def test_one_item_tells_nothing_of_how_items_differ(load, name):
    call = {key: value[:1] if isinstance(value, list) else value for key, value in calls(name).items()}
    result = load(name).compute(**call, confidence=0.95)
    assert result["confidence_interval"] is None
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("aggregate", ["set", "corpus", "sentence"])
def test_items_that_score_the_same_have_no_interval(load, aggregate):
    sets = [["a b c d", "a b c e"]] * 5
    for name, settings in (("self_bleu", {"max_order": 2, "aggregate": aggregate}), ("vendi_embed", {})):
        result = load(name).compute(predictions=sets, confidence=0.95, **settings)
        assert result["confidence_interval"] is None


def test_pooled_counts_are_pooled_again_without_each_set(load, rng):
    sets = [[" ".join(rng.choice(list("abcdef"), 5)) for _ in range(3)] for _ in range(12)]
    settings = {"max_order": 2, "aggregate": "corpus"}
    result = load("self_bleu").compute(predictions=sets, confidence=0.8, **settings)
    ours = load("self_bleu").compute(predictions=sets, **settings)["self_bleu"]
    low, high = result["confidence_interval"]
    rest = [sets[:i] + sets[i + 1 :] for i in range(len(sets))]
    left_out = np.array([load("self_bleu").compute(predictions=subset, **settings)["self_bleu"] for subset in rest])
    pseudo_values = len(sets) * ours - (len(sets) - 1) * left_out
    assert [low, high] == pytest.approx(Estimate.of(ours, pseudo_values - pseudo_values.mean()).interval(0.8))
    drawn = rng.integers(len(sets), size=(50, len(sets)))
    again = [load("self_bleu").compute(predictions=[sets[i] for i in row], **settings)["self_bleu"] for row in drawn]
    # Other sets of the same kind, each time scored as a corpus: about four in five lie within.
    assert 0.65 < np.mean([low <= score <= high for score in again]) < 0.97
    assert [low, high] != pytest.approx(
        load("self_bleu").compute(predictions=sets, confidence=0.8, max_order=2)["confidence_interval"]
    )


def test_sets_that_were_left_out_are_not_drawn(load):
    sets = [*SETS, ["alone"]]
    for name in ("self_bleu", "chamfer_diversity"):
        expected = load(name).compute(predictions=SETS, confidence=0.9)["confidence_interval"]
        result = load(name).compute(predictions=sets, confidence=0.9, singletons="skip")
        assert result["confidence_interval"] == pytest.approx(expected, abs=1e-6)
        nothing = load(name).compute(predictions=[["alone"]] * 3, confidence=0.9, singletons="skip")
        assert nothing["confidence_interval"] is None


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_the_score_by_quality_has_an_interval_too(load, name):
    quality = [[i / 4 for i in range(len(members))] for members in SETS]
    result = load(name).compute(predictions=SETS, quality=quality, confidence=0.9)
    upper = 2.0 if name == "chamfer_diversity" else np.mean([len(members) for members in SETS])
    expected = mean_estimate(np.array(result["quality_scores"])).interval(0.9, (0.0, upper))
    assert result["quality_confidence_interval"] == expected
    assert expected[0] < result[f"quality_{name}"] < expected[1]


@pytest.mark.parametrize("quality", [False, True])
def test_an_interval_of_effective_numbers_ends_at_the_size_of_the_sets(load, quality):
    """Sets of two, almost all of them different: the mean cannot exceed 2, however the scores vary."""
    rows = np.tile(np.eye(2), (8, 1))
    rows[:2] = [[1, 0.1], [1, 0]]
    settings = {"quality": [1.0] * 16} if quality else {}
    result = load("vendi_embed").compute(
        predictions=["x"] * 16, embeddings=rows, set_size=2, confidence=0.99, **settings
    )
    for name in ("confidence_interval", *["quality_confidence_interval"] * quality):
        low, high = result[name]
        assert low < result["vendi_embed"] <= high == 2.0
    # Of sets of different sizes, their mean.
    rows = np.concatenate([np.eye(6), np.eye(6)[:2], np.ones((4, 6)) + np.eye(6)[:4] / 9])
    sets = [["x"] * 6, ["x"] * 2, ["x"] * 4]
    result = load("vendi_embed").compute(predictions=sets, embeddings=rows, confidence=0.95)
    assert result["confidence_interval"][1] == 4.0


def test_a_signature_is_parsed_merged_and_compared():
    text = "vendi_embed|q:0,1|model:local@ab:c|set_size:4|version:1"
    signed = Signature.parse(text)
    assert str(signed) == text
    assert signed.metric == "vendi_embed"
    assert signed.entries == {"q": "0,1", "model": "local@ab:c", "set_size": "4", "version": "1"}
    merged = signed.merge(set_size=5, reward="sum")
    assert str(merged) == "vendi_embed|q:0,1|model:local@ab:c|set_size:5|reward:sum|version:1"
    assert str(signed) == text
    assert merged.without("reward", "version").merge(set_size=4) == signed.without("version")
    assert signed.difference(merged) == {"set_size": ("4", "5"), "reward": (None, "sum")}
    other = Signature("gruen", {"q": "0,1"})
    assert other.difference(signed.without("model", "set_size", "version")) == {"metric": ("gruen", "vendi_embed")}
    assert signed.difference(Signature.parse(text)) == {}
