"""Files that are broken, empty or wrong: every command ends in one sentence that names them, and exit code 2."""

import json
import os
import subprocess
import sys
from encodings.aliases import aliases
from pathlib import Path

import pytest

from tests.conftest import SETS
from tests.files import KINDS_OF_PIPES, pipe_of, read_jsonl, write_jsonl
from tests.fuzzing import bounded
from text_metrics import load
from text_metrics.console import command as returning_code
from text_metrics.loading import import_evaluate
from text_metrics.metrics._core.core_models import find_device
from text_metrics.metrics._core.core_numbers import first_line

PAIR = {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "src": "x"}
PEOPLE = {**PAIR, "human_diversity": [0, 1, 1]}


@pytest.fixture
def run(run):
    """Run commands in a folder with a good file; returns the exit code and stderr."""
    write_jsonl(Path("good.jsonl"), [{"texts": texts} for texts in SETS])
    return lambda *words: run(*words)[::2]


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


CHAT = ("--out", "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9")
SETS_OF = ("--metric", "self_bleu", "--text-key", "texts")
# The words before the name of the file, and those after it.
COMMANDS = {
    "score": (("score",), (*SETS_OF, "--quiet")),
    "choose": (("choose",), ("--text-key", "text", "--one-set", "--keep", "2", "--quiet")),
    "report": (("report",), ("--text-key", "texts", "--by-line", "--quiet")),
    "compare": (("compare",), ("good.jsonl", *SETS_OF, "--by-line")),
    "meta-eval": (("meta-eval",), ()),
    "rate-quality": (("rate-quality",), CHAT),
    "probe, questions": (("probe", "ask"), CHAT),
    "probe, targets": (("probe", "annotators"), ()),
    "cluster-answers": (("cluster-answers",), CHAT),
}
# A line of three, and what is wrong with the second.
BROKEN = {
    "cut": b'{"set1": ["a", "b"\n',
    "not UTF-8": b'{"set1": ["\xff"]}\n',
    "half a surrogate": b'{"text": "\\ud800"}\n',
    "deep": b"[" * 200_000 + b"\n",
    "a number of many digits": b"1" * 5_000 + b"\n",
    "empty": b"",
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
    path = Path("data.jsonl")
    path.write_bytes(BROKEN[fault] * 2)
    code, shown = run(*COMMANDS[command][0], path, *COMMANDS[command][1])
    assert_one_sentence(code, shown, path.name)
    assert "line 1" in shown or fault == "empty" or command in ("score", "choose", "report", "compare")


@pytest.mark.parametrize("words", ["choose --text-key texts --keep 1", "report --text-key texts --by-line"])
def test_a_setting_of_another_type_is_named_and_a_bug_has_a_traceback(run, words):
    assert_one_sentence(*run(*words.split(), "good.jsonl", "--setting", "batch_size=x"), "batch_size")
    with pytest.raises(TypeError, match="len"):
        returning_code(len)(0)


class SilentError(ValueError):
    """An error without a message, as libraries raise it."""

    def __str__(self):
        return ""


def test_an_error_without_a_message_is_one_sentence(run, monkeypatch):
    """Wherever its first line is shown: its type is named instead."""
    errors = (SilentError(), ValueError(" \n"), ValueError("a\nb"))
    assert list(map(first_line, errors)) == ["SilentError", "ValueError", "a"]

    def fail(*arguments, **named):
        raise SilentError

    # A module of `evaluate`, and a device.
    monkeypatch.setattr(import_evaluate(), "load", fail)
    assert_one_sentence(*run("compare", "good.jsonl", "good.jsonl", "--metric", "./none", "--by-line"), "SilentError")
    import torch

    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(ValueError, match=r"device is not available .*: SilentError"):
        find_device("cuda")


@pytest.mark.parametrize("command", ["score", "compare"])
def test_a_score_that_fails_without_a_message_is_no_score(run, monkeypatch, command):
    """No row is lost: the one that fails is a bad row, or the command ends."""
    metric = type(load("self_bleu"))
    compute = metric._compute

    def fail_at_rain(self, **named):
        if any("rain" in " ".join(texts).lower() for texts in named["predictions"]):
            raise SilentError
        return compute(self, **named)

    monkeypatch.setattr(metric, "_compute", fail_at_rain)
    before, after = COMMANDS[command]
    code, shown = run(*before, "good.jsonl", *after)
    assert (code, "SilentError" in shown, "Traceback" in shown) == (3 if command == "score" else 2, True, False)
    if command == "score":
        (bad,) = read_jsonl(Path("good.jsonl.self_bleu.jsonl.bad.jsonl"))
        assert (bad["row"], "SilentError" in bad["error"]) == (2, True)


def test_every_encoding_of_python_reads_a_file_or_is_refused(run):
    """Those of bytes, such as hex, encode no text."""
    some = sorted(set(aliases.values()))[::4]
    for encoding in [*some, "hex", "base64", "rot13", "zip", "undefined", "idna", "none", ""]:
        code, shown = run("score", "good.jsonl", *SETS_OF, "--encoding", encoding, "--out", "out.jsonl", "--restart")
        assert code in (0, 2, 3), encoding
        assert "Traceback" not in shown, encoding
        if encoding in ("hex", "base64", "rot13", "none"):
            assert (code, "--encoding" in shown) == (2, True), encoding


JOB = ("--text-key", "set1", "--out", "out.jsonl")
SCORE = ("score", "--metric", "self_bleu", *JOB)
READING_TWICE = {
    "score": SCORE,
    "score --one-set": (*SCORE, "--out", "out.json", "--one-set"),
    "score --id-key": (*SCORE, "--id-key", "src"),
    "choose": ("choose", *JOB, "--keep", "1"),
}


CONTENT = lines(*({**PAIR, "set1": [f"a b {i}", f"c {i} d", "e"]} for i in range(1500))).encode()


@pytest.mark.parametrize("kind", KINDS_OF_PIPES)
@pytest.mark.parametrize("command", READING_TWICE)
def test_what_a_job_would_read_twice_is_refused(run, command, kind):
    """With nothing written: a pipe gives its bytes once."""
    with bounded(command), pipe_of(CONTENT, kind) as path:
        before = sorted(os.listdir())
        code, shown = run(*READING_TWICE[command], path)
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
    path = Path("nowhere.jsonl")
    before, after = COMMANDS[command]
    assert_one_sentence(*run(*before, path, *after), path.name)
    path.mkdir()
    assert_one_sentence(*run(*before, path, *after), path.name)


@pytest.mark.parametrize(
    "pairs",
    [
        [7],
        [{**PAIR, "set2": ["c"]}],
        [{**PAIR, "set1": None}],
        [{**PAIR, "llm_diversity": [0]}],
        [{"set1": ["a"], "set2": ["b"], "Diversity_Set1": 1, "Diversity_Set2": 1}],
        [{**PEOPLE, "human_diversity": 1}],
        [PEOPLE, {**PEOPLE, "human_diversity": [1]}],
    ],
)
def test_pairs_of_another_kind_are_named(run, pairs):
    path = Path("data.jsonl")
    path.write_text(lines(*pairs))
    assert_one_sentence(*run("meta-eval", path), path.name)


@pytest.mark.parametrize(
    ("line", "completed"), [("text-metrics sc", "score"), ("text-metrics choose data.jsonl --min-d", "--min-distance")]
)
def test_a_shell_completes_commands_and_options(line, completed):
    names = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    shell = ["sh", "-c", 'exec "$0" -m text_metrics 8>&1 9>/dev/null', sys.executable]
    shown = subprocess.run(shell, env=os.environ | names, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == completed
