"""What commands write: never what they read, and named where it cannot be written."""

import base64
import io
import json
import os
import sys
from pathlib import Path

import pytest

from tests.commands import choose, score
from tests.files import read_data, small_files, write_data, write_jsonl
from text_metrics.files.storage import check_outputs

LINE = {"id": "q1", "texts": ["a b", "c d", "e f", "g h"], "text": "A dog barks.", "question": "Name a pet."}
LINE |= {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0}
LINE |= {"answers": ["dog"], "answer": "dog", "quality": 1}
LINES = ("data.jsonl", "other.jsonl", "third.jsonl", "fourth.jsonl", "model.gguf")
METRIC, MODEL = "folder/metric.py", "folder2/weights.safetensors"
FOLDERS = ("folder", "folder2", "data/text")
CHAT = ["--model", "m", "--base-url", "http://[::1]:9"]
SCORE = ["score", "data.jsonl", "--metric", "self_bleu", "--text-key", "texts", "--quiet", "--restart"]
ONE_SET = ["score", "data.json", "--metric", "self_bleu", "--text-key", "texts", "--quiet", "--one-set", "--restart"]
EMBED = ["vendi_embed" if word == "self_bleu" else word for word in SCORE]
CHOOSE = ["choose", "data.jsonl", "--text-key", "texts", "--keep", "2", "--quiet", "--restart"]
COMPARE = ["compare", "data.jsonl", "other.jsonl", "--metric", "./folder", "--by-line"]
COMPARE += ["--setting", "model=model.gguf", "--setting", "vectors=./folder2"]
META_EVAL = ["meta-eval", "data.jsonl", "other.jsonl", "third.jsonl", "--metric", "./folder", "--model", "./folder2"]
MANY = ["report", "data.jsonl", "b=other.jsonl", "--text-key", "texts", "--id-key", "id", "--people", "third.jsonl"]
MANY += ["--setting", "model=model.gguf"]
REPORT = ["probe", "report", "data.jsonl", "a=other.jsonl", "third.jsonl", "fourth.jsonl"]
REPORT += ["--setting", "model=model.gguf"]
# What is read, and each output with the words that come before it.
COMMANDS = {
    "score": (["data.jsonl"], [*SCORE, "--out"]),
    "score --one-set": (["data.json"], [*ONE_SET, "--out"]),
    "score, cache_dir": (["data.jsonl"], [*EMBED, "--setting", "cache_dir="]),
    "choose": (["data.jsonl"], [*CHOOSE, "--out"]),
    **{f"report {option}": ([*LINES[:3], "model.gguf"], [*MANY, option]) for option in ("--out", "--cache-dir")},
    **{
        f"compare {option}": ([*LINES[:2], "model.gguf", METRIC, MODEL], [*COMPARE, *option.split()])
        for option in ("--out", "--setting cache_dir=")
    },
    **{
        f"meta-eval {option}": ([*LINES[:3], METRIC, MODEL], [*META_EVAL, option])
        for option in ("--out", "--cache-dir")
    },
    "rate-quality": (["data.jsonl"], ["rate-quality", *CHAT, "data.jsonl", "--out"]),
    "rate-quality --likelihood": (
        ["data.jsonl", MODEL],
        ["rate-quality", "--likelihood", "--model", "./folder2", "data.jsonl", "--out"],
    ),
    "cluster-answers": (["people.jsonl"], ["cluster-answers", *CHAT, "people.jsonl", "--out"]),
    "probe ask": (["data.jsonl"], ["probe", "ask", *CHAT, "data.jsonl", "--out"]),
    **{f"probe report {option}": (LINES, [*REPORT, *option.split()]) for option in ("--out", "--setting cache_dir=")},
    "probe annotators": (["data.jsonl"], ["probe", "annotators", "data.jsonl", "--out"]),
}


@pytest.fixture
def run(run, monkeypatch):
    """Run commands in a folder with all inputs; returns the exit code and stderr."""
    monkeypatch.setenv("METRICS_TEST_DATA", ".")
    for name in FOLDERS:
        Path(name).mkdir(parents=True)
        Path(name, "read.txt").write_text("what is read")
    for name in LINES:
        Path(name).write_text(json.dumps({**LINE, "src": name}) + "\n", encoding="utf-8")
    for name in (METRIC, MODEL):
        Path(name).write_text("what is read")
    Path("data.json").write_text(json.dumps([LINE]), encoding="utf-8")
    write_jsonl(Path("people.jsonl"), [{"id": "q1", "answers": ["dog"]}])
    return lambda *words: run(*words)[::2]


def contents():
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(Path().rglob("*"))}


def with_output(words, output):
    return [*words[:-1], f"{words[-1]}{output}"] if words[-1].endswith("=") else [*words, str(output)]


def assert_refused(code, shown):
    assert code == 2, shown
    assert shown.endswith(": choose another output.\n"), shown
    assert shown.count("\n") == 1, shown


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_is_never_what_is_read(run, command):
    reads, words = COMMANDS[command]
    before = contents()
    for name in reads:
        # The command would take no other name for an output.
        if words[0] not in ("score", "choose") or name.startswith("data"):
            code, shown = run(*with_output(words, name))
            assert_refused(code, shown)
            assert f"{name.rpartition('/')[0] or name}, which is read" in shown
            assert contents() == before


def test_a_file_has_many_names(run):
    for link in ("symbolic", "hard"):
        (os.symlink if link == "symbolic" else os.link)("data.jsonl", f"{link}.jsonl")
    os.symlink(Path.cwd(), "same")
    os.symlink("folder", "link")
    names = ["data.jsonl", "folder/../data.jsonl", Path("data.jsonl").absolute(), "symbolic.jsonl", "hard.jsonl"]
    for name in [*names, "same/data.jsonl", "folder", "folder/new.jsonl", "folder/read.txt", "link/new.jsonl"]:
        with pytest.raises(ValueError, match="which is read: choose another output"):
            check_outputs(["data.jsonl", "folder"], [Path(name)])
    for writes in (["new.jsonl", "same/new.jsonl"], ["cache"], ["a.jsonl", "cache"]):
        with pytest.raises(ValueError, match="another output"):
            check_outputs([], list(map(Path, writes)), {"cache_dir": "cache"})


def test_a_folder_with_the_name_of_a_metric_is_no_input(run):
    Path("self_bleu").mkdir()
    assert run(*SCORE, "--out", "self_bleu/scores.jsonl")[0] == 0


# What a command writes beside its output, by the name of the output.
DERIVED = [
    (SCORE, "out.jsonl", "out.jsonl.bad.jsonl"),
    (SCORE, "out.jsonl", "out.jsonl.parts/data.jsonl"),
    (SCORE, "out.jsonl", "out.jsonl.summary.json"),
    (CHOOSE, "out.csv", "out.csv.bad.jsonl"),
    (CHOOSE, "out.csv", "out.csv.parts/data.jsonl"),
    (["probe", "ask", *CHAT], "out.jsonl", "out.jsonl.journal"),
    (["rate-quality", *CHAT], "out.jsonl", "out.jsonl.journal"),
]


@pytest.mark.parametrize(("words", "output", "data"), DERIVED)
def test_what_is_written_beside_an_output_is_never_what_is_read(run, words, output, data):
    Path(data).parent.mkdir(parents=True, exist_ok=True)
    Path("data.jsonl").rename(data)
    words = [data if word == "data.jsonl" else word for word in words]
    if data not in words:
        words.append(data)
    words += ["--out", output]
    before = contents()
    assert_refused(*run(*words))
    assert contents() == before


# What users may have beside an output: files, and a folder, by names that jobs use.
FOREIGN = {
    "out.jsonl.parts/notes.txt": "mine",
    "out.jsonl.parts/part-00000000": "{}",
    "out.jsonl.bad.jsonl": '{"id": 1}\n',
    "out.jsonl.summary.json": '{"mean": 1}',
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("words", [SCORE, CHOOSE], ids=["score", "choose"])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_a_job_did_not_write_is_never_touched(run, name, words, restarts):
    """Neither at the start, nor at the end, nor if the command fails."""
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(FOREIGN[name])
    before = contents()
    words = [word for word in words if word != "--restart" or restarts]
    for change in ([], ["--text-key", "nothing"]):
        code, shown = run(*words, "--out", "out.jsonl", *change)
        assert code == 2
        assert name.partition("/")[0] in shown
        assert contents() == before
    # What bears our record is replaced.
    for place in (Path(name), Path(name).parent):
        if place.is_file():
            place.unlink()
        elif place.name:
            place.rmdir()
    assert run(*words, "--out", "out.jsonl")[0] == 0
    Path("out.jsonl.bad.jsonl").write_text('{"row": 1, "error": "e", "text": "t"}\n')
    assert run(*words, "--out", "out.jsonl", "--restart")[0] == 0
    assert not Path("out.jsonl.bad.jsonl").exists()


@pytest.mark.parametrize("words", [SCORE, ONE_SET, CHOOSE], ids=["score", "score --one-set", "choose"])
@pytest.mark.parametrize("content", ["mine\n", '{"x": 1}\n'])
def test_nobody_is_told_to_overwrite_what_a_job_did_not_write(run, words, content):
    name = "mine.json" if words is ONE_SET else "mine.jsonl"
    words = words[:-1]
    Path(name).write_text(content)
    before = contents()
    code, shown = run(*words, "--out", name)
    assert code == 2
    assert name in shown
    assert "--restart" not in shown
    assert contents() == before
    # Of its own output, of other settings, it is told.
    Path(name).unlink()
    assert run(*words, "--out", name)[0] == 0
    assert "--restart" in run(*words, "--out", name, "--batch-size", "7")[1]


COMPARE_SETS = [*COMPARE[:4], "self_bleu", "--by-line", "--text-key", "texts"]
# An output, and the command that writes it.
WRITING = {
    "score, JSON lines": ("out.jsonl", SCORE),
    "score, Parquet": ("out.parquet", SCORE),
    "score, CSV": ("out.csv", SCORE),
    "choose": ("out.jsonl", CHOOSE),
    "compare": ("out.json", COMPARE_SETS),
}


@pytest.mark.parametrize("command", ["score, JSON lines", "choose", "compare"])
@pytest.mark.parametrize("dangles", [True, False])
def test_a_link_is_followed(run, command, dangles):
    """As a shell does: its target is written, and the link stays, whether the target is there yet or not."""
    output, words = WRITING[command]
    Path("elsewhere").mkdir()
    target = Path("elsewhere", "new.jsonl")
    link = Path(output)
    if not dangles:
        target.write_text("old")
    link.symlink_to(target)
    assert run(*words, "--out", output)[0] == 0
    assert link.is_symlink()
    assert link.read_text() == target.read_text() != "old"
    assert os.listdir("elsewhere") == ["new.jsonl"]


def test_outputs_that_harm_nothing_are_no_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text("{}")
    Path("folder").mkdir()
    null = Path(os.devnull)
    check_outputs(["data.jsonl", "folder", None, "an/id-of-the-hub"], [Path("out.jsonl"), None, Path(), null, null])
    check_outputs(["data.jsonl", null], [Path("data.jsonl.out"), null], removed=Path("data.jsonl.parts"))


@pytest.mark.parametrize("command", WRITING)
def test_a_full_disk_is_named(run, command):
    """At every size at which the disk may be full: the error names a file of the command, and nothing else is left."""
    output, words = WRITING[command]
    for name in ("data.jsonl", "other.jsonl"):
        write_jsonl(Path(name), [{"texts": [f"the cat {i}", f"a mat {i + j}"]} for j in range(4) for i in range(15)])
    before = contents()
    for n_bytes in (0, 200):
        with small_files(n_bytes):
            code, shown = run(*words, "--out", output)
        assert code == 2, shown
        last = shown.strip().splitlines()[-1]
        assert f"{output}" in last, shown
        assert last.endswith(" cannot be used: File too large."), shown
        assert "Traceback" not in shown
        left = {name for name, data in contents().items() if data is not None and name not in before}
        assert not {name for name in left if ".parts" not in name}, left
    # The inputs are whole, and the same command does its work once there is space.
    assert {name: data for name, data in contents().items() if name in before} == before
    assert run(*words, "--out", output)[0] in (0, 3)
    assert Path(output).stat().st_size > 0


def test_what_cannot_be_printed_is_named(run, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, shown = run(*COMPARE_SETS)
    assert code == 2
    assert "standard output" in shown


def test_a_terminal_without_a_character_shows_what_it_can(run, monkeypatch):
    Path("data.jsonl").rename("数据.jsonl")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stdout)
    code, shown = run("compare", "数据.jsonl", *COMPARE_SETS[2:])
    assert code == 0, shown
    assert b"other.jsonl" in stdout.buffer.getvalue()


BYTES = b"\xff\xd8x"


@pytest.mark.parametrize("command", ["score", "choose"])
@pytest.mark.parametrize("name", ["data.parquet", "data"])
@pytest.mark.parametrize("grouped", [True, False])
def test_binary_columns(tmp_path, command, name, grouped):
    """They stay what they are in Parquet, and are base64 in JSON lines and CSV, in lists and objects as well."""
    texts = ["a b", "c d"] if grouped else [["a b", "c d"], ["e f", "g h"]]
    rows = [{"text": texts[i], "key": 1, "image": (BYTES, None)[i], "nested": {"bytes": BYTES}} for i in range(2)]
    data = write_data(tmp_path / name, rows)
    words = []
    if grouped:
        words += ["--id-key", "key"]
    if command == "choose":
        words += ["--keep", "2"]
    written = {}
    for kind in ("parquet", "jsonl", "csv"):
        assert (score if command == "score" else choose)(data, *words, key="text", out=f"out.{kind}") == 0
        written[kind] = read_data(tmp_path / f"out.{kind}")[0]
    in_lists = command == "score" and grouped
    coded = base64.b64encode(BYTES).decode()
    assert written["parquet"]["image"] == ([BYTES, None] if in_lists else BYTES)
    for kind in ("jsonl", "csv"):
        assert written[kind]["image"] == ([coded, None] if in_lists else coded)
        assert written[kind]["nested"] == ([{"bytes": coded}] * 2 if in_lists else {"bytes": coded})
