"""Clusters and labels of answers by a chat model, against a real server."""

import json
import re
import sys

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
    arguments = (TARGETS, "--out", out, "--answers", PREDICTIONS, labels)
    with serve(reply_by_last_word) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 0, shown
        # Two questions to cluster, and to match: "teapot", and "the moon".
        assert len(server.requests) == 4
        assert "q3" in shown
        assert "2 of 2 questions are clustered" in shown
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
        # Other answers: only what is new is asked for.
        more = write_jsonl(tmp_path / "more.jsonl", [{"id": "q1", "answers": ["big pot", "Pot ", "  ", "kettle"]}])
        assert run(TARGETS, "--out", out, "--answers", more, labels, "--base-url", server.url)[0] == 0
        assert len(server.requests) == 5
        assert json.loads(labels.read_text(encoding="utf-8")) == {
            "q1": {"big pot": "pot", "Pot ": "pot", "  ": "wrong", "kettle": "kettle"}
        }
        # Without a model's answers, all questions are clustered.
        assert run(TARGETS, "--out", out, "--base-url", server.url)[0] == 0
        assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2", "q3"]
    probeval = load("probeval")
    predictions = probeval.from_cfc(TARGETS, PREDICTIONS)["predictions"]
    result = probeval.compute(predictions=predictions, references=[first, second], matcher="human", labels=found)
    assert result["wrong_rate"] == pytest.approx((0.1 + 0.3) / 2)
    assert result["n_clusters"] == 4


def test_many_answers_are_asked_for_in_blocks(run, tmp_path):
    people = write_jsonl(tmp_path / "people.jsonl", [{"id": "q", "answers": ["red", "blue"]}])
    new = [f"shade {i} of {'red' if i % 2 else 'blue'}" for i in range(95)]
    model = write_jsonl(tmp_path / "model.jsonl", [{"id": "q", "answers": new}])
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    with serve(reply_by_last_word) as server:
        assert run(people, "--out", out, "--answers", model, labels, "--base-url", server.url)[0] == 0
        assert len(server.requests) == 1 + 3
    found = json.loads(labels.read_text(encoding="utf-8"))["q"]
    assert found == {text: text.split()[-1] for text in new}


def test_questions_whose_answers_cannot_be_read_are_reported_and_the_rest_kept(run, tmp_path):
    out, labels = tmp_path / "clustered.jsonl", tmp_path / "labels.json"
    arguments = (TARGETS, "--out", out, "--answers", PREDICTIONS, labels, "--attempts", 2)
    with serve(lambda question, _: "I cannot." if "boil" in question else reply_by_last_word(question)) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 1
        assert "question 'q1': none of 2 answers can be parsed" in shown
        assert "1 of 2 questions are clustered" in shown
        assert "1 of 2 questions are labelled" in shown
        assert [row["id"] for row in read_jsonl(out)] == ["q2"]
        assert list(json.loads(labels.read_text(encoding="utf-8"))) == ["q2"]
        server.reply = lambda question, _: 401 if "New answers" in question else reply_by_last_word(question)
        assert run(*arguments, "--attempts", 3, "--base-url", server.url)[0] == 1
        assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2"]
        assert list(json.loads(labels.read_text(encoding="utf-8"))) == ["q2"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", "numbers 1 to 2"),
        ('{"1": "a"}', "numbers 1 to 2"),
        ('{"1": "a", "2": "b", "3": "c"}', "numbers 1 to 2"),
        ('{"1": "a", "2": "half \\ud83d"}', "surrogates"),
        ('{"1": "a", "2": " "}', "' '"),
        ('{"1": "Wrong", "2": "b"}', "'Wrong'"),
        ('{"1": 1, "2": "b"}', "1"),
    ],
)
def test_unreadable_clusters(answer, message):
    with pytest.raises(ValueError, match=message):
        cluster_answers.parse_numbered(2, cluster_answers.read_name, answer)
    # Names that differ in case or spaces are one cluster.
    good = 'An example: {{"x": {"1": "a"}}. Here:\n```json\n{"1": "Red  wine", "2": "red wine"}\n```'
    assert cluster_answers.parse_numbered(2, cluster_answers.read_name, good) == ["red wine", "red wine"]


@pytest.mark.parametrize("value", ["3", -1, 1.0, True, None, 3])
def test_unreadable_matches(value):
    with pytest.raises(ValueError, match="from 0 to 2"):
        cluster_answers.read_label(["a", "b"], value)
    assert [cluster_answers.read_label(["a", "b"], i) for i in range(3)] == ["wrong", "a", "b"]


@pytest.mark.parametrize(
    ("people", "model", "message"),
    [
        ([{"id": "q", "answers": []}], [{"id": "q", "answers": ["a"]}], "has no answers"),
        ([{"id": "q", "answers": ["a"]}], [{"id": "p", "answers": ["a"]}], "no question in common"),
        ([{"answers": ["a"]}], [], "line 1 must have an 'id'"),
        ([{"id": "q", "answers": ["a"]}], [["a"]], "must be a JSON object"),
    ],
)
def test_bad_input_is_named_before_anything_is_asked(run, tmp_path, people, model, message):
    paths = [write_jsonl(tmp_path / f"{i}.jsonl", rows) for i, rows in enumerate((people, model))]
    out, labels = tmp_path / "out.jsonl", tmp_path / "labels.json"
    more = ("--answers", paths[1], labels) if model else ()
    code, shown = run(paths[0], "--out", out, *more, "--base-url", "http://127.0.0.1:9/v1")
    assert code == 2
    assert message in shown
    assert not out.exists()
    assert not labels.exists()
