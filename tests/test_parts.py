"""--out folder/: a Parquet data set of parts, written by the processes that score."""

import json
import os
import signal
import sys

import datasets
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from tests.files import write_jsonl
from tests.test_ray import cluster as cluster
from tests.test_ray import on_ray
from tests.test_score import command, make_rows, run_and_die, without_file
from text_metrics.commands import compare
from text_metrics.commands.choose import main as choose
from text_metrics.commands.jobs.row_files import RowFiles
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.score import main as score

MIXED = [1, "two", None, {"three": 3}, 4.5, [5], 2**70, None]


def write_data(folder, kind, n=60):
    """Write rows, some of them bad, whose columns change their types from batch to batch."""
    folder.mkdir()
    rows = [{**row, "mixed": MIXED[i % 8], "late": 1.5} for i, row in enumerate(make_rows(n))]
    for row in rows[:25]:
        del row["late"]
    rows[7]["texts"], rows[41]["texts"] = [], ["only one"]
    if kind == "jsonl":
        return write_jsonl(folder / "data.jsonl", rows)
    for row in rows:
        row["mixed"] = str(row["mixed"]).encode()
    pq.write_table(pa.Table.from_pylist(rows), folder / "data.parquet", row_group_size=13)
    return folder / "data.parquet"


def in_folder(words):
    """Change a command such that it writes a folder."""
    out = words.index("--out") + 1
    return [*words[:out], f"{os.path.splitext(words[out])[0]}/", *words[out + 1 :]]


def files_of(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("data"))


def assert_same(folder, single):
    """Compare a folder of parts, read by others in order of their names, with a single file."""
    expected = pq.read_table(single)
    assert [path.name for path in sorted(folder.iterdir())] == [
        f"part-{i:08d}.parquet" for i in range(len(list(folder.iterdir())))
    ]
    assert pyarrow.dataset.dataset(folder).to_table().replace_schema_metadata(None).equals(expected)
    read = datasets.load_dataset("parquet", data_dir=str(folder), split="train", cache_dir=str(folder.parent / "data_"))
    assert read.to_list() == datasets.Dataset(expected).to_list()
    for name in ("bad.jsonl", "summary.json"):
        paths = [path.with_name(f"{path.name}.{name}") for path in (folder, single)]
        texts = [path.read_text() if path.exists() else "{}" for path in paths]
        if name == "summary.json":
            texts = [without_file(json.loads(text)) for text in texts]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_folder_has_the_rows_of_a_single_file(tmp_path, kind):
    data = write_data(tmp_path / "here", kind)
    words = command(data, out="single.parquet")
    assert score.main(words) == score.EXIT_BAD_ROWS
    assert score.main(in_folder(command(data, out="parts.parquet"))) == score.EXIT_BAD_ROWS
    assert len(list((data.parent / "parts").iterdir())) > 5
    assert_same(data.parent / "parts", data.parent / "single.parquet")
    assert files_of(data.parent) == [
        *("parts", "parts.bad.jsonl", "parts.summary.json"),
        *("single.parquet", "single.parquet.bad.jsonl", "single.parquet.summary.json"),
    ]


def test_a_job_that_is_done_is_not_repeated(tmp_path, capsys):
    data = write_data(tmp_path / "here", "jsonl")
    words = in_folder(command(data))
    assert score.main(words) == score.EXIT_BAD_ROWS
    first = data.parent / "out" / "part-00000000.parquet"
    before = first.stat().st_mtime_ns
    # The folder is there, so that it needs no slash.
    assert score.main([word.removesuffix("/") for word in words]) == score.EXIT_BAD_ROWS
    assert first.stat().st_mtime_ns == before
    capsys.readouterr()
    assert score.main([*words, "--set", "max_order=2"]) == score.EXIT_USAGE
    assert f"{data.parent / 'out'} already exists, written by another command" in capsys.readouterr().err
    assert score.main([*words, "--set", "max_order=2", "--restart", "--batch-size", "500"]) == score.EXIT_BAD_ROWS
    assert files_of(data.parent) == ["out", "out.bad.jsonl", "out.summary.json"]
    assert [path.name for path in (data.parent / "out").iterdir()] == ["part-00000000.parquet"]
    assert first.stat().st_mtime_ns != before


@pytest.mark.parametrize("restart", [[], ["--restart"]])
def test_a_folder_that_no_job_made_is_refused(tmp_path, capsys, restart):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(3))
    words = [*in_folder(command(data)), *restart]
    out = tmp_path / "out"
    out.mkdir()
    for name in ("notes.txt", "part-00000000.parquet"):
        pq.write_table(pa.table({"a": [1]}), out / name)
        assert score.main(words) == score.EXIT_USAGE
        assert f"--out {out} is a folder that no job made, with {name!r} in it" in capsys.readouterr().err
        (out / name).unlink()
    assert score.main(words) == 0
    assert files_of(tmp_path) == ["out", "out.summary.json"]
    out = tmp_path / "file"
    out.write_text("")
    words[words.index("--out") + 1] = f"{out}/"
    assert score.main(words) == score.EXIT_USAGE
    assert f"--out {out}/ is a file, not a folder" in capsys.readouterr().err


def test_a_folder_with_another_file_of_the_command_is_refused(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    data = write_jsonl(tmp_path / "out" / "data.jsonl", make_rows(3))
    words = in_folder(command(data))
    words[words.index("--out") + 1] = f"{tmp_path / 'out'}/"
    assert score.main(words) == score.EXIT_USAGE
    assert f"{data}, which is read, is in it" in capsys.readouterr().err
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(3))
    cache = tmp_path / "out" / "cache"
    words = in_folder(command(data, "--set", f"cache_dir={cache}", metric="vendi_embed"))
    assert score.main(words) == score.EXIT_USAGE
    assert f"{cache} cannot be written, because it is in the folder {tmp_path / 'out'}" in capsys.readouterr().err


def test_a_job_that_was_killed_goes_on(tmp_path):
    data = write_data(tmp_path / "here", "jsonl")
    assert score.main(command(data, out="single.parquet")) == score.EXIT_BAD_ROWS
    words, parts = in_folder(command(data, out="parts.parquet")), data.parent / "parts"
    # Nine batches of two files each, nine parts, and the bad rows.
    for at in (6, 16):
        assert run_and_die(words, at, before=True) == -signal.SIGKILL
        assert not parts.exists()
    assert score.main(words) == score.EXIT_BAD_ROWS
    assert_same(parts, data.parent / "single.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [True, False])
def test_workers_write_the_parts(cluster, tmp_path, capsys, monkeypatch, is_shared):
    data = write_data(tmp_path / "here", "jsonl")
    assert score.main(command(data, out="single.parquet")) == score.EXIT_BAD_ROWS
    words = in_folder(command(data, out="parts.parquet"))
    if is_shared:
        # One process begins, and a cluster goes on.
        assert run_and_die(words, 6, before=True) == -signal.SIGKILL
        assert list((data.parent / "parts.parts").glob("rows-*"))
        # The command itself writes no rows; workers import the class again.
        monkeypatch.setattr(RowFiles, "save", None)
        monkeypatch.setattr(RowFiles, "table", None)
    else:
        monkeypatch.setattr(score.OnRay, "reads", lambda self, path: path.name != "lock")
    assert score.main(on_ray(cluster, words)) == score.EXIT_BAD_ROWS
    assert ("One process writes" in capsys.readouterr().err) != is_shared
    assert_same(data.parent / "parts", data.parent / "single.parquet")


def test_commands_read_a_folder_of_parts(tmp_path, monkeypatch, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(60))
    for out in ("single.parquet", "parts/"):
        words = command(data)
        words[words.index("--out") + 1] = f"{tmp_path}/{out}"
        assert score.main(words) == 0
    single, parts = tmp_path / "single.parquet", tmp_path / "parts"
    rows = [row.values for row in Source(parts, None).rows(0)]
    assert rows == [row.values for row in Source(single, None).rows(0)] == pq.read_table(single).to_pylist()
    assert len(list(Source(parts, None).pieces(0, 20, 1))) > 2
    outputs = []
    for path in (single, parts):
        more = ["--score-key", "again", "--set-size", "1"]
        words = command(path, *more, out=f"{path.stem}.jsonl", size=17)
        assert run_and_die(words, 4, before=False) == -signal.SIGKILL
        assert score.main(words) == 0
        chosen = tmp_path / f"{path.stem}.chosen.jsonl"
        assert choose.main([str(path), "--text-key", "texts", "--keep", "2", "--out", str(chosen), "--quiet"]) == 0
        outputs.append(((tmp_path / f"{path.stem}.jsonl").read_bytes(), chosen.read_bytes()))
    assert outputs[0] == outputs[1]
    words = [single, parts, "--metric", "self_bleu", "--text-key", "texts", "--json", tmp_path / "c.json"]
    monkeypatch.setattr(sys, "argv", ["", *map(str, words)])
    assert compare.main() == 0
    compared = json.loads((tmp_path / "c.json").read_text())
    assert (compared["a_higher"], compared["b_higher"], compared["equal"]) == (0, 0, 60)
    # A table of other columns is no part of it.
    pq.write_table(pa.table({"texts": ["a"]}), parts / "part-00000009.parquet")
    assert score.main(command(parts, out="other.jsonl")) == score.EXIT_USAGE
    assert "part-00000009.parquet has other columns" in capsys.readouterr().err


def test_choose_writes_a_folder_too(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(60))
    for out in ("single.parquet", "parts/"):
        words = ["--text-key", "texts", "--keep", "2", "--batch-size", "20", "--out", f"{tmp_path}/{out}", "--quiet"]
        assert choose.main([str(data), *words]) == 0
    assert_same(tmp_path / "parts", tmp_path / "single.parquet")
