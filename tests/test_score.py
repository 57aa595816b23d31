"""text-metrics score: every kind of file, bad rows, and kills at any moment."""

import csv
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import SETS
from tests.files import compress, read_jsonl, write_jsonl
from text_metrics.commands.jobs import work as progress
from text_metrics.commands.jobs.grouping import Reader
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.score import main as score
from text_metrics.commands.score.main import parse_command
from text_metrics.commands.shared import files as _files

WORDS = ["the", "a", "dog", "cat", "park", "sea", "house", "runs", "walks", "sleeps", "old", "red", "small"]


def make_rows(n_rows, n_texts=3, seed=0):
    rng = random.Random(seed)
    return [
        {
            "id": i,
            "texts": [" ".join(rng.choices(WORDS, k=rng.randint(2, 6))) for _ in range(n_texts)],
            "note": None if i % 3 else f"é{i}",
        }
        for i in range(n_rows)
    ]


def command(data, *more, metric="self_bleu", key="texts", out="out.jsonl", size=20):
    words = [data, "--metric", metric, "--text-key", key, "--out", data.parent / out, "--batch-size", size, "--quiet"]
    return [str(word) for word in [*words, *more]]


def summary_of(data, out="out.jsonl"):
    return json.loads((data.parent / f"{out}.summary.json").read_text())


def without_file(summary):
    return {key: value for key, value in summary.items() if key != "command"}


def test_scores_are_those_of_one_call(load, tmp_path, capsys):
    rows = make_rows(50)
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score.main(command(data, "--set", "max_order=2")) == 0
    expected = load("self_bleu").compute(predictions=[row["texts"] for row in rows], max_order=2, confidence=0.95)
    written = read_jsonl(tmp_path / "out.jsonl")
    assert [row.pop("self_bleu") for row in written] == pytest.approx(expected["scores"], abs=1e-9)
    assert written == rows
    summary = summary_of(data)
    assert json.loads(capsys.readouterr().out) == summary
    for name, value in expected.items():
        if isinstance(value, float):
            assert summary[name] == pytest.approx(value)
    low, high = summary["confidence_interval"]
    assert low < summary["self_bleu"] < high
    assert [low, high] == pytest.approx(expected["confidence_interval"])
    assert (summary["confidence"], summary["n_units"]) == (0.95, 50)
    # The interval belongs to the summary alone, and so does not appear in the signature.
    assert summary["signature"] == load("self_bleu").compute(predictions=[rows[0]["texts"]], max_order=2)["signature"]
    assert (summary["n_scores"], summary["n_texts"], summary["n_bad"]) == (50, 150, 0)
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "out.jsonl", "out.jsonl.summary.json"]


@pytest.mark.parametrize("metric", ["vendi_embed", "chamfer_diversity", "gruen", "probeval"])
def test_every_metric(load, tmp_path, metric):
    rows = [{"texts": members, "people": ["a dog barks", "rain", "rain"]} for members in SETS]
    more = ["--reference-key", "people"] if metric == "probeval" else []
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score.main(command(data, *more, "--confidence", 0.8, metric=metric, size=5)) == 0
    settings = {"references": [row["people"] for row in rows]} if metric == "probeval" else {}
    texts = [text for members in SETS for text in members] if metric == "gruen" else SETS
    expected = load(metric).compute(predictions=texts, **settings)
    found = [row[metric] for row in read_jsonl(tmp_path / "out.jsonl")]
    if metric == "gruen":
        assert [len(own) for own in found] == list(map(len, SETS))
        found = [one for own in found for one in own]
    assert found == pytest.approx(expected["scores"], abs=1e-5)
    summary = summary_of(data)
    assert summary["signature"] == expected["signature"]
    for name, value in expected.items():
        if isinstance(value, (int, float)):
            assert summary[name] == pytest.approx(value, abs=1e-5)
    # The interval is that of all scores, though they come in batches.
    if metric == "gruen":
        # The texts of a row belong together.
        settings["confidence_by"] = [i for i, members in enumerate(SETS) for _ in members]
    interval = load(metric).compute(predictions=texts, **settings, confidence=0.8)["confidence_interval"]
    assert (summary["confidence"], summary["n_units"]) == (0.8, len(SETS))
    assert summary["confidence_interval"] == pytest.approx(interval, abs=1e-5)


@pytest.mark.parametrize("setting", ["details=true", "weights=[1]", "quality=[1]"])
def test_settings_for_single_texts_have_no_place(tmp_path, capsys, setting):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(2))
    assert score.main(command(data, "--set", setting, metric="vendi_embed")) == 2
    assert f"--setting {setting.split('=')[0]} cannot be given to a command: it" in capsys.readouterr().err


@pytest.mark.parametrize("setting", ["rarefy=3", "kernel=classes"])
def test_one_set_in_parts_is_not_rarefied(tmp_path, capsys, setting):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(2))
    words = command(data, "--set", setting, "--one-set", metric="vendi_embed", out="out.json")
    assert score.main(words) == 2
    assert setting.split("=")[0] in capsys.readouterr().err


def test_one_score_has_no_interval(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(1))
    assert score.main(command(data)) == 0
    summary = summary_of(data)
    assert (summary["n_scores"], summary["confidence_interval"], summary["n_units"]) == (1, None, 1)


def write_data(folder, kind, rows):
    if kind == "csv":
        with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return folder / "data.csv"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "data.parquet", row_group_size=7)
        return folder / "data.parquet"
    if kind == "folder":
        datasets.Dataset.from_list(rows).save_to_disk(folder / "data")
        return folder / "data"
    return write_jsonl(folder / "data.jsonl", rows)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "folder"])
@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_rows_with_one_key_are_a_set(load, tmp_path, kind, out):
    sets = [row["texts"] for row in make_rows(20, 4)]
    rows = [{"prompt": f"p{i}", "text": text, "n": str(j)} for i, own in enumerate(sets) for j, text in enumerate(own)]
    data = write_data(tmp_path, kind, rows)
    assert score.main(command(data, "--group-key", "prompt", key="text", out=out, size=9)) == 0
    expected = load("self_bleu").compute(predictions=sets)["scores"]
    if out == "out.parquet":
        table = pq.read_table(tmp_path / out)
        assert table.schema.field("text").type == pa.list_(pa.string())
        written = table.to_pylist()
    elif out == "out.jsonl":
        written = read_jsonl(tmp_path / out)
    else:
        with (tmp_path / out).open(newline="", encoding="utf-8") as file:
            written = list(csv.DictReader(file))
        for row in written:
            row |= {"text": json.loads(row["text"]), "n": json.loads(row["n"]), "self_bleu": float(row["self_bleu"])}
    assert [row.pop("self_bleu") for row in written] == pytest.approx(expected)
    assert written == [{"prompt": f"p{i}", "text": own, "n": list("0123")} for i, own in enumerate(sets)]


def test_so_many_rows_are_a_set(load, tmp_path):
    texts = [text for row in make_rows(21, 4) for text in row["texts"]][:82]
    data = write_jsonl(tmp_path / "data.jsonl", [{"text": text} for text in texts])
    assert score.main(command(data, "--set-size", 4, key="text")) == score.EXIT_BAD_ROWS
    expected = load("self_bleu").compute(predictions=texts[:80], set_size=4)["scores"]
    assert [row["self_bleu"] for row in read_jsonl(tmp_path / "out.jsonl")] == pytest.approx(expected)
    left = read_jsonl(tmp_path / "out.jsonl.bad.jsonl")
    assert [row["row"] for row in left] == [81, 82]
    assert "is left over" in left[0]["error"]
    assert [json.loads(row["text"]) for row in left] == [{"text": text} for text in texts[80:]]


def test_types_of_columns_are_kept(tmp_path):
    table = pa.table(
        {
            "texts": [["a dog", "a cat"], ["the sea", "the sea"]],
            "when": pa.array([1, 2], pa.timestamp("us")),
            "raw": pa.array([b"\xff", None]),
            "code": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    assert score.main(command(tmp_path / "data.parquet", out="out.parquet")) == 0
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.drop_columns(["self_bleu"]).to_pylist() == table.to_pylist()
    assert written.schema.field("when").type == table.schema.field("when").type


def test_columns_of_json_that_change_their_type(tmp_path):
    values = [1, "two", None, {"three": 3}, 4.5, [5], 2**70]
    rows = [{**row, "mixed": value} for row, value in zip(make_rows(7), values, strict=True)]
    rows[3]["late"] = 1
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score.main(command(data, out="out.parquet", size=3)) == 0
    written = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["mixed"] for row in written] == ["1", "two", None, '{"three": 3}', "4.5", "[5]", str(2**70)]
    assert [row["late"] for row in written] == [None, None, None, 1, None, None, None]


BAD = {
    3: '{"id": 3, "texts": ["a", "b"]',
    4: "[1, 2]",
    9: '{"id": 9}',
    10: '{"texts": []}',
    11: '{"texts": ["a", 3]}',
    12: '{"texts": "one text"}',
    13: '{"texts": ["a", "\\ud800"]}',
    14: '{"texts": ["only one"]}',
    15: '{"texts": 5}',
    30: "\xff not UTF-8",
}


def test_bad_rows_are_named_and_set_aside(load, tmp_path, capsys):
    rows = make_rows(40)
    lines = [json.dumps(row) for row in rows]
    for number, line in BAD.items():
        lines[number - 1] = line
    lines[19] = ""
    data = tmp_path / "data.jsonl"
    data.write_bytes("\n".join(lines).encode("latin-1"))
    assert score.main(command(data)) == score.EXIT_BAD_ROWS
    bad = read_jsonl(tmp_path / "out.jsonl.bad.jsonl")
    assert [row["row"] for row in bad] == list(BAD)
    errors = {row["row"]: row["error"] for row in bad}
    for number, message in {
        3: "is not valid JSON",
        4: "must be a JSON object. Got list [1, 2]",
        9: "has no 'texts'",
        10: "'texts' is an empty list",
        11: "'texts' must hold texts. Got int 3",
        12: "'texts' is one text: a set is a list",
        14: "holds one text",
        15: "must be a text or a list of texts. Got int 5",
        30: "is not valid JSON",
    }.items():
        assert message in errors[number]
    printed = capsys.readouterr().err
    assert all(f"data.jsonl, row {number}: " in printed for number in BAD)
    good = [row for i, row in enumerate(rows, 1) if i not in BAD and i != 20]
    assert [row["id"] for row in read_jsonl(tmp_path / "out.jsonl")] == [row["id"] for row in good]
    expected = load("self_bleu").compute(predictions=[row["texts"] for row in good])
    assert summary_of(data)["self_bleu"] == pytest.approx(expected["self_bleu"])
    assert summary_of(data)["n_bad"] == len(BAD)

    # A finished job is not repeated.
    before = (tmp_path / "out.jsonl").stat().st_mtime_ns
    assert score.main(command(data)) == score.EXIT_BAD_ROWS
    assert (tmp_path / "out.jsonl").stat().st_mtime_ns == before
    with_strict = command(data, "--strict", "--restart", size=6)
    assert score.main(with_strict) == score.EXIT_STRICT
    assert "data.jsonl, row 3: is not valid JSON" in capsys.readouterr().err


def test_bad_rows_of_csv_and_within_sets(tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(
        b'p,text\n1,a dog\n1,"two\nlines"\n1,b,c\n1,a cat\n2,\xff\n2,the sea\n\n2,the park\n'
        b'3,a bus\n\n3,"a\ncar"\n4,a hat\n4,a cap\n4,"open\n'
    )
    assert score.main(command(data, "--group-key", "p", key="text")) == score.EXIT_BAD_ROWS
    # What cannot be read between the first two sets may belong to either.
    assert [row["text"] for row in read_jsonl(tmp_path / "out.jsonl")] == [["a bus", "a\ncar"]]
    errors = {row["row"]: row["error"] for row in read_jsonl(tmp_path / "out.jsonl.bad.jsonl")}
    assert errors[5] == "has 3 fields, not 2"
    assert read_jsonl(tmp_path / "out.jsonl.bad.jsonl")[-1] == {"row": 17, "error": errors[17], "text": ""}
    assert "an unpaired surrogate" in errors[7]
    assert "is not valid CSV" in errors[17]
    assert list(errors) == [2, 3, 5, 6, 7, 8, 10, 15, 16, 17]
    assert errors[8] == f"is set aside with its set, rows 8 to 10, because of row 7: {errors[7]}"


def test_csv_that_is_no_utf8_in_any_column_is_set_aside(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_bytes(b'p,text\n\xff,"[""a dog"", ""a cat""]"\n2,\xff,b\n3,"[""a cat"", ""a cow""]"\n')
    assert score.main(command(data, key="text")) == score.EXIT_BAD_ROWS
    assert [row["p"] for row in read_jsonl(tmp_path / "out.jsonl")] == ["3"]
    bad = {row["row"]: row for row in read_jsonl(tmp_path / "out.jsonl.bad.jsonl")}
    assert "is not valid UTF-8" in bad[2]["error"]
    assert bad[2]["text"].startswith("?,")
    assert bad[3]["error"] == "has 3 fields, not 2"
    data.write_bytes(b"p\xff,text\n1,a\n")
    assert score.main(command(data, "--restart", key="text")) == score.EXIT_USAGE
    assert "data.csv, line 1 is not valid UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["--set", "orders=2"],
            "self_bleu has no such argument: did you mean 'max_order'? It has max_order, aggregate, ",
        ),
        (["--set", "max_order"], "--setting must be NAME=VALUE. Got 'max_order'"),
        (["--set", "max_order=0"], "text-metrics score: max_order must be at least 1. Got 0"),
        (["--set", "aggregate=corpus"], "aggregate='corpus' cannot be scored in batches"),
        (["--text-key", "generations"], "no row can be scored: has no 'generations'"),
        (["--score-key", "id"], "column 'id' already: pass --score-key"),
        (["--confidence", "95"], "--confidence must be between 0 and 1"),
        (["--batch-size", "0"], "--batch-size must be at least 1. Got 0"),
        (["--out", "scores.txt"], "--out must end in .parquet, .jsonl or .csv. Got scores.txt"),
        (["--reference-key", "note"], "--reference-key: self_bleu takes no references"),
        (["--split", "train"], "--split is for a folder"),
    ],
)
def test_commands_that_are_wrong(tmp_path, capsys, change, message):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    assert score.main(command(data, *change)) == score.EXIT_USAGE
    assert message in capsys.readouterr().err


def test_a_column_that_a_table_lacks_is_named_before_the_metric_is_loaded(tmp_path, capsys, monkeypatch):
    pq.write_table(pa.Table.from_pylist(make_rows(3)), tmp_path / "data.parquet")
    monkeypatch.setattr(score, "Scorer", None)
    assert score.main(command(tmp_path / "data.parquet", key="nowhere")) == score.EXIT_USAGE
    assert "data.parquet has no column 'nowhere': it has " in capsys.readouterr().err


def test_files_that_are_wrong(tmp_path, capsys):
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    (tmp_path / "no.csv").write_text("a,a\n1,2\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    for name, message in {
        "missing.jsonl": "does not exist",
        "no.parquet": "is not a Parquet file",
        "no.csv": "must begin with a line of different column names",
        "empty.jsonl": "has no row that can be scored",
        "folder": "is not a folder saved by `datasets`",
    }.items():
        assert score.main(command(tmp_path / name)) == score.EXIT_USAGE
        assert message in capsys.readouterr().err
    datasets.DatasetDict({"test": datasets.Dataset.from_list(make_rows(5))}).save_to_disk(tmp_path / "splits")
    assert score.main(command(tmp_path / "splits")) == score.EXIT_USAGE
    assert "--split must be one of test" in capsys.readouterr().err
    assert score.main(command(tmp_path / "splits", "--split", "test")) == 0


def test_batches_must_be_scored_alike(tmp_path, capsys):
    people = [[{"text": "a dog", "cluster": "1"}, {"text": "a cat", "cluster": "2"}], ["a dog", "a cat"]]
    rows = [{"texts": ["a dog", "the dog"], "people": people[i // 5]} for i in range(10)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = command(data, "--reference-key", "people", metric="probeval", size=10)
    assert score.main(words) == score.EXIT_USAGE
    assert "parts of the data were scored under different settings" in capsys.readouterr().err
    assert score.main([*words, "--restart", "--set", "clustering=none"]) == 0


def test_another_command_does_not_go_on(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(30))
    killed = run_and_die(command(data), at=2, before=False)
    assert killed == -signal.SIGKILL
    for change in (["--set", "max_order=2"], ["--batch-size", "5"]):
        assert score.main(command(data, *change)) == score.EXIT_USAGE
        assert "belongs to another command or file" in capsys.readouterr().err
    assert score.main(command(data)) == 0
    assert score.main(command(data, "--set", "max_order=2")) == score.EXIT_USAGE
    assert "already exists, written by another command" in capsys.readouterr().err
    write_jsonl(data, make_rows(31))
    assert score.main(command(data)) == score.EXIT_USAGE
    assert score.main(command(data, "--restart")) == 0
    assert summary_of(data)["n_scores"] == 31


def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for n_rows in (2_000, 20_000):
        folder = tmp_path / str(n_rows)
        folder.mkdir()
        data = write_jsonl(folder / "data.jsonl", make_rows(n_rows, 2))
        reader = Reader(parse_command(command(data)), "sets")
        tracemalloc.start()
        source = Source(data, None)
        for batch in batches(reader.units(source.rows(0), 0), 500):
            assert len(batch) == 250
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


# Kills.

# Each process is forked from one that has imported what a command imports. `evaluate`, with torch, takes 4 s.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["evaluate", "text_metrics.commands.score.main", "tests.test_score"])


def die_at(words, at, before):
    """Run the command in a process that kills itself before or after it completes its n-th file."""
    put, calls = _files.put, 0

    def counted(*paths):
        nonlocal calls
        calls += 1
        if calls == at and before:
            os.kill(os.getpid(), signal.SIGKILL)
        put(*paths)
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)

    _files.put = counted
    sys.exit(score.main(words))


def run_and_die(words, at, before):
    process = processes.Process(target=die_at, args=(words, at, before))
    process.start()
    process.join()
    return process.exitcode


def outputs(folder):
    return {
        path.name: without_file(json.loads(path.read_text())) if "summary" in path.name else path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith("data")
    }


@pytest.fixture
def killed_data(tmp_path):
    """A file with bad rows, and the outputs of an undisturbed run."""
    rows = [json.dumps(row) for row in make_rows(59)]
    rows[20:20] = ["no JSON", ""]
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.jsonl").write_text("\n".join(rows))
    assert score.main(command(tmp_path / "once/data.jsonl", size=30)) == score.EXIT_BAD_ROWS
    return tmp_path / "killed/data.jsonl", outputs(tmp_path / "once")


@pytest.mark.parametrize("before", [True, False])
def test_a_kill_at_every_file_loses_nothing(killed_data, before):
    data, expected = killed_data
    at, complete = 1, []
    while True:
        for left in data.parent.iterdir():
            if left != data:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if run_and_die(command(data, size=30), at, before) != -signal.SIGKILL:
            break
        complete.append(outputs(data.parent) == expected)
        # The next process is killed too, at the next file; the last one finishes.
        run_and_die(command(data, size=30), 2, before)
        assert score.main(command(data, size=30)) == score.EXIT_BAD_ROWS
        assert outputs(data.parent) == expected
        at += 1
    # The rows and the state of each of six batches, all rows, and the bad rows.
    assert at > 8
    # Only a kill after the last file finds all of them.
    assert complete == [False] * (at - 2) + [not before]


def test_kills_at_any_moment_lose_nothing(killed_data):
    data, expected = killed_data
    rng = random.Random(0)
    parts = data.parent / "out.jsonl.parts"
    kills = 0
    while True:
        process = processes.Process(target=score_and_exit, args=(command(data, size=30),))
        process.start()
        before = len(list(parts.glob("part-????????")))
        # Each process finishes another batch; after three kills, the last one finishes the job.
        while kills < 3 and process.is_alive() and len(list(parts.glob("part-????????"))) <= before:
            time.sleep(0.001)
        if kills < 3:
            time.sleep(rng.random() * 0.002)
            process.kill()
        process.join()
        if process.exitcode != -signal.SIGKILL:
            break
        kills += 1
    # On a fast machine the first process may end before it is killed; the test above always kills.
    assert process.exitcode == score.EXIT_BAD_ROWS
    assert outputs(data.parent) == expected


def score_and_exit(words):
    sys.exit(score.main(words))


def test_two_processes_do_not_share_a_file(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    store = Store(tmp_path / "out.jsonl.parts", None)
    assert score.main(command(data)) == score.EXIT_USAGE
    assert "is in use by another process" in capsys.readouterr().err
    assert score.main(command(data, "--restart")) == score.EXIT_USAGE
    assert "is in use by another process" in capsys.readouterr().err
    assert store.folder.exists()
    assert store.parts == []


@pytest.mark.slow
def test_the_command_runs_from_any_directory(tmp_path):
    write_jsonl(tmp_path / "data.jsonl", make_rows(30))
    words = [
        sys.executable,
        "-m",
        "text_metrics",
        "score",
        "data.jsonl",
        "--metric",
        "self_bleu",
        "--text-key",
        "texts",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "texts/s" in done.stderr
    assert json.loads(done.stdout)["n_scores"] == 30
    assert pq.read_table(tmp_path / "data.jsonl.self_bleu.parquet").num_rows == 30


# Files that are unusual, or damaged.


def test_lines_of_csv_may_end_in_carriage_returns(load, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(b'p,text\r1,a dog\r1,"two\rlines"\r2,the sea\r2,"a\nb"\r')
    assert score.main(command(data, "--group-key", "p", key="text")) == 0
    assert [row["text"] for row in read_jsonl(tmp_path / "out.jsonl")] == [["a dog", "two\rlines"], ["the sea", "a\nb"]]
    lines = tmp_path / "lines.jsonl"
    lines.write_bytes(b'{"texts": ["a", "b"]}\r{"texts": ["c", "d"]}\r')
    assert score.main(command(lines, out="lines.out.jsonl")) == 0
    assert len(read_jsonl(tmp_path / "lines.out.jsonl")) == 2
    broken = tmp_path / "broken.csv"
    broken.write_bytes(b'p,"text\rstill open\r')
    assert score.main(command(broken, key="text")) == score.EXIT_USAGE


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array(tmp_path, indent):
    rows = make_rows(30)
    (tmp_path / "data.json").write_text(json.dumps(rows, indent=indent))
    assert score.main(command(tmp_path / "data.json")) == 0
    lines = write_jsonl(tmp_path / "lines.jsonl", rows)
    assert score.main(command(lines, out="lines.out.jsonl")) == 0
    assert read_jsonl(tmp_path / "out.jsonl") == read_jsonl(tmp_path / "lines.out.jsonl")
    rows[3] = "no object"
    (tmp_path / "data.json").write_text(json.dumps(rows, indent=indent))
    assert score.main(command(tmp_path / "data.json", "--restart")) == score.EXIT_BAD_ROWS
    (bad,) = read_jsonl(tmp_path / "out.jsonl.bad.jsonl")
    assert (bad["row"], bad["error"]) == (4, "must be a JSON object. Got str 'no object'")


def test_a_json_array_is_resumed_after_a_kill(tmp_path):
    rows = make_rows(60)
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.json").write_text(json.dumps(rows))
    assert score.main(command(tmp_path / "once/data.json")) == 0
    words = command(tmp_path / "killed/data.json")
    assert run_and_die(words, 3, before=False) == -signal.SIGKILL
    assert score.main(words) == 0
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "once")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("kind", ["jsonl", "json", "csv"])
def test_compressed_files(tmp_path, capsys, kind, suffix):
    rows = [{"id": str(i), "texts": ["a dog", f"the sea {i}"]} for i in range(30)]
    plain = tmp_path / f"data.{kind}"
    if kind == "csv":
        with plain.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "texts"])
            writer.writeheader()
            writer.writerows({**row, "texts": json.dumps(row["texts"])} for row in rows)
    else:
        plain.write_text(json.dumps(rows) if kind == "json" else "".join(json.dumps(row) + "\n" for row in rows))
    assert score.main(command(plain, out="plain.jsonl")) == 0
    data = compress(plain, suffix)
    whole = data.read_bytes()
    if kind != "json":
        # Files that were compressed one by one and concatenated are one file.
        data.write_bytes(whole + whole if kind == "jsonl" else whole)
    assert score.main(command(data)) == 0
    expected = read_jsonl(tmp_path / "plain.jsonl")
    assert read_jsonl(tmp_path / "out.jsonl") == (expected * 2 if kind == "jsonl" else expected)
    capsys.readouterr()
    for damaged in (whole[:-9], b"id,texts"):
        data.write_bytes(damaged)
        assert score.main(command(data, "--restart")) == score.EXIT_USAGE
        assert f"{data} cannot be read: " in capsys.readouterr().err


def test_damaged_files_are_named(tmp_path, capsys):
    rows = [{**row, "texts": row["texts"] * 20} for row in make_rows(400)]
    data = write_data(tmp_path, "parquet", rows)
    whole = data.read_bytes()
    # The footer stays whole, so that the damage is found only while rows are read.
    data.write_bytes(whole[:200] + bytes(len(whole) // 2 - 200) + whole[len(whole) // 2 :])
    assert score.main(command(data)) == score.EXIT_USAGE
    message = capsys.readouterr().err
    assert message.startswith(f"text-metrics score: {data} is damaged after row ")
    assert message.count("\n") == 1
    pq.write_table(pa.Table.from_pylist(rows), data, row_group_size=100)
    content = bytearray(data.read_bytes())
    # Of each damaged group one column, so that the first damage by rows is not the first by columns.
    groups = pq.ParquetFile(data).metadata
    for group, column in ((3, 0), (2, groups.num_columns - 1)):
        place = groups.row_group(group).column(column).data_page_offset
        content[place : place + 40] = bytes(40)
    data.write_bytes(content)
    for size in (7, 1000):
        assert score.main(command(data, size=size, out=f"groups{size}.jsonl")) == score.EXIT_USAGE
        assert f"{data} is damaged after row 200: " in capsys.readouterr().err
    data.write_bytes(whole[: len(whole) // 2])
    assert score.main(command(data)) == score.EXIT_USAGE
    assert f"{data} is not a Parquet file, or is damaged" in capsys.readouterr().err
    (tmp_path / "data.json").write_text('[{"texts": ["a", "b"]},\n{"texts": ["a", ]}]')
    assert score.main(command(tmp_path / "data.json")) == score.EXIT_USAGE
    assert "data.json, line 2 is not valid JSON" in capsys.readouterr().err
    folder = write_data(tmp_path, "folder", make_rows(5))
    (folder / "dataset_info.json").write_text("{")
    assert score.main(command(folder, out="folder.jsonl")) == score.EXIT_USAGE
    assert f"{folder} is not a folder saved by `datasets`, or is damaged" in capsys.readouterr().err


def test_a_line_that_is_too_long_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_files, "LONGEST_LINE", 1000)
    for end in ("\n", "\r"):
        data = tmp_path / "data.jsonl"
        data.write_text(end.join(['{"texts": ["a", "b"]}', json.dumps({"texts": ["a" * 2000, "b"]}), ""]))
        assert score.main(command(data, "--restart")) == score.EXIT_USAGE
        assert "data.jsonl, line 2 is longer than 1,000 bytes." in capsys.readouterr().err


@pytest.mark.parametrize("size", [2, 5, 7, 1000])
@pytest.mark.parametrize(("n_bad", "code"), [(5, 3), (19, 3), (20, 2)])
def test_bad_rows_first_end_the_job_by_their_number_only(tmp_path, capsys, monkeypatch, size, n_bad, code):
    monkeypatch.setattr(progress, "HOPELESS_ROWS", 20)
    data = tmp_path / "data.jsonl"
    data.write_text('{"texts": []}\n' * n_bad + '{"texts": ["a", "b"]}\n' * 3)
    assert score.main(command(data, size=size)) == code
    if code == score.EXIT_USAGE:
        message = "data.jsonl: none of the first 20 rows can be scored: 'texts' is an empty list"
        assert message in capsys.readouterr().err
        # Nothing stands in the way of the next command.
        assert not (tmp_path / "out.jsonl.parts").exists()
    else:
        assert summary_of(data)["n_bad"] == n_bad


def test_a_file_of_bad_rows_only(tmp_path, capsys):
    data = tmp_path / "data.jsonl"
    data.write_text('{"texts": []}\n' * 12)
    for size in (2, 100):
        assert score.main(command(data, size=size)) == score.EXIT_USAGE
        assert "data.jsonl: no row can be scored: 'texts' is an empty list" in capsys.readouterr().err


def test_a_failed_job_leaves_no_lock(tmp_path):
    """Though its traceback is kept, as Python 3.13 keeps it until the next garbage collection."""
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": 5}] * 3)
    errors = []
    for _ in range(2):
        with pytest.raises(progress.BadRowError) as error:
            score.run(parse_command(command(data, "--strict")))
        errors.append(error.value)
