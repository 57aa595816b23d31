"""Confidence intervals, which all metrics take from one function, and the texts that count by their quality."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.conftest import SET_METRICS, SETS
from text_metrics.metrics._core.core_results import confidence_level, jackknife_estimate, mean_estimate

PEOPLE = [["a kettle"] * 12 + ["a pot"] * 5, ["red"] * 6 + ["blue"] * 6, ["a dog", "a cat", "a cow"]]
MODELS = [["kettle"] * 10 + ["a spoon"] * 5, ["red"] * 9 + ["green"], ["a dog"] * 4]


def calls(name):
    """Give what to score, several items."""
    if name == "gruen":
        return {"predictions": [" ".join(members) for members in SETS]}
    if name == "probeval":
        return {"predictions": MODELS, "references": PEOPLE}
    return {"predictions": SETS, **({"max_order": 1} if name == "self_bleu" else {})}


every_metric = pytest.mark.parametrize("name", [*SET_METRICS, "probeval", "gruen"])


@every_metric
def test_the_interval_is_that_of_the_mean_of_the_scores(load, name):
    plain = load(name).compute(**calls(name))
    result = load(name).compute(**calls(name), confidence=0.9)
    low, high = result.pop("confidence_interval")
    signature = result.pop("signature")
    assert signature == plain.pop("signature").replace("|version", "|confidence:0.9|version")
    assert result == plain
    scores = np.array(result["scores"])
    bounds = load(name).bounds
    assert bounds[0] <= scores.min()
    assert scores.max() <= bounds[1]
    assert [low, high] == mean_estimate(scores).interval(0.9, bounds)
    # At least as wide as Student's, within the range of the score.
    student = np.clip(stats.t.interval(0.9, len(scores) - 1, scores.mean(), stats.sem(scores)), *bounds)
    assert low <= student[0] + 1e-12
    assert low < result[name] < high
    assert high >= student[1] - 1e-12


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
    left_out = np.array([load("self_bleu").compute(predictions=own, **settings)["self_bleu"] for own in rest])
    assert [low, high] == pytest.approx(jackknife_estimate(ours, left_out).interval(0.8))
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
    upper = 2.0 if name == "chamfer_diversity" else np.inf
    expected = mean_estimate(np.array(result["quality_scores"])).interval(0.9, (0.0, upper))
    assert result["quality_confidence_interval"] == expected
    assert expected[0] < result[f"quality_{name}"] < expected[1]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (95, ValueError, r"confidence must be between 0 and 1, such as 0\.95\. Got 95\."),
        (0, ValueError, r"Got 0\."),
        (1.0, ValueError, r"Got 1\.0\."),
        (float("nan"), ValueError, r"Got nan\."),
        (True, TypeError, r"confidence must be a number between 0 and 1, such as 0\.95\. Got bool True\."),
        ("95%", TypeError, r"Got str '95%'\."),
    ],
)
def test_a_level_that_is_none_is_refused(load, value, error, message):
    with pytest.raises(error, match=message):
        confidence_level(value)
    for name in (*SET_METRICS, "probeval", "gruen"):
        with pytest.raises(error, match=message):
            load(name).compute(**calls(name), confidence=value)


QUALITY = [[0.9, 0.1, 0.5, 0.8], [0.2, 0.1], [0.4, 0.6, 0.3], [1.0, 0.5, 0.0, 0.7], [0.5, 0.49]]
COUNTED = [
    [text for text, own in zip(members, row, strict=True) if own >= 0.5]
    for members, row in zip(SETS, QUALITY, strict=True)
]


@pytest.mark.parametrize("settings", [{}, {"q": 0.5}, {"q": 0}, {"kernel": "ngram"}])
def test_only_texts_of_the_quality_count_in_vendi(load, settings):
    metric = load("vendi_embed")
    result = metric.compute(predictions=SETS, quality=QUALITY, min_quality=0.5, details=True, **settings)
    assert result["n_counted"] == [3, 0, 1, 3, 1]
    left = [members for members in COUNTED if members]
    expected = metric.compute(predictions=left, **settings)["scores"]
    scores = [expected.pop(0) if members else 0.0 for members in COUNTED]
    assert result["scores"] == pytest.approx(scores, abs=1e-6)
    assert result["scores"][1] == 0
    assert result["scores"][2] == pytest.approx(1)
    assert result["vendi_embed"] == pytest.approx(np.mean(scores), abs=1e-6)
    means = [np.mean([own for own in row if own >= 0.5]) if n else 0 for row, n in zip(QUALITY, COUNTED, strict=True)]
    assert result["quality_scores"] == pytest.approx(np.multiply(means, scores), abs=1e-6)
    assert list(result["details"][1]["by_order"].values()) == [0.0]
    assert result["details"][1]["eigenvalues"] == []
    assert sum(result["details"][0]["eigenvalues"]) == pytest.approx(1)


def test_weights_are_shared_out_among_the_texts_that_count(load, rng):
    vectors, weights = rng.standard_normal((4, 8)), [0.1, 0.2, 0.3, 0.4]
    compute = load("vendi_embed").compute
    call = {"predictions": list("abcd"), "embeddings": vectors, "weights": weights, "quality": [1, 0, 1, 1]}
    expected = compute(predictions=list("acd"), embeddings=vectors[[0, 2, 3]], weights=[0.125, 0.375, 0.5])
    assert compute(**call, min_quality=0.1)["vendi_embed"] == pytest.approx(expected["vendi_embed"])
    assert compute(**{**call, "weights": [0, 1, 0, 0]}, min_quality=0.1)["vendi_embed"] == 0


def test_only_texts_of_the_quality_count_in_chamfer(load):
    metric = load("chamfer_diversity")
    result = metric.compute(predictions=SETS, quality=QUALITY, min_quality=0.5, details=True)
    assert result["n_counted"] == [3, 0, 1, 3, 1]
    expected = metric.compute(predictions=[COUNTED[0], COUNTED[3]])
    assert [result["scores"][i] for i in (0, 3)] == pytest.approx(expected["scores"], abs=1e-6)
    assert [result["scores"][i] for i in (1, 2, 4)] == [0, 0, 0]
    assert result["chamfer_diversity"] == pytest.approx(2 / 5 * expected["chamfer_diversity"], abs=1e-6)
    assert result["mean_pairwise_distance"] == pytest.approx(2 / 5 * expected["mean_pairwise_distance"], abs=1e-6)
    quality = [[own for own in QUALITY[i] if own >= 0.5] for i in (0, 3)]
    weighted = metric.compute(predictions=[COUNTED[0], COUNTED[3]], quality=quality)["quality_scores"]
    assert [result["quality_scores"][i] for i in (0, 3)] == pytest.approx(weighted, abs=1e-6)
    first = result["details"][0]
    assert [place is None for place in first["neighbours"]] == [False, True, False, False]
    assert set(first["neighbours"]) <= {0, None, 2, 3}
    assert np.mean([own for own in first["distances"] if own is not None]) == pytest.approx(result["scores"][0])
    assert result["details"][1] == {"mean_pairwise_distance": 0, "distances": [None] * 2, "neighbours": [None] * 2}


def test_sets_of_one_text_and_texts_that_do_not_count(load):
    sets, quality = [*SETS, ["alone"]], [*QUALITY, [1.0]]
    result = load("chamfer_diversity").compute(
        predictions=sets, quality=quality, min_quality=0.5, singletons="skip", details=True
    )
    assert result["scores"][5] is None
    assert result["details"][5] is None
    expected = load("chamfer_diversity").compute(predictions=SETS, quality=QUALITY, min_quality=0.5)
    assert result["chamfer_diversity"] == pytest.approx(expected["chamfer_diversity"], abs=1e-6)
    with pytest.raises(ValueError, match="set 5"):
        load("chamfer_diversity").compute(predictions=sets, quality=quality, min_quality=0.5)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_a_threshold_that_all_texts_pass_or_none(load, name):
    plain = load(name).compute(predictions=SETS, quality=QUALITY)
    everything = load(name).compute(predictions=SETS, quality=QUALITY, min_quality=0)
    assert everything["scores"] == pytest.approx(plain["scores"])
    assert everything["quality_scores"] == pytest.approx(plain["quality_scores"])
    assert everything["signature"] == plain["signature"].replace("|version", "|min_quality:0.0|version")
    zeros = [[0.0] * len(members) for members in SETS]
    nothing = load(name).compute(predictions=SETS, quality=zeros, min_quality=1, confidence=0.9)
    assert nothing[name] == nothing[f"quality_{name}"] == 0
    assert nothing["confidence_interval"] is None
    json.dumps(nothing, allow_nan=False)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"min_quality": 0.5}, ValueError, "min_quality needs quality"),
        ({"min_quality": 1.5, "quality": QUALITY}, ValueError, r"min_quality must be in \[0, 1\]\. Got 1\.5\."),
        ({"min_quality": float("nan"), "quality": QUALITY}, ValueError, r"Got nan\."),
        ({"min_quality": "high", "quality": QUALITY}, TypeError, r"min_quality must be a number.* Got str 'high'\."),
    ],
)
def test_a_threshold_that_is_none_is_refused(load, name, settings, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=SETS, **settings)
