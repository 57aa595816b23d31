"""text-metrics compare: two systems, item by item."""

import json
import math
import re

import numpy as np
import pytest

from tests.commands import run_command
from tests.conftest import SETS
from tests.files import write_data, write_jsonl
from text_metrics.commands import compare
from text_metrics.metrics._core.core_intervals import mean_estimate
from text_metrics.statistics import mean_p

OTHER = [[*members[::-1][:-1], "The train is late."] for members in SETS]
BLEU = ("--metric", "self_bleu", "--setting", "max_order=1")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command on paths, or on rows written as a.jsonl and b.jsonl; returns the exit code, stdout and stderr."""

    def run_once(a, b, *options):
        sides = {"a": a, "b": b} if b is not None else {"a": a}
        paths = [
            write_jsonl(tmp_path / f"{name}.jsonl", side) if isinstance(side, list) else side
            for name, side in sides.items()
        ]
        return run_command(monkeypatch, "compare", *paths, *options), *capsys.readouterr()

    return run_once


@pytest.fixture
def result_of(run, tmp_path):
    """Run the command, which succeeds; returns the JSON that it writes, and stdout."""

    def result(a, b, *options):
        code, out, shown = run(a, b, *options, "--out", tmp_path / "c.json")
        assert code == 0, shown
        return json.loads((tmp_path / "c.json").read_text(encoding="utf-8"), parse_constant=pytest.fail), out

    return result


def test_two_files_are_compared(result_of, load):
    options = ("--metric", "vendi_embed", "--setting", "q=0.5", "--confidence", "0.9", "--by-line")
    result, out = result_of(SETS, OTHER, *options)
    scores = [load("vendi_embed").compute(predictions=sets, q=0.5, confidence=0.9) for sets in (SETS, OTHER)]
    first, second = (np.array(of_side["scores"]) for of_side in scores)
    # The same numbers as in Python.
    for name, side in zip("ab", scores, strict=True):
        assert result[name] == {"mean": pytest.approx(side["vendi_embed"]), "interval": side["confidence_interval"]}
    assert result["difference"]["mean"] == pytest.approx(float((first - second).mean()))
    low, high = result["difference"]["interval"]
    assert low < result["difference"]["mean"] < high
    assert result["p"] == mean_p(mean_estimate(first - second))
    items = list(zip("12345", first.tolist(), second.tolist(), strict=True))
    assert [(item["id"], item["a"], item["b"]) for item in result["items"]] == items
    assert result["a_higher"] + result["b_higher"] + result["equal"] == len(SETS)
    assert f"{result['a']['mean']:.4f}" in out
    assert "vendi_embed|q:0.5|" in out


def compare_scores(first, second):
    """Compare the scores of pairs of items."""
    sides = []
    for scores in (first, second):
        sides.append(compare.Side("", [None] * len(scores), scores))
    pair = compare.Pair(sides, is_paired=True)
    return compare.compare_sides(pair, 0.95, has_clusters=False, bounds=(-math.inf, math.inf))


@pytest.mark.parametrize(
    ("differences", "counts"),
    [
        ([0.0] * 30, (0, 0, 30)),
        (np.random.default_rng(0).normal(1e-13, 1e-14, 30), (0, 0, 30)),
        # Each item differs, and together they do not.
        (np.resize([0.5, -0.5 + 4e-7], 30), (15, 15, 0)),
    ],
)
def test_scores_and_means_that_differ_by_rounding_tie(differences, counts):
    second = np.full(30, 0.4)
    result = compare_scores(second + differences, second)
    assert (result["a_higher"], result["b_higher"], result["equal"]) == counts
    assert (result["p"], result["n_needed"]) == (1, None)


@pytest.mark.parametrize("pairing", ["--by-line", "--unpaired"])
def test_the_interval_of_a_difference_is_of_possible_differences(result_of, pairing):
    """The Vendi score of two texts is 1 to 2."""
    wide = [["A dog barks.", "Rain falls on the sea."]] * 4 + [["A dog barks.", "A dog barks."]]
    same = [["A dog barks.", "A dog barks."]] * 4 + [["A dog barks.", "A dog is barking."]]
    a, _ = result_of(wide, same, "--metric", "vendi_embed", pairing)
    b, _ = result_of(same, wide, "--metric", "vendi_embed", pairing)
    assert a["difference"]["interval"][1] == 1
    assert b["difference"]["interval"] == pytest.approx([-1, -a["difference"]["interval"][0]])
    assert (a["difference"]["interval"][0] > 0) == (a["p"] < 0.05)


def test_the_number_of_items_needed_scales_the_smallest_difference(rng):
    """The power of the test itself is simulated in test_report.py."""
    pilot = compare_scores(rng.normal(0.3, 1, 40), np.zeros(40))
    ratio = pilot["smallest_difference"] / pilot["difference"]["mean"]
    assert pilot["n_needed"] == np.ceil(40 * ratio**2) > 1


def test_items_are_paired_by_id_or_by_line(run):
    a = [{"id": i, "texts": members} for i, members in enumerate(SETS)]
    arguments = (a, a[::-1], *BLEU, "--text-key", "texts")
    assert "equal 5 times" in run(*arguments, "--id-key", "id")[1]
    assert "equal 5 times" not in run(*arguments, "--by-line")[1]
    code, _, shown = run(*arguments)
    assert code == 2
    assert "--id-key --by-line" in shown


def test_sets_of_one_cluster_are_not_independent(run, result_of):
    a = [{"id": i, "topic": i // 2, "texts": members} for i, members in enumerate(SETS + OTHER)]
    b = [row | {"texts": ["a b", "c d"]} for row in a]
    options = (*BLEU, "--text-key", "texts", "--id-key", "id", "--cluster-key", "topic")
    result, _ = result_of(a, b, *options)
    assert (result["n"], result["n_units"]) == (10, 5)
    differences = np.array([item["a"] - item["b"] for item in result["items"]])
    assert result["p"] == pytest.approx(mean_p(mean_estimate(differences, np.arange(10) // 2)))
    code, _, shown = run(a, [row | {"topic": 7} for row in a], *options)
    assert (code, "a.jsonl, row 1" in shown, "topic" in shown) == (2, True, True)


def of_single_texts(sets):
    """One row a text, alternating between the sets, so that rows of one id are not adjacent."""
    rows = [{"id": f"p{i}", "t": text, "n": j} for i, members in enumerate(sets) for j, text in enumerate(members)]
    return sorted(rows, key=lambda row: row["n"])


@pytest.mark.parametrize("metric", ["self_bleu", "gruen"])
def test_rows_of_one_text_are_sets_by_their_id(run, result_of, tmp_path, load, metric):
    options = ("--metric", metric, "--text-key", "t", "--id-key", "id")
    a = [{"id": f"p{i}", "t": members} for i, members in enumerate(SETS)]
    b = [{"id": f"p{i}", "t": members} for i, members in enumerate(OTHER)]
    first, _ = result_of(a, b, *options)
    assert result_of(of_single_texts(SETS), of_single_texts(OTHER), *options)[0] == first
    expected = load(metric).compute(predictions=SETS[0])
    assert first["items"][0]["a"] == pytest.approx(np.mean(expected["scores"]), abs=1e-6)
    # Two systems of one file.
    systems = {"x": SETS, "y": OTHER}
    rows = [row | {"m": name} for name, sets in systems.items() for row in of_single_texts(sets)]
    path = write_jsonl(tmp_path / "all.jsonl", rows)
    both, _ = result_of(path, None, *options, "--system-key", "m")
    assert both.pop("systems") == ["x", "y"]
    assert both == {name: value for name, value in first.items() if name != "systems"}
    for more in ([], ["--system-key", "id"]):
        code, _, shown = run(path, None, *options, *more)
        assert (code, "--system-key" in shown) == (2, True)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_blank_lines_pair_nothing_wrong(run, tmp_path, kind):
    """Equal lines belong together: a blank line opposite a row is an error, and at equal places it is nothing."""
    lines = [json.dumps({"t": members}) for members in SETS]
    if kind == "csv":
        lines = ["t", *('"' + json.dumps(members).replace('"', '""') + '"' for members in SETS)]
    whole, first, second = (tmp_path / f"{name}.{kind}" for name in ("whole", "first", "second"))
    whole.write_text("\n".join(lines))
    blank_third = list(lines)
    blank_third.insert(2, "")
    first.write_text("\n".join(blank_third))
    blank_fourth = [*lines, "", ""]
    blank_fourth.insert(3, "")
    second.write_text("\n".join(blank_fourth))
    options = (*BLEU, "--text-key", "t", "--by-line")
    assert f"equal {len(SETS)} times" in run(str(first), str(first), *options)[1]
    for a, b in ((first, second), (whole, first), (second, whole)):
        code, out, shown = run(str(a), str(b), *options)
        assert (code, out) == (2, "")
        assert f"{a}, row" in shown or f"{b}, row" in shown


def test_items_without_a_score_are_left_out_on_both_sides(run):
    skip = ("--metric", "self_bleu", "--setting", "singletons=skip", "--by-line")
    code, out, _ = run([*SETS, ["one"], ["a", "b"]], [*SETS, ["a", "b"], ["one"]], *skip)
    assert code == 0
    assert "5 items (2 without a score)" in out
    code, _, shown = run([["one"]], [["one"]], *skip)
    assert (code, "self_bleu" in shown) == (2, True)


def test_answers_against_peoples_and_signatures_that_differ(run, tmp_path):
    people = [["a kettle"] * 4 + ["a pot"] * 2, ["red"] * 3 + ["blue"] * 3]
    a = [{"t": ["kettle", "pot"], "people": people[0]}, {"t": ["red", "blue"], "people": people[1]}]
    b = [{"t": ["a plane"], "people": gold} for gold in people]
    options = ("--metric", "probeval", "--text-key", "t", "--by-line", "--reference-key", "people")
    code, out, _ = run(a, b, *options)
    assert code == 0
    assert "B 2 times" in out
    assert re.search(r"differ in n_answers: 2.* and 1", out)
    # In CSV, lists are JSON.
    paths = [write_data(tmp_path / f"{name}.csv", rows) for name, rows in (("a", a), ("b", b))]
    of_csv = run(paths[0], paths[1], *options)[1]
    assert of_csv.splitlines()[3:] == out.splitlines()[3:]
    assert "a.jsonl, row 1 has no 'gold'" in run(a, b, *options[:-1], "gold")[2]


def test_columns_and_results_are_compared(run, tmp_path):
    a = [{"t": members, "quality": [0.5] * len(members)} for members in SETS]
    b = [{"t": members, "quality": [1.0] * len(members)} for members in SETS]
    options = ("--metric", "vendi_embed", "--text-key", "t", "--by-line", "--column", "quality=quality")
    code, out, _ = run(a, b, *options, "--result", "quality_scores")
    assert code == 0
    assert f"B {len(SETS)} times" in out
    assert f"equal {len(SETS)} times" in run(a, b, *options)[1]


NOTHING: list = []
ROW = {"id": 1, "t": ["a b"]}
BY_ID = (*BLEU, "--text-key", "t", "--id-key", "id")


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        # Names are checked before files are read.
        (NOTHING, NOTHING, ["--metric", "self_blue", "--by-line"], "'self_bleu'"),
        (NOTHING, NOTHING, ["--by-line", "--result", "quality"], "--result must be one of scores"),
        # 1 over what is averaged: the mean of the values over sets means nothing.
        (
            NOTHING,
            NOTHING,
            ["--metric", "vendi_embed", "--text-key", "t", "--by-line", "--result", "pairs_scores"],
            "--result must be one of scores, quality_scores",
        ),
        (NOTHING, NOTHING, ["--by-line", "--column", "quality=q"], "--column quality"),
        (NOTHING, NOTHING, ["--by-line", "--reference-key", "people"], "--reference-key"),
        (NOTHING, NOTHING, ["--by-line", "--confidence", "95"], "confidence"),
        (SETS, OTHER, ["--metric", "self_bleu", "--by-line", "--setting", "max_order"], "--setting must be NAME=VALUE"),
        (SETS, OTHER, ["--metric", "self_bleu", "--by-line", "--setting", "max_order=0"], "max_order must be"),
        (SETS, OTHER, ["--metric", "self_bleu", "--by-line", "--setting", "order=2"], "no argument 'order'"),
        (SETS, OTHER, ["--by-line", "--text-key", "texts"], "a.jsonl, row 1 must be an object with 'texts'"),
        (SETS, OTHER, ["--id-key", "id"], "a.jsonl, row 1 must be an object with 'id'"),
        (SETS, SETS[:4], ["--by-line"], "a.jsonl, row 5"),
        (["a b", "c d"], ["a b", "c d"], ["--by-line"], "a.jsonl, row 1 a row is one text"),
        ([["a", "b"], 7], SETS[:2], ["--by-line"], "a.jsonl, row 2 a row must be a text or a list"),
        ([{"t": ["a"]}], [{"t": ["a"]}], ["--by-line"], "row 1 is an object: pass --text-key, one of t"),
        ([ROW], [{"t": ["a"]}], BY_ID, "b.jsonl, row 1 has no 'id': it has t"),
        ([ROW], [{"id": 2, "t": ["a"]}], BY_ID, "a.jsonl, row 1: id '1' is not in "),
        ([ROW], [ROW, {"id": 2, "t": ["a"]}], BY_ID, "b.jsonl, row 2: id '2' is not in "),
    ],
)
def test_bad_input_is_named(run, a, b, options, message):
    options = options if "--metric" in options else list(BLEU) + options
    code, out, shown = run(a, b, *options)
    assert (code, out) == (2, "")
    assert message in shown


def test_contexts_are_taken_out_of_both_systems(result_of, load):
    contexts = [f"Say something about {members[0].split()[1]}." for members in SETS]
    a = [{"t": t, "c": c} for t, c in zip(SETS, contexts, strict=True)]
    b = [{"t": t, "c": c} for t, c in zip(OTHER, contexts, strict=True)]
    options = ("--metric", "vendi_embed", "--text-key", "t", "--by-line", "--context-key", "c")
    items = result_of(a, b, *options)[0]["items"]
    for side, sets in zip("ab", (SETS, OTHER), strict=True):
        expected = load("vendi_embed").compute(predictions=sets, contexts=contexts)["scores"]
        assert [item[side] for item in items] == pytest.approx(expected, abs=1e-5)
