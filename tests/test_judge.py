"""The judge, against a real server with faults."""

import json
import re

import pytest

from tests.chat_server import serve
from tests.commands import run_command
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands.meta_eval.pairs import read_verdict

PAIRS = [
    {"src": "dog", "set1": ["a dog", "a cat", "a cow", "a hen"], "set2": ["a dog", "a dog", "a dog", "a cat"], "n": 1},
    {"src": "cup", "set1": ["a cup", "a cup", "a cup", "a cup"], "set2": ["a cup", "a mug", "a cup", "a mug"]},
    {"set1": ["x", "y", "z", "z"], "set2": ["x", "x", "y", "z"]},
]
DISTINCT = [(4, 2), (1, 2), (3, 3)]


def ratings(question):
    """Rate a set by its number of different texts, and the one that comes first one higher: a biased judge."""
    first, second = (len(set(part.strip().split("\n- "))) for part in re.split(r"Set [12]:\n- ", question)[1:])
    return json.dumps({"set1": min(first + 1, 5), "set2": second})


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command with a file as its input and `out.jsonl` as its output; returns the exit code and stderr."""

    def run_once(*words):
        code = run_command(monkeypatch, *words, "--out", tmp_path / "out.jsonl")
        return code, capsys.readouterr().err

    return run_once


@pytest.fixture
def pairs(tmp_path):
    return write_jsonl(tmp_path / "pairs.jsonl", PAIRS)


def check_judged(path):
    """Both orders are averaged, so that the bias for the first is gone."""
    judged = read_jsonl(path)
    assert [(pair["Diversity_Set1"], pair["Diversity_Set2"]) for pair in judged] == [
        (first + 0.5, second + 0.5) for first, second in DISTINCT
    ]
    assert [pair["llm_diversity"] for pair in judged] == [0, 1, 2]
    assert judged[0]["judge"] == {"model": "m", "temperature": 1.0, "ratings": 10}
    assert [{key: pair[key] for key in PAIRS[i]} for i, pair in enumerate(judged)] == PAIRS


def test_pairs_are_judged_and_the_answers_kept(run, pairs, tmp_path):
    out = tmp_path / "out.jsonl"
    with serve(lambda question, _: ratings(question)) as server:
        judge = ("judge-diversity", pairs, "--base-url", server.url)
        code, shown = run(*judge, "--model", "m")
        assert code == 0, shown
        check_judged(out)
        assert len(server.paid) == len(set(server.paid)) == 30
        body = server.requests[0][0]
        assert (body["model"], body["temperature"], body["messages"][0]["role"]) == ("m", 1.0, "system")
        assert "3 of 3 pairs are judged" in shown
        # Again: nothing is asked for. More ratings cost only what is more; another model, another temperature: anew.
        for words, new in (
            (["--model", "m"], 0),
            (["--model", "m", "--samples", "6"], 6),
            (["--model", "other", "--samples", "1"], 6),
            (["--model", "m", "--temperature", "0.5", "--samples", "1"], 6),
        ):
            before = len(server.requests)
            assert run(*judge, *words)[0] == 0
            assert len(server.requests) == before + new
    assert [read_verdict(pair, "") for pair in read_jsonl(out)] == [0, 1, None]


def test_pairs_whose_answers_cannot_be_read_are_reported_and_the_rest_kept(run, pairs, tmp_path):
    broken = ["Both are fine.", '{"set1": 7, "set2": 2}', '{"set1": "4", "set2": 2}', '{"set1": 4}']

    def reply(question, number):
        return broken[number % len(broken)] if "cup" in question else f"Sure!\n```json\n{ratings(question)}\n```"

    judge = ("judge-diversity", pairs, "--model", "m", "--samples", "2")
    with serve(reply) as server:
        code, shown = run(*judge, "--base-url", server.url, "--attempts", "3")
        assert code == 1
        assert shown.count(f"{pairs}, line 2: none of 3 answers can be parsed") == 4
        assert [pair.get("src") for pair in read_jsonl(tmp_path / "out.jsonl")] == ["dog", None]
        server.reply = lambda question, _: ratings(question)
        assert run(*judge, "--base-url", server.url, "--attempts", "4")[0] == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 3
