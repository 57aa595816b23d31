"""Files that are broken, empty or wrong: every command ends in one sentence that names them, and exit code 2."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.conftest import SETS
from tests.files import KINDS_OF_PIPES, pipe_of
from tests.fuzzing import bounded

PAIR = {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "src": "x"}
PEOPLE = {**PAIR, "human_diversity": [0, 1, 1]}
TARGET = {
    "metadata": {"id": "q1"},
    "question": {"normalized": "name a pet"},
    "answers": {"raw": {"dog": 3, "cat": 2}, "clusters": {"q1.0": {"count": 3, "answers": ["dog"]}}},
}
LABELLED = {"annotated_prediction_data": {"q1": {"dog": {"cluster": "q1.0", "count": 1}}}}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, in an empty folder; returns its exit code and stderr."""
    monkeypatch.chdir(tmp_path)

    def run_once(name, *words):
        code = run_command(monkeypatch, name, *words)
        return code, capsys.readouterr().err

    return run_once


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def compare(path):
    Path("good.jsonl").write_text(lines(*SETS))
    return "compare", path, "good.jsonl", "--metric", "self_bleu", "--by-line"


def choose(path):
    return "choose", path, "--text-key", "text", "--one-set", "--keep", "2", "--quiet"


def score(path):
    return "score", path, "--metric", "self_bleu", "--text-key", "texts", "--quiet"


COMMANDS = {
    "score": score,
    "choose": choose,
    "report": lambda path: ("report", path, "--text-key", "texts", "--by-line", "--quiet"),
    "compare": compare,
    "meta-eval": lambda path: ("meta-eval", path),
    "rate-quality": lambda path: (
        *("rate-quality", path, "--out", "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
    "probe, questions": lambda path: (
        *("probe", "ask", path, "--out", "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
    "probe, targets": lambda path: ("probe", "annotators", path),
    "cluster-answers": lambda path: (
        *("cluster-answers", path, "--out", "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
}
# A line of three, and what is wrong with the second.
BROKEN = {
    "cut": b'{"set1": ["a", "b"\n',
    "not UTF-8": b'{"set1": ["\xff"]}\n',
    "half a surrogate": b'{"text": "\\ud800"}\n',
    "deep": b"[" * 200_000 + b"\n",
    "a number of many digits": b"1" * 5_000 + b"\n",
}


def assert_one_sentence(code, shown, name):
    assert code == 2, shown
    # argparse prints the usage above its message.
    message = shown.strip().splitlines()
    assert name in message[-1], shown
    assert "Traceback" not in shown
    assert len(message) == 1 or message[0].startswith(("usage:", f"{name}, row ")), shown


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_line_is_named(run, command, fault):
    path = Path("data.json" if "predictions" in command else "data.jsonl")
    path.write_bytes(BROKEN[fault] * 2)
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, path.name)
    if command not in ("score", "choose", "report", "compare"):
        assert "line 1" in shown or path.suffix == ".json"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_file_is_named(run, command):
    path = Path("data.jsonl")
    path.write_bytes(b"")
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, path.name)


READING_TWICE = {
    "score": lambda path: ("score", path, "--metric", "self_bleu", "--text-key", "set1", "--out", "out.jsonl"),
    "score, limits": lambda path: (*READING_TWICE["score"](path), "--fail-under", "self_bleu=0"),
    "score --one-set": lambda path: (*READING_TWICE["score"](path)[:-1], "out.json", "--one-set"),
    "score --id-key": lambda path: (*READING_TWICE["score"](path), "--id-key", "src"),
    "choose": lambda path: ("choose", path, "--text-key", "set1", "--keep", "1", "--out", "out.jsonl"),
}


CONTENT = lines(
    *({**PAIR, "set1": [f"a b {i}", f"c {i} d", "e"], "set2": ["x", "y", "z"]} for i in range(1500))
).encode()


@pytest.mark.parametrize("kind", KINDS_OF_PIPES)
@pytest.mark.parametrize("command", READING_TWICE)
def test_what_a_job_would_read_twice_is_refused(run, command, kind):
    """With nothing written: a pipe gives its bytes once."""
    with bounded(command), pipe_of(CONTENT, kind) as path:
        before = sorted(os.listdir())
        code, shown = run(*READING_TWICE[command](path))
        assert sorted(os.listdir()) == before
    assert code == 2
    assert f"{path} " in shown


@pytest.mark.parametrize("kind", KINDS_OF_PIPES)
def test_a_pipe_is_read_once(run, kind):
    assert len(CONTENT) > 2**16
    Path("data.jsonl").write_bytes(CONTENT)
    words = ["data.jsonl", "--metric", "self_bleu", "--by-line", "--text-key", "set1", "--out", "out"]
    with bounded(kind), pipe_of(CONTENT, kind) as path:
        code, shown = run("compare", path, *words)
    assert code == 0, shown
    result = json.loads(Path("out").read_text())
    assert (result["n"], result["equal"]) == (1500, 1500)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_missing_or_a_folder_is_named(run, command):
    words = COMMANDS[command](Path("nowhere.jsonl"))
    assert_one_sentence(*run(*words), "nowhere.jsonl")
    Path("nowhere.jsonl").mkdir()
    assert_one_sentence(*run(*words), "nowhere.jsonl")


WRONG = {
    "compare": [[7, 8], [{"a": 1}]],
    "meta-eval": [
        [7],
        [{**PAIR, "set2": ["c"]}],
        [{**PAIR, "set1": None}],
        [{**PAIR, "llm_diversity": [0]}],
        [{"set1": ["a"], "set2": ["b"], "Diversity_Set1": 1, "Diversity_Set2": 1}],
        [{**PEOPLE, "human_diversity": 1}],
        [PEOPLE, {**PEOPLE, "human_diversity": [1]}],
    ],
    "rate-quality": [[7], [{"text": 7}]],
    "score": [[7], [{"texts": 1}]],
    "choose": [[7], [{"text": 1}]],
}


@pytest.mark.parametrize(("command", "i"), [(name, i) for name, files in WRONG.items() for i in range(len(files))])
def test_values_of_another_kind_are_named(run, command, i):
    path = Path("data.jsonl")
    path.write_text(lines(*WRONG[command][i]))
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, path.name)


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("text-metrics sc", "score"),
        ("text-metrics choose data.jsonl --min", "--min-distance"),
    ],
)
def test_a_shell_completes_commands_and_options(line, completed):
    names = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    shell = ["sh", "-c", 'exec "$0" -m text_metrics 8>&1 9>/dev/null', sys.executable]
    shown = subprocess.run(shell, env={**os.environ, **names}, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == completed
