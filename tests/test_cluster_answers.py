"""Clusters and labels of answers by a chat model, against a real server with faults."""

import json
import re
import sys
from collections import Counter

import pytest

from tests.chat_server import serve
from tests.conftest import ROOT
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands import cluster_answers

TARGETS = ROOT / "tests" / "data" / "probeval_cfc_targets.jsonl"
PREDICTIONS = ROOT / "tests" / "data" / "probeval_cfc_predictions.json"


def listed(part):
    return re.findall(r"^\d+\. (.*)$", part, re.MULTILINE)


def reply_by_last_word(question, _number=0):
    """Put answers with the same last word into one cluster, and match new answers by their last words."""
    if "Clusters:\n" not in question:
        return cluster_answers.in_json([text.split()[-1].title() for text in listed(question)])
    shown, new = question.split("New answers:\n")
    words = [members.split("; ")[0].split()[-1] for members in listed(shown)]
    lasts = [text.split()[-1] for text in listed(new)]
    return cluster_answers.in_json([words.index(word) + 1 if word in words else 0 for word in lasts])


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns its exit code and what it wrote to stderr."""

    def run_once(*arguments):
        monkeypatch.setattr(sys, "argv", ["cluster_answers.py", *map(str, arguments), "--model", "m"])
        code = cluster_answers.main()
        return code, capsys.readouterr().err

    return run_once


def clusters_of(row):
    found = {}
    for answer in row["answers"]:
        found.setdefault(answer["cluster"], {})[answer["text"]] = answer["count"]
    return found


def test_answers_are_clustered_and_labelled(run, load, tmp_path):
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    arguments = (TARGETS, out, "--answers", PREDICTIONS, labels)
    with serve(reply_by_last_word) as server:
        code, shown = run(*arguments, "--base-url", server.url, "--prices", "2.5", "10")
        assert code == 0, shown
        # Two questions to cluster, and to match: "teapot", and "the moon".
        assert len(server.requests) == 4
        assert "200 + 20 tokens, $0.0007 in all; 2 answers are new" in shown
        assert "2 of 2 questions are clustered" in shown
        assert "Agreement with people's clusters, mean of 2 questions: blanc 0.92, adjusted_rand 0.85" in shown
        assert "2 of 2 questions are labelled" in shown
        first, second = read_jsonl(out)
        assert (first["id"], first["question"]) == ("q1", "what do you boil water in?")
        assert clusters_of(first) == {
            "kettle": {"a kettle": 2, "electric kettle": 1, "kettle": 9},
            "cup": {"cup": 2},
            "mug": {"mug": 1},
            "pot": {"pot": 3},
            "saucepan": {"saucepan": 2},
        }
        assert clusters_of(second)["owner"] == {"owner": 5, "the owner": 4}
        found = json.loads(labels.read_text(encoding="utf-8"))
        assert found == {
            "q1": {"kettle": "kettle", "pot": "pot", "teapot": "wrong"},
            "q2": {"owner": "owner", "sister": "sister", "the moon": "wrong"},
        }
        # Again: nothing is asked for. Other answers: only what is new.
        assert run(*arguments, "--base-url", server.url)[0] == 0
        assert len(server.requests) == 4
        more = write_jsonl(tmp_path / "more.jsonl", [{"id": "q1", "answers": ["big pot", "Pot ", "  ", "kettle"]}])
        assert run(TARGETS, out, "--answers", more, labels, "--base-url", server.url)[0] == 0
        assert len(server.requests) == 5
        assert json.loads(labels.read_text(encoding="utf-8")) == {
            "q1": {"big pot": "pot", "Pot ": "pot", "  ": "wrong", "kettle": "kettle"}
        }
        # Without a model's answers, all questions are clustered.
        assert run(TARGETS, out, "--base-url", server.url)[0] == 0
        assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2", "q3"]
    probeval = load("probeval")
    predictions = probeval.from_cfc(TARGETS, PREDICTIONS)["predictions"]
    result = probeval.compute(predictions=predictions, references=[first, second], matcher="human", labels=found)
    assert result["wrong_rate"] == pytest.approx((0.1 + 0.3) / 2)
    assert result["n_clusters"] == 4


def test_questions_without_ids_are_labelled_by_position(run, tmp_path):
    people = write_jsonl(tmp_path / "people.jsonl", [{"answers": ["red", "dark red", "blue"]}, {"answers": {"tea": 3}}])
    model = write_jsonl(tmp_path / "model.jsonl", [["light red", "red"], ["green tea"]])
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    with serve(reply_by_last_word) as server:
        # A line of answers must be an object, with an id or with answers.
        code, shown = run(people, out, "--answers", model, labels, "--base-url", server.url)
        assert code == 2
        assert "model.jsonl, line 1 must be a JSON object. Got list" in shown
        write_jsonl(model, [{"answers": ["light red", "red"]}, {"answers": ["green tea"]}])
        code, shown = run(people, out, "--answers", model, labels, "--base-url", server.url)
        assert code == 0, shown
        assert "Agreement" not in shown
        assert "Question: (not known)" in server.requests[0][0]["messages"][-1]["content"]
    assert [row["id"] for row in read_jsonl(out)] == ["0", "1"]
    assert json.loads(labels.read_text()) == {"0": {"light red": "red", "red": "red"}, "1": {"green tea": "tea"}}


def test_many_answers_are_asked_for_in_blocks(run, tmp_path):
    people = write_jsonl(tmp_path / "people.jsonl", [{"id": "q", "question": "Which?", "answers": ["red", "blue"]}])
    new = [f"shade {i} of {'red' if i % 2 else 'blue'}" for i in range(95)]
    model = write_jsonl(tmp_path / "model.jsonl", [{"id": "q", "answers": new}])
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    with serve(reply_by_last_word) as server:
        assert run(people, out, "--answers", model, labels, "--base-url", server.url)[0] == 0
        assert len(server.requests) == 1 + 3
    found = json.loads(labels.read_text(encoding="utf-8"))["q"]
    assert found == {text: text.split()[-1] for text in new}


def test_faults_that_pass_are_waited_out(run, tmp_path):
    faults = iter([429, None, "drop", 500, None, 503, 408])
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    with serve(lambda question, _: next(faults, None) or reply_by_last_word(question)) as server:
        arguments = (TARGETS, out, "--answers", PREDICTIONS, labels, "--base-url", server.url)
        code, shown = run(*arguments, "--retries", "20", "--workers", "2")
        assert code == 0, shown
        assert len(server.requests) == 4 + 5
        assert len(server.paid) == len(set(server.paid)) == 4
    assert len(json.loads(labels.read_text(encoding="utf-8"))) == 2


def test_answers_that_cannot_be_read_are_asked_for_anew_and_then_reported(run, tmp_path):
    broken = ["garbage", "I cannot.", '{"1": "kettle"}', "nothing", None]
    count = Counter()

    def reply(question, number):
        if "boil" in question:
            return broken[number % len(broken)]
        count[question] += 1
        return (
            broken[number % len(broken)] if count[question] == 1 else f"Sure!\n```\n{reply_by_last_word(question)}\n```"
        )

    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    arguments = (TARGETS, out, "--answers", PREDICTIONS, labels, "--attempts", "3", "--workers", "1")
    with serve(reply) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 1
        assert "question 'q1': none of 3 answers can be parsed" in shown
        assert "1 of 2 questions are clustered" in shown
        assert "1 of 2 questions are labelled" in shown
        assert [row["id"] for row in read_jsonl(out)] == ["q2"]
        assert list(json.loads(labels.read_text(encoding="utf-8"))) == ["q2"]
        assert len(server.requests) == 3 + 2 + 2
        server.reply = reply_by_last_word
        assert run(*arguments, "--attempts", "4", "--base-url", server.url)[0] == 0
        assert len(server.requests) == 7 + 2
    assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2"]


@pytest.mark.parametrize("half", ["\ud83d", "\\ud83d"])
def test_half_a_surrogate_pair_is_kept_and_is_no_name_of_a_cluster(run, tmp_path, half):
    people = write_jsonl(tmp_path / "p.jsonl", [{"id": "q", "question": "?", "answers": ["a pot", "the moon"]}])
    replies = [f'{{"1": "{half}", "2": "moon"}}', '{"1": "pot", "2": "moon"} \ud83d']
    with serve(lambda _, number: replies[number]) as server:
        for _ in range(2):
            code, shown = run(people, tmp_path / "c.jsonl", "--base-url", server.url)
            assert code == 0, shown
            assert len(server.paid) == 2
    assert [answer["cluster"] for answer in read_jsonl(tmp_path / "c.jsonl")[0]["answers"]] == ["pot", "moon"]


def test_an_endpoint_that_fails_stops_the_run_and_what_came_is_kept(run, tmp_path):
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    arguments = (TARGETS, out, "--answers", PREDICTIONS, labels, "--workers", "1")
    with serve(lambda question, number: reply_by_last_word(question) if number < 3 else 401) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 1
        assert f"{server.url}/ does not answer" in shown
        assert "Stopped with 1 of 2 answers missing" in shown
        assert len(read_jsonl(out)) == 2
        assert list(json.loads(labels.read_text(encoding="utf-8"))) == ["q1"]
        server.reply = reply_by_last_word
        assert run(*arguments, "--base-url", server.url)[0] == 0
        assert len(server.paid) == len(set(server.paid)) == 4
    assert list(json.loads(labels.read_text(encoding="utf-8"))) == ["q1", "q2"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", "must hold one JSON object with the numbers 1 to 2"),
        ('{"1": "a"}', "Missing: 2; unknown or repeated: none"),
        ('{"1": "a", "2": "b", "3": "c"}', "Missing: none; unknown or repeated: 3"),
        ('{"1": "a", "2": "b", "2": "c"}', "Missing: none; unknown or repeated: 2"),
        ('{"1": "a", "2": " "}', "not blank and not 'wrong'. 2 has ' '"),
        ('{"1": "Wrong", "2": "b"}', "not blank and not 'wrong'. 1 has 'Wrong'"),
        ('{"1": 1, "2": "b"}', "1 has 1"),
    ],
)
def test_unreadable_clusters(answer, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        cluster_answers.parse_clusters(answer, 2)


def test_names_that_differ_in_case_or_spaces_are_one_cluster():
    answer = 'An example: {"x": 1}. Here: {"1": "Red  wine", "2": "red wine"}'
    assert cluster_answers.parse_clusters(answer, 2) == ["red wine", "red wine"]


@pytest.mark.parametrize("value", ["3", "-1", "1.0", '"1"', "true", "null"])
def test_unreadable_matches(value):
    with pytest.raises(ValueError, match=r"a cluster must be a number from 0 to 2\. 2 has"):
        cluster_answers.parse_matches(f'{{"1": 0, "2": {value}}}', 2, 2)
    assert cluster_answers.parse_matches('{"1": 0, "2": 2}', 2, 2) == [0, 2]


@pytest.mark.parametrize(
    ("people", "model", "message"),
    [
        ([{"id": "q", "answers": []}], [{"id": "q", "answers": ["a"]}], "needs at least one gold answer"),
        ([{"id": "q", "answers": ["a"]}], [{"id": "p", "answers": ["a"]}], "'p'.* has no reference"),
        ([{"id": "q", "answers": ["a", " "]}], [], "answer 1 is blank"),
        ([{"metadata": {"id": "q"}}], [{"id": "q", "answers": ["a"]}], "is not a record of answer clusters"),
    ],
)
def test_bad_input_is_named_before_anything_is_asked(run, tmp_path, people, model, message):
    paths = [write_jsonl(tmp_path / f"{i}.jsonl", rows) for i, rows in enumerate((people, model))]
    out, labels = tmp_path / "out.jsonl", tmp_path / "labels.json"
    more = ("--answers", paths[1], labels) if model else ()
    code, shown = run(paths[0], out, *more, "--base-url", "http://127.0.0.1:9/v1")
    assert code == 2
    assert re.search(message, shown)
    assert not out.exists()
    assert not labels.exists()
