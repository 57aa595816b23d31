"""text-metrics report: every number is that of the metrics on the same sets, or of a slow reference."""

import json
import random
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import text_metrics
from tests.conftest import encode
from tests.files import KINDS_OF_PIPES, pipe_of, read_jsonl, write_jsonl
from tests.fuzzing import bounded
from text_metrics.__main__ import main
from text_metrics.commands.report import parse_options
from text_metrics.metrics._core.core_intervals import mean_estimate, ratio_estimate
from text_metrics.reporting.build import Choices, find_power, least_diverse
from text_metrics.reporting.inputs import read_inputs
from text_metrics.reporting.lengths import count_words, cut
from text_metrics.reporting.likeness import shuffled
from text_metrics.reporting.results import MEASURES
from text_metrics.reporting.scores import summarize
from text_metrics.statistics import difference_bounds, holm, paired_test

NAME = "all-MiniLM-L6-v2"
PLACES = ["the park", "the sea", "the old town", "a small shop", "the station", "a field of maize"]
# Different things, one thing in three ways, and one text three times.
WIDE = ["A dog barks in {}.", "Rain falls on {} all night.", "Two men sell apples near {}.", "She writes of {}."]
NARROW = ["A dog barks in {}.", "In {}, a dog is barking.", "Loudly, a dog barks in {}.", "She writes of {}."]
SAME = ["A dog barks in {}.", "A dog barks in {}.", "A dog barks in {}.", "In {}, a dog is barking."]
HUMAN = ["A dog barks in {}.", "Children play in {}.", "I was late to {}.", "We met friends at {}."]


def sets_of(patterns):
    texts = {}
    for place in PLACES:
        texts[place] = [pattern.format(place) for pattern in patterns]
    return texts


SYSTEMS = {"wide": sets_of(WIDE), "narrow": sets_of(NARROW), "same": sets_of(SAME)}
# Two to four texts of each prompt.
SHORT = {prompt: texts[: 2 + i % 3] for i, (prompt, texts) in enumerate(SYSTEMS["narrow"].items())}
PEOPLE = sets_of(HUMAN)


def rows_of(sets):
    return [{"prompt": prompt, "texts": texts} for prompt, texts in sets.items()]


def text_rows(sets):
    return [{"prompt": prompt, "texts": text} for prompt, texts in sets.items() for text in texts]


def write_systems(folder, systems):
    """Write the sets of systems, by prompt, or their rows."""
    rows = {name: sets if isinstance(sets, list) else rows_of(sets) for name, sets in systems.items()}
    return [write_jsonl(folder / f"{name}.jsonl", of_system) for name, of_system in rows.items()]


def run(folder, *words, quality=("--quality", "none")):
    """Run the command in this process; returns its exit code and the report."""
    out = folder / "report"
    keys = () if "--text-key" in words else ("--text-key", "texts", "--id-key", "prompt")
    code = main(["report", *map(str, words), *keys, *quality, "--out", str(out), "--quiet"])
    path = out / "report.json"
    return code, json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail) if path.exists() else None


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def make(tmp_path, cache):
    """Write systems and perhaps people, and run the command on them; returns its exit code and the report."""

    def make_once(systems, *words, people=None, **quality):
        if people is not None:
            words += ("--people", *write_systems(tmp_path, {"people": people}))
        return run(tmp_path, *write_systems(tmp_path, systems), *words, "--cache-dir", cache, **quality)

    return make_once


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cache):
    """The report of three systems, with quality and people."""
    folder = tmp_path_factory.mktemp("whole")
    (people,) = write_systems(folder, {"people": PEOPLE})
    code, report = run(folder, *write_systems(folder, SYSTEMS), "--people", people, "--cache-dir", cache, quality=())
    assert code == 0
    return report


def by_name(report):
    return {metric["name"]: metric for metric in report["metrics"]}


def kinds_of(report):
    return {caveat["kind"]: caveat["sentence"] for caveat in report["caveats"]}


def ordered(sets):
    return [sets[prompt] for prompt in sorted(sets)]


def near(interval):
    return None if interval is None else pytest.approx(interval, abs=1e-5)


def test_every_score_is_that_of_the_metric(whole, load):
    metrics = by_name(whole)
    assert whole["systems"] == list(SYSTEMS)
    assert whole["prompts"] == sorted(PLACES)
    for i, sets in enumerate(map(ordered, SYSTEMS.values())):
        sets = [sorted(texts) for texts in sets]
        texts = [text for members in sets for text in members]
        labels = [prompt for prompt in sorted(PLACES) for _ in range(4)]
        rated = load("gruen").compute(predictions=texts, confidence=0.95, confidence_by=labels)
        quality = np.reshape(rated["scores"], (-1, 4))
        given = {"predictions": sets, "confidence": 0.95}
        calls = {
            "vendi_embed": load("vendi_embed").compute(quality=quality.tolist(), **given),
            "n_classes": load("semantic_entropy").compute(**given),
            "chamfer_diversity": load("chamfer_diversity").compute(**given),
            "self_bleu": load("self_bleu").compute(repetition=True, details=True, **given),
        }
        for name, result in calls.items():
            value = metrics[name]["values"][i]
            prefix = "n_classes_" if name == "n_classes" else ""
            assert value["scores"] == pytest.approx(result[f"{prefix}scores"], abs=1e-6)
            assert value["mean"] == pytest.approx(result[name], abs=1e-6)
            assert value["interval"] == near(result[f"{prefix}confidence_interval"])
            assert f"{metrics[name]['signature'].partition('|version')[0]}|confidence" in result["signature"]
        for name, column in (("distinct", "distinct_2"), ("compression_ratio", "compression_ratio")):
            assert metrics[name]["values"][i]["scores"] == [row[column] for row in calls["self_bleu"]["details"]]
            assert metrics[name]["values"][i]["mean"] == pytest.approx(calls["self_bleu"][column])
        assert metrics["length"]["values"][i]["mean"] == pytest.approx(np.mean([len(text.split()) for text in texts]))
        value = metrics["quality"]["values"][i]
        assert value["scores"] == pytest.approx(quality.mean(axis=1), abs=1e-6)
        assert (value["mean"], value["interval"]) == (pytest.approx(rated["gruen"]), near(rated["confidence_interval"]))
        weighted = metrics["quality_vendi_embed"]["values"][i]
        assert weighted["scores"] == pytest.approx(calls["vendi_embed"]["quality_scores"], abs=1e-6)
        assert weighted["interval"] == near(calls["vendi_embed"]["quality_confidence_interval"])
    assert "gruen|" in metrics["quality"]["signature"]


def test_all_pairs_are_tested_and_the_best_is_marked_only_if_the_test_holds(whole):
    for metric in whole["metrics"]:
        scores = np.array([value["scores"] for value in metric["values"]])
        assert [(test["a"], test["b"]) for test in metric["tests"]] == [(0, 1), (0, 2), (1, 2)]
        bounds = difference_bounds(MEASURES[metric["name"]].bounds, [4, 4])
        for test in metric["tests"]:
            expected = paired_test(scores[test["a"]], scores[test["b"]], 0.95, n_tests=3, bounds=bounds)
            assert test.items() >= expected.items()
        assert [test["p_holm"] for test in metric["tests"]] == holm([test["p"] for test in metric["tests"]])
        means = scores.mean(axis=1) * (-1 if metric["better"] == "lower" else 1)
        assert list(means[metric["order"]]) == sorted(means, reverse=True)
        first = metric["order"][0]
        p_values = [test["p_holm"] for test in metric["tests"] if first in (test["a"], test["b"])]
        is_shown = metric["better"] and all(p is not None and p < 0.05 for p in p_values)
        assert metric["best"] == (first if is_shown else None)
    assert by_name(whole)["vendi_embed"]["best"] == 0
    assert by_name(whole)["length"]["best"] is None
    # Texts of like lengths are in no doubt.
    assert "different lengths" not in kinds_of(whole)
    assert whole["same_length"] is None


def described(*scores):
    """Return the entry of a metric for the scores of systems."""
    return summarize(MEASURES["vendi_embed"], np.array(scores), "", 2, 0.95)


def test_the_interval_of_a_difference_is_of_possible_differences():
    """Vendi scores of two texts are 1 to 2, so that they differ by at most 1."""
    differences = np.array([1.0, 0.9, 1.0, 1.0, 0.8, 1.0])
    low, high = mean_estimate(differences).interval(0.95)
    assert high > 1
    (test,) = described(1 + differences, np.ones(6)).tests
    assert test.interval == pytest.approx([low, 1])
    (test,) = described(np.ones(6), 1 + differences).tests
    assert test.interval == pytest.approx([-1, -low])


def test_first_is_who_beats_every_other_system(rng):
    """Against a third system of equal mean and larger variance, none is first in more reports than the level."""
    wrong = 0
    for _ in range(300):
        scores = rng.normal([[2.0], [1.9], [2.0]], [[0.1], [0.1], [2.0]], (3, 60))
        wrong += described(*scores).best is not None
    assert wrong / 300 < 0.06
    assert described(*rng.normal([[2.0], [1.9], [1.8]], 0.1, (3, 60))).best == 0


def test_holm_and_power():
    # By hand: 3 x .01; 2 x .03; the larger of 1 x .04 and the one before.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([None, 0.5, 0.9]) == [None, 1.0, 1.0]
    assert holm([]) == []
    # Simulated: the test rejects in about 80 % of samples with this true difference.
    rng = np.random.default_rng(1)
    pilot = rng.normal(0, 1, 30)
    size = paired_test(pilot, np.zeros(30), 0.95)["smallest_difference"] / pilot.std(ddof=1)
    p_values = [paired_test(sample, np.zeros(30), 0.95)["p"] for sample in rng.normal(size, 1, (2000, 30))]
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.8, abs=0.04)


def stars(scores):
    """Name the first system of each study, (studies, systems, prompts), as the report marks it."""
    return [summarize(MEASURES["vendi_embed"], each, "", 4, 0.95).best for each in scores]


@pytest.mark.parametrize(("n_systems", "n_prompts"), [(2, 40), (5, 100)])
def test_the_printed_lead_has_a_power_of_80_percent(n_systems, n_prompts):
    """By the decision of the page: the star of a system that beats all others after Holm's adjustment.

    Prompts are drawn from those of a study whose systems do not differ, so that its spread is the true one.
    """
    rng = np.random.default_rng(n_systems)
    # Scores of a prompt are correlated, and some systems vary more than others.
    spread = np.linspace(0.2, 0.5, n_systems)[:, None]
    pilot = 2 + rng.normal(0, 0.4, n_prompts) + spread * rng.gamma(4, 0.5, (n_systems, n_prompts))
    pilot -= pilot.mean(axis=1, keepdims=True) - 2
    pilot[0] += 0.001
    choices = Choices(difference=0.1)
    power = find_power(summarize(MEASURES["vendi_embed"], pilot, "", 4, 0.95), choices)
    centre = pilot.mean(axis=1, keepdims=True)
    pilot = centre + (pilot - centre) * np.sqrt(n_prompts / (n_prompts - 1))
    for lead, n in ((power.smallest_lead, n_prompts), (0.1, power.n_needed)):
        truth = pilot.copy()
        truth[0] += lead - 0.001
        studies = np.array([truth[:, rng.integers(0, n_prompts, n)] for _ in range(400)])
        found = np.mean([best == 0 for best in stars(studies)])
        assert found == pytest.approx(0.8, abs=0.05), (lead, n)


def partition_of(groups):
    by_prompt = list(zip(*map(ordered, groups), strict=True))
    sets = []
    labels = []
    for groups in by_prompt:
        sets.append([text for texts in groups for text in texts])
        labels.append([label for label, texts in enumerate(groups) for _ in texts])
    return text_metrics.between_groups("vendi_embed", sets, labels, permutations=1000, confidence=0.95)


def test_partitions_are_those_of_between_groups(whole):
    systems = list(SYSTEMS.values())
    section = whole["likeness"]
    result = partition_of(systems)
    part = section["partition"]
    for name in ("within", "pooled", "between", "between_expected"):
        assert part[name] == pytest.approx(result[name], abs=1e-5)
    assert part["p"] == result["permutation_p"]
    assert part["share"] == pytest.approx(result["share"], abs=1e-5)
    low, high = result["between_confidence_interval"]
    assert part["between_interval"] == near([low, min(high, 3)])
    chi = np.log(result["between_scores"])
    chance = np.log(result["between_expected_scores"])
    expected = ratio_estimate(chi - chance, np.log(3) - chance).interval(0.95)
    assert part["share_interval"] == near([expected[0], min(1.0, expected[1])])
    for pair_ in section["pairs"]:
        result = partition_of([systems[pair_["a"]], systems[pair_["b"]]])
        assert pair_["share"] == pytest.approx(result["share"], abs=1e-5)
        assert pair_["p"] == result["permutation_p"]
    betas = [row["between"] for row in section["pairs"]]
    assert betas == sorted(betas, reverse=True)
    assert {(row["a"], row["b"]) for row in section["pairs"]} == {(0, 1), (0, 2), (1, 2)}


def test_people_are_compared_at_equal_numbers(whole):
    section = whole["people"]
    # Four texts of people make two halves of two, with which two of each system are compared.
    assert (section["n_texts"], section["n_prompts"]) == (12, 6)
    people = {prompt: shuffled(texts, prompt) for prompt, texts in PEOPLE.items()}
    half = {prompt: texts[:2] for prompt, texts in people.items()}
    other = {prompt: texts[2:4] for prompt, texts in people.items()}
    sides = []
    for sets in SYSTEMS.values():
        sides.append({prompt: shuffled(texts, prompt)[:2] for prompt, texts in sets.items()})
    for row, side in zip(section["rows"], [*sides, other], strict=True):
        result = partition_of([half, side])
        assert row["between"] == pytest.approx(result["between"], abs=1e-5)
        assert row["p"] == result["permutation_p"]


def test_collapse_shows_the_least_diverse_prompts(whole):
    values = by_name(whole)["vendi_embed"]["values"]
    for value, entries, (name, sets) in zip(values, whole["collapse"], SYSTEMS.items(), strict=True):
        scores = dict(zip(whole["prompts"], value["scores"], strict=True))
        assert [entry["score"] for entry in entries] == sorted(scores.values())[:5]
        for entry in entries:
            assert (entry["score"], entry["texts"]) == (scores[entry["prompt"]], sorted(sets[entry["prompt"]]))
            assert entry["equal_share"] == (0.75 if name == "same" else 0)


def numbers_of(report):
    """The numbers of a report, with systems by name."""
    names = [*report["systems"], "people"]
    numbers = {name: report["likeness"]["partition"][name] for name in ("within", "pooled", "between", "p")}
    for metric in report["metrics"]:
        for i, value in enumerate(metric["values"]):
            numbers |= {(metric["name"], names[i], p): score for p, score in enumerate(value["scores"])}
        numbers |= {(metric["name"], *sorted((names[t["a"]], names[t["b"]]))): t["p_holm"] for t in metric["tests"]}
    for row in report["likeness"]["pairs"]:
        numbers |= {(name, *sorted((names[row["a"]], names[row["b"]]))): row[name] for name in ("share", "p_holm")}
    for i, row in enumerate(report["people"]["rows"]):
        numbers |= {(name, names[i]): row[name] for name in ("share", "p")}
    return numbers


def test_the_order_of_systems_prompts_and_rows_does_not_matter(make):
    """Also not the form: a row for each text, all systems in one file, rows of a prompt apart from each other."""
    rows = [row | {"model": name} for name, sets in SYSTEMS.items() for row in text_rows(sets)]
    numbers = []
    for seed in (0, 2):
        random.Random(seed).shuffle(rows)
        people = random.Random(seed).sample(rows_of(PEOPLE), len(PEOPLE))
        numbers.append(numbers_of(make({"rows": rows}, "--system-key", "model", people=people)[1]))
    assert list(numbers[0]) != list(numbers[1])
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-9)


def test_only_an_earlier_report_is_overwritten(tmp_path, make, capsys):
    systems = {"wide": SYSTEMS["wide"]}
    page = tmp_path / "report" / "index.html"
    page.parent.mkdir()
    page.write_text("mine", encoding="utf-8")
    assert make(systems)[0] == 2
    assert "--out" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"
    page.unlink()
    for is_earlier in (False, True):
        assert make(systems)[0] == 0
        assert ("overwritten" in capsys.readouterr().err) == is_earlier


def test_a_column_of_quality(make, load):
    rows = {}
    for name in ("wide", "same"):
        rows[name] = [row | {"q": [0.9, 0.1, 0.5, 0.5]} for row in rows_of(SYSTEMS[name])]
    _, report = make(rows, quality=("--quality-key", "q"))
    metrics = by_name(report)
    assert metrics["quality"]["values"][0]["scores"] == pytest.approx([0.5] * 6)
    weighted = load("vendi_embed").compute(predictions=ordered(SYSTEMS["wide"]), quality=[[0.9, 0.1, 0.5, 0.5]] * 6)
    assert metrics["quality_vendi_embed"]["values"][0]["scores"] == pytest.approx(weighted["quality_scores"], abs=1e-6)
    # A column may have any name, and a scale; above 1, it is no weight of a Vendi score.
    rows = {name: [row | {"gruen": [9, -1, 30, 2]} for row in of_system] for name, of_system in rows.items()}
    metrics = by_name(make(rows, quality=("--quality-key", "gruen", "--quality-scale", "10"))[1])
    assert metrics["quality"]["values"][1]["scores"] == pytest.approx([1.0] * 6)
    assert metrics["quality"]["signature"].startswith("quality|column:gruen|")
    assert "quality_vendi_embed" not in metrics


def test_sets_of_different_sizes_are_rarefied(make):
    systems = {"wide": SYSTEMS["wide"], "short": SHORT}
    _, report = make(systems)
    assert report["rarefied_to"] == 2
    metrics = by_name(report)
    for i, sets in enumerate(map(ordered, systems.values())):
        sets = [sorted(texts) for texts in sets]
        result = text_metrics.rarefied("vendi_embed", sets, 2)
        assert metrics["vendi_embed"]["values"][i]["scores"] == pytest.approx(result["scores"], abs=1e-6)
        result = text_metrics.rarefied("self_bleu", sets, 2, repetition=True, details=True)
        assert metrics["self_bleu"]["values"][i]["scores"] == pytest.approx(result["scores"])
        distinct = [row["distinct_2"] for row in result["details"]]
        assert metrics["distinct"]["values"][i]["scores"] == pytest.approx(distinct)
    assert "2 to 4 texts" in kinds_of(report)["sets of different sizes"]


def test_bad_rows_are_skipped_with_their_set(tmp_path, make, capsys):
    rows = text_rows(SYSTEMS["narrow"])
    rows[5]["texts"] = 7  # of the sea
    del rows[9]["prompt"]  # between two rows of the old town
    rows[17]["texts"] = None  # of the station
    lacking = {prompt: texts for prompt, texts in SYSTEMS["wide"].items() if prompt != "the park"}
    other = {"wide": lacking | {"more": ["One text."]}}
    code, report = make({"narrow": rows, **other})
    assert code == 3
    shown = capsys.readouterr().err
    assert "narrow.jsonl, row 6: 'texts' must be" in shown
    # Twelve bad rows are not shown one by one.
    assert "narrow.jsonl, row 21" not in shown
    assert "2 more rows" in shown
    bad = read_jsonl(tmp_path / "report" / "bad.jsonl")
    assert [row["row"] for row in bad] == list(range(5, 13)) + list(range(17, 21))
    assert "row 6" in bad[0]["error"]
    assert report["sources"][0]["n_bad"] == 12
    assert report["prompts"] == ["a field of maize", "a small shop"]
    assert {"invalid rows", "missing prompts"} <= kinds_of(report).keys()
    assert report["rarefied_to"] is None
    # A later report without bad rows leaves no old file.
    assert make(other)[0] == 0
    assert not (tmp_path / "report" / "bad.jsonl").exists()


def test_a_row_that_may_belong_to_any_set_is_an_error(tmp_path):
    """As in `score`: where rows of a set are not adjacent, a row that cannot be parsed may be of any set."""
    lines = [json.dumps(row) for row in text_rows(SYSTEMS["wide"])]
    data = tmp_path / "wide.jsonl"
    torn = [*lines[::2], '{"prompt": "the sea']
    data.write_text("\n".join(torn + lines[1::2]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"row 13 .*any set"):
        read_inputs(parse_options([str(data), "--text-key", "texts", "--id-key", "prompt"]))


@pytest.mark.parametrize("kind", KINDS_OF_PIPES)
def test_a_pipe_is_read_once(tmp_path, kind):
    lines = [json.dumps(row | {"more": "x" * 2**13}) + "\n" for row in text_rows(SYSTEMS["wide"])]
    with bounded(kind), pipe_of("".join(lines[::2] + lines[1::2]).encode(), kind, tmp_path / "pipe") as path:
        inputs = read_inputs(parse_options([str(path), "--text-key", "texts", "--id-key", "prompt"]))
    assert inputs.texts == [[sorted(texts) for texts in ordered(SYSTEMS["wide"])]]


def test_one_prompt_is_enough(make):
    """There are means, but no intervals and no tests."""
    systems = {name: {"the park": SYSTEMS[name]["the park"][:3]} for name in ("wide", "narrow")}
    code, report = make(systems, people={"the park": PEOPLE["the park"][:1]})
    assert code == 0
    assert {test["p"] for metric in report["metrics"] for test in metric["tests"]} == {None}
    assert report["likeness"]["partition"]["between"] > 1
    assert "few prompts" in kinds_of(report)
    assert len(report["people"]["rows"]) == 2


def test_no_texts_leaves_all_of_them_out(tmp_path, make):
    secret = {}
    for prompt, texts in PEOPLE.items():
        secret[prompt] = [f"{text} Xylophone {i}." for i, text in enumerate(texts)]
    rows = rows_of(secret)
    rows[0]["texts"] = ["Xylophone bad", 1]
    code, report = make({"secret": rows, "wide": SYSTEMS["wide"]}, "--no-texts")
    assert code == 3
    written = [path for path in (tmp_path / "report").rglob("*") if path.is_file()]
    assert {"report.json", "bad.jsonl"} <= {path.name for path in written}
    assert [path for path in written if b"Xylophone" in path.read_bytes()] == []
    assert all(entry["texts"] is None for entries in report["collapse"] for entry in entries)


ERRORS = {
    "two names": (["a.jsonl", "a=b.jsonl"], "NAME=path"),
    "no set": (["ones.jsonl"], "no prompt"),
    "nothing in common": (["a.jsonl", "c.jsonl"], "no prompt"),
    "system key": (["a.jsonl", "b.jsonl", "--system-key", "m"], "--system-key"),
    "confidence": (["a.jsonl", "--confidence", "2"], "--confidence"),
    "setting": (["a.jsonl", "--setting", "q=2"], "--setting"),
    "output": (["a.jsonl", "--cache-dir", "a.jsonl"], "a.jsonl cannot be written"),
    "folder": (["a.jsonl", "--out", "b.jsonl"], "--out"),
    "columns": (["a.jsonl", "--columns", "vendi"], "--columns"),
    "quality column": (["a.jsonl", "--quality-key", "r"], "has no 'r': it has prompt, texts"),
    "no people": (["a.jsonl", "--people", "c.jsonl"], "--people"),
    "people": (["a.jsonl", "--people", "b.jsonl", "--text-key", "texts", "--by-line"], "--id-key"),
    "single texts": (["ones.jsonl", "--text-key", "prompt", "--by-line"], "--id-key"),
    "lengths": (["a.jsonl", "c.jsonl", "--text-key", "texts", "--by-line"], "--by-line"),
    "same": (["a.jsonl", "--setting", "same=2"], "same"),
    "model": (["a.jsonl", "b.jsonl", "--setting", "model=./nowhere", "--setting", "same=0.8"], "nowhere"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_sentence(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    write_systems(tmp_path, {"a": SYSTEMS["wide"], "b": SYSTEMS["same"], "c": {"other": ["one", "two"]}})
    write_jsonl(tmp_path / "ones.jsonl", [{"prompt": "p", "texts": ["one"]}])
    words, message = ERRORS[name]
    out = () if "--out" in words else ("--out", "report")
    keys = () if "--text-key" in words else ("--text-key", "texts", "--id-key", "prompt")
    assert main(["report", *words, *keys, *out, "--quiet"]) == 2
    (shown,) = capsys.readouterr().err.splitlines()
    assert message in shown


def test_a_blank_line_takes_the_place_of_a_row(tmp_path):
    files = write_systems(tmp_path, {name: SYSTEMS[name] for name in ("wide", "same")})
    for path, blank in zip(files, (1, 4), strict=True):
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[blank] = ""
        path.write_text("\n".join([*lines, "", ""]), encoding="utf-8")
    inputs = read_inputs(parse_options([*map(str, files), "--text-key", "texts", "--by-line"]))
    assert inputs.ids == ["1", "3", "4", "6"]
    for sets, name in zip(inputs.texts, ("wide", "same"), strict=True):
        assert sets == [sorted(SYSTEMS[name][PLACES[int(line) - 1]]) for line in inputs.ids]


# Columns beside those of models, by row, and the system column that is named, if any.
COLUMNS = {
    "text": (lambda name, i: {"model": name, "note": f"{name} {i}"}, "model"),
    "number": (lambda name, i: {"temperature": len(name) / 10}, "temperature"),
    "text before number": (lambda name, i: {"temperature": len(name) / 10, "model": name}, "model"),
    "nearly all prompts": (lambda name, i: {"finish_reason": "length" if i in (0, 7) else "stop"}, None),
    "a sample each": (lambda name, i: {"sample": i % 4}, None),
    "one value": (lambda name, i: {"language": "en"}, None),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("are_lists", [True, False])
def test_systems_in_one_file_are_not_pooled(tmp_path, capsys, name, are_lists):
    column, named = COLUMNS[name]
    of_one = rows_of if are_lists else text_rows
    rows = [row | column(each, i) for each in SYSTEMS for i, row in enumerate(of_one(SYSTEMS[each]))]
    if name == "a sample each":
        rows = rows[: len(rows) // 3]
    words = [str(write_jsonl(tmp_path / "data.jsonl", rows)), "--text-key", "texts", "--id-key", "prompt"]
    if named is None:
        assert read_inputs(parse_options(words)).systems == ["data"]
    else:
        with pytest.raises(ValueError, match=f"--system-key {named}, or --one-system"):
            read_inputs(parse_options(words))
        assert read_inputs(parse_options([*words, "--one-system"])).systems == ["data"]
        assert len(read_inputs(parse_options([*words, "--system-key", named])).systems) == 3 - (named != "model") * 1


@pytest.mark.parametrize("rating", [1e300, -1e300, float("nan"), True, "x", None])
def test_an_impossible_rating_is_a_bad_row(tmp_path, rating):
    rows = [row | {"q": [0.5, 2, 3, 4]} for row in rows_of(SYSTEMS["wide"])]
    rows[2]["q"] = [0.5, rating, 3, 4]
    (path,) = write_systems(tmp_path, {"wide": rows})
    inputs = read_inputs(parse_options([str(path), "--text-key", "texts", "--id-key", "prompt", "--quality-key", "q"]))
    assert (len(inputs.ids), inputs.sources[0].n_bad, inputs.bad[0]["row"]) == (5, 1, 3)


EMOJI = ["😀", "🎸", "🚀", "🌲", "🍕", "🐙", "⚽", "🎻", "🧊", "🪁"]
CHINESE = ["今天天气很好我们去公园", "他在图书馆里看书", "小猫在窗台上睡觉", "火车晚点了半个小时"]
RUSSIAN = ["Привет всем друзьям и соседям", "", "Привет"]
GERMAN = ["Die Kinder spielen im Garten hinter dem Haus.", "Gestern hat es den ganzen Tag geregnet, sagte sie."]
BY_ENCODER = {"vendi_embed", "n_classes", "chamfer_diversity"}
# Texts of a system on each prompt, settings, what says nothing about it, and the caveat.
UNREADABLE = {
    "emoji": (EMOJI, {}, BY_ENCODER | {"self_bleu", "distinct"}, "unknown script"),
    "one word": (["yes", "no", "red", "blue"], {}, {"self_bleu", "distinct"}, "short texts"),
    "one word, equal": (["yes"] * 4, {}, {"self_bleu", "distinct"}, "short texts"),
    "three words": (["a red car", "the old dog", "we all sing", "go home now"], {}, {"self_bleu"}, "short texts"),
    "Chinese": (CHINESE, {}, BY_ENCODER | {"self_bleu", "distinct"}, "texts without spaces"),
    "Chinese in characters": (CHINESE, {"tokenizer": "char"}, BY_ENCODER, "unknown script"),
    "German": (GERMAN, {}, BY_ENCODER, "language"),
    "English": (WIDE, {}, set(), None),
    # Too few to give up its scores.
    "a quarter": (WIDE * 2 + RUSSIAN, {}, set(), "unknown script"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_numbers_that_say_nothing_are_marked(tmp_path, cache, name):
    texts, settings, expected, kind = UNREADABLE[name]
    systems = {"plain": ordered(SYSTEMS["wide"]), "odd": [texts] * 6}
    made = text_metrics.report(systems, quality=None, cache_dir=cache, out=tmp_path, **settings)
    for metric in made.metrics:
        assert metric.values[0].is_reliable
        assert metric.values[1].is_reliable == (metric.name not in expected), metric.name
        assert metric.best is None or metric.is_reliable
    kinds = {caveat.kind: caveat for caveat in made.caveats if caveat.systems == [1]}
    assert kind in kinds if kind else not kinds
    if name == "a quarter":
        assert kinds["unknown script"].sentence.startswith("12 of 66 texts of odd are")
        assert kinds["empty texts"].sentence.startswith("6 of 66 texts of odd are")
    # Who calls the library has no options of the command.
    assert not [caveat for caveat in made.caveats if "--" in caveat.sentence]
    # A doubt about the first number is in the first line, and no collapse is claimed of what the encoder cannot read.
    assert ("says nothing about the texts of odd" in made.sentences["first"]) == ("vendi_embed" in expected)
    assert (made.collapse[1] == []) == (name in ("emoji", "Chinese", "Chinese in characters"))
    row = next(line for line in (tmp_path / "table.md").read_text(encoding="utf-8").splitlines() if "| odd |" in line)
    assert row.count("†") == len(expected)


def test_gruen_is_left_out_where_it_can_read_no_system(cache):
    made = text_metrics.report({"a": [GERMAN] * 3, "b": [GERMAN[::-1]] * 3}, cache_dir=cache)
    assert made.section("quality") == []
    assert "GRUEN reads English" in made.sentences["quality"]
    assert "says nothing about the texts of a and b" in made.sentences["first"]


def test_another_model_needs_a_threshold_or_leaves_out_the_meanings(make, capsys, tiny_model):
    """By the name of a folder, also where sets differ in size, so that every question is asked with it."""
    words = [{"wide": SYSTEMS["wide"], "short": SHORT}, "--setting", f"model={tiny_model}"]
    assert make(*words)[0] == 2
    assert "same=none" in capsys.readouterr().err
    code, report = make(*words, "--setting", "same=none")
    assert code == 0
    assert "n_classes" not in by_name(report)
    sets = [sorted(texts) for texts in ordered(SHORT)]
    expected = text_metrics.rarefied("vendi_embed", sets, 2, model=str(tiny_model))
    assert by_name(report)["vendi_embed"]["values"][1]["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert "n_classes" in by_name(make(*words, "--setting", "same=0.5")[1])


def test_the_name_of_the_default_model_changes_nothing(cache):
    systems = {"wide": ordered(SYSTEMS["wide"])}
    first, second = (
        text_metrics.report(systems, quality=None, cache_dir=cache, **options) for options in ({}, {"model": NAME})
    )
    assert replace(first, options={}) == replace(second, options={})


def test_python_makes_the_report_of_the_command(tmp_path, make, cache):
    _, expected = make(SYSTEMS, "--same-length", people=PEOPLE)
    systems = {name: [sets[place] for place in PLACES] for name, sets in SYSTEMS.items()}
    options = {"people": [PEOPLE[place] for place in PLACES], "same_length": True, "cache_dir": cache}
    made = text_metrics.report(systems, iter(PLACES), None, out=tmp_path / "again", **options)
    saved = json.loads((tmp_path / "again" / "report.json").read_text(encoding="utf-8"))
    assert expected["options"]["same_length"] is True
    assert len(expected["same_length"]["n_words"]) == len(PLACES)
    for name in expected.keys() - {"options", "sources"}:
        assert saved[name] == expected[name], name
    metrics = by_name(expected)
    assert list(made.table.index) == [expected["systems"][i] for i in metrics["vendi_embed"]["order"]]
    for i, system in enumerate(expected["systems"]):
        for name, metric in metrics.items():
            value = metric["values"][i]
            row = made.table.loc[system]
            assert row[[name, f"{name}_low", f"{name}_high"]].tolist() == [value["mean"], *ends_of(value["interval"])]
    tests = [test for metric in metrics.values() for test in metric["tests"]]
    assert len(made.tests) == 3 * len(metrics)
    for name in ("difference", "p", "p_holm", "smallest_difference"):
        values = made.tests[name].astype(object).where(made.tests[name].notna(), None)
        assert values.tolist() == [test[name] for test in tests]
    assert made.likeness.pairs[0].share == expected["likeness"]["pairs"][0]["share"]


def ends_of(interval):
    return interval or [pytest.approx(np.nan, nan_ok=True)] * 2


def test_one_system_is_described_by_the_numbers_of_its_report(cache):
    sets = [SYSTEMS["wide"][place] for place in PLACES]
    frame = text_metrics.describe(sets, confidence=0.9, cache_dir=cache)
    made = text_metrics.report({"a": sets}, confidence=0.9, cache_dir=cache)
    assert list(frame.index) == [metric.name for metric in made.metrics]
    for metric in made.metrics:
        row = frame.loc[metric.name]
        value = metric.values[0]
        assert [row["score"], row["signature"], row["better"]] == [value.mean, metric.signature, metric.better or ""]
        assert [row["low"], row["high"]] == ends_of(value.interval)
    rated = text_metrics.describe(sets, [[0, 1, 0.5, 0.9]] * 6, cache_dir=cache)
    assert rated.loc["quality", "score"] == pytest.approx(0.6)
    assert "quality" not in text_metrics.describe(sets, None, cache_dir=cache).index
    assert not text_metrics.describe([["yes", "no"]] * 3, None, cache_dir=cache).loc["distinct", "is_reliable"]


# Arguments that are wrong, and what names them.
ARGUMENTS = {
    "no systems": ({"systems": {}}, TypeError, "systems"),
    "a list": ({"systems": [[WIDE]]}, TypeError, "systems"),
    "flat": ({"systems": {"a": WIDE}}, TypeError, r"systems\['a'\]"),
    "no text": ({"systems": {"a": [[1, "b"]]}}, TypeError, r"systems\['a'\]\[0\]\[0\]"),
    "lengths": ({"systems": {"a": [WIDE], "b": [WIDE, WIDE]}}, ValueError, r"systems\['b'\]"),
    "one name": ({"systems": {1: [WIDE], "1": [NARROW]}}, ValueError, "1, '1'"),
    "prompts": ({"systems": {"a": [WIDE]}, "prompts": ["p", "q"]}, ValueError, "prompts"),
    "equal prompts": ({"systems": {"a": [WIDE, WIDE]}, "prompts": ["p", "p"]}, ValueError, "prompts"),
    "people": ({"systems": {"a": [WIDE]}, "people": [WIDE, WIDE]}, ValueError, "people"),
    "one text": ({"systems": {"a": [["x"]]}}, ValueError, "two texts"),
    "setting": ({"systems": {"a": [WIDE]}, "q": 2}, ValueError, "'q'"),
    "ratings": ({"systems": {"a": [WIDE]}, "quality": {"a": [[1.0]]}}, ValueError, r"quality\['a'\]"),
    "other ratings": ({"systems": {"a": [WIDE]}, "quality": {"a": [[1.0] * 4], "b": [[1.0]]}}, ValueError, "'b'"),
    "rater": ({"systems": {"a": [WIDE]}, "quality": "grün"}, ValueError, "quality"),
    "level": ({"systems": {"a": [WIDE]}, "confidence": 1}, ValueError, "confidence"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_invalid_arguments_are_named(name):
    arguments, error, message = ARGUMENTS[name]
    with pytest.raises(error, match=message):
        text_metrics.report(**arguments)


def test_similarity_within_and_between_systems(whole):
    """As a loop over pairs of texts has it, with the interval over prompts."""
    texts = sorted({text for sets in SYSTEMS.values() for members in sets.values() for text in members})
    units = {text: row / np.linalg.norm(row) for text, row in zip(texts, encode(texts), strict=True)}
    systems = list(SYSTEMS.values())
    for entry in whole["likeness"]["similarity"]:
        first, second = (systems[entry[side]] for side in "ab")
        means = []
        for place in PLACES:
            is_one = entry["a"] == entry["b"]
            pairs = combinations(first[place], 2) if is_one else product(first[place], second[place])
            means.append(np.mean([units[left] @ units[right] for left, right in pairs]))
        assert entry["mean"] == pytest.approx(np.mean(means), abs=1e-5)
        assert entry["interval"] == near(mean_estimate(np.array(means)).interval(0.95, (-1.0, 1.0)))
    assert len(whole["likeness"]["similarity"]) == 6


@pytest.mark.discrete
@pytest.mark.parametrize("means", [(2.0, 1.0, 2.0), (1.0, 2.0, 2.0), (3.0, 3.0, 3.0)])
def test_systems_that_differ_by_rounding_tie(rng, means):
    """The first one given is first, and none is best."""
    scores = np.array(means)[:, None] + rng.normal(0, 0.1, 20)
    entry = described(*(scores + 1e-8 * rng.normal(size=(3, 20))))
    assert entry.order == sorted(range(3), key=lambda i: -means[i])
    assert entry.best is None
    ties = [test for test in entry.tests if means[test.a] == means[test.b]]
    assert {(test.p_holm, test.smallest_difference) for test in ties} == {(1.0, None)}


@pytest.mark.discrete
def test_equal_prompts_of_least_diversity_keep_their_order(rng):
    ids = ["a", "b", "c", "d"]
    texts = [["x", "y"]] * 4
    for _ in range(20):
        scores = np.array([2.0, 1.0, 1.0, 1.0]) + 1e-8 * rng.normal(size=4)
        entries = least_diverse(ids, scores.tolist(), texts, True, False)
        assert [entry.prompt for entry in entries] == ["b", "c", "d", "a"]


@pytest.mark.discrete
def test_the_lengths_that_differ_most_are_named(cache):
    """The largest difference of means, of pairs that differ by half a standard deviation."""
    narrow = [["a b c d e f"] * 3 + ["a b c d e f g"]] * 3
    wide = [["a b c d e f g h"] * 3 + ["a b c d e f g h i"]] * 3
    mixed = [["a b c d e f", " ".join("abcdefghijklmnopqrst"), "a b c", "a b c d e f g h i j k"]] * 3
    made = text_metrics.report({"n": narrow, "w": wide, "m": mixed}, quality=None, cache_dir=cache)
    (caveat,) = (caveat for caveat in made.caveats if caveat.kind == "different lengths")
    assert "Texts of n have" in caveat.sentence
    assert "of m 10.0" in caveat.sentence
    # Their order is in doubt by all measures of diversity, but these say something.
    assert caveat.systems == [0, 1, 2]
    assert caveat.metrics == [metric.name for metric in made.section("diversity") if metric.name != "length"]
    assert all(metric.is_reliable for metric in made.metrics)
    assert "(same_length=True)" in caveat.sentence
    assert "GRUEN" not in made.sentences["quality"]


@pytest.mark.parametrize(
    ("text", "n_words", "expected"),
    [
        ("A dog barks. It rains. We all go home now.", 9, "A dog barks. It rains. We all go home"),
        ("A dog barks. It rains. We all go home now.", 6, "A dog barks. It rains."),
        ("A dog barks at Dr. Ray. We go home.", 5, "A dog barks at Dr."),
        ("A dog barks at Dr. Ray. We go home.", 8, "A dog barks at Dr. Ray."),
        ("A dog barks. It rains.", 5, "A dog barks. It rains."),
        ("A dog\n barks  at us", 3, "A dog\n barks"),
        ("\u6211\u4eec\u56de\u5bb6", 2, "\u6211\u4eec"),
        ("A dog barks.", 0, ""),
        ("", 3, ""),
    ],
)
def test_a_text_is_cut_to_words_at_the_end_of_a_sentence_if_it_can(text, n_words, expected):
    assert cut(text, n_words) == expected
    assert count_words(expected) <= n_words


LONG = {
    place: [f"{text} Nobody had expected that at all." for text in texts] for place, texts in SYSTEMS["wide"].items()
}
# A text without words counts for no length.
LONG["the park"] = [*LONG["the park"], ""]


def test_texts_of_the_same_length(cache, tmp_path):
    systems = {"long": ordered(LONG), "narrow": ordered(SYSTEMS["narrow"])}
    settings = {"quality": None, "cache_dir": cache}
    made = text_metrics.report(systems, same_length=True, out=tmp_path, **settings)
    whole = text_metrics.report(systems, **settings)
    assert made.metrics == whole.metrics
    expected = [min(count_words(text) for text in texts if text) for texts in ordered(SYSTEMS["narrow"])]
    assert made.same_length.n_words == expected
    texts = {
        name: [[cut(text, n) for text in texts] for texts, n in zip(sets, expected, strict=True)]
        for name, sets in systems.items()
    }
    of_cut = {metric.name: metric for metric in text_metrics.report(texts, **settings).metrics}
    assert {metric.name for metric in made.same_length.metrics} == of_cut.keys()
    for metric in made.same_length.metrics:
        for value, of_value in zip(metric.values, of_cut[metric.name].values, strict=True):
            # The compression ratio depends on the order of texts, which is that of whole ones.
            tolerance = 0.1 if metric.name == "compression_ratio" else 1e-6
            assert value.scores == pytest.approx(of_value.scores, abs=tolerance), metric.name
        assert "|texts:cut-to-shortest|" in metric.signature
    by_title = {metric.name: metric for metric in made.same_length.metrics}
    assert max(by_title["length"].values[0].scores) <= max(expected) < min(made.metrics[-1].values[0].scores)
    assert "Cut to the same length" in made.sentences["misleading"]
    assert "shortest text of their prompt" in " ".join((tmp_path / "methods.tex").read_text(encoding="utf-8").split())


def test_texts_cut_to_too_few_words_say_nothing_of_pairs_of_words(cache):
    systems = {"one": [["Yes.", "A dog barks here today."]] * 3, "two": [["It rains a lot.", "We all go home."]] * 3}
    made = text_metrics.report(systems, quality=None, cache_dir=cache, same_length=True)
    unread = {metric.name for metric in made.same_length.metrics if not metric.is_reliable}
    assert unread == {"self_bleu", "distinct"}
    with pytest.raises(TypeError, match="same_length must be True or False"):
        text_metrics.report(systems, quality=None, same_length="yes")


def test_contexts_are_passed_to_every_metric_of_meaning(make):
    """Also where sets differ in size, and of prompts of which people have no text."""
    contexts = {place: f"What happens at {place}?" for place in PLACES[:5]}
    systems = {"wide": SYSTEMS["wide"], "short": {place: texts[:3] for place, texts in SYSTEMS["narrow"].items()}}
    rows = {name: rows_of(sets) for name, sets in systems.items()}
    for row in rows["wide"] + rows["short"]:
        row["ask"] = contexts.get(row["prompt"])
    code, report = make(rows, "--context-key", "ask", people=rows_of(PEOPLE)[1:])
    assert code == 0
    prompts = [contexts.get(place) for place in sorted(PLACES)]
    metrics = by_name(report)
    for i, sets in enumerate(systems.values()):
        sets = [sorted(texts) for texts in ordered(sets)]
        for name, metric in {"vendi_embed": "", "n_classes": "semantic_entropy", "chamfer_diversity": ""}.items():
            expected = text_metrics.rarefied(metric or name, sets, 3, contexts=prompts)
            scores = expected["n_classes_scores" if metric else "scores"]
            assert metrics[name]["values"][i]["scores"] == pytest.approx(scores, abs=1e-6)
            assert "contexts:projected" in metrics[name]["signature"]
    signatures = [report["likeness"]["partition"]["signature"], report["likeness"]["similarity_signature"]]
    assert all("contexts:projected" in signed for signed in [*signatures, report["people"]["rows"][0]["signature"]])
    assert "prompts not taken out" not in kinds_of(report)
    rows["wide"][0]["ask"] = "Something else?"
    assert make(rows, "--context-key", "ask")[0] == 2


def test_contexts_are_recommended_where_prompts_are_texts(cache):
    systems = {"a": [WIDE, NARROW]}
    for prompts, expected in ((None, False), (["1", "2"], False), (["Tell me a story.", "Why is the sky blue?"], True)):
        made = text_metrics.report(systems, prompts, quality=None, cache_dir=cache)
        said = {caveat.kind: caveat.sentence for caveat in made.caveats}
        assert ("the argument contexts" in said.get("prompts not taken out", "")) == expected
