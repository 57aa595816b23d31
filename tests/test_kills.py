"""Kills of a job, at each file that it writes: the next run goes on, and its outputs are those of one whole run."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time

import pytest

from tests.conftest import SETS
from tests.files import compress, write_jsonl
from tests.test_score import command, make_rows, outputs, summary_of
from text_metrics.commands.choose import main as choose
from text_metrics.commands.score import main as score
from text_metrics.commands.shared import files as _files

# Each process is forked from one that has imported what a command imports. `evaluate`, with torch, takes 4 s.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    ["evaluate", "sentence_transformers", "text_metrics.commands.choose.main", "tests.test_kills"]
)


def die_at(main, words, at, before):
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
    sys.exit(main(words))


def run_and_die(words, at, before, main=score.main):
    process = processes.Process(target=die_at, args=(main, words, at, before))
    process.start()
    process.join()
    return process.exitcode


def write_sets(folder):
    """Sets with bad rows between them."""
    rows = [json.dumps(row) for row in make_rows(59)]
    rows[20:20] = ["no JSON", ""]
    (folder / "data.jsonl").write_text("\n".join(rows))
    return folder / "data.jsonl"


def write_keys(folder):
    """Rows with keys, one of them bad, in a compressed file."""
    rows = [{"p": i // 3, "texts": f"a {i % 7} dog"} for i in range(60)]
    rows[4]["texts"] = None
    return compress(write_jsonl(folder / "data.jsonl", rows), ".gz")


def write_array(folder):
    rows = [{"texts": text, "p": i} for i, members in enumerate(SETS) for text in members]
    (folder / "data.json").write_text(json.dumps([*rows, 5]))
    return folder / "data.json"


SCORE = ["--metric", "self_bleu"]
# For each job its main, its data, its options, and its output.
JOBS = {
    "score, sets": (score.main, write_sets, SCORE, "out.jsonl"),
    "score, keys": (score.main, write_keys, [*SCORE, "--id-key", "p"], "out.parquet"),
    "score, one set": (score.main, write_sets, ["--metric", "vendi_embed", "--one-set"], "out.json"),
    "choose": (choose.main, write_array, ["--id-key", "p", "--keep", "1"], "out.csv"),
}


@pytest.fixture
def job(request, tmp_path, tiny_model):
    """The main and the words of a job, and the outputs of an undisturbed run."""
    main, write, more, out = JOBS[request.param]
    jobs = []
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
        words = [write(tmp_path / name), "--text-key", "texts", "--out", tmp_path / name / out, "--quiet", *more]
        words += ["--batch-size", "2" if "--one-set" in more else "30" if write is write_sets else "5"]
        if main is choose.main or "vendi_embed" in more:
            words += ["--set", f"model={tiny_model}"]
        jobs.append([str(word) for word in words])
    assert main(jobs[0]) == score.EXIT_BAD_ROWS
    return main, jobs[1], outputs(tmp_path / "once")


@pytest.mark.parametrize(
    ("job", "before"), [*((name, False) for name in JOBS), ("score, sets", True)], indirect=["job"]
)
def test_a_kill_at_every_file_loses_nothing(job, tmp_path, before):
    main, words, expected = job
    folder, at, complete = tmp_path / "killed", 1, []
    while True:
        for left in folder.iterdir():
            if not left.name.startswith("data"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if run_and_die(words, at, before, main) != -signal.SIGKILL:
            break
        complete.append(outputs(folder) == expected)
        # The next process is killed too, at the next file; the last one finishes.
        run_and_die(words, 2, before, main)
        assert main(words) == score.EXIT_BAD_ROWS
        assert outputs(folder) == expected
        at += 1
    # The pieces of the file, the rows and the record of each, all rows, the bad rows and the summary.
    assert at > 7
    # Only a kill after the last file finds all of them.
    assert complete == [False] * (at - 2) + [not before]


def exit_with(main, words):
    sys.exit(main(words))


@pytest.mark.parametrize("job", ["score, sets"], indirect=True)
def test_kills_at_any_moment_lose_nothing(job, tmp_path):
    main, words, expected = job
    rng = random.Random(0)
    parts = tmp_path / "killed" / "out.jsonl.parts"
    kills = 0
    while True:
        process = processes.Process(target=exit_with, args=(main, words))
        process.start()
        before = len(list(parts.glob("part-????????")))
        # Each process finishes another piece; after three kills, the last one finishes the job.
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
    assert outputs(tmp_path / "killed") == expected


def test_another_command_does_not_go_on(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(30))
    assert run_and_die(command(data), at=3, before=False) == -signal.SIGKILL
    # Another level of confidence is no other job.
    assert score.main(command(data, "--confidence", 0.5)) == 0
    assert run_and_die(command(data, "--restart"), at=3, before=False) == -signal.SIGKILL
    for change in (["--set", "max_order=2"], ["--batch-size", "5"]):
        assert score.main(command(data, *change)) == score.EXIT_USAGE
        assert "--restart" in capsys.readouterr().err
    assert score.main(command(data)) == 0
    assert score.main(command(data, "--set", "max_order=2")) == score.EXIT_USAGE
    assert "--restart" in capsys.readouterr().err
    write_jsonl(data, make_rows(31))
    assert score.main(command(data)) == score.EXIT_USAGE
    assert score.main(command(data, "--restart")) == 0
    assert summary_of(data)["n_scores"] == 31


DAMAGE = {
    "a record that is empty": lambda part, record: record.write_text("{}"),
    "a record that is cut": lambda part, record: record.write_bytes(record.read_bytes()[:20]),
    "a record that is a list": lambda part, record: record.write_text("[1]"),
    "a record without rows": lambda part, record: part.unlink(),
    "rows that are cut": lambda part, record: part.write_bytes(part.read_bytes()[:-3]),
    "rows of another piece": lambda part, record: part.write_bytes(b""),
    "rows without a record": lambda part, record: record.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("number", [0, 1])
def test_a_piece_that_is_damaged_is_done_again(tmp_path, damage, number):
    for folder in ("once", "killed"):
        (tmp_path / folder).mkdir()
        write_sets(tmp_path / folder)
    once, killed = (command(tmp_path / folder / "data.jsonl", size=30) for folder in ("once", "killed"))
    assert score.main(once) == score.EXIT_BAD_ROWS
    assert run_and_die(killed, at=6, before=False) == -signal.SIGKILL
    part = tmp_path / "killed" / "out.jsonl.parts" / f"part-{number:08d}"
    DAMAGE[damage](part, part.with_name(f"{part.name}.json"))
    assert score.main(killed) == score.EXIT_BAD_ROWS
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "once")
