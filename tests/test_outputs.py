"""What commands write: never what they read, and named where it cannot be written."""

import base64
import csv
import io
import json
import os
import sys
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import run_command
from tests.files import read_jsonl, small_files
from text_metrics import __main__ as cli
from text_metrics.commands.jobs import saved
from text_metrics.commands.shared.outputs import check_outputs

LINE = {
    **{"id": "q1", "texts": ["a b", "c d", "e f", "g h"], "text": "A dog barks.", "question": "Name a pet."},
    **{"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "answers": ["dog"], "answer": "dog", "quality": 1},
}
LINES = ("data.jsonl", "other.jsonl", "third.jsonl", "fourth.jsonl", "model.gguf")
METRIC, MODEL = "folder/metric.py", "folder2/weights.safetensors"
FOLDERS = ("folder", "folder2", "data/text")
CHAT = ["--model", "m", "--base-url", "http://[::1]:9"]
SCORE = ["score", "data.jsonl", "--metric", "self_bleu", "--text-key", "texts", "--quiet", "--restart"]
ONE_SET = ["score", "data.json", "--metric", "self_bleu", "--text-key", "texts", "--quiet", "--one-set", "--restart"]
EMBED = ["vendi_embed" if word == "self_bleu" else word for word in SCORE]
CHOOSE = ["choose", "data.jsonl", "--text-key", "texts", "--keep", "2", "--quiet", "--restart"]
COMPARE = [
    *("compare", "data.jsonl", "other.jsonl", "--metric", "./folder", "--by-line"),
    *("--setting", "model=model.gguf", "--setting", "vectors=./folder2"),
]
META_EVAL = [
    *("meta-eval", "data.jsonl", "other.jsonl", "third.jsonl"),
    *("--metric", "./folder", "--model", "./folder2"),
]
MANY = [
    *("report", "data.jsonl", "b=other.jsonl", "--text-key", "texts", "--id-key", "id", "--people", "third.jsonl"),
    *("--setting", "model=model.gguf"),
]
REPORT = [
    *("probe", "report", "data.jsonl", "a=other.jsonl", "third.jsonl", "fourth.jsonl"),
    *("--setting", "model=model.gguf"),
]
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
    "cluster-answers": (["data.jsonl"], ["cluster-answers", *CHAT, "data.jsonl", "--out"]),
    "probe ask": (["data.jsonl"], ["probe", "ask", *CHAT, "data.jsonl", "--out"]),
    **{f"probe report {option}": (LINES, [*REPORT, *option.split()]) for option in ("--out", "--setting cache_dir=")},
    "probe annotators": (["data.jsonl"], ["probe", "annotators", "data.jsonl", "--out"]),
}
# Two outputs of one command, without what is read.
PAIRS_OF_OUTPUTS = {
    "score": [*EMBED, "--out", "{0}", "--setting", "cache_dir={1}"],
    "score, summary": [*EMBED, "--out", "{0}", "--setting", "cache_dir={1}.summary.json"],
    "report": [*MANY, "--out", "{0}", "--cache-dir", "{1}"],
    "compare": [*COMPARE, "--out", "{0}", "--setting", "cache_dir={1}"],
    "meta-eval": [*META_EVAL, "--out", "{0}", "--cache-dir", "{1}"],
    "probe report": [*REPORT, "--out", "{0}", "--setting", "cache_dir={1}"],
}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, in a folder with all inputs; returns its exit code and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRICS_TEST_DATA", ".")
    for name in FOLDERS:
        Path(name).mkdir(parents=True)
        Path(name, "read.txt").write_text("what is read")
    for name in LINES:
        Path(name).write_text(json.dumps({**LINE, "src": name}) + "\n", encoding="utf-8")
    for name in (METRIC, MODEL):
        Path(name).write_text("what is read")
    Path("data.json").write_text(json.dumps([LINE]), encoding="utf-8")

    def run_once(name, *words):
        code = run_command(monkeypatch, name, *words)
        return code, capsys.readouterr().err

    return run_once


def contents():
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(Path().rglob("*"))}


def aliases(path):
    """Write a path, or one of a file in a folder, in other ways, and make links to it."""
    if path.is_dir():
        os.symlink(path, "link")
        return [path / "new.jsonl", path / "read.txt", Path("link", "new.jsonl")]
    os.symlink(path, f"symbolic{path.suffix}")
    os.link(path, f"hard{path.suffix}")
    os.symlink(Path.cwd(), "same")
    names = [path, Path("folder", "..", path), path.absolute(), f"symbolic{path.suffix}"]
    # A file of a folder that is read keeps its content if a link to it is replaced.
    names += [] if path.parent.name else [f"hard{path.suffix}"]
    return [*map(Path, names), Path("same", path)]


def with_output(words, output):
    return [*words[:-1], f"{words[-1]}{output}"] if words[-1].endswith("=") else [*words, str(output)]


def assert_refused(code, shown):
    assert code == 2, shown
    assert shown.endswith(": choose another output.\n"), shown
    assert shown.count("\n") == 1, shown


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_is_never_what_is_read(run, command):
    reads, words = COMMANDS[command]
    for name in reads:
        places = [place for place in aliases(Path(name)) if is_possible(words, place)]
        before = contents()
        for place in places:
            code, shown = run(*with_output(words, place))
            assert_refused(code, shown)
            assert f"{name.rpartition('/')[0] or name}, which is read" in shown
            assert contents() == before
        for link in ("link", "same", f"symbolic{Path(name).suffix}", f"hard{Path(name).suffix}"):
            Path(link).unlink(missing_ok=True)
    assert len(places) > 0


def test_a_folder_with_the_name_of_a_metric_is_no_input(run):
    Path("self_bleu").mkdir()
    assert run(*SCORE, "--out", "self_bleu/scores.jsonl")[0] == 0


def is_possible(words, place):
    """Say whether the command would take this output at all: `score` and `choose` know it by its extension."""
    if "--one-set" in words:
        return place.suffix == ".json"
    return words[0] not in ("score", "choose") or place.suffix in (".jsonl", "") or words[-1].endswith("=")


@pytest.mark.parametrize("command", PAIRS_OF_OUTPUTS)
def test_two_outputs_are_never_one_file(run, command):
    os.symlink(Path.cwd(), "same")
    suffix = ".jsonl" if command.startswith("score") else ".md"
    before = contents()
    for first, second in ((f"new{suffix}", f"new{suffix}"), (f"new{suffix}", f"same/new{suffix}")):
        code, shown = run(*(word.format(first, second) for word in PAIRS_OF_OUTPUTS[command]))
        assert_refused(code, shown)
        assert "another output" in shown
        assert contents() == before


# What a command writes beside its output, by the name of the output.
DERIVED = [
    (SCORE, "out.jsonl", "out.jsonl.bad.jsonl"),
    (SCORE, "out.jsonl", "out.jsonl.parts/data.jsonl"),
    (SCORE, "out.jsonl", "out.jsonl.summary.json"),
    (CHOOSE, "out.csv", "out.csv.bad.jsonl"),
    (CHOOSE, "out.csv", "out.csv.parts/data.jsonl"),
    (["cluster-answers", *CHAT], "out.jsonl", "out.jsonl.journal"),
    (["probe", "ask", *CHAT], "out.jsonl", "out.jsonl.journal"),
    (["rate-quality", *CHAT], "out.jsonl", "out.jsonl.journal"),
]


@pytest.mark.parametrize(("words", "output", "data"), DERIVED)
def test_what_is_written_beside_an_output_is_never_what_is_read(run, words, output, data):
    Path(data).parent.mkdir(parents=True, exist_ok=True)
    Path("data.jsonl").rename(data)
    words = [data if word == "data.jsonl" else word for word in words]
    words = [*words, *([] if data in words else [data]), "--out", output]
    before = contents()
    assert_refused(*run(*words))
    assert contents() == before


# What users may have beside an output: files, and a folder, by names that jobs use.
FOREIGN = {
    "out.jsonl.parts/notes.txt": "mine",
    "out.jsonl.parts/part-00000000.json": "{}",
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
        place.unlink() if place.is_file() else place.rmdir() if place.name else None
    assert run(*words, "--out", "out.jsonl")[0] == 0
    Path("out.jsonl.bad.jsonl").write_text('{"row": 1, "error": "e", "text": "t"}\n')
    assert run(*words, "--out", "out.jsonl", "--restart")[0] == 0
    assert not Path("out.jsonl.bad.jsonl").exists()


def test_a_file_that_is_put_into_the_folder_of_a_job_stays(run, monkeypatch):
    finish = saved.SavedJob.finish

    def with_notes(job, summary):
        (job.folder / "notes.txt").write_text("mine")
        finish(job, summary)

    monkeypatch.setattr(saved.SavedJob, "finish", with_notes)
    assert run(*SCORE, "--out", "out.jsonl")[0] == 0
    assert [path.name for path in Path("out.jsonl.parts").iterdir()] == ["notes.txt"]


WRITING = {
    "score": [*SCORE, "--out", "out.jsonl"],
    "choose": [*CHOOSE, "--out", "out.jsonl"],
    "compare": [*COMPARE[:4], "self_bleu", "--by-line", "--text-key", "texts", "--out", "out.jsonl"],
}


@pytest.mark.parametrize("command", WRITING)
def test_a_temporary_name_is_nobody_elses(run, command):
    Path("out.jsonl.tmp").write_text("mine")
    assert run(*WRITING[command])[0] == 0
    assert Path("out.jsonl.tmp").read_text() == "mine"
    assert not [path for path in Path().iterdir() if path.name.endswith(".tmp") and path.name != "out.jsonl.tmp"]


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("dangles", [True, False])
def test_a_link_is_followed(run, command, dangles):
    """As a shell does: its target is written, and the link stays, whether the target is there yet or not."""
    Path("elsewhere").mkdir()
    target, link = Path("elsewhere", "new.jsonl"), Path("out.jsonl")
    if not dangles:
        target.write_text("old")
    link.symlink_to(target)
    assert run(*WRITING[command])[0] == 0
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


# Disks that are full.

WORDS = ["the", "cat", "sat", "on", "a", "mat"]
GUARDED = {
    "score, Parquet": ([*SCORE, "--out", "out.parquet"], "out.parquet"),
    "score, JSON lines": ([*SCORE, "--out", "out.jsonl"], "out.jsonl"),
    "score, CSV": ([*SCORE, "--out", "out.csv"], "out.csv"),
    "choose": ([*CHOOSE, "--out", "out.parquet"], "out.parquet"),
    "compare": ([*COMPARE[:4], "self_bleu", "--by-line", "--text-key", "texts", "--out", "out.json"], "out.json"),
}


def full_row(i):
    texts = [f"{WORDS[i % 6]} {WORDS[(i + j) % 6]} {i}" for j in range(4)]
    return {
        **{"id": f"q{i}", "question": f"{i}?", "answers": ["dog", "dog", f"cat {i}"], "texts": texts},
        **{"set1": texts[:2], "set2": texts[2:], "llm_diversity": i % 2},
    }


@pytest.mark.parametrize("command", GUARDED)
def test_a_full_disk_is_named(run, command):
    """At every size at which the disk may be full: the error names a file of the command, and nothing else is left."""
    words, output = GUARDED[command]
    keys = ("id", "question", "answers") if words[0] == "probe" else ("texts", "set1", "set2", "llm_diversity")
    rows = [{key: value for key, value in full_row(i).items() if key in keys} for i in range(60)]
    for name in ("data.jsonl", "other.jsonl"):
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    before = contents()
    for n_bytes in (0, 200):
        with small_files(n_bytes):
            code, shown = run(*words)
        assert code == 2, shown
        last = shown.strip().splitlines()[-1]
        assert f"{output}" in last, shown
        assert last.endswith(" cannot be used: File too large."), shown
        assert "Traceback" not in shown
        left = {name for name, data in contents().items() if data is not None and name not in before}
        assert not {name for name in left if ".parts" not in name}, left
    # The inputs are whole, and the same command does its work once there is space.
    assert {name: data for name, data in contents().items() if name in before} == before
    assert run(*words)[0] in (0, 3)
    assert Path(output).stat().st_size > 0


def test_what_cannot_be_printed_is_named(run, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, shown = run(*COMPARE[:4], "self_bleu", "--by-line", "--text-key", "texts")
    assert code == 2
    assert "standard output" in shown


def test_a_terminal_without_a_character_shows_what_it_can(run, monkeypatch):
    Path("data.jsonl").rename("数据.jsonl")
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stdout)
    words = ["compare", "数据.jsonl", *COMPARE[2:4], "self_bleu", "--by-line", "--text-key", "texts"]
    code, shown = run(*words)
    assert code == 0, shown
    assert b"other.jsonl" in stdout.buffer.getvalue()


# Binary columns.

BYTES = b"\xff\xd8x"


@pytest.mark.parametrize("command", ["score", "choose"])
@pytest.mark.parametrize("source", ["parquet", "datasets"])
@pytest.mark.parametrize("grouped", [True, False])
def test_binary_columns(tmp_path, command, source, grouped):
    """They stay what they are in Parquet, and are base64 in JSON lines and CSV, in lists and objects as well."""
    texts = {"text": ["a b", "c d"]} if grouped else {"text": [["a b", "c d"], ["e f", "g h"]]}
    columns = {**texts, "key": [1, 1], "image": [BYTES, None], "nested": [{"bytes": BYTES, "path": "x"}] * 2}
    data = tmp_path / "data"
    if source == "parquet":
        data = tmp_path / "data.parquet"
        pq.write_table(pa.table(columns), data)
    else:
        datasets.Dataset.from_dict(columns).save_to_disk(data)
    words = [str(data), "--text-key", "text", "--quiet", *(["--id-key", "key"] if grouped else [])]
    words += ["--metric", "self_bleu"] if command == "score" else ["--keep", "2"]
    found = {}
    for kind in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"out.{kind}"
        assert cli.main([command, *words, "--out", str(out)]) == 0
        found[kind] = out
    in_lists = command == "score" and grouped
    coded = base64.b64encode(BYTES).decode()
    image = pq.read_table(found["parquet"])["image"].to_pylist()[0]
    assert image == ([BYTES, None] if in_lists else BYTES)
    row = read_jsonl(found["jsonl"])[0]
    nested = {"bytes": coded, "path": "x"}
    assert row["image"] == ([coded, None] if in_lists else coded)
    assert row["nested"] == ([nested] * 2 if in_lists else nested)
    with found["csv"].open(encoding="utf-8", newline="") as file:
        cells = next(csv.DictReader(file))
    assert cells["image"] == (json.dumps([coded, None]) if in_lists else coded)
    assert json.loads(cells["nested"]) == row["nested"]
