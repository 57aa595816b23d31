"""text-metrics report: every number is that of the metrics on the same sets, or of a slow reference."""

import csv
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import text_metrics
from tests.files import compress, read_jsonl, write_jsonl
from text_metrics.__main__ import main
from text_metrics.commands.report.likeness import shuffled
from text_metrics.commands.report.main import parse_options
from text_metrics.commands.report.scores import DIVERSITY, describe
from text_metrics.commands.report.systems import read_inputs
from text_metrics.commands.shared.statistics import holm, paired_test
from text_metrics.metrics._core.core_results import ratio_estimate

PLACES = ["the park", "the sea", "the old town", "a small shop", "the station", "a field of maize"]
# Different things, one thing in three ways, and one text three times.
WIDE = ["A dog barks in {}.", "Rain falls on {} all night.", "Two men sell apples near {}.", "She writes of {}."]
NARROW = ["A dog barks in {}.", "In {}, a dog is barking.", "Loudly, a dog barks in {}.", "She writes of {}."]
SAME = ["A dog barks in {}.", "A dog barks in {}.", "A dog barks in {}.", "In {}, a dog is barking."]
HUMAN = ["A dog barks in {}.", "Children play in {}.", "I was late to {}.", "We met friends at {}."]


def sets_of(patterns):
    return {place: [pattern.format(place) for pattern in patterns] for place in PLACES}


SYSTEMS = {"wide": sets_of(WIDE), "narrow": sets_of(NARROW), "same": sets_of(SAME)}
PEOPLE = sets_of(HUMAN)


def rows_of(sets):
    return [{"prompt": prompt, "texts": texts} for prompt, texts in sets.items()]


def write_systems(folder, systems):
    return [write_jsonl(folder / f"{name}.jsonl", rows_of(sets)) for name, sets in systems.items()]


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cache):
    """The report of three systems, with quality and people."""
    folder = tmp_path_factory.mktemp("whole")
    files = write_systems(folder, SYSTEMS)
    human = write_jsonl(folder / "human.jsonl", rows_of(PEOPLE))
    code, report = run(folder, *files, "--people", human, "--cache-dir", cache, quality=())
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
        calls = {
            "vendi_embed": load("vendi_embed").compute(predictions=sets, quality=quality.tolist(), confidence=0.95),
            "n_classes": load("semantic_entropy").compute(predictions=sets, confidence=0.95),
            "chamfer_diversity": load("chamfer_diversity").compute(predictions=sets, confidence=0.95),
            "self_bleu": load("self_bleu").compute(predictions=sets, repetition=True, details=True, confidence=0.95),
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
        for test in metric["tests"]:
            assert test.items() >= paired_test(scores[test["a"]], scores[test["b"]], 0.95).items()
        assert [test["p_holm"] for test in metric["tests"]] == holm([test["p"] for test in metric["tests"]])
        means = scores.mean(axis=1) * (-1 if metric["better"] == "lower" else 1)
        assert list(means[metric["order"]]) == sorted(means, reverse=True)
        first = metric["order"][0]
        p_values = [test["p_holm"] for test in metric["tests"] if first in (test["a"], test["b"])]
        is_shown = metric["better"] and all(p is not None and p < 0.05 for p in p_values)
        assert metric["best"] == (first if is_shown else None)
    assert by_name(whole)["vendi_embed"]["best"] == 0
    assert by_name(whole)["length"]["best"] is None


def described(*scores):
    """Return the entry of a metric for the scores of systems."""
    return describe(DIVERSITY[0], np.array(scores), "", 2, 0.95)


def test_first_is_who_beats_every_other_system(rng):
    """Against a third system of equal mean and larger variance, none is first in more reports than the level."""
    wrong = 0
    for _ in range(300):
        scores = rng.normal([[2.0], [1.9], [2.0]], [[0.1], [0.1], [2.0]], (3, 60))
        wrong += described(*scores)["best"] is not None
    assert wrong / 300 < 0.06
    assert described(*rng.normal([[2.0], [1.9], [1.8]], 0.1, (3, 60)))["best"] == 0


def test_means_and_pairs_that_differ_by_rounding_tie(rng):
    scores = rng.normal(2.0, 0.1, 20)
    entry = described(scores + 1e-9, scores, scores + 1e-13 * rng.normal(size=20))
    assert {test["p_holm"] for test in entry["tests"]} == {1.0}
    assert entry["best"] is None
    assert {test["smallest_difference"] for test in entry["tests"]} == {None}
    shift = rng.normal(0.0, 1e-3, 20)
    shift += 5e-7 - shift.mean()
    (test,) = described(scores + shift, scores)["tests"]
    assert test["p"] == 1.0


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


def partition_of(groups):
    by_prompt = list(zip(*map(ordered, groups), strict=True))
    return text_metrics.between_groups(
        "vendi_embed",
        [[text for texts in groups for text in texts] for groups in by_prompt],
        [[label for label, texts in enumerate(groups) for _ in texts] for groups in by_prompt],
        permutations=1000,
        confidence=0.95,
    )


def test_partitions_are_those_of_between_groups(whole):
    systems, section = list(SYSTEMS.values()), whole["likeness"]
    result, part = partition_of(systems), section["partition"]
    for name in ("within", "pooled", "between", "between_expected"):
        assert part[name] == pytest.approx(result[name], abs=1e-5)
    assert part["p"] == result["permutation_p"]
    assert part["share"] == pytest.approx(result["share"], abs=1e-5)
    low, high = result["between_confidence_interval"]
    assert part["between_interval"] == near([low, min(high, 3)])
    chi, chance = np.log(result["between_scores"]), np.log(result["between_expected_scores"])
    expected = ratio_estimate(chi - chance, np.log(3) - chance).interval(0.95)
    assert part["share_interval"] == near([expected[0], min(1.0, expected[1])])
    for pair_ in section["pairs"]:
        result = partition_of([systems[pair_["a"]], systems[pair_["b"]]])
        assert pair_["share"] == pytest.approx(result["share"], abs=1e-5)
        assert pair_["p"] == result["permutation_p"]
    shares = [row["share"] for row in section["pairs"]]
    assert shares == sorted(shares, reverse=True)
    assert {(row["a"], row["b"]) for row in section["pairs"]} == {(0, 1), (0, 2), (1, 2)}


def test_people_are_compared_at_equal_numbers(whole):
    section = whole["people"]
    # Four texts of people make two halves of two, with which two of each system are compared.
    assert (section["n_texts"], section["n_prompts"]) == (12, 6)
    people = {prompt: shuffled(texts, prompt) for prompt, texts in PEOPLE.items()}
    half, other = ({prompt: texts[part] for prompt, texts in people.items()} for part in (slice(2), slice(2, 4)))
    sides = [{prompt: shuffled(texts, prompt)[:2] for prompt, texts in sets.items()} for sets in SYSTEMS.values()]
    for row, side in zip(section["rows"], [*sides, other], strict=True):
        result = partition_of([half, side])
        assert row["between"] == pytest.approx(result["between"], abs=1e-5)
        assert row["p"] == result["permutation_p"]


def test_collapse_shows_the_least_diverse_prompts(whole):
    for value, entries, (name, sets) in zip(
        by_name(whole)["vendi_embed"]["values"], whole["collapse"], SYSTEMS.items(), strict=True
    ):
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


def long_rows():
    return [
        {"model": name, "prompt": prompt, "texts": text}
        for name, sets in SYSTEMS.items()
        for prompt, texts in sets.items()
        for text in texts
    ]


def test_the_order_of_systems_prompts_and_rows_does_not_matter(tmp_path, cache):
    """Also not the form: a row for each text, all systems in one file, rows of a prompt apart from each other."""
    human = write_jsonl(tmp_path / "human.jsonl", rows_of(PEOPLE))
    rows, numbers = long_rows(), []
    for seed in (0, 2):
        random.Random(seed).shuffle(rows)
        (tmp_path / str(seed)).mkdir()
        data = write_jsonl(tmp_path / str(seed) / "rows.jsonl", rows)
        write_jsonl(human, random.Random(seed).sample(rows_of(PEOPLE), len(PEOPLE)))
        words = (data, "--system-key", "model", "--people", human, "--cache-dir", cache)
        numbers.append(numbers_of(run(tmp_path / str(seed), *words)[1]))
    assert list(numbers[0]) != list(numbers[1])
    assert numbers[0] == pytest.approx(numbers[1], abs=1e-9)


def test_two_layouts_of_one_system_are_equal(tmp_path, cache):
    rows = write_jsonl(tmp_path / "rows.jsonl", [row for row in long_rows() if row["model"] == "wide"])
    _, report = run(tmp_path, rows, *write_systems(tmp_path, {"wide": SYSTEMS["wide"]}), "--cache-dir", cache)
    for metric in report["metrics"]:
        first, second = metric["values"]
        assert first["scores"] == pytest.approx(second["scores"], abs=1e-6)
        assert [test["p"] for test in metric["tests"]] == [1.0]


def test_only_an_earlier_report_is_overwritten(tmp_path, cache, capsys):
    files = write_systems(tmp_path, {"wide": SYSTEMS["wide"]})
    page = tmp_path / "report" / "index.html"
    page.parent.mkdir()
    page.write_text("mine", encoding="utf-8")
    assert run(tmp_path, *files, "--cache-dir", cache)[0] == 2
    assert "--out" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"
    page.unlink()
    for is_earlier in (False, True):
        assert run(tmp_path, *files, "--cache-dir", cache)[0] == 0
        assert ("overwritten" in capsys.readouterr().err) == is_earlier


def test_every_format_is_read_to_the_same_sets(tmp_path):
    columns = {"prompt": list(PLACES), "texts": list(SYSTEMS["wide"].values()), "reward": [[2, 1, 0, -1.5]] * 6}
    rows = list(zip(*columns.values(), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (tmp_path / "d.json").write_text(json.dumps([dict(zip(columns, row, strict=True)) for row in rows]))
    lists = [(prompt, json.dumps(texts), json.dumps(reward)) for prompt, texts, reward in rows]
    single = [(prompt, *pair) for prompt, texts, reward in rows for pair in zip(texts, reward, strict=True)]
    for name, written in (("b.csv", lists), ("c.csv", single), ("e.csv", lists)):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([columns, *written])
    compress(tmp_path / "e.csv", ".gz")
    paths = [tmp_path / name for name in ("a.parquet", "b.csv", "c.csv", "d.json", "e.csv.gz")]
    words = [f"{i}={path}" for i, path in enumerate(paths)]
    words += ["--text-key", "texts", "--id-key", "prompt", "--quality-key", "reward"]
    inputs = read_inputs(parse_options(words))
    assert inputs.bad == []
    first, *others = inputs.texts
    assert all(other == first for other in others)
    ratings = inputs.quality.reshape(len(paths), -1)
    assert (ratings == ratings[0]).all()


def test_a_column_of_quality(tmp_path, cache, load):
    rows = [
        [{"prompt": p, "texts": t, "q": [0.9, 0.1, 0.5, 0.5]} for p, t in sets.items()] for sets in SYSTEMS.values()
    ]
    files = [write_jsonl(tmp_path / f"{i}.jsonl", part) for i, part in enumerate(rows[:2])]
    _, report = run(tmp_path, *files, "--cache-dir", cache, quality=("--quality-key", "q"))
    metrics = by_name(report)
    assert metrics["quality"]["values"][0]["scores"] == pytest.approx([0.5] * 6)
    weighted = load("vendi_embed").compute(predictions=ordered(SYSTEMS["wide"]), quality=[[0.9, 0.1, 0.5, 0.5]] * 6)
    assert metrics["quality_vendi_embed"]["values"][0]["scores"] == pytest.approx(weighted["quality_scores"], abs=1e-6)
    for row in rows[1]:
        row["q"] = [3, -1, 0, 0]
    write_jsonl(files[1], rows[1])
    _, report = run(tmp_path, *files, "--cache-dir", cache, quality=("--quality-key", "q"))
    assert "quality" in by_name(report)
    assert "quality_vendi_embed" not in by_name(report)


def test_sets_of_different_sizes_are_rarefied(tmp_path, cache):
    short = {prompt: texts[: 2 + i % 3] for i, (prompt, texts) in enumerate(SYSTEMS["narrow"].items())}
    files = write_systems(tmp_path, {"wide": SYSTEMS["wide"], "short": short})
    _, report = run(tmp_path, *files, "--cache-dir", cache)
    assert report["rarefied_to"] == 2
    metrics = by_name(report)
    for i, sets in enumerate((SYSTEMS["wide"], short)):
        result = text_metrics.rarefied("vendi_embed", ordered(sets), 2)
        assert metrics["vendi_embed"]["values"][i]["scores"] == pytest.approx(result["scores"], abs=1e-6)
        sets = [sorted(texts) for texts in ordered(sets)]
        result = text_metrics.rarefied("self_bleu", sets, 2, repetition=True, details=True)
        assert metrics["self_bleu"]["values"][i]["scores"] == pytest.approx(result["scores"])
        distinct = [row["distinct_2"] for row in result["details"]]
        assert metrics["distinct"]["values"][i]["scores"] == pytest.approx(distinct)
        vendi = text_metrics.load("vendi_embed")
        pairs = vendi.compute(predictions=ordered((SYSTEMS["wide"], short)[i]), pairs=True, confidence=0.95)
        assert report["pairs"][i]["mean"] == pytest.approx(pairs["pairs"], abs=1e-6)
        assert report["pairs"][i]["interval"] == pytest.approx(pairs["pairs_confidence_interval"], abs=1e-6)
    assert "2 to 4 texts" in kinds_of(report)["sets of different sizes"]
    table = (tmp_path / "report" / "table.md").read_text(encoding="utf-8")
    assert "Pairs, all texts" in table


def text_rows(sets):
    return [{"prompt": prompt, "texts": text} for prompt, texts in sets.items() for text in texts]


def test_bad_rows_are_skipped_with_their_set(tmp_path, cache, capsys):
    rows = text_rows(SYSTEMS["narrow"])
    rows[5]["texts"] = 7  # of the sea
    del rows[9]["prompt"]  # between two rows of the old town
    rows[17]["texts"] = None  # of the station
    data = write_jsonl(tmp_path / "narrow.jsonl", rows)
    lacking = {prompt: texts for prompt, texts in SYSTEMS["wide"].items() if prompt != "the park"}
    other = write_jsonl(tmp_path / "wide.jsonl", [*rows_of(lacking), {"prompt": "more", "texts": ["One text."]}])
    code, report = run(tmp_path, data, other, "--cache-dir", cache)
    assert code == 3
    shown = capsys.readouterr().err
    assert "narrow.jsonl, row 6: 'texts' must be" in shown
    # Twelve bad rows are not shown one by one.
    assert "narrow.jsonl, row 19" not in shown
    assert "7 more rows" in shown
    bad = read_jsonl(tmp_path / "report" / "bad.jsonl")
    assert [row["row"] for row in bad] == [*range(5, 13), *range(17, 21)]
    assert "row 6" in bad[0]["error"]
    assert report["sources"][0]["n_bad"] == 12
    assert report["prompts"] == ["a field of maize", "a small shop"]
    assert {"invalid rows", "missing prompts"} <= kinds_of(report).keys()
    assert report["rarefied_to"] is None
    # A later report without bad rows leaves no old file.
    assert run(tmp_path, other, "--cache-dir", cache)[0] == 0
    assert not (tmp_path / "report" / "bad.jsonl").exists()


BROKEN = '{"prompt": "the sea", "texts": "A dog'
# Where a row is that cannot be parsed, and the prompts that are left.
LOST_ROWS = {
    "before all": (0, PLACES[1:]),
    "within a set": (6, [place for place in PLACES if place != "the sea"]),
    "between two sets": (8, [PLACES[0], *PLACES[3:]]),
    "after all": (24, PLACES[:5]),
}


@pytest.mark.parametrize("name", LOST_ROWS)
def test_no_set_is_scored_without_a_row_that_cannot_be_parsed(tmp_path, name):
    """As `score` does: the row belongs to the set around it, or may belong to either neighbour."""
    place, expected = LOST_ROWS[name]
    lines = [json.dumps(row) for row in text_rows(SYSTEMS["wide"])]
    data = tmp_path / "wide.jsonl"
    data.write_text("\n".join([*lines[:place], BROKEN, *lines[place:]]), encoding="utf-8")
    words = [str(data), "--text-key", "texts", "--id-key", "prompt"]
    inputs = read_inputs(parse_options(words))
    assert inputs.ids == sorted(expected)
    assert {len(texts) for texts in inputs.texts[0]} == {4}
    assert len(inputs.bad) == 1 + 4 * (6 - len(expected))
    # Where each row is a set, no other one can lack it; where sets are scattered, any may.
    lists = [json.dumps(row) for row in rows_of(SYSTEMS["wide"])]
    data.write_text("\n".join([*lists[:3], BROKEN, *lists[3:]]), encoding="utf-8")
    assert read_inputs(parse_options(words)).ids == sorted(PLACES)
    data.write_text("\n".join([*lines[::2], BROKEN, *lines[1::2]]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"row 13 .*not adjacent"):
        read_inputs(parse_options(words))


def test_one_prompt_or_one_system_is_enough(tmp_path, cache):
    """There are means, but no intervals and no tests."""
    systems = {name: {"the park": SYSTEMS[name]["the park"][:3]} for name in ("wide", "narrow")}
    human = write_jsonl(tmp_path / "human.jsonl", [{"prompt": "the park", "texts": PEOPLE["the park"][:1]}])
    code, report = run(tmp_path, *write_systems(tmp_path, systems), "--people", human, "--cache-dir", cache)
    assert code == 0
    assert {test["p"] for metric in report["metrics"] for test in metric["tests"]} == {None}
    assert report["likeness"]["partition"]["between"] > 1
    assert "few prompts" in kinds_of(report)
    assert len(report["people"]["rows"]) == 2
    code, report = run(tmp_path, *write_systems(tmp_path, {"wide": SYSTEMS["wide"]}), "--cache-dir", cache)
    assert code == 0
    assert report["likeness"] is None
    assert all(metric["tests"] == [] and metric["best"] is None for metric in report["metrics"])


def test_no_texts_leaves_all_of_them_out(tmp_path, cache):
    secret = {prompt: [f"{text} Xylophone {i}." for i, text in enumerate(texts)] for prompt, texts in PEOPLE.items()}
    rows = rows_of(secret)
    rows[0]["texts"] = ["Xylophone bad", 1]
    data = write_jsonl(tmp_path / "secret.jsonl", rows)
    files = [data, *write_systems(tmp_path, {"wide": SYSTEMS["wide"]})]
    code, report = run(tmp_path, *files, "--no-texts", "--cache-dir", cache)
    assert code == 3
    written = [path for path in (tmp_path / "report").rglob("*") if path.is_file()]
    assert {"report.json", "bad.jsonl"} <= {path.name for path in written}
    assert [path for path in written if b"Xylophone" in path.read_bytes()] == []
    assert all("texts" not in entry for entries in report["collapse"] for entry in entries)


def test_what_could_mislead_is_said(tmp_path, cache):
    odd = {prompt: [*texts[:2], "", "Привет всем друзьям и соседям"] for prompt, texts in SYSTEMS["wide"].items()}
    long = {**SYSTEMS["narrow"], "the park": [text * 60 for text in SYSTEMS["narrow"]["the park"][:2]]}
    german = "Die Kinder spielen heute im Garten hinter dem alten Haus, und der Hund schläft {}."
    foreign = {place: [german.format(f"{place} {i}") for i in range(2)] for place in PLACES}
    files = write_systems(tmp_path, {"odd": odd, "long": long, "foreign": foreign})
    _, report = run(tmp_path, *files, "--setting", "long_texts=cut", "--cache-dir", cache)
    kinds = kinds_of(report)
    assert {"few prompts", "different lengths"} <= kinds.keys()
    assert kinds["empty texts"].startswith("6 of 24 texts of odd are")
    foreign = " ".join(caveat["sentence"] for caveat in report["caveats"] if caveat["kind"] == "language")
    assert [name for name in report["systems"] if f" of {name} " in foreign] == ["odd", "foreign"]


ERRORS = {
    "no file": (["nowhere.jsonl"], "nowhere.jsonl"),
    "two names": (["a.jsonl", "a=b.jsonl"], "NAME=path"),
    "no set": (["ones.jsonl"], "no prompt"),
    "nothing in common": (["a.jsonl", "c.jsonl"], "no prompt"),
    "system key": (["a.jsonl", "b.jsonl", "--system-key", "m"], "--system-key"),
    "confidence": (["a.jsonl", "--confidence", "2"], "--confidence"),
    "setting": (["a.jsonl", "--setting", "q=2"], "--setting"),
    "output": (["a.jsonl", "--cache-dir", "a.jsonl"], "a.jsonl cannot be written"),
    "folder": (["a.jsonl", "--out", "b.jsonl"], "--out"),
    "quality column": (["a.jsonl", "--quality-key", "r"], "no column 'r': it has prompt, texts"),
    "system column": (["a.jsonl", "--system-key", "r"], "no column 'r': it has prompt, texts"),
    "id column": (["a.jsonl", "--text-key", "texts", "--id-key", "r"], "no column 'r': it has prompt, texts"),
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


def test_equal_rows_are_paired_by_line(tmp_path, cache):
    files = write_systems(tmp_path, {name: SYSTEMS[name] for name in ("wide", "same")})
    code, report = run(tmp_path, *files, "--text-key", "texts", "--by-line", "--cache-dir", cache)
    assert code == 0
    assert report["prompts"] == ["1", "2", "3", "4", "5", "6"]


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
    rows = [{**row, **column(each, i)} for each in SYSTEMS for i, row in enumerate(of_one(SYSTEMS[each]))]
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
def test_an_impossible_rating_is_a_bad_row(tmp_path, cache, rating):
    rows = [{**row, "q": [0.5, 2, 3, 4]} for row in rows_of(SYSTEMS["wide"])]
    rows[2]["q"] = [0.5, rating, 3, 4]
    data = write_jsonl(tmp_path / "wide.jsonl", rows)
    code, report = run(tmp_path, data, "--cache-dir", cache, quality=("--quality-key", "q"))
    assert (code, len(report["prompts"]), report["sources"][0]["n_bad"]) == (3, 5, 1)
