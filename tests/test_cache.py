"""The cache on disk: the same scores, nothing done twice, and safe with many processes, kills and damage."""

import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT, SETS, encode
from text_metrics.metrics._core import core_cache, core_encoder
from text_metrics.metrics._core.core_cache import through_cache

TEXTS = [text for members in SETS for text in members]
LONG = ["word " * 400, "word " * 300]
PEOPLE = [["a kettle", "a pot", "a pot"], ["a dog", "a cat"]]
INPUTS = {
    "vendi_embed": {"predictions": SETS},
    "chamfer_diversity": {"predictions": SETS},
    "probeval": {"predictions": [["the pot", "a cup"], ["dogs"]], "references": PEOPLE},
    "gruen": {"predictions": [" ".join(members) for members in SETS]},
}
every_metric = pytest.mark.parametrize("name", INPUTS)


@pytest.fixture
def encoded_texts(load, monkeypatch):
    """The texts that are encoded, by whichever copy of the encoder, as it happens."""
    seen = []

    def record(encode, texts):
        seen.extend(texts)
        return encode

    folders = [type(load(name)).__module__.rpartition(".")[0] for name in INPUTS]
    copies = [vars(sys.modules[f"{folder}.core_encoder"]) for folder in folders] + [vars(core_encoder)]
    for copy in copies:
        encode = copy["_encode_batches"]
        monkeypatch.setitem(
            copy,
            "_encode_batches",
            lambda loaded, texts, *rest, encode=encode: record(encode, texts)(loaded, texts, *rest),
        )
    return seen


def kept(folder):
    """Count the texts of each kind of file in a cache, by the beginning of its name."""
    counts = Counter()
    for path in Path(folder).glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            counts[path.name.split("@")[0]] += connection.execute("SELECT COUNT(*) FROM texts").fetchone()[0]
    return counts


# The same scores, and nothing done twice.


@every_metric
def test_cold_equals_warm_equals_none(load, encoded_texts, tmp_path, name):
    expected = load(name).compute(**INPUTS[name])
    encoded_texts.clear()
    cold = load(name).compute(**INPUTS[name], cache_dir=tmp_path)
    assert encoded_texts
    encoded_texts.clear()
    warm = load(name).compute(**INPUTS[name], cache_dir=str(tmp_path))
    assert encoded_texts == []
    assert warm == cold
    assert cold["signature"] == expected["signature"]
    assert cold["scores"] == pytest.approx(expected["scores"], abs=1e-6)


def test_texts_that_are_cut_are_counted_warm_too(encoded_texts, tmp_path):
    texts = [*LONG, "short", "short"]
    with pytest.warns(UserWarning, match="1 of 2 different texts"):
        encode(texts[1:3], device="cpu", cache_dir=tmp_path, long_texts="cut")
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 of 3 .* 402") as caught:
            encode(texts, device="cpu", cache_dir=tmp_path, long_texts="cut")
        assert len(caught) == 1
    assert encoded_texts == [LONG[1], "short", LONG[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(["short"], device="cpu", cache_dir=tmp_path, long_texts="cut")


def test_a_model_that_changes_has_another_cache(tiny_model, other_tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    first = encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    weights = next(Path(other_tiny_model).rglob("*.safetensors"))
    changed = tmp_path / "model" / weights.relative_to(other_tiny_model)
    # The weights of a loaded model may be mapped from its file.
    changed.unlink()
    shutil.copy(weights, changed)
    second = encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    np.testing.assert_allclose(second.embeddings, encode(TEXTS, other_tiny_model).embeddings, atol=1e-6)
    assert first.signed["model"] != second.signed["model"]
    assert kept(tmp_path / "cache").keys() == {"local"}
    assert len(list((tmp_path / "cache").iterdir())) == 2


# Many processes, and kills.

# Texts that several processes ask for, and as a computation what cannot go wrong.
SPELL = (
    "import json, sys\n"
    "import numpy as np\n"
    "from pathlib import Path\n"
    "from metrics._core import core_cache\n"
    "core_cache.LIMITS.cached_texts = int(sys.argv[2])\n"
    "folder, texts = Path(sys.argv[1]), [f'number {i}' for i in range(*map(int, sys.argv[3:]))]\n"
    "def spell(part):\n"
    "    numbers = np.array([int(text.split()[1]) for text in part])\n"
    "    print('ready', flush=True)\n"
    "    return np.repeat(numbers[:, None], 300, axis=1), -numbers\n"
    "values, notes = core_cache.through_cache(folder, 'some@model', texts, spell, lambda found: None)\n"
    "assert (values == np.array([int(text.split()[1]) for text in texts])[:, None]).all()\n"
    "assert (notes == -values[:, 0]).all()\n"
)


def spelling(folder, *numbers):
    command = [sys.executable, "-c", SPELL, str(folder), *map(str, numbers)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE)


def test_processes_share_a_cache(tmp_path):
    parts = [(0, 600), (0, 600), (200, 800), (799, 199, -1), (400, 1000)]
    for process in [spelling(tmp_path, 20, *part) for part in parts]:
        process.communicate()
        assert process.returncode == 0
    assert kept(tmp_path) == {"some": 1000}


def test_a_kill_leaves_batches_complete_or_absent(tmp_path):
    for _ in range(3):
        process = spelling(tmp_path, 2000, 0, 200_000)
        # The second batch is computed: the first is stored.
        process.stdout.readline()
        process.stdout.readline()
        while not list(tmp_path.glob("*-journal")):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert kept(tmp_path)["some"] % 2000 == 0
    whole = kept(tmp_path)["some"]
    computed = pytest.fail
    values, notes = through_cache(
        tmp_path, "some@model", [f"number {i}" for i in range(whole)], computed, lambda found: None
    )
    assert (values[:, 0] == np.arange(whole)).all()
    assert (notes == -values[:, 0]).all()


# Damage, lack of space, lack of permission.


def cache_file(folder):
    (path,) = folder.glob("*.sqlite")
    return path


@pytest.mark.parametrize("damage", ["text", "cut", "zeros"])
def test_a_damaged_file_is_an_error(tiny_model, tmp_path, damage):
    texts = [f"{a} {b} {c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"]
    encode(texts, tiny_model, cache_dir=tmp_path)
    path = cache_file(tmp_path)
    content = path.read_bytes()
    size = len(content)
    path.write_bytes(
        {
            "text": b"This is not a cache.\n" * 2000,
            "cut": content[: size // 2],
            "zeros": content[:65_536] + bytes(size - 65_536),
        }[damage]
    )
    with pytest.raises(ValueError, match=rf"cache_dir: {re.escape(str(path))} is damaged .* Delete it"):
        encode(texts, tiny_model, cache_dir=tmp_path)
    path.unlink()
    result = encode(texts, tiny_model, cache_dir=tmp_path)
    np.testing.assert_allclose(result.embeddings, encode(texts, tiny_model).embeddings, atol=1e-6)


def put_numbers(folder, numbers, **settings):
    """Ask for values and notes of numbers; what is not kept is computed."""
    return through_cache(
        folder,
        "some@model",
        list(map(str, numbers)),
        lambda part: (
            np.repeat(np.array([float(text) for text in part])[:, None], 300, axis=1),
            np.array([-int(text) for text in part]),
        ),
        lambda found: None,
        **settings,
    )


def put_with_little_space(folder, numbers):
    import resource

    # No file may grow beyond: to a program, the error of a disk that is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, 700_000))
    core_cache.LIMITS.cached_texts = 200
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values, _ = put_numbers(folder, numbers)
    return values, [str(one.message) for one in caught]


def test_a_full_disk_is_said_once_and_changes_no_value(tmp_path):
    numbers = range(2000)
    values, messages = in_a_fork(put_with_little_space, tmp_path, numbers)
    assert (values == np.arange(2000)[:, None]).all()
    (message,) = messages
    assert re.search(r"cache_dir: .* could not be written to \(.*\)\. .* are correct", message)
    # What was kept before is there, and the others come when there is space.
    assert 200 <= kept(tmp_path)["some"] < 2000
    assert (put_numbers(tmp_path, numbers)[0] == values).all()
    assert kept(tmp_path) == {"some": 2000}


def test_a_cache_that_others_hold_is_said_and_changes_no_score(tmp_path):
    put_numbers(tmp_path, [1])
    other = sqlite3.connect(cache_file(tmp_path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(UserWarning, match="cache_dir"):
        values, _ = put_numbers(tmp_path, [1, 2], lock_seconds=0.1)
    assert values[:, 0].tolist() == [1, 2]
    other.execute("COMMIT")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ValueError, match="cache_dir"):
        put_numbers(tmp_path, [1], lock_seconds=0.1)
    other.close()


def in_a_fork(function, *arguments):
    """Call a function in a process of its own; returns what it returns, or the error that it raises."""

    def run(connection):
        try:
            connection.send(function(*arguments))
        except Exception as error:
            connection.send(error)

    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=run, args=(theirs,))
    process.start()
    result = ours.recv()
    process.join()
    return result


def as_nobody(function, *arguments):
    """Call a function as a user who may not write what is another's."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    return function(*arguments)


def put_and_warn(folder, numbers):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values, _ = put_numbers(folder, numbers)
    return values, [str(one.message) for one in caught]


def test_a_folder_without_permission_serves_what_it_has(tmp_path_factory):
    # pytest's own folders cannot be entered by another user.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_numbers(folder, [1])
        folder.chmod(0o555)
        cache_file(folder).chmod(0o444)
        values, messages = in_a_fork(as_nobody, put_and_warn, folder, [1])
        assert (values[0, 0], messages) == (1.0, [])
        values, (message,) = in_a_fork(as_nobody, put_and_warn, folder, [1, 2])
        assert values[:, 0].tolist() == [1.0, 2.0]
        assert re.search(rf"cache_dir: {re.escape(name)}.* could not be written to .*readonly", message)
        cache_file(folder).unlink()
        error = in_a_fork(as_nobody, put_and_warn, folder, [1])
        assert re.search(rf"cache_dir: {re.escape(name)}.* could not be used", str(error))
        error = in_a_fork(as_nobody, put_and_warn, folder / "new", [1])
        assert re.search(rf"cache_dir '{re.escape(name)}/new' cannot be created: Permission denied", str(error))
        folder.chmod(0o755)
