"""Confidence intervals of a mean: in simulations, bounds, units, and those of each metric."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.conftest import SETS, inputs_of, items_of, metrics_of
from text_metrics.metrics._core.core_intervals import Estimate, mean_estimate, parse_confidence_by, ratio_estimate
from text_metrics.metrics._core.core_results import Signature
from text_metrics.statistics import mean_p

SAMPLES = 2000


def below(share, samples=SAMPLES):
    """Lower a share by four standard errors of the simulation."""
    return share - 4 * (share * (1 - share) / samples) ** 0.5


def above(share, samples=SAMPLES):
    return share + 4 * (share * (1 - share) / samples) ** 0.5


# Simulations.

# Draws, their mean, and the share of samples that 95 % intervals cover, of 10, 40 and 200 units.
DISTRIBUTIONS = {
    "normal": (lambda rng, n: rng.standard_normal(n), 0.0, (0.948, 0.951, 0.949)),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0, (0.940, 0.950, 0.949)),
    "lognormal": (lambda rng, n: rng.lognormal(size=n), np.exp(0.5), (0.903, 0.927, 0.942)),
    "beta(8, 1)": (lambda rng, n: rng.beta(8, 1, n), 8 / 9, (0.946, 0.954, 0.952)),
    "beta(.5, .5)": (lambda rng, n: rng.beta(0.5, 0.5, n), 0.5, (0.983, 0.961, 0.955)),
}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_stated_coverage(rng, name, place):
    draw, mean, stated = DISTRIBUTIONS[name]
    n = (10, 40, 200)[place]
    intervals = [mean_estimate(draw(rng, n)).interval(0.95) for _ in range(SAMPLES)]
    covered = np.mean([low <= mean <= high for low, high in intervals])
    assert below(stated[place]) <= covered <= above(stated[place])


@pytest.mark.parametrize("n", [3, 10, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_an_interval_is_within_the_bounds_and_contains_the_estimate(rng, n, level):
    for _ in range(100):
        scores = 1 + rng.binomial(3, rng.choice([0.02, 0.5, 0.97]), n)
        estimate = mean_estimate(scores.astype(float))
        interval = estimate.interval(level, (1.0, float), 4)
        if interval is not None:
            assert 1 <= interval[0] <= estimate.value <= interval[1] <= 4


def test_items_that_belong_together_are_no_evidence_of_their_own(rng):
    covered = np.zeros(2)
    for _ in range(SAMPLES):
        units = np.repeat(np.arange(30), 4)
        values = rng.standard_normal(30)[units] + rng.standard_normal(120) / 2
        for i, by in enumerate((units, None)):
            low, high = mean_estimate(values, by).interval(0.95)
            covered[i] += low <= 0 <= high
    assert below(0.945) <= covered[0] / SAMPLES <= above(0.955)
    assert covered[1] / SAMPLES < 0.8


# The interval itself.


def test_values_that_are_not_skewed_have_students_interval():
    values = np.array([1.0, 2, 3, 4, 5])
    expected = stats.t.interval(0.9, 4, loc=3, scale=stats.sem(values))
    assert mean_estimate(values).interval(0.9) == pytest.approx(expected)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_test_rejects_what_the_interval_excludes(rng, level):
    for _ in range(300):
        estimate = mean_estimate(rng.lognormal(size=8) - rng.uniform(0, 4))
        low, high = estimate.interval(level)
        assert (mean_p(estimate) < 1 - level) == (not low <= 0 <= high)


def test_order_units_and_batches_do_not_matter(rng):
    values = rng.lognormal(size=500)
    units = rng.integers(0, 60, 500)
    expected = mean_estimate(values, units).interval(0.95)
    order = rng.permutation(500)
    assert mean_estimate(values[order], units[order]).interval(0.95) == pytest.approx(expected, rel=1e-12)
    assert mean_estimate(values, 7 * units).interval(0.95) == pytest.approx(expected, rel=1e-12)
    sums = np.bincount(units, values)
    counts = np.bincount(units)
    assert ratio_estimate(sums, counts).interval(0.95) == pytest.approx(expected, rel=1e-12)
    # Moments about the mean of the first batch keep their digits far from 0.
    far = mean_estimate(values + 1e6, units).interval(0.95)
    assert far == pytest.approx(np.add(expected, 1e6), rel=1e-12)


def test_the_error_of_units_is_that_of_the_jackknife(rng):
    values = rng.lognormal(size=400)
    units = np.sort(rng.integers(0, 50, 400))
    estimate = mean_estimate(values, units)
    sums = np.bincount(units, values)
    counts = np.bincount(units)
    left_out = (sums.sum() - sums) / (counts.sum() - counts)
    jackknife = Estimate.of(estimate.value, (len(sums) - 1) * (left_out.mean() - left_out))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.error == pytest.approx(jackknife.error, rel=0.03)
    assert estimate.skewness == pytest.approx(jackknife.skewness, rel=0.1)


@pytest.mark.parametrize("values", [[], [3.0], [0.1] * 7, [0.0] * 4])
def test_nothing_is_known_of_how_equal_values_vary(values):
    assert mean_estimate(np.array(values)).interval(0.95) is None
    assert mean_estimate(np.array([0.1, 0.5]), np.array([4, 4])).interval(0.95) is None


def test_tests_of_differences_that_are_equal():
    assert mean_p(mean_estimate(np.zeros(5))) == 1
    assert mean_p(mean_estimate(np.full(5, 0.1))) is None
    assert mean_p(mean_estimate(np.array([0.1]))) is None


def test_an_end_stays_in_the_range_of_the_score():
    assert mean_estimate(np.array([0.1, 0.9])).interval(0.95, (0.0, 1.0)) == [0, 1]
    # An estimate without bias can leave the range itself.
    assert mean_estimate(np.array([-0.1, -0.3])).interval(0.95, (0.0, 1.0))[0] == pytest.approx(-0.2)


# In each metric.

LABELS = ["a", "a", "b", "b", "b"]
# Settings with which scores are computed fast.
FAST = {"self_bleu": {"max_order": 1}, "gruen": {"components": ["non_redundancy"]}}
every_metric = pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, FAST.get(name, {})) for name in metrics_of()),
        ("self_bleu", {"max_order": 1, "aggregate": "corpus"}),
    ],
)


@pytest.fixture
def compute(load, name, settings):
    """Return a function that scores five items, or the first of them."""
    metric = load(name)
    items = items_of(metric)
    return lambda n=5, **given: metric.compute(**inputs_of(metric, items[:n]), **settings, **given)


@every_metric
def test_the_interval_is_that_of_the_mean_of_the_scores(load, compute, name, settings):
    plain, result, wider, again = compute(), *(compute(confidence=level) for level in (0.5, 0.99, 0.99))
    low, high = result["confidence_interval"]
    assert wider["confidence_interval"] == again["confidence_interval"]
    assert wider["confidence_interval"][0] < low < result[name] < high < wider["confidence_interval"][1]
    result = {key: value for key, value in result.items() if not key.endswith("confidence_interval")}
    signature = result.pop("signature")
    assert signature == plain.pop("signature").replace("|version", "|confidence:0.5|version")
    assert result == plain
    scores = np.array(result["scores"])
    bounds = load(name).bounds
    assert bounds[0] <= scores.min()
    assert callable(bounds[1]) or scores.max() <= bounds[1]
    if "aggregate" not in settings:
        size = np.mean([len(members) for members in SETS])
        assert [low, high] == mean_estimate(scores).interval(0.5, bounds, size)
    # One item tells nothing of how items differ.
    single = compute(1, confidence=0.95)
    assert single["confidence_interval"] is None
    json.dumps(single, allow_nan=False)


@every_metric
def test_items_of_one_label_are_one_unit(compute, name, settings):
    alone = compute(confidence=0.5)
    result = compute(confidence=0.5, confidence_by=LABELS)
    assert result["signature"] == alone["signature"].replace("|confidence:0.5|", "|confidence:0.5|confidence_by:given|")
    if "aggregate" not in settings:
        expected = mean_estimate(np.array(result["scores"]), np.array([0, 0, 1, 1, 1])).interval(0.5)
        assert result["confidence_interval"] == pytest.approx(expected)
    assert result["confidence_interval"] != alone["confidence_interval"]
    assert result[name] == alone[name]
    numbers = compute(confidence=0.5, confidence_by=range(5))
    assert numbers["confidence_interval"] == alone["confidence_interval"]
    for labels, error, message in (
        (LABELS[:4], ValueError, r"confidence_by must have a label for each (set|text|question)\. Got 4"),
        ([*LABELS[:4], None], TypeError, r"confidence_by\[4\] must be a string or an integer\. Got None\."),
        ([*LABELS[:4], True], TypeError, r"confidence_by\[4\] must be .* Got True\."),
        ("aabbb", TypeError, "confidence_by must be a list with a label for each"),
    ):
        with pytest.raises(error, match=message):
            compute(confidence=0.5, confidence_by=labels)


def test_sets_that_are_left_out_count_in_no_interval(load):
    for name in ("self_bleu", "chamfer_diversity"):
        expected = load(name).compute(predictions=SETS, confidence=0.9, confidence_by=LABELS)["confidence_interval"]
        skipping = {"confidence": 0.9, "singletons": "skip"}
        result = load(name).compute(predictions=[["alone"], *SETS], confidence_by=["x", *LABELS], **skipping)
        assert result["confidence_interval"] == pytest.approx(expected, abs=1e-6)
        nothing = load(name).compute(predictions=[["alone"]] * 3, **skipping)
        assert nothing["confidence_interval"] is None
    assert parse_confidence_by(["x", 1, "x", "1"], 4, "set").tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("aggregate", ["set", "corpus", "sentence"])
def test_items_that_score_the_same_have_no_interval(load, aggregate):
    sets = [["a b c d", "a b c e"]] * 5
    for name, settings in (("self_bleu", {"max_order": 2, "aggregate": aggregate}), ("vendi_embed", {})):
        result = load(name).compute(predictions=sets, confidence=0.95, **settings)
        assert result["confidence_interval"] is None


def test_pooled_counts_are_pooled_again_without_each_set(load, rng):
    sets = []
    for _ in range(12):
        sets.append([" ".join(rng.choice(list("abcdef"), 5)) for _ in range(3)])
    settings = {"max_order": 2, "aggregate": "corpus"}
    result = load("self_bleu").compute(predictions=sets, confidence=0.8, **settings)
    ours = load("self_bleu").compute(predictions=sets, **settings)["self_bleu"]
    low, high = result["confidence_interval"]
    rest = [sets[:i] + sets[i + 1 :] for i in range(len(sets))]
    left_out = np.array([load("self_bleu").compute(predictions=subset, **settings)["self_bleu"] for subset in rest])
    pseudo_values = len(sets) * ours - (len(sets) - 1) * left_out
    assert [low, high] == pytest.approx(Estimate.of(ours, pseudo_values - pseudo_values.mean()).interval(0.8))
    assert [low, high] != pytest.approx(
        load("self_bleu").compute(predictions=sets, confidence=0.8, max_order=2)["confidence_interval"]
    )


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_the_score_by_quality_has_an_interval_too(load, name):
    quality = []
    for members in SETS:
        quality.append([i / 4 for i in range(len(members))])
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


# Signatures, which name the level.


def test_a_signature_is_parsed_merged_and_compared():
    text = "vendi_embed|q:0,1|model:local@ab:c|set_size:4|version:1"
    signed = Signature.parse(text)
    assert str(signed) == text
    assert signed.metric == "vendi_embed"
    assert signed.entries == {"q": "0,1", "model": "local@ab:c", "set_size": "4", "version": "1"}
    merged = signed.merge(set_size=5, reward="sum")
    assert str(merged) == "vendi_embed|q:0,1|model:local@ab:c|set_size:5|reward:sum|version:1"
    assert str(signed) == text
    assert signed.difference(merged) == {"set_size": ("4", "5"), "reward": (None, "sum")}
    assert signed.difference(signed._replace(metric="gruen")) == {"metric": ("vendi_embed", "gruen")}
    assert signed.difference(Signature.parse(text)) == {}
