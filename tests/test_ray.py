"""text-metrics score --engine ray: a real cluster, whose workers are killed."""

import os
import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.commands import results_of, score
from tests.conftest import METRICS, ROOT
from tests.files import write_jsonl
from tests.test_grouping import rows_of_equal_texts
from tests.test_score import make_rows, outputs
from text_metrics.console import EXIT_BAD_ROWS, EXIT_USAGE
from text_metrics.jobs import job, on_ray, scoring


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--workers", "0"], "--workers"),
        (["--address", "127.0.0.1:1"], "no Ray cluster answers"),
        (["--address", "ray://127.0.0.1:1"], "host:port"),
        ([], 'pip install "text-metrics[ray]"'),
    ],
)
def test_clusters_that_are_not_there(tmp_path, capsys, monkeypatch, more, message):
    if not more:
        monkeypatch.setitem(sys.modules, "ray", None)
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    assert score(data, "--engine", "ray", *more) == EXIT_USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [(Path.unlink, "does not exist. All machines"), (Path.touch, "has changed, or is another file")],
)
def test_a_worker_that_does_not_see_the_data(tmp_path, capsys, monkeypatch, change, message):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    load_metric = scoring.load_metric
    monkeypatch.setattr(scoring, "load_metric", lambda name, **more: change(data) or load_metric(name))
    assert score(data) == EXIT_USAGE
    assert f"{data} {message}" in capsys.readouterr().err


# On a cluster: what `_compute` of a metric does first, in a worker. Each writes a file that is named by its process.

MARKED = """
        marker = marks / str(os.getpid())
        marker.write_text("")
        time.sleep(0.2)
        result = compute(self, **arguments)
        marker.unlink()
        return result
"""
# The process of every piece of a certain text ends.
DYING = """
        if any("fatal" in text for texts in arguments["predictions"] for text in texts):
            os._exit(1)
        return compute(self, **arguments)
"""
WRAPPED = """

def _changed(compute):
    import functools

    @functools.wraps(compute)
    def run(self, **arguments):
        import os
        import pathlib
        import time

        marks = pathlib.Path({folder!r})
{body}
    return run


SelfBleu._compute = _changed(SelfBleu._compute)
"""


@pytest.fixture(scope="module")
def cluster():
    """A real cluster on this machine, of two cores: its address."""
    with pytest.MonkeyPatch.context() as patch:
        # No usage report, and no files in the home folder; set before Ray is imported, as the command does.
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_ENABLE_AUTO_CONNECT", "0")
        # Ray gives workers a low priority, at which they wait for all other tests.
        patch.setenv("RAY_worker_niceness", "0")
        # Workers inherit these.
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("HF_HUB_OFFLINE", "1")
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 2, "object_store_memory": 150_000_000}
        head |= {"include_dashboard": False, "include_log_monitor": False}
        started = Cluster(initialize_head=True, head_node_args=head)
        yield started.address
        started.shutdown()


def on(cluster, workers=1):
    """Options for a cluster. Each worker imports everything, so that there are no more than the test needs."""
    return ["--engine", "ray", "--address", cluster, "--workers", workers]


def changed_metric(folder, change):
    """Copy self_bleu with another `_compute`, which may write files into the folder marks."""
    copy = shutil.copytree(METRICS / "self_bleu", folder / "self_bleu")
    (folder / "marks").mkdir()
    with (copy / "self_bleu.py").open("a") as file:
        file.write(WRAPPED.format(body=change, folder=str(folder / "marks")))
    return copy


def kill_one(marks, is_time, killed):
    """Wait until workers score a batch, and kill one of them."""
    while not killed:
        time.sleep(0.005)
        for mark in marks.iterdir() if is_time() else ():
            # Stopped first, so that it cannot finish its batch between the check and the kill.
            os.kill(int(mark.name), signal.SIGSTOP)
            time.sleep(0.02)
            if mark.exists():
                os.kill(int(mark.name), signal.SIGKILL)
                killed.append(int(mark.name))
                break
            os.kill(int(mark.name), signal.SIGCONT)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(cluster, tmp_path, monkeypatch):
    # Sets whose rows are not next to each other, and bad rows, which make their sets bad.
    rows = [{**row, "note": row["prompt"][-1]} for row in rows_of_equal_texts(60, bad=[1, 50, 52])[:-1]]
    more = ["--id-key", "prompt", "--cluster-key", "note", "--set", "max_order=2"]
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        write_jsonl(tmp_path / folder / "data.jsonl", rows[::2] + rows[1::2])
    # Paths are relative to the folder of the command, for workers too.
    monkeypatch.chdir(tmp_path)
    assert score(Path("here/data.jsonl"), *more, key="text") == EXIT_BAD_ROWS

    changed_metric(tmp_path, MARKED)
    marks = tmp_path / "marks"
    parts = tmp_path / "there" / "out.jsonl.parts"
    killed = []
    killer = threading.Thread(target=kill_one, args=(marks, lambda: any(parts.glob("part-????????")), killed))
    killer.daemon = True
    killer.start()
    more += on(cluster, 2)
    assert score(Path("there/data.jsonl"), *more, metric="./self_bleu", key="text") == EXIT_BAD_ROWS
    killer.join(timeout=10)
    # A worker was killed in the middle of its batch; all other workers finished theirs.
    assert killed
    assert killed != [os.getpid()]
    assert [int(mark.name) for mark in marks.iterdir()] == killed
    assert outputs(tmp_path / "there") == outputs(tmp_path / "here")


@pytest.mark.slow
def test_a_piece_that_kills_its_workers_ends_the_job(cluster, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(on_ray, "MOST_DEATHS", 1)
    rows = make_rows(20)
    rows[7]["texts"].append("fatal")
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    changed = changed_metric(tmp_path, DYING)
    assert score(data, *on(cluster), metric=changed, size=3) == EXIT_USAGE
    assert "a worker died 2 times" in capfd.readouterr().err
    # The pieces before it are saved.
    done = {int(path.name[5:]) for path in (tmp_path / "out.jsonl.parts").glob("part-????????")}
    assert done == set(range(7))


# The first piece waits until another one is saved.
WAITING = """
        parts = marks.parent / "out.jsonl.parts"
        end = time.monotonic() + 300
        first = any("first" in text for texts in arguments["predictions"] for text in texts)
        while first and not list(parts.glob("part-????????")) and time.monotonic() < end:
            time.sleep(0.01)
        return compute(self, **arguments)
"""


@pytest.mark.slow
def test_bad_rows_that_are_done_first_do_not_end_the_job(cluster, tmp_path, monkeypatch):
    """Whether there is any hope is decided in the order of the file, as without a cluster."""
    monkeypatch.setattr(job, "HOPELESS_ROWS", 20)
    rows = [{"texts": ["the first", "set"]}] + [{"texts": []}] * 80 + make_rows(5)
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    changed = changed_metric(tmp_path, WAITING)
    assert score(data, *on(cluster, 2), metric=changed, size=2) == EXIT_BAD_ROWS
    _, bad, summary = results_of(data)
    assert (summary["n_scores"], summary["n_bad"]) == (6, 80)
    assert [row["row"] for row in bad] == list(range(2, 82))


@pytest.mark.slow
def test_the_program_of_the_page_runs(cluster, load, tmp_path):
    """The page shows `Scorer` in Ray Data."""
    import ray

    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    # Ray's workers write from folders of their own.
    program = re.search(r"```python\n(.*?)```", page, re.S)[1].replace('"scored"', repr(str(tmp_path / "scored")))
    names = {}
    with ray.init(address=cluster, log_to_driver=False):
        exec(compile(program, "cluster.md", "exec"), names)
    scored = pd.read_parquet(tmp_path / "scored").sort_values("prompt")
    rows = sorted(names["rows"], key=lambda row: row["prompt"])
    expected = load("vendi_embed").compute(predictions=[row["answers"] for row in rows])["scores"]
    assert scored["vendi_embed"].tolist() == pytest.approx(expected, abs=1e-6)
