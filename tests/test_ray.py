"""text-metrics score --one-set and --engine ray: merged statistics, and a real cluster whose workers are killed."""

import json
import os
import random
import shutil
import signal
import sys
import threading
import time

import pytest

from tests.conftest import METRICS
from tests.test_grouping import rows_of_equal_texts, score_words, write_data
from tests.test_score import (
    WORDS,
    command,
    make_rows,
    outputs,
    read_jsonl,
    run_and_die,
    write_jsonl,
)
from text_metrics.commands.score import main as score

PEOPLE = ["a dog runs"] * 4 + ["the sea"] * 3 + ["a red house"] * 2
ONE_SET = [("vendi_embed", {"q": [1, 0, 2.5, "inf"]}), ("vendi_embed", {})]


def encoder(metric, model):
    """Settings for a small model, where the metric has one."""
    return {} if metric in ("self_bleu", "gruen") else {"model": str(model)}


def as_words(settings):
    return [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]


def write_texts(path, n, seed=0):
    """Write rows of one text or three, each with people's answers."""
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 7))) for _ in range(n)]
    rows, rest = [], list(texts)
    while rest:
        k = rng.choice([1, 1, 1, 3])
        rows.append({"text": rest[0] if k == 1 else rest[:k], "people": PEOPLE})
        rest = rest[k:]
    write_jsonl(path, rows)
    return texts


def one_set(data, metric, settings, *more, size=50):
    key = ["--reference-key", "people"] if metric == "probeval" else []
    words = command(data, "--one-set", *key, *more, metric=metric, key="text", out="out.json", size=size)
    return [*words, *as_words(settings)]


def expected_of(load, metric, settings, texts):
    references = {"references": [PEOPLE]} if metric == "probeval" else {}
    return load(metric).compute(predictions=[texts], **references, **settings)


def assert_same_numbers(summary, expected):
    assert summary["signature"] == expected["signature"]
    flat = {
        f"{name}_{key}" if isinstance(value, dict) else name: part
        for name, value in expected.items()
        for key, part in (value.items() if isinstance(value, dict) else [("", value)])
    }
    numbers = {name: value for name, value in flat.items() if isinstance(value, (int, float))}
    assert len(numbers) >= 1
    assert {name: summary[name] for name in numbers} == pytest.approx(numbers, abs=1e-6)


@pytest.mark.parametrize(("metric", "settings"), ONE_SET)
def test_a_file_that_is_one_set(load, tmp_path, tiny_model, metric, settings):
    settings = {**settings, **encoder(metric, tiny_model)}
    texts = write_texts(tmp_path / "data.jsonl", 400)
    assert score.main(one_set(tmp_path / "data.jsonl", metric, settings)) == 0
    summary = json.loads((tmp_path / "out.json").read_text())
    assert_same_numbers(summary, expected_of(load, metric, settings, texts))
    assert (summary["n_texts"], summary["n_bad"], summary["n_scores"]) == (400, 0, 1)
    # One score has no interval.
    assert not [name for name in summary if name.startswith("confidence")]
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "out.json"]


BAD = {3: "no JSON", 5: '{"people": ["a"]}', 9: '{"text": 5, "people": ["a"]}'}


@pytest.mark.parametrize("metric", ["vendi_embed"])
def test_one_set_goes_on_after_kills(load, tmp_path, tiny_model, metric):
    settings = encoder(metric, tiny_model)
    texts = write_texts(tmp_path / "good.jsonl", 150)
    lines = (tmp_path / "good.jsonl").read_text().splitlines()
    for number, line in BAD.items():
        lines.insert(number - 1, line)
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(lines))
    words = one_set(data, metric, settings)
    # Files: arrays and a state for each batch; two arrays for Chamfer, and tables at the end for self-BLEU.
    assert run_and_die(words, 4, before=False) == -signal.SIGKILL
    assert list((tmp_path / "out.json.parts").iterdir())
    run_and_die(words, 2, before=True)
    assert score.main(words) == score.EXIT_BAD_ROWS
    summary = json.loads((tmp_path / "out.json").read_text())
    assert_same_numbers(summary, expected_of(load, metric, settings, texts))
    assert (summary["n_texts"], summary["n_bad"]) == (150, len(BAD))
    assert [row["row"] for row in read_jsonl(tmp_path / "out.json.bad.jsonl")] == list(BAD)
    # A finished job is not repeated.
    assert score.main(words) == score.EXIT_BAD_ROWS


@pytest.mark.parametrize(
    ("metric", "more", "message"),
    [
        ("vendi_embed", ["--set", "kernel=ngram"], "--one-set is for kernel='embedding'"),
        ("self_bleu", [], "--one-set is for vendi_embed"),
        ("vendi_embed", ["--set", "q=-1"], "q must be in"),
        ("gruen", [], "--one-set is for vendi_embed"),
        ("vendi_embed", ["--out", "scores.parquet"], "--out must end in .json with --one-set"),
        ("vendi_embed", ["--score-key", "s"], "--score-key cannot be combined with --one-set"),
        ("vendi_embed", ["--confidence", "0.9"], "--confidence cannot be combined with --one-set"),
        ("vendi_embed", ["--set", "set_size=2"], "--setting set_size: pass --set-size"),
        ("vendi_embed", ["--address", "auto"], "--address requires --engine ray"),
        ("vendi_embed", ["--workers", "2"], "--workers requires --engine ray"),
        ("vendi_embed", ["--engine", "ray", "--workers", "0"], "--workers must be at least 1"),
        ("vendi_embed", ["--engine", "ray", "--address", "127.0.0.1:1"], "no Ray cluster answers there"),
        ("vendi_embed", ["--engine", "ray", "--address", "ray://127.0.0.1:1"], "--address must be host:port"),
    ],
)
def test_commands_that_are_wrong(tmp_path, capsys, metric, more, message):
    write_texts(tmp_path / "data.jsonl", 5)
    assert score.main(one_set(tmp_path / "data.jsonl", metric, {}, *more)) == score.EXIT_USAGE
    assert message in capsys.readouterr().err


def test_without_ray(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    assert score.main(command(data, "--engine", "ray")) == score.EXIT_USAGE
    assert 'pip install "text-metrics[ray]"' in capsys.readouterr().err


def test_workers_in_another_folder_find_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "data.jsonl", 5)
    (tmp_path / "models" / "own").mkdir(parents=True)
    settings = {"model": "models/own", "cache_dir": "new", "kernel": "embedding"}
    words = ["data.jsonl", "--metric", "vendi_embed", "--text-key", "text", *as_words(settings)]
    command = parse_command(words)
    task = ByRow(command, Scorer(command.metric, command.settings), Source(command.data, command.split))
    sent = task.job().command
    assert sent.data == tmp_path / "data.jsonl"
    assert sent.settings == {**settings, "model": str(tmp_path / "models/own"), "cache_dir": str(tmp_path / "new")}


# The statistics that merge.


# On a cluster.

MARKED = """

def _marked(compute):
    import functools

    @functools.wraps(compute)
    def run(self, **arguments):
        import os
        import pathlib
        import time

        marker = pathlib.Path({folder!r}) / str(os.getpid())
        marker.write_text("")
        time.sleep(0.2)
        result = compute(self, **arguments)
        marker.unlink()
        return result

    return run


{name}._compute = _marked({name}._compute)
"""


POISONED = """

def _poisoned(compute):
    import functools

    @functools.wraps(compute)
    def run(self, **arguments):
        import os

        if "poison" in str(arguments["predictions"]):
            os._exit(1)
        return compute(self, **arguments)

    return run


{name}._compute = _poisoned({name}._compute)
"""


MEETING = """

def _meeting(compute):
    import functools

    @functools.wraps(compute)
    def run(self, **arguments):
        import os
        import pathlib
        import time

        marks = pathlib.Path({folder!r})
        (marks / str(os.getpid())).write_text("")
        end = time.monotonic() + 300
        while len(list(marks.iterdir())) < 2:
            if time.monotonic() > end:
                raise RuntimeError("no other worker came")
            time.sleep(0.01)
        return compute(self, **arguments)

    return run


{name}._compute = _meeting({name}._compute)
"""


@pytest.fixture(scope="module")
def cluster():
    """A real cluster on this machine, of two cores: its address."""
    with pytest.MonkeyPatch.context() as patch:
        # No usage report, and no files in the home folder; set before Ray is imported, as the command does.
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_ENABLE_AUTO_CONNECT", "0")
        # Workers that start before a job do not have its files, so that it cannot use them.
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        # Ray gives workers a low priority, at which they wait for all other tests.
        patch.setenv("RAY_worker_niceness", "0")
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 2, "object_store_memory": 150_000_000}
        head |= {"include_dashboard": False, "include_log_monitor": False}
        started = Cluster(initialize_head=True, head_node_args=head)
        yield started.address
        started.shutdown()


def on_ray(cluster, words, workers=1):
    """Run a command on the cluster. Each worker imports everything, so that there are no more than the test needs."""
    return [*words, "--engine", "ray", "--address", cluster, "--workers", str(workers)]


def changed_metric(folder, name, class_name, change):
    """Copy a metric whose `_compute` also writes files that are named by process id.

    MARKED, a file is there while its process scores a batch. MEETING, a process goes on only once another came.
    """
    copy = shutil.copytree(METRICS / name, folder / name)
    (folder / "marks").mkdir()
    with (copy / f"{name}.py").open("a") as file:
        file.write(change.format(folder=str(folder / "marks"), name=class_name))
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
@pytest.mark.parametrize(
    ("name", "class_name", "more", "out"),
    [
        (
            "vendi_embed",
            "VendiEmbed",
            ["--column", "quality=good", "--column", "confidence_by=note"],
            "out.jsonl",
        ),
    ],
)
def test_a_worker_that_is_killed_loses_nothing(cluster, tmp_path, tiny_model, name, class_name, more, out):
    rows = [
        {**row, "people": PEOPLE, "note": f"n{i % 9}", "good": [0.5, 1, i / 80]} for i, row in enumerate(make_rows(80))
    ]
    rows[50]["good"] = [0.5, 1]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    lines[30:30] = ["no JSON", ""]
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    more = [*more, "--set", f"model={tiny_model}"]
    here, there = (
        command(tmp_path / folder / "data.jsonl", *more, metric=name, out=out) for folder in ("here", "there")
    )
    assert score.main(here) == score.EXIT_BAD_ROWS

    there[there.index("--metric") + 1] = str(changed_metric(tmp_path, name, class_name, MARKED))
    marks, parts = tmp_path / "marks", tmp_path / "there" / f"{out}.parts"
    killed = []
    killer = threading.Thread(
        target=kill_one, args=(marks, lambda: any(parts.glob("part-????????")), killed), daemon=True
    )
    killer.start()
    assert score.main(on_ray(cluster, there, workers=2)) == score.EXIT_BAD_ROWS
    killer.join(timeout=10)
    # A worker was killed in the middle of its batch; all other workers finished theirs.
    assert killed
    assert killed != [os.getpid()]
    assert [int(mark.name) for mark in marks.iterdir()] == killed
    assert_same_outputs(tmp_path / "here", tmp_path / "there")


@pytest.mark.slow
def test_one_set_is_shared_by_two_workers(load, cluster, tmp_path, tiny_model):
    settings = {"q": [1, 0, 2.5, "inf"], **encoder("vendi_embed", tiny_model)}
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        texts = write_texts(tmp_path / folder / "data.jsonl", 300)
    here, there = (one_set(tmp_path / folder / "data.jsonl", "vendi_embed", settings) for folder in ("here", "there"))
    assert score.main(here) == 0
    there[there.index("--metric") + 1] = str(changed_metric(tmp_path, "vendi_embed", "VendiEmbed", MEETING))
    assert score.main(on_ray(cluster, there, workers=2)) == 0
    workers = {int(mark.name) for mark in (tmp_path / "marks").iterdir()}
    assert len(workers - {os.getpid()}) == 2
    assert_same_outputs(tmp_path / "here", tmp_path / "there")
    summary = json.loads((tmp_path / "there" / "out.json").read_text())
    assert_same_numbers(summary, expected_of(load, "vendi_embed", settings, texts))
    assert summary["n_texts"] == 300


def assert_close(value, expected):
    """Compare JSON values whose floats may differ by rounding."""
    assert type(value) is type(expected)
    if isinstance(expected, (dict, list)):
        assert len(value) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            assert_close(value[key], expected[key])
    else:
        assert value == (pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else expected)


def assert_same_outputs(here, there):
    expected, found = outputs(here), outputs(there)
    assert expected.keys() == found.keys()
    for name, content in expected.items():
        if name.endswith("summary.json") or name == "out.json":
            own, other = (dict(json.loads((folder / name).read_text())) for folder in (here, there))
            own.pop("command"), other.pop("command")
            assert_close(other, own)
        elif name == "out.jsonl":
            assert_close(read_jsonl(there / name), read_jsonl(here / name))
        else:
            assert found[name] == content


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("jsonl", ["--group-key", "prompt"]),
        ("folder", ["--set-size", 4, "--drop-incomplete"]),
    ],
)
def test_bad_rows_make_their_sets_bad_on_a_cluster_too(cluster, tmp_path, capsys, kind, more):
    rows = rows_of_equal_texts(30, bad=[1, 50, 52])[:-1]
    here, there = (tmp_path / name for name in ("here", "there"))
    for folder in (here, there):
        folder.mkdir()
        write_data(folder, kind, rows)
    words = [score_words(next(folder.iterdir()), *more, size=10) for folder in (here, there)]
    assert score.main(words[0]) == score.EXIT_BAD_ROWS
    assert score.main(on_ray(cluster, words[1])) == score.EXIT_BAD_ROWS
    assert capsys.readouterr().err.count("One process reads") == (kind == "jsonl")
    assert_same_outputs(here, there)
    assert all(row["self_bleu"] == pytest.approx(1) for row in read_jsonl(there / "out.jsonl"))


@pytest.mark.slow
def test_files_that_make_no_sets_are_refused_on_a_cluster_too(cluster, tmp_path, capsys):
    rows = [{"p": i % 3, "text": "a dog"} for i in range(9)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score.main(on_ray(cluster, score_words(data, "--group-key", "p"))) == score.EXIT_USAGE
    assert "'p' is '0' in row 1, and again in row 4" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["data.jsonl"]


def test_lines_that_cannot_be_read_make_no_sets(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_text('p,text\n1,a\n1,"open\n1,b\n1,"c\n1,d\n')
    assert score.main(score_words(data, "--set-size", 2)) == score.EXIT_USAGE
    assert "data.csv, lines 3 to 5 cannot be read" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["data.csv"]


@pytest.mark.slow
def test_a_batch_that_kills_every_worker_ends_the_job(cluster, tmp_path, monkeypatch):
    from ray.exceptions import RayActorError

    monkeypatch.setattr(ray_engine, "_RETRIES", 1)
    rows = make_rows(60)
    rows[30]["texts"][0] = "poison"
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    metric = str(changed_metric(tmp_path, "self_bleu", "SelfBleu", POISONED))
    with pytest.raises(RayActorError):
        score.main(on_ray(cluster, command(data, metric=metric)))
    # The batches before it are kept.
    assert list((tmp_path / "out.jsonl.parts").glob("part-????????"))


@pytest.mark.slow
def test_what_is_wrong_is_said_by_a_worker_too(cluster, tmp_path, capsys):
    write_texts(tmp_path / "data.jsonl", 20)
    words = one_set(tmp_path / "data.jsonl", "vendi_embed", {"batch_size": 0})
    assert score.main(on_ray(cluster, words)) == score.EXIT_USAGE
    assert "batch_size must be at least 1. Got 0" in capsys.readouterr().err
