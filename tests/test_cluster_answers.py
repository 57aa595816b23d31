"""Clusters of answers by a chat model, against a real server."""

import itertools
import json
import re
import sys

import pytest

from tests.chat_server import serve
from tests.conftest import ROOT
from tests.files import read_jsonl
from text_metrics.commands import cluster_answers

TARGETS = ROOT / "tests" / "data" / "probeval_cfc_targets.jsonl"
PREDICTIONS = ROOT / "tests" / "data" / "probeval_cfc_predictions.json"


def reply_by_last_word(question, _number=0):
    """Put answers with the same last word into one cluster."""
    texts = re.findall(r"^\d+\. (.*)$", question, re.MULTILINE)
    return json.dumps({str(i): text.split()[-1].title() for i, text in enumerate(texts, 1)})


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns its exit code and what it wrote to stderr."""

    def run_once(*arguments):
        monkeypatch.setattr(sys, "argv", ["cluster_answers.py", *map(str, arguments), "--model", "m"])
        code = cluster_answers.main()
        return code, capsys.readouterr().err

    return run_once


def clusters_of(row):
    actual = {}
    for answer in row["answers"]:
        actual.setdefault(answer["cluster"], {})[answer["text"]] = answer["count"]
    return actual


def test_answers_are_clustered(run, load, tmp_path):
    out = tmp_path / "clustered.jsonl"
    with serve(reply_by_last_word) as server:
        for _ in range(2):
            code, shown = run(TARGETS, "--out", out, "--base-url", server.url)
            assert code == 0, shown
            # What was answered is not asked again.
            assert len(server.requests) == 3
    assert "3 of 3 questions are clustered" in shown
    first, second, third = read_jsonl(out)
    assert [first["id"], second["id"], third["id"]] == ["q1", "q2", "q3"]
    assert first["question"] == "what do you boil water in?"
    assert clusters_of(first) == {
        "kettle": {"a kettle": 2, "electric kettle": 1, "kettle": 9},
        "cup": {"cup": 2},
        "mug": {"mug": 1},
        "pot": {"pot": 3},
        "saucepan": {"saucepan": 2},
    }
    assert clusters_of(second)["owner"] == {"owner": 5, "the owner": 4}
    probeval = load("probeval")
    predictions = probeval.from_cfc(TARGETS, PREDICTIONS)["predictions"]
    result = probeval.compute(predictions=predictions, references=[first, second], clustering="human")
    assert result["n_clusters"] == 4


def test_questions_whose_answers_cannot_be_read_are_reported_and_the_rest_kept(run, tmp_path):
    out = tmp_path / "clustered.jsonl"
    arguments = (TARGETS, "--out", out, "--attempts", 2)
    # No file can hold an unpaired surrogate.
    bad = itertools.cycle(["I cannot.", json.dumps({str(i): "half \ud83d" for i in range(1, 8)})])
    with serve(lambda question, _: next(bad) if "boil" in question else reply_by_last_word(question)) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 1
        assert "question 'q1': none of 2 answers can be parsed" in shown
        assert "2 of 3 questions are clustered" in shown
        assert [row["id"] for row in read_jsonl(out)] == ["q2", "q3"]
        server.reply = reply_by_last_word
        assert run(*arguments, "--base-url", server.url)[0] == 0
        assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2", "q3"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", "numbers 1 to 2"),
        ('{"1": "a"}', "numbers 1 to 2"),
        ('{"1": "a", "2": "b", "3": "c"}', "numbers 1 to 2"),
        ('{"1": "a", "2": " "}', "' '"),
        ('{"1": "Wrong", "2": "b"}', "'Wrong'"),
        ('{"1": 1, "2": "b"}', "1"),
    ],
)
def test_unreadable_clusters(answer, message):
    with pytest.raises(ValueError, match=message):
        cluster_answers.parse_names(2, answer)
    # Names that differ in case or spaces are one cluster.
    good = 'An example: {{"x": {"1": "a"}}. Here:\n```json\n{"1": "Red  wine", "2": "red wine"}\n```'
    assert cluster_answers.parse_names(2, good) == ["red wine", "red wine"]
