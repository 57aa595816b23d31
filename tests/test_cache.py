"""The cache on disk: the same scores, nothing done twice, and safe with many processes, kills and damage."""

import multiprocessing
import os
import re
import shutil
import sqlite3
import tempfile
import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import SETS, encode, inputs_of, items_of
from tests.files import small_files
from tests.programs import in_fork
from text_metrics.metrics._core import core_cache
from text_metrics.metrics._core.core_cache import Cache

TEXTS = [text for members in SETS for text in members]


def n_stored(folder):
    """Count the texts in the files of a cache."""
    counts = []
    for path in Path(folder).glob("*.sqlite"):
        with closing(sqlite3.connect(path)) as connection:
            counts += connection.execute("SELECT COUNT(*) FROM texts").fetchone()
    return sum(counts)


# The same scores, and nothing done twice.


# In tests/test_invariants.py, each metric scores the same from the cache.
@pytest.mark.parametrize(("name", "settings"), [("vendi_embed", {}), ("gruen", {"components": ["focus"]})])
def test_cold_equals_warm_equals_none(load, encoded_texts, tmp_path, name, settings):
    metric = load(name)
    inputs = inputs_of(metric, items_of(metric)) | settings
    expected = metric.compute(**inputs, device="cpu")
    encoded_texts.clear()
    cold = metric.compute(**inputs, device="cpu", cache_dir=tmp_path)
    assert len(encoded_texts) == n_stored(tmp_path) > 0
    encoded_texts.clear()
    warm = metric.compute(**inputs, device="cpu", cache_dir=str(tmp_path))
    assert encoded_texts == []
    assert warm == cold
    assert cold["signature"] == expected["signature"]
    assert cold["scores"] == pytest.approx(expected["scores"], abs=1e-6)


def test_texts_that_are_cut_are_counted_warm_too_and_kept_apart_from_windows(encoded_texts, tmp_path):
    texts = ["word " * 400, "word " * 300, "short", "short"]
    cutting, windows = ({"device": "cpu", "cache_dir": tmp_path, "long_texts": way} for way in ("cut", "windows"))
    with pytest.warns(UserWarning, match="1 of 2 different texts"):
        encode(texts[1:3], **cutting)
    for _ in range(2):
        with pytest.warns(UserWarning, match="2 of 3 different texts") as caught:
            cut = encode(texts, **cutting)
        assert len(caught) == 1
    assert encoded_texts == [texts[1], "short", texts[0]]
    expected = encode(texts, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(["short"], **cutting)
        for _ in range(2):
            np.testing.assert_allclose(encode(texts, **windows), expected, atol=1e-6)
    assert np.abs(cut[:2] - expected[:2]).max() > 1e-3
    np.testing.assert_allclose(cut[2:], expected[2:], atol=1e-6)


def test_a_model_that_changes_has_another_cache(tiny_model, other_tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    weights = next(Path(other_tiny_model).rglob("*.safetensors"))
    changed = tmp_path / "model" / weights.relative_to(other_tiny_model)
    # The weights of a loaded model may be mapped from its file.
    changed.unlink()
    shutil.copy(weights, changed)
    second = encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    np.testing.assert_allclose(second, encode(TEXTS, other_tiny_model), atol=1e-6)
    assert len(list((tmp_path / "cache").iterdir())) == 2


# Many processes, and kills.


def put_numbers(folder, numbers, size):
    """Put rows that their text decides, unless they are there, `size` at a time; returns all rows."""
    cache = Cache(folder, "some@model")
    texts = list(map(str, numbers))
    for start in range(0, len(texts), size):
        part = texts[start : start + size]
        missing = set(part) - cache.get(part).keys()
        cache.put({text: np.full(300, float(text), dtype=np.float32) for text in missing})
    stored = cache.get(texts)
    assert (np.array([stored[text] for text in texts])[:, 7] == list(numbers)).all()


def putting(folder, size, *numbers):
    process = multiprocessing.get_context("fork").Process(target=put_numbers, args=(folder, range(*numbers), size))
    process.start()
    return process


def test_processes_share_a_cache(tmp_path):
    parts = [(0, 600), (0, 600), (200, 800), (799, 199, -1), (400, 1000)]
    for process in [putting(tmp_path, 20, *part) for part in parts]:
        process.join()
        assert process.exitcode == 0
    assert n_stored(tmp_path) == 1000


def test_a_kill_leaves_parts_complete_or_absent(tmp_path):
    for n_parts in (1, 2):
        process = putting(tmp_path, 2000, 200_000)
        # A part has 2.8 MB: at least one is complete, and another is being written.
        while sum(path.stat().st_size for path in tmp_path.glob("*.sqlite")) < 4_000_000 * n_parts or not list(
            tmp_path.glob("*-journal")
        ):
            assert process.exitcode is None
        process.kill()
        process.join()
        assert n_stored(tmp_path) > 0
        assert n_stored(tmp_path) % 2000 == 0
    put_numbers(tmp_path, range(n_stored(tmp_path)), 10**9)


# Damage, lack of space, lack of permission.


def cache_file(folder):
    (path,) = folder.glob("*.sqlite")
    return path


@pytest.mark.parametrize("damage", ["text", "cut", "zeros", "digit"])
def test_a_damaged_file_is_an_error(tiny_model, tmp_path, damage):
    texts = [f"{a} {b} {c}" for a in "abcdefgh" for b in "abcdefgh" for c in "abcdefgh"]
    expected = encode(texts, tiny_model, cache_dir=tmp_path)
    path = cache_file(tmp_path)
    content = path.read_bytes()
    size = len(content)
    place = content.index(expected[100].tobytes())
    changed = bytearray(content)
    changed[place] ^= 1
    damaged = {
        "text": b"This is not a cache.\n" * 2000,
        "cut": content[: size // 2],
        "zeros": content[:65_536] + bytes(size - 65_536),
        "digit": bytes(changed),
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match=rf"cache_dir: {re.escape(str(path))} is damaged"):
        encode(texts, tiny_model, cache_dir=tmp_path)
    path.unlink()
    np.testing.assert_allclose(encode(texts, tiny_model, cache_dir=tmp_path), expected, atol=1e-6)


def test_a_full_disk_is_an_error_that_keeps_what_was_stored(tmp_path):
    with small_files(700_000), pytest.raises(ValueError, match="cache_dir"):
        put_numbers(tmp_path, range(2000), 200)
    assert 200 <= n_stored(tmp_path) < 2000
    put_numbers(tmp_path, range(2000), 200)


def test_a_cache_that_others_hold_is_an_error_after_a_while(tmp_path, monkeypatch):
    put_numbers(tmp_path, [1], 1)
    monkeypatch.setattr(core_cache, "LOCK_SECONDS", 0.1)
    with closing(sqlite3.connect(cache_file(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        put_numbers(tmp_path, [1], 1)
        with pytest.raises(ValueError, match="cache_dir"):
            put_numbers(tmp_path, [1, 2], 1)


def put_as_nobody(folder, numbers):
    """Put as a user who may not write what is another's."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    put_numbers(folder, numbers, 1)


def test_a_folder_without_permission_serves_what_it_has():
    # pytest's own folders cannot be entered by another user.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put_numbers(folder, [1], 1)
        folder.chmod(0o555)
        cache_file(folder).chmod(0o444)
        assert in_fork(put_as_nobody, folder, [1]) is None
        for numbers, place in (([1, 2], folder), ([1], folder / "new")):
            error = in_fork(put_as_nobody, place, numbers)
            assert isinstance(error, ValueError)
            assert "cache_dir" in str(error)
        folder.chmod(0o755)
