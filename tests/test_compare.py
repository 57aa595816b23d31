"""text-metrics compare: two systems, item by item."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tests.conftest import SETS
from tests.files import write_jsonl
from text_metrics.commands import compare
from text_metrics.commands.shared.statistics import mean_p, randomization_p
from text_metrics.metrics._core.core_results import mean_estimate

OTHER = [[*members[::-1][:-1], "The train is late."] for members in SETS]


@pytest.fixture
def run(monkeypatch, capsys):
    def run_once(*arguments):
        monkeypatch.setattr(sys, "argv", ["compare.py", *map(str, arguments)])
        code = compare.main()
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_once


@pytest.fixture
def files(tmp_path):
    return lambda name, values: write_jsonl(tmp_path / name, values)


def test_scores_that_differ_by_rounding_tie():
    noise = np.random.default_rng(0).normal(1e-13, 1e-14, 30)
    result = compare.compare(np.full(30, 0.4) + noise, np.full(30, 0.4), 0.95)
    assert (result["a_higher"], result["equal"], result["p"]) == (0, 30, 1)


def test_two_files_are_compared(run, files, load, tmp_path):
    a, b = files("a.jsonl", SETS), files("b.jsonl", OTHER)
    code, out, _ = run(
        *(a, b, "--metric", "vendi_embed", "--setting", "q=0.5", "--confidence", "0.9"),
        *("--json", tmp_path / "c.json", "--plot", tmp_path / "c.svg"),
    )
    assert code == 0
    result = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    scores = [load("vendi_embed").compute(predictions=sets, q=0.5, confidence=0.9) for sets in (SETS, OTHER)]
    first, second = (np.array(one["scores"]) for one in scores)
    # The same numbers as in Python.
    for name, one in zip("ab", scores, strict=True):
        assert result[name] == {"mean": pytest.approx(one["vendi_embed"]), "interval": one["confidence_interval"]}
    assert result["difference"]["mean"] == pytest.approx(float((first - second).mean()))
    low, high = result["difference"]["interval"]
    assert low < result["difference"]["mean"] < high
    assert result["p"] == mean_p(mean_estimate(first - second))
    assert result["p_randomization"] == randomization_p(first - second)
    assert [(item["id"], item["a"], item["b"]) for item in result["items"]] == list(
        zip(range(len(SETS)), first.tolist(), second.tolist(), strict=True)
    )
    assert result["a_higher"] + result["b_higher"] + result["equal"] == len(SETS)
    assert f"p = {result['p']:.4f}" in out
    assert f"{result['a']['mean']:.4f}" in out
    assert "vendi_embed|q:0.5|" in out
    assert ElementTree.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


def test_a_system_against_itself(run, files):
    a = files("a.jsonl", SETS)
    code, out, _ = run(a, a, "--metric", "self_bleu", "--setting", "max_order=1")
    assert code == 0
    assert "p = 1.0000" in out
    # All differences are equal, so nothing is known of how they vary.
    assert re.search(r"A - B +0\.0000\n", out)
    assert "equal 5 times" in out


def test_a_difference_that_is_there_is_found(run, files, rng):
    words = [f"word{i}" for i in range(30)]
    a = [[" ".join(rng.choice(words[:12], 8)) for _ in range(3)] for _ in range(40)]
    b = [[" ".join(rng.choice(words, 8)) for _ in range(3)] for _ in range(40)]
    code, out, _ = run(files("a.jsonl", a), files("b.jsonl", b), "--metric", "self_bleu", "--setting", "max_order=1")
    assert code == 0
    assert "p = 0.0001" in out


def test_items_are_matched_by_id_and_taken_from_a_key(run, files, tmp_path):
    a = files("a.jsonl", [{"id": i, "texts": members} for i, members in enumerate(SETS)])
    b = files("b.jsonl", [{"id": i, "texts": members} for i, members in reversed(list(enumerate(SETS)))])
    arguments = (a, b, "--metric", "self_bleu", "--setting", "max_order=2", "--text-key", "texts")
    code, out, _ = run(*arguments, "--id-key", "id")
    assert code == 0
    assert "equal 5 times" in out
    assert "equal 5 times" not in run(*arguments, "--by-line")[1]


PROMPTS = [f"prompt {i}" for i in range(200)]


def rows_of(prompts, scores):
    """Make a set of two texts for each prompt; the lower the score, the more alike they are."""
    return [
        {
            "prompt": prompt,
            "texts": ["a b c d", "a b c d" if scores[prompt] else "w x y z"],
            "model": "m",
            "ok": i % 2 == 0,
        }
        for i, prompt in enumerate(prompts)
    ]


SHUFFLED = {
    "all, in another order": PROMPTS[::-1],
    "one other prompt": [*PROMPTS[1:], "a new prompt"],
    "one prompt twice": [PROMPTS[0], *PROMPTS[:-1]],
    "two swapped": [*PROMPTS[1::-1], *PROMPTS[2:]],
}


@pytest.mark.parametrize("case", SHUFFLED)
def test_prompts_in_another_order_are_not_paired_by_line(run, files, case):
    """In 17 prompts A repeats itself and B does not; paired by line, it is more."""
    places = {prompt: i for i, prompt in enumerate([*PROMPTS, "a new prompt"])}
    a = files("a.jsonl", rows_of(PROMPTS, {prompt: i < 57 for prompt, i in places.items()}))
    b = files("b.jsonl", rows_of(SHUFFLED[case], {prompt: i < 40 for prompt, i in places.items()}))
    arguments = (a, b, "--metric", "self_bleu", "--setting", "max_order=1", "--text-key", "texts")
    code, out, shown = run(*arguments)
    assert code == 2
    assert re.search(r"a.jsonl, line \d+ has the 'prompt' of .*b.jsonl, line \d+: the files are in different", shown)
    assert "Pass --id-key" in shown
    assert not out
    code, out, shown = run(*arguments, "--id-key", "prompt")
    if case in ("all, in another order", "two swapped"):
        assert "A is higher 17 times, B 0 times, equal 183 times" in out
    else:
        assert code == 2
        assert "appears twice" in shown or "is in only one of" in shown
    if case == "all, in another order":
        assert "A is higher 57 times" in run(*arguments, "--by-line")[1]


def test_pairs_with_different_prompts_are_named(run, files):
    rows = [{"prompt": f"p{i}", "texts": ["a b", "c d"]} for i in range(6)]
    a, b = files("a.jsonl", rows), files("b.jsonl", [*rows[:2], {**rows[2], "prompt": "P2"}, *rows[3:]])
    code, _, shown = run(a, b, "--metric", "self_bleu", "--text-key", "texts")
    assert code == 0
    assert "1 pairs differ in 'prompt', such as " in shown
    assert "a.jsonl, line 3 and " in shown


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["x", "y", "z"], ["x", "y", "z"]),
        ([True, False, True], [False, True, True]),
        ([None, None, "x"], [None, None, "x"]),
        # Other values, such as lengths: no names of items.
        ([1, 2, 3, 4], [9, 1, 8, 7]),
        (["x", "y", "z"], [["x"], ["y"], ["z"]]),
        (["x", "x", "y", "y"], ["x", "x", "x", "y"]),
    ],
)
def test_columns_that_say_nothing_of_the_order(run, files, first, second):
    rows = [[{"k": value, "t": ["a b", "c d"]} for value in own] for own in (first, second)]
    a, b = files("a.jsonl", rows[0]), files("b.jsonl", rows[1])
    assert run(a, b, "--metric", "self_bleu", "--text-key", "t")[0] == 0


def test_prompts_that_come_more_than_once_in_another_order(run, files):
    rows = [{"messages": [{"role": "user", "content": f"p{i % 3}"}], "t": "The cat sat on the mat."} for i in range(6)]
    a, b = files("a.jsonl", rows), files("b.jsonl", sorted(rows, key=lambda row: row["messages"][0]["content"]))
    code, _, shown = run(a, b, "--metric", "gruen", "--text-key", "t")
    assert code == 2
    assert "a.jsonl, line 2 has the 'messages' of" in shown
    assert "b.jsonl, line 3: " in shown
    assert run(a, b, "--metric", "gruen", "--text-key", "t", "--by-line")[0] == 0


def test_references_in_another_order_are_not_paired_by_line(run, files):
    answers = {"q1": (["kettle"] * 3, ["a kettle"] * 4 + ["a pot"]), "q2": (["red"] * 3, ["red"] * 3 + ["blue"])}
    rows = [{"id": name, "t": own} for name, (own, _) in answers.items()]
    people = [{"id": name, "answers": gold} for name, (_, gold) in reversed(answers.items())]
    a, references = files("a.jsonl", rows), files("people.jsonl", people)
    arguments = (a, a, "--metric", "probeval", "--text-key", "t", "--references", references)
    code, _, shown = run(*arguments)
    assert code == 2
    assert "a.jsonl, line 1 has the 'id' of" in shown
    assert "people.jsonl, line 2: " in shown
    code, out, _ = run(*arguments, "--id-key", "id")
    assert code == 0
    right = run(a, a, "--metric", "probeval", "--text-key", "t", "--references", files("p.jsonl", people[::-1]))[1]
    assert out.splitlines()[1] == right.splitlines()[1]
    one = files("one.jsonl", people[:1])
    assert "id 'q1' is in only one of" in run(*arguments[:-1], one, "--id-key", "id")[2]


def test_items_without_a_score_are_left_out_on_both_sides(run, files):
    a, b = files("a.jsonl", [*SETS, ["one"], ["a", "b"]]), files("b.jsonl", [*SETS, ["a", "b"], ["one"]])
    code, out, _ = run(a, b, "--metric", "self_bleu", "--setting", "singletons=skip")
    assert code == 0
    assert "self_bleu, 5 items (2 without a score)" in out
    alone = files("c.jsonl", [["one"]])
    code, _, shown = run(alone, alone, "--metric", "self_bleu", "--setting", "singletons=skip")
    assert code == 2
    assert "No item has a score by self_bleu on both sides." in shown


def test_answers_against_peoples(run, files):
    people = [["a kettle"] * 4 + ["a pot"] * 2, ["red"] * 3 + ["blue"] * 3]
    a, b = files("a.jsonl", [["kettle", "pot"], ["red", "blue"]]), files("b.jsonl", [["a plane"], ["a plane"]])
    code, out, _ = run(a, b, "--metric", "probeval", "--references", files("people.jsonl", people))
    assert code == 0
    assert "B 2 times" in out
    assert "the signatures differ" in out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            ["--metric", "self_blue"],
            "no metric 'self_blue': did you mean 'self_bleu'? The metrics are chamfer_diversity, ",
        ),
        (["--metric", "self_bleu", "--setting", "max_order"], "--setting must be NAME=VALUE. Got 'max_order'."),
        (["--metric", "self_bleu", "--setting", "max_order=0"], "max_order must be at least 1. Got 0."),
        (["--metric", "self_bleu", "--setting", "order=2"], "self_bleu has no argument 'order'"),
        (["--metric", "self_bleu", "--confidence", "95"], "confidence must be between 0 and 1"),
        (["--metric", "self_bleu", "--text-key", "texts"], "a.jsonl, line 1 must be an object with 'texts'."),
        (["--metric", "self_bleu", "--id-key", "id"], "a.jsonl, line 1 has no 'id'."),
    ],
)
def test_bad_settings_are_named(run, files, extra, message):
    a, b = files("a.jsonl", SETS), files("b.jsonl", OTHER)
    code, _, shown = run(a, b, *extra)
    assert code == 2
    assert message in shown


def test_bad_files_are_named(run, files, tmp_path):
    a = files("a.jsonl", SETS)
    metric = ("--metric", "self_bleu")
    assert "has 5, " in run(a, files("b.jsonl", SETS[:4]), *metric)[2]
    assert "Pass --id-key" in run(a, files("b.jsonl", SETS[:4]), *metric)[2]
    assert "nowhere.jsonl does not exist" in run(a, tmp_path / "nowhere.jsonl", *metric)[2]
    flat = files("flat.jsonl", ["a b", "c d"])
    assert "one for each of the 2 items. Got 1 of them. A metric of sets requires a list" in run(flat, flat, *metric)[2]
    mixed = files("mixed.jsonl", [["a", "b"], 7])
    assert f"{mixed}: predictions[1] must be a text or a list of texts" in run(mixed, mixed, *metric)[2]
    twice = files("twice.jsonl", [{"id": 1, "t": ["a", "b"]}, {"id": 1, "t": ["a", "b"]}])
    keys = ("--id-key", "id", "--text-key", "t")
    assert "line 2: id 1 appears twice, first in " in run(twice, twice, *metric, *keys)[2]
    one, other = files("one.jsonl", [{"id": 1, "t": ["a"]}]), files("other.jsonl", [{"id": 2, "t": ["a"]}])
    assert "id 1 is in only one of" in run(one, other, *metric, *keys)[2]
    lists = files("lists.jsonl", [{"id": [1], "t": ["a"]}])
    assert "id must be a string or an integer. Got [1]." in run(lists, lists, *metric, *keys)[2]


def test_the_command_runs_from_anywhere(run, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, shown = run(files("a.jsonl", SETS), files("b.jsonl", OTHER), "--metric", "self_bleu")
    assert (code, shown) == (0, "")
    assert "self_bleu, 5 items" in out
