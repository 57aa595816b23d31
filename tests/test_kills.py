"""Kills of a job, at each file that it writes: the next run goes on, and its outputs are those of one whole run."""

import json
import multiprocessing
import os
import shutil
import signal
import sys

import pytest

from tests.commands import results_of, score, words_of
from tests.conftest import SETS
from tests.files import compress, write_data, write_jsonl
from tests.programs import FORKS
from tests.test_score import make_rows, outputs
from text_metrics.commands.choose import main as choose_main
from text_metrics.commands.score import main as score_main
from text_metrics.console import EXIT_BAD_ROWS, EXIT_USAGE
from text_metrics.files import storage as _files


def die_at(main, words, at, before):
    """Run the command in a process that kills itself before or after it completes its n-th file."""
    put = _files.put
    calls = 0

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


def run_and_die(words, at, before, main=score_main):
    process = multiprocessing.get_context(FORKS).Process(target=die_at, args=(main, words, at, before))
    process.start()
    process.join()
    return process.exitcode


def write_sets(folder):
    """Sets with bad rows between them."""
    rows = [json.dumps(row) for row in make_rows(29)]
    rows[12:12] = ["no JSON", ""]
    (folder / "data.jsonl").write_text("\n".join(rows))
    return folder / "data.jsonl"


def write_keys(folder):
    """Rows with keys, one of them bad, in a compressed file."""
    rows = [{"p": i // 3, "texts": f"a {i % 7} dog"} for i in range(30)]
    rows[4]["texts"] = None
    return compress(write_jsonl(folder / "data.jsonl", rows), ".gz")


def write_array(folder):
    rows = []
    for i, members in enumerate(SETS):
        rows += [{"texts": text, "p": i, "e": [len(text), i, j]} for j, text in enumerate(members)]
    return write_data(folder / "data.json", [*rows, 5])


SCORE = ["--metric", "self_bleu"]
# For each job its main, its data, its options, and its output.
JOBS = {
    "score, sets": (score_main, write_sets, SCORE, "out.jsonl"),
    "score, keys": (score_main, write_keys, [*SCORE, "--id-key", "p"], "out.parquet"),
    "score, one set": (score_main, write_sets, ["--metric", "vendi_embed", "--one-set"], "out.json"),
    "choose": (choose_main, write_array, ["--id-key", "p", "--keep", "1", "--column", "embeddings=e"], "out.csv"),
}


@pytest.fixture
def job(request, tmp_path, tiny_model):
    """The main and the words of a job, and the outputs of an undisturbed run."""
    main, write, more, out = JOBS[request.param]
    size = 30 if write is write_sets else 5
    if "--one-set" in more:
        size = 3
        more = [*more, "--set", f"model={tiny_model}"]
    jobs = []
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
        jobs.append(words_of(write(tmp_path / name), *more, out=out, size=size))
    assert main(jobs[0]) == EXIT_BAD_ROWS
    return main, jobs[1], outputs(tmp_path / "once")


@pytest.mark.parametrize(
    ("job", "before"), [*((name, False) for name in JOBS), ("score, sets", True)], indirect=["job"]
)
def test_a_kill_at_every_file_loses_nothing(job, tmp_path, before):
    main, words, expected = job
    folder = tmp_path / "killed"
    at = 1
    complete = []
    while True:
        for left in folder.iterdir():
            if not left.name.startswith("data"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        if run_and_die(words, at, before, main) != -signal.SIGKILL:
            break
        complete.append(outputs(folder) == expected)
        if at == 3:
            # The next process is killed too, at the next file.
            run_and_die(words, 2, before, main)
        assert main(words) == EXIT_BAD_ROWS
        assert outputs(folder) == expected
        at += 1
    # The record of the job, the pieces of the file, all rows, the bad rows and the summary.
    assert at > 5
    # Only a kill after the last file finds all of them.
    assert complete == [False] * (at - 2) + [not before]


def test_another_command_does_not_go_on(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(30))
    words = words_of(data, *SCORE)
    assert run_and_die(words, at=3, before=False) == -signal.SIGKILL
    # Another level of confidence is no other job.
    assert score(data, "--confidence", 0.5) == 0
    assert run_and_die([*words, "--restart"], at=3, before=False) == -signal.SIGKILL
    for change in (["--set", "max_order=2"], ["--batch-size", "5"]):
        assert score(data, *change) == EXIT_USAGE
        assert "--restart" in capsys.readouterr().err
    assert score(data) == 0
    assert score(data, "--set", "max_order=2") == EXIT_USAGE
    assert "--restart" in capsys.readouterr().err
    write_jsonl(data, make_rows(31))
    assert score(data) == EXIT_USAGE
    assert score(data, "--restart") == 0
    assert results_of(data)[2]["n_scores"] == 31


# What is done to a piece, by its number.
DAMAGE = {
    "cut": (0, lambda content: content[:-3]),
    "cut in the record": (1, lambda content: content[:20]),
    "empty": (0, lambda content: b""),
    "another one": (1, lambda content: content[::-1]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_piece_that_is_damaged_is_done_again(tmp_path, name):
    number, damage = DAMAGE[name]
    for folder in ("once", "killed"):
        (tmp_path / folder).mkdir()
        write_sets(tmp_path / folder)
    once, killed = (tmp_path / folder / "data.jsonl" for folder in ("once", "killed"))
    assert score(once, size=30) == EXIT_BAD_ROWS
    assert run_and_die(words_of(killed, *SCORE, size=30), at=4, before=False) == -signal.SIGKILL
    part = tmp_path / "killed" / "out.jsonl.parts" / f"part-{number:08d}"
    part.write_bytes(damage(part.read_bytes()))
    assert score(killed, size=30) == EXIT_BAD_ROWS
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "once")
