"""Confidence intervals and tests of a mean: what they hold in simulations, and over which units.

INTERVAL_TIMES multiplies the numbers of samples.
"""

import json
import os
import re
import time
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from scripts.reports import intervals as measuring
from tests.conftest import ROOT, SETS
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands import compare
from text_metrics.commands.meta_eval import raters
from text_metrics.commands.score import main as score
from text_metrics.commands.shared.statistics import mean_p, randomization_p
from text_metrics.metrics._core.core_results import (
    Estimate,
    UnitSums,
    jackknife_estimate,
    mean_estimate,
    parse_confidence_by,
)

TIMES = int(os.environ.get("INTERVAL_TIMES", "1"))
SAMPLES = 800 * TIMES
PAGE = (ROOT / "docs" / "intervals.md").read_text(encoding="utf-8")


def below(share, samples=SAMPLES):
    """Lower a share by four standard errors of the simulation."""
    return share - 4 * (share * (1 - share) / samples) ** 0.5


def above(share, samples=SAMPLES):
    return share + 4 * (share * (1 - share) / samples) ** 0.5


# Simulations.


@pytest.mark.parametrize("scores", measuring.DISTRIBUTIONS, ids=lambda scores: scores.name)
@pytest.mark.parametrize(("n", "least"), [(5, 0.88), (10, 0.91), (20, 0.925), (50, 0.945), (200, 0.945)])
def test_intervals_contain_the_mean_as_often_as_they_say(scores, n, least):
    found = measuring.coverage(scores, n, SAMPLES)
    assert found.skewed >= below(least)
    # What is wider than need be tells less. Few samples with ties have an interval, and then one that is wide.
    assert found.skewed <= (above(0.97) if scores.name in ("normal", "lognormal") else 1)
    assert found.skewed >= found.student


def test_the_bootstrap_did_not():
    skewed, binary = (measuring.DISTRIBUTIONS[i] for i in (1, 2))
    assert measuring.coverage(skewed, 20, SAMPLES).bootstrap < above(0.86)
    # Samples whose scores are all equal had an interval without width.
    found = measuring.coverage(binary, 10, SAMPLES)
    assert (1 - found.none) * found.bootstrap < above(0.67)
    assert found.none == pytest.approx(0.9**10, abs=0.08)


def test_items_that_belong_together_are_no_evidence_of_their_own():
    assert below(0.945) <= measuring.unit_coverage(30, True, SAMPLES) <= above(0.955)
    assert measuring.unit_coverage(30, False, SAMPLES) < 0.8


@pytest.mark.parametrize(
    ("index", "n", "most", "most_by_signs"),
    [
        (0, 5, 0.05, 0),
        (0, 10, 0.05, 0.05),
        (0, 50, 0.05, 0.05),
        (1, 50, 0.05, 0.05),
        (2, 20, 0.06, 0.1),
        (3, 20, 0.07, 0.15),
    ],
)
def test_the_test_of_the_mean_rejects_a_true_hypothesis_as_rarely_as_it_says(index, n, most, most_by_signs):
    by_mean, by_signs = measuring.sizes(measuring.DIFFERENCES[index], n, SAMPLES)
    assert by_mean <= above(most)
    assert by_signs <= above(most_by_signs)


def test_randomization_rejects_skewed_differences_too_often():
    by_mean, by_signs = measuring.sizes(measuring.DIFFERENCES[3], 50, SAMPLES)
    assert by_signs > 0.08
    assert by_mean < above(0.055)


def test_the_test_of_the_mean_finds_differences(rng):
    found = [mean_p(mean_estimate(rng.normal(0.5, size=50))) <= 0.05 for _ in range(400)]
    assert np.mean(found) > 0.88


def test_statistics_that_are_no_means_are_served_by_the_jackknife(rng):
    truth = 0.9
    held = []
    for _ in range(SAMPLES):
        totals = rng.lognormal(size=40)
        parts = totals * rng.beta(9, 1, 40)
        ratio, left_out = parts.sum() / totals.sum(), (parts.sum() - parts) / (totals.sum() - totals)
        low, high = jackknife_estimate(ratio, left_out).interval(0.95, (0.0, 1.0))
        held.append(low <= truth <= high)
        # The ratio of sums is the mean over units of several items: both errors are the same to first order.
    assert below(0.94) <= np.mean(held) <= above(0.98)


def test_spearman(rng):
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    pairs = [rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 30).T for _ in range(200)]
    held = [low <= truth <= high for low, high in (raters.correlation(*pair)["interval"] for pair in pairs)]
    assert below(0.92, 200) <= np.mean(held)


@pytest.mark.parametrize(("name", "n"), [("lognormal", 20), ("0 or 1, 90 % are 1", 10)])
def test_the_page_has_the_measured_numbers(name, n):
    scores = next(scores for scores in measuring.DISTRIBUTIONS if scores.name == name)
    found = measuring.coverage(scores, n)
    rows = [line.strip("| ").split(" | ") for line in PAGE.split("<!-- coverage: start -->")[1].splitlines() if line]
    start = [row[0] for row in rows].index(f"**{name}**")
    column = measuring.SIZES.index(n) + 1
    assert [row[column] for row in rows[start : start + 4]] == [
        *map(measuring.percent, (found.skewed, found.student, found.bootstrap)),
        f"{found.width:.2f}",
    ]


def rows_of(name):
    """Return the cells of a table of the page, by row."""
    lines = PAGE.split(f"<!-- {name}: start -->")[1].split(f"<!-- {name}: end -->")[0].splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line]


def test_the_page_has_the_measured_numbers_of_the_jackknife():
    statistic, n = measuring.STATISTICS[0], 10
    found = measuring.jackknife_coverage(statistic, n)
    rows, column = rows_of("jackknife"), measuring.JACKKNIFE_SIZES.index(n) + 1
    start = [row[0] for row in rows].index(f"**{statistic.name}**")
    assert [row[column] for row in rows[start : start + 4]] == [
        *map(measuring.percent, (found.fewer, found.all, found.student)),
        f"{found.width:.2f}",
    ]


@pytest.mark.parametrize("statistic", measuring.STATISTICS, ids=lambda statistic: statistic.name)
@pytest.mark.parametrize(("n", "least"), [(10, 0.9), (20, 0.92), (40, 0.935)])
def test_intervals_of_the_jackknife_contain_the_value_as_often_as_they_say(statistic, n, least):
    samples = SAMPLES // 2
    found = measuring.jackknife_coverage(statistic, n, samples)
    assert found.fewer >= below(least, samples)
    assert found.fewer >= found.all >= found.student


def test_attack_has_more_samples():
    assert "INTERVAL_TIMES=10" in (ROOT / "Makefile").read_text()


# The interval itself.


def test_values_that_are_not_skewed_have_students_interval():
    values = np.array([1.0, 2, 3, 4, 5])
    expected = stats.t.interval(0.9, 4, loc=3, scale=stats.sem(values))
    assert mean_estimate(values).interval(0.9) == pytest.approx(expected)


def test_skewed_values_have_an_interval_that_is_wider_on_their_long_side(rng):
    values = rng.lognormal(size=20)
    low, high = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    found = mean_estimate(values).interval(0.95)
    assert found[0] == pytest.approx(low)
    assert found[1] > high
    assert mean_estimate(-values).interval(0.95) == pytest.approx([-found[1], -found[0]])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_test_rejects_what_the_interval_excludes(rng, level):
    for _ in range(300):
        estimate = mean_estimate(rng.lognormal(size=8) - rng.uniform(0, 4))
        low, high = estimate.interval(level)
        assert (mean_p(estimate) < 1 - level) == (not low <= 0 <= high)


def test_order_units_and_batches_do_not_matter(rng):
    values, units = rng.lognormal(size=500), rng.integers(0, 60, 500)
    expected = mean_estimate(values, units).interval(0.95)
    order = rng.permutation(500)
    assert mean_estimate(values[order], units[order]).interval(0.95) == pytest.approx(expected, rel=1e-12)
    assert mean_estimate(values, 7 * units).interval(0.95) == pytest.approx(expected, rel=1e-12)
    sums, counts = np.bincount(units, values), np.bincount(units)
    merged = UnitSums()
    for start in range(0, 60, 7):
        merged.add(sums[start : start + 7], counts[start : start + 7])
    merged.add(np.empty(0), np.empty(0))
    assert merged.estimate().interval(0.95) == pytest.approx(expected, rel=1e-9)
    # Moments about the mean of the first batch keep their digits far from 0.
    far = mean_estimate(values + 1e6, units).interval(0.95)
    assert far == pytest.approx(np.add(expected, 1e6), rel=1e-12)


def test_the_error_of_units_is_that_of_a_ratio(rng):
    values, units = rng.lognormal(size=400), np.sort(rng.integers(0, 50, 400))
    estimate = mean_estimate(values, units)
    sums, counts = np.bincount(units, values), np.bincount(units)
    jackknife = jackknife_estimate(estimate.value, (sums.sum() - sums) / (counts.sum() - counts))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.error == pytest.approx(jackknife.error, rel=0.03)
    assert estimate.skewness == pytest.approx(jackknife.skewness, rel=0.1)


def test_heavy_tails_take_degrees_of_freedom_from_the_jackknife(rng):
    values = rng.standard_t(3, size=30)
    value, left_out = values.mean(), (values.sum() - values) / 29
    estimate = jackknife_estimate(value, left_out)
    # The variance of n values has the variance (k - (n - 3) / (n - 1)) / n, relative to its square.
    expected = 2 * 30 / (stats.kurtosis(values, fisher=False) - 27 / 29)
    assert estimate.degrees == pytest.approx(expected)
    assert estimate.degrees < 29
    assert estimate._replace(skewness=0.0).interval(0.9) == pytest.approx(
        stats.t.interval(0.9, expected, loc=value, scale=stats.sem(values))
    )
    assert (mean_p(estimate._replace(skewness=0.0)) < 0.1) == (
        abs(value / estimate.error) > stats.t.ppf(0.95, expected)
    )
    # Light tails add none.
    assert jackknife_estimate(0.5, np.array([0.4, 0.6] * 5)).degrees == 9
    assert jackknife_estimate(0.5, np.array([0.4, 0.6])).degrees == 1
    # The scale does not matter.
    assert jackknife_estimate(value * 1e-90, left_out * 1e-90).degrees == pytest.approx(expected)
    assert jackknife_estimate(0.5, np.full(4, 0.5)).interval(0.95) is None


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
    assert Estimate(4, 0.5, 0.1, 0.0).interval(0.95) == pytest.approx(
        stats.t.interval(0.95, 3, loc=0.5, scale=0.1), rel=1e-9
    )


def test_a_million_items_take_no_resampling(rng):
    values = rng.lognormal(size=1_000_000)
    began = time.process_time()
    tracemalloc.start()
    low, high = mean_estimate(values, np.arange(1_000_000) // 2).interval(0.95)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - began < 5
    assert peak < 100e6
    assert low < np.exp(0.5) < high


# Units, wherever items belong together.

LABELS = ["a", "a", "b", "b", "b"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("vendi_embed", {"kernel": "ngram"}),
        ("chamfer_diversity", {}),
        ("self_bleu", {"max_order": 1}),
        ("self_bleu", {"max_order": 1, "aggregate": "corpus"}),
        ("gruen", {}),
        ("probeval", {"references": [[members[0], members[1]] for members in SETS]}),
    ],
)
def test_compute_takes_labels(load, name, settings):
    given = [" ".join(members) for members in SETS] if name == "gruen" else SETS
    compute = load(name).compute
    alone = compute(predictions=given, confidence=0.5, **settings)
    result = compute(predictions=given, confidence=0.5, confidence_by=LABELS, **settings)
    assert result["signature"] == alone["signature"].replace("|confidence:0.5|", "|confidence:0.5|confidence_by:given|")
    if settings.get("aggregate") != "corpus":
        expected = mean_estimate(np.array(result["scores"]), np.array([0, 0, 1, 1, 1])).interval(0.5)
        assert result["confidence_interval"] == pytest.approx(expected)
    assert result["confidence_interval"] != alone["confidence_interval"]
    assert result[name] == alone[name]
    numbers = compute(predictions=given, confidence=0.5, confidence_by=range(5), **settings)
    assert numbers["confidence_interval"] == alone["confidence_interval"]
    for labels, error, message in (
        (LABELS[:4], ValueError, r"confidence_by must have a label for each of the 5 (set|text|question)s\. Got 4\."),
        ([*LABELS[:4], None], TypeError, r"confidence_by\[4\] must be a string or an integer\. Got None\."),
        ([*LABELS[:4], True], TypeError, r"confidence_by\[4\] must be .* Got bool True\."),
        ("aabbb", TypeError, "confidence_by must be a list with a label for each"),
    ):
        with pytest.raises(error, match=message):
            compute(predictions=given, confidence=0.5, confidence_by=labels, **settings)
    with pytest.raises(ValueError, match="confidence_by needs confidence: pass both"):
        compute(predictions=given, confidence_by=LABELS, **settings)


def test_labels_of_sets_that_are_left_out_are_left_out(load):
    sets, labels = [["alone"], *SETS], ["x", *LABELS]
    expected = load("self_bleu").compute(predictions=SETS, max_order=1, confidence=0.9, confidence_by=LABELS)
    found = load("self_bleu").compute(
        predictions=sets, max_order=1, confidence=0.9, confidence_by=labels, singletons="skip"
    )
    assert found["confidence_interval"] == expected["confidence_interval"]
    assert parse_confidence_by(["x", 1, "x", "1"], 4, "set").tolist() == [0, 1, 0, 2]


def prompts(rng, n=30, k=8):
    """Make texts whose scores by non-redundancy depend on their prompt."""
    rows = []
    for i in range(n):
        repeats = rng.random() < 0.4
        for j in range(k):
            first = f"The {i} dogs walked to the park of the city {j}."
            second = first if repeats != (rng.random() < 0.1) else "A train left early."
            rows.append({"prompt": f"p{i}", "id": len(rows), "text": f"{first} {second}"})
    return rows


def score_file(data, *more):
    words = [data, "--metric", "gruen", "--setting", 'components=["non_redundancy"]', "--quiet", *more]
    assert score.main([*map(str, words), "--out", str(data.with_suffix(".out.jsonl")), "--batch-size", "50"]) == 0
    return json.loads(data.with_suffix(".out.jsonl.summary.json").read_text()), read_jsonl(
        data.with_suffix(".out.jsonl")
    )


@pytest.mark.parametrize("form", ["lists", "group-key", "set-size", "texts"])
def test_score_takes_the_texts_of_a_prompt_together(load, rng, tmp_path, capsys, form):
    rows = prompts(rng)
    texts, by = [row["text"] for row in rows], [row["prompt"] for row in rows]
    compute, settings = load("gruen").compute, {"components": ["non_redundancy"], "confidence": 0.95}
    expected = compute(predictions=texts, **settings, **({} if form == "texts" else {"confidence_by": by}))
    more = {"group-key": ["--group-key", "prompt"], "set-size": ["--set-size", "8"]}.get(form, [])
    if form == "lists":
        rows = [{"text": texts[i : i + 8]} for i in range(0, len(texts), 8)]
    summary, written = score_file(write_jsonl(tmp_path / "data.jsonl", rows), "--text-key", "text", *more)
    assert summary["confidence_interval"] == pytest.approx(expected["confidence_interval"], abs=1e-9)
    assert (summary["n_units"], summary["n_scores"]) == (240 if form == "texts" else 30, 240)
    scores = [row["gruen"] for row in written]
    assert scores == pytest.approx(expected["scores"]) if form == "texts" else [len(own) for own in scores] == [8] * 30
    if form != "texts":
        assert [one for own in scores for one in own] == pytest.approx(expected["scores"])
        alone = compute(predictions=texts, **settings)["confidence_interval"]
        assert np.ptp(summary["confidence_interval"]) > 2 * np.ptp(alone)
    capsys.readouterr()


def test_score_of_texts_writes_their_groups_to_parquet(rng, tmp_path, capsys):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = prompts(rng, n=3)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    out = tmp_path / "out.parquet"
    words = ["--metric", "gruen", "--setting", 'components=["non_redundancy"]', "--text-key", "text", "--quiet"]
    assert score.main([str(tmp_path / "data.parquet"), *words, "--group-key", "prompt", "--out", str(out)]) == 0
    table = pq.read_table(out).to_pylist()
    assert [row["prompt"] for row in table] == ["p0", "p1", "p2"]
    assert [len(row["gruen"]) for row in table] == [8, 8, 8]
    capsys.readouterr()


def compare_files(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["compare.py", *map(str, arguments)])
    code = compare.main()
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_compare_takes_the_items_of_a_group_together(load, rng, tmp_path, monkeypatch, capsys):
    first, second = prompts(rng), prompts(rng)
    a, b = write_jsonl(tmp_path / "a.jsonl", first), write_jsonl(tmp_path / "b.jsonl", second[::-1])
    common = ("--metric", "gruen", "--setting", 'components=["non_redundancy"]', "--text-key", "text")
    code, out = compare_files(
        monkeypatch,
        capsys,
        *(a, b, *common, "--id-key", "id", "--group-key", "prompt", "--json", tmp_path / "c.json"),
    )
    assert code == 0, out
    result = json.loads((tmp_path / "c.json").read_text())
    compute = load("gruen").compute
    scores = [
        np.array(compute(predictions=[row["text"] for row in rows], components=["non_redundancy"])["scores"])
        for rows in (first, second)
    ]
    units = np.repeat(np.arange(30), 8)
    differences = scores[0] - scores[1]
    estimate = mean_estimate(differences, units)
    assert (result["n"], result["n_units"]) == (240, 30)
    assert result["difference"]["interval"] == pytest.approx(estimate.interval(0.95))
    assert result["a"]["interval"] == pytest.approx(mean_estimate(scores[0], units).interval(0.95, (0.0, 1.0)))
    assert result["p"] == pytest.approx(mean_p(estimate))
    assert result["p_randomization"] == randomization_p(np.bincount(units, differences))
    assert "over 30 groups of items" in out
    assert f"p = {result['p_randomization']:.4f} (paired approximate randomization, 9999 resamples)" in out

    # A line that holds the texts of a prompt is an item.
    lists = [
        write_jsonl(
            tmp_path / f"{name}.lists.jsonl", [[row["text"] for row in rows[i : i + 8]] for i in range(0, 240, 8)]
        )
        for name, rows in (("a", first), ("b", second))
    ]
    code, out = compare_files(monkeypatch, capsys, *lists, *common[:4], "--json", tmp_path / "d.json")
    assert code == 0, out
    by_line = json.loads((tmp_path / "d.json").read_text())
    assert by_line["n"] == 30
    assert by_line["difference"]["mean"] == pytest.approx(result["difference"]["mean"])
    assert by_line["difference"]["interval"] == pytest.approx(result["difference"]["interval"])
    assert "over items" in out


def test_groups_of_compare_must_agree(tmp_path, monkeypatch, capsys):
    a = write_jsonl(tmp_path / "a.jsonl", [{"p": 1, "t": ["a", "b"]}, {"p": 1, "t": ["a", "b"]}])
    b = write_jsonl(tmp_path / "b.jsonl", [{"p": 1, "t": ["a", "b"]}, {"p": 2, "t": ["a", "b"]}])
    c = write_jsonl(tmp_path / "c.jsonl", [{"p": 1.5, "t": ["a", "b"]}])
    common = ("--metric", "self_bleu", "--text-key", "t", "--group-key", "p")
    code, out = compare_files(monkeypatch, capsys, a, b, *common)
    assert code == 2
    assert "must have the same p. Got 1 and 2." in out
    code, out = compare_files(monkeypatch, capsys, c, c, *common)
    assert code == 2
    assert re.search(r"line 1: p must be a string or an integer\. Got 1\.5\.", out)
