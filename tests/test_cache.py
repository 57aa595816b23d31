"""The cache on disk: the same scores, nothing done twice, and safe with many processes, kills and damage."""

import json
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

import evaluate
import numpy as np
import pytest
from transformers import EvalPrediction

from tests import preloaded
from tests.conftest import METRICS, ROOT, SETS, encode
from tests.trainer_run import build_tokenizer
from text_metrics.metrics._core import core_cache, core_encoder
from text_metrics.metrics._core.core_cache import TextCache, text_key, through_cache

TEXTS = [text for members in SETS for text in members]
DIFFERENT = list(dict.fromkeys(TEXTS))
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
    for path in Path(folder).iterdir():
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


def test_another_process_does_not_load_the_encoder(load, tmp_path):
    cold = [load(name).compute(**inputs, cache_dir=tmp_path) for name, inputs in INPUTS.items()]
    program = (
        "import evaluate, json, sys\n"
        "folder, inputs = sys.argv[1], json.loads(sys.argv[2])\n"
        "metrics = {name: evaluate.load(f'{sys.argv[3]}/{name}') for name in inputs}\n"
        "results = [metrics[name].compute(**own, cache_dir=folder) for name, own in inputs.items()]\n"
        "print(json.dumps([results, [str(key[0]) for key in sys.modules['_text_metric_models'].models]]))\n"
    )
    done = preloaded.run(program, tmp_path, json.dumps(INPUTS), METRICS)
    assert done.returncode == 0, done.stderr
    warm, models = json.loads(done.stdout.splitlines()[-1])
    assert warm == cold
    # gruen looks at its own weights, to say which they are.
    assert models == ["gruen compact"]


def test_what_is_kept_is_what_was_encoded(tmp_path):
    cold = encode(TEXTS, device="cpu", cache_dir=tmp_path)
    warm = encode(TEXTS[::-1], device="cpu", cache_dir=tmp_path)
    np.testing.assert_array_equal(warm.embeddings[::-1], cold.embeddings)
    assert warm.embeddings.dtype == np.float32
    assert warm[1:] == cold[1:] == encode(TEXTS, device="cpu")[1:]


def test_only_new_texts_are_encoded(tiny_model, encoded_texts, tmp_path):
    encode(DIFFERENT[:5], tiny_model, cache_dir=tmp_path)
    encoded_texts.clear()
    result = encode(DIFFERENT, tiny_model, cache_dir=tmp_path)
    assert encoded_texts == DIFFERENT[5:]
    np.testing.assert_allclose(result.embeddings, encode(DIFFERENT, tiny_model).embeddings, atol=1e-6)


def test_texts_are_kept_part_by_part(tiny_model, monkeypatch, tmp_path):
    monkeypatch.setattr(core_cache, "TEXTS_AT_ONCE", 4)
    texts = [f"{a} {b}" for a in "abcd" for b in "efgh"]
    expected = encode(texts, tiny_model).embeddings
    encode_batches, parts = core_encoder._encode_batches, []

    def fail_at_the_third(loaded, texts, *rest):
        parts.append(texts)
        if len(parts) == 3:
            raise KeyboardInterrupt
        return encode_batches(loaded, texts, *rest)

    # Of every part of four, two are there: those that are not wait until they are four.
    encode(texts[::2], tiny_model, cache_dir=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(core_encoder, "_encode_batches", fail_at_the_third)
        more = [f"{text} i" for text in texts]
        with pytest.raises(KeyboardInterrupt):
            encode([*texts, *more], tiny_model, cache_dir=tmp_path)
    assert parts == [texts[1:8:2], texts[9::2], more[:4]]
    assert kept(tmp_path) == {"local": 16}
    np.testing.assert_allclose(encode(texts, tiny_model, cache_dir=tmp_path).embeddings, expected, atol=1e-6)


def test_models_and_precisions_do_not_mix(tiny_model, other_tiny_model, tmp_path):
    settings = [
        {"model": model, "precision": precision}
        for model in (tiny_model, other_tiny_model)
        for precision in (None, "bfloat16", "float16")
    ]
    expected = [encode(TEXTS, device="cpu", **own) for own in settings]
    for _ in range(2):
        for own, alone in zip(settings, expected, strict=True):
            result = encode(TEXTS, device="cpu", cache_dir=tmp_path, **own)
            np.testing.assert_array_equal(result.embeddings, alone.embeddings)
            assert result[1:] == alone[1:]
    # The precision in which a model is stored, by its name.
    encode(TEXTS, tiny_model, device="cpu", precision="float32", cache_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert kept(tmp_path) == {"local": 6 * len(DIFFERENT)}


def test_combined_metrics_encode_once(encoded_texts, tmp_path):
    combined = evaluate.combine([str(METRICS / name) for name in ("vendi_embed", "chamfer_diversity")])
    result = combined.compute(predictions=SETS, cache_dir=str(tmp_path))
    assert encoded_texts == DIFFERENT
    assert {"vendi_embed", "chamfer_diversity"} <= set(result)


def test_texts_that_are_cut_are_counted_warm_too(encoded_texts, tmp_path):
    texts = [*LONG, "short", "short"]
    with pytest.warns(UserWarning, match="1 of 2 different texts"):
        encode(texts[1:3], device="cpu", cache_dir=tmp_path, long_texts="cut")
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"2 of 3 different texts .* the 256 tokens .* longest has 402") as caught:
            encode(texts, device="cpu", cache_dir=tmp_path, long_texts="cut")
        assert len(caught) == 1
    assert encoded_texts == [LONG[1], "short", LONG[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(["short"], device="cpu", cache_dir=tmp_path, long_texts="cut")


def test_gruen_keeps_the_scores_of_sentences(load, gruen_models, tmp_path):
    gruen, texts = load("gruen"), INPUTS["gruen"]["predictions"]
    bert = {name: value for name, value in gruen_models.items() if name != "sop_model"}
    for settings in ({}, {"components": ["grammaticality"]}, {"details": True}, bert, {**bert, "likelihood": "pseudo"}):
        expected = gruen.compute(predictions=texts, device="cpu", **settings)
        cold, warm = (gruen.compute(predictions=texts, device="cpu", cache_dir=tmp_path, **settings) for _ in range(2))
        assert warm == cold
        assert cold["signature"] == expected["signature"]
        assert cold["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    names = sorted(path.name for path in tmp_path.iterdir())
    # Embeddings, the compact backbone, and the other's two kinds of likelihood.
    assert len(names) == 4
    # The original's warnings of what it cuts come with each run.
    parity = {**bert, "parity": True, "components": ["grammaticality"]}
    with pytest.raises(ValueError, match=r"cache_dir has no effect where neither .* leave it out\. Got str '"):
        gruen.compute(predictions=texts, cache_dir=tmp_path, **parity)


def test_gruen_does_not_judge_a_sentence_twice(load, monkeypatch, tmp_path):
    gruen = load("gruen")
    backbone = type(gruen)._compute.__globals__["CompactBackbone"]
    judged, score = [], backbone.score_sentences
    monkeypatch.setattr(
        backbone, "score_sentences", lambda self, texts, *rest: judged.extend(texts) or score(self, texts, *rest)
    )
    first, second = "The doctor told me the news. I went home.", "I went home. The dog was not there."
    gruen.compute(predictions=[first], cache_dir=tmp_path)
    gruen.compute(predictions=[first, second], cache_dir=tmp_path)
    assert judged == ["The doctor told me the news.", "I went home.", "The dog was not there."]


def test_any_text_can_be_kept(tiny_model, tmp_path):
    texts = ["", " ", "\0", "a\0b", "é", "e\u0301", "\U0001f600", "a" * 100_000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cold, warm = (encode(texts, tiny_model, cache_dir=tmp_path).embeddings for _ in range(2))
    np.testing.assert_array_equal(cold, warm)
    assert kept(tmp_path) == {"local": len(texts)}


def test_a_model_that_changes_has_another_cache(tiny_model, other_tiny_model, tmp_path):
    shutil.copytree(tiny_model, tmp_path / "model")
    first = encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    weights = next(Path(other_tiny_model).rglob("*.safetensors"))
    shutil.copy(weights, tmp_path / "model" / weights.relative_to(other_tiny_model))
    second = encode(TEXTS, tmp_path / "model", cache_dir=tmp_path / "cache")
    np.testing.assert_allclose(second.embeddings, encode(TEXTS, other_tiny_model).embeddings, atol=1e-6)
    assert first.signed["model"] != second.signed["model"]
    assert kept(tmp_path / "cache").keys() == {"local"}
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_the_trainer_takes_it(load, tmp_path):
    tokenizer = build_tokenizer()
    evaluation = EvalPrediction(tokenizer(["the dog", "the cat", "the dog", "a train"])["input_ids"], None)
    without, cold, warm = (
        load("vendi_embed").for_trainer(tokenizer, set_size=2, **settings)(evaluation)
        for settings in ({}, {"cache_dir": str(tmp_path)}, {"cache_dir": str(tmp_path)})
    )
    assert cold == warm == pytest.approx(without, abs=1e-6)
    assert kept(tmp_path) == {"all-MiniLM-L6-v2": 3}


# Many processes, and kills.

# Texts that several processes ask for, and as a computation what cannot go wrong.
SPELL = (
    "import json, sys\n"
    "import numpy as np\n"
    "from pathlib import Path\n"
    "from metrics._core import core_cache\n"
    "core_cache.TEXTS_AT_ONCE = 20\n"
    "folder, texts = Path(sys.argv[1]), [f'number {i}' for i in range(*map(int, sys.argv[2:]))]\n"
    "def spell(part):\n"
    "    numbers = np.array([int(text.split()[1]) for text in part])\n"
    "    return np.repeat(numbers[:, None], 50, axis=1), -numbers\n"
    "print('ready', flush=True)\n"
    "sys.stdin.read()\n"
    "with core_cache.TextCache(folder, 'some@model') as cache:\n"
    "    values, notes = core_cache.through_cache(cache, texts, '', spell, lambda found: None)\n"
    "print(json.dumps([values.tolist(), notes.tolist()]))\n"
)


def test_processes_share_a_cache(tmp_path):
    parts = [(0, 600), (0, 600), (200, 800), (799, 199, -1), (400, 1000)]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SPELL, str(tmp_path), *map(str, part)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in parts
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    # All at once, from an empty folder.
    for process in running:
        process.stdin.close()
    for process, part in zip(running, parts, strict=True):
        with process.stdout:
            values, notes = json.loads(process.stdout.read())
        assert process.wait() == 0
        assert values == [[number] * 50 for number in range(*part)]
        assert notes == [-number for number in range(*part)]
    assert kept(tmp_path) == {"some": 1000}


@pytest.mark.slow
def test_processes_that_encode_share_a_cache(tiny_model, tmp_path):
    texts = [f"text {chr(97 + i % 26)} number {i}" for i in range(300)]
    program = (
        "import json, sys\n"
        "from metrics._core import core_cache, core_encoder\n"
        "core_cache.TEXTS_AT_ONCE = 20\n"
        "texts = json.loads(sys.argv[1])\n"
        "settings = core_encoder.EncoderSettings(sys.argv[2], device='cpu', cache_dir=sys.argv[3])\n"
        "found = core_encoder.encode(texts, settings)\n"
        "print(json.dumps(found.embeddings.tolist()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        preloaded.start(program, json.dumps(part), tiny_model, tmp_path, env=environment)
        for part in (texts[:200], texts[100:])
    ]
    expected = encode(texts, tiny_model, device="cpu").embeddings
    for wait, own in zip(running, (expected[:200], expected[100:]), strict=True):
        done = wait()
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout.splitlines()[-1])
        np.testing.assert_allclose(found, own, atol=1e-6)
    assert kept(tmp_path) == {"local": 300}


WRITE = (
    "import sys\n"
    "import numpy as np\n"
    "from pathlib import Path\n"
    "from metrics._core.core_cache import TextCache, text_key\n"
    "with TextCache(Path(sys.argv[1]), 'some@model') as cache:\n"
    "    for part in range(int(sys.argv[2]), 1_000_000):\n"
    "        numbers = np.arange(2000 * part, 2000 * (part + 1))\n"
    "        keys = [text_key(str(i), '') for i in numbers]\n"
    "        cache.put(keys, np.repeat(numbers[:, None], 300, axis=1), numbers)\n"
    "        print(part, flush=True)\n"
)


def test_a_kill_in_the_middle_of_writing_leaves_a_cache(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    whole, killed_in_a_batch = 0, 0
    # Seldom a batch is done between a look and a kill.
    for _ in range(20):
        if killed_in_a_batch == 2:
            break
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(tmp_path), str(whole)], env=environment, stdout=subprocess.PIPE
        )
        process.stdout.readline()
        while not list(tmp_path.glob("*-journal")):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        # What is left of a batch that was not done.
        killed_in_a_batch += bool(list(tmp_path.glob("*-journal")))
        with TextCache(tmp_path, "some@model") as cache:
            while True:
                numbers = np.arange(2000 * whole, 2000 * (whole + 1))
                found, values, notes = cache.get([text_key(str(i), "") for i in numbers])
                assert len(found) in (0, 2000)
                if not len(found):
                    break
                np.testing.assert_array_equal(values[np.argsort(found)], np.repeat(numbers[:, None], 300, axis=1))
                np.testing.assert_array_equal(notes[np.argsort(found)], numbers)
                whole += 1
    assert killed_in_a_batch == 2
    assert whole >= 2


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
    with pytest.raises(ValueError, match=rf"cache_dir: {re.escape(str(path))} is damaged, .* Delete it"):
        encode(texts, tiny_model, cache_dir=tmp_path)
    path.unlink()
    result = encode(texts, tiny_model, cache_dir=tmp_path)
    np.testing.assert_allclose(result.embeddings, encode(texts, tiny_model).embeddings, atol=1e-6)


def test_a_bit_that_has_turned_is_an_error(tiny_model, tmp_path):
    embeddings = encode(["a b c", "d e f"], tiny_model, cache_dir=tmp_path).embeddings
    path = cache_file(tmp_path)
    content, value = bytearray(path.read_bytes()), embeddings[1].tobytes()
    content[content.index(value) + 9] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged, .* \(a checksum does not fit\)"):
        encode(["d e f"], tiny_model, cache_dir=tmp_path)


def test_an_empty_file_is_a_cache_that_was_never_begun(tiny_model, tmp_path):
    encode(["a b"], tiny_model, cache_dir=tmp_path)
    path = cache_file(tmp_path)
    path.write_bytes(b"")
    encode(["a b"], tiny_model, cache_dir=tmp_path)
    assert kept(tmp_path) == {"local": 1}


def put_with_little_space(folder, numbers):
    import resource

    # No file may grow beyond: to a program, the error of a disk that is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    core_cache.TEXTS_AT_ONCE = 200
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = put_numbers(folder, numbers)
    return values, [str(one.message) for one in caught]


def put_numbers(folder, numbers):
    with TextCache(folder, "some@model") as cache:
        return through_cache(
            cache,
            list(map(str, numbers)),
            "",
            lambda part: (np.repeat(np.array(part, dtype=float)[:, None], 100, axis=1), np.zeros(len(part), dtype=int)),
            lambda found: None,
        )[0].tolist()


def test_a_full_disk_is_said_once_and_changes_no_value(tmp_path):
    numbers = range(2000)
    values, messages = in_a_fork(put_with_little_space, tmp_path, numbers)
    assert values == [[number] * 100 for number in numbers]
    (message,) = messages
    assert re.search(r"cache_dir: .* could not be written to \(.*\)\. .* are correct, but not cached", message)
    # What was kept before is there, and the others come when there is space.
    assert 200 <= kept(tmp_path)["some"] < 2000
    assert put_numbers(tmp_path, numbers) == values
    assert kept(tmp_path) == {"some": 2000}


def test_a_cache_that_others_hold_is_said_and_changes_no_score(tiny_model, monkeypatch, tmp_path):
    expected = encode(TEXTS, tiny_model, cache_dir=tmp_path).embeddings
    monkeypatch.setattr(core_cache, "_LOCK_SECONDS", 0.1)
    other = sqlite3.connect(cache_file(tmp_path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.warns(UserWarning, match=r"could not be written to \(database is locked\)"):
        result = encode([*TEXTS, "new"], tiny_model, cache_dir=tmp_path)
    np.testing.assert_array_equal(result.embeddings[:-1], expected)
    other.execute("COMMIT")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ValueError, match=r"cache_dir: .* could not be used \(database is locked\)"):
        encode(TEXTS, tiny_model, cache_dir=tmp_path)
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


def look_up_or_put(folder, text):
    with TextCache(folder, "some@model") as cache:
        found, values, _ = cache.get([text_key(text, "")])
        if len(found):
            return values.tolist()
        cache.check_writable()
        return cache.put([text_key(text, "")], np.ones((1, 3)), np.zeros(1, dtype=int))


def test_a_folder_without_permission_serves_what_it_has(tmp_path_factory):
    # pytest's own folders cannot be entered by another user.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        assert look_up_or_put(folder, "a") is None
        folder.chmod(0o555)
        cache_file(folder).chmod(0o444)
        assert in_a_fork(as_nobody, look_up_or_put, folder, "a") == [[1.0, 1.0, 1.0]]
        error = in_a_fork(as_nobody, look_up_or_put, folder, "b")
        assert isinstance(error, ValueError)
        assert re.search(rf"cache_dir cannot be written to: no permission for '{re.escape(name)}", str(error))
        cache_file(folder).unlink()
        error = in_a_fork(as_nobody, look_up_or_put, folder, "a")
        assert re.search(rf"cache_dir cannot be written to: no permission for '{re.escape(name)}", str(error))
        error = in_a_fork(as_nobody, look_up_or_put, folder / "new", "a")
        assert re.search(rf"cache_dir '{re.escape(name)}/new' cannot be created: Permission denied", str(error))
        folder.chmod(0o755)


def test_another_kind_of_file(tiny_model, tmp_path):
    encode(["a"], tiny_model, cache_dir=tmp_path)
    with closing(sqlite3.connect(cache_file(tmp_path))) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(ValueError, match=r"is damaged, or not a cache of this version \(its version is 7\)"):
        encode(["a"], tiny_model, cache_dir=tmp_path)


def test_a_python_without_sqlite(tiny_model, monkeypatch, tmp_path):
    monkeypatch.setattr(core_cache, "sqlite3", None)
    with pytest.raises(ImportError, match="cache_dir needs sqlite3"):
        encode(["a"], tiny_model, cache_dir=tmp_path)
    encode(["a"], tiny_model)


# Wrong input.


@every_metric
@pytest.mark.parametrize(
    ("cache_dir", "error", "message"),
    [
        (3, TypeError, r"cache_dir must be the path of a folder\. Got int 3"),
        (True, TypeError, r"cache_dir must be the path of a folder\. Got bool True"),
        ("", TypeError, r"cache_dir must be the path of a folder\. Got str ''"),
        (b"x", TypeError, r"cache_dir must be the path of a folder\. Got bytes b'x'"),
        (__file__, ValueError, r"cache_dir must be the path of a folder\. Got '.*test_cache.py', which is a file"),
        (f"{__file__}/below", ValueError, r"cache_dir '.*test_cache.py/below' cannot be created: Not a directory"),
    ],
)
def test_bad_paths(load, name, cache_dir, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(**INPUTS[name], cache_dir=cache_dir)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("vendi_embed", {"kernel": "ngram"}, "kernel='ngram' compares words"),
        ("vendi_embed", {"embeddings": np.eye(len(TEXTS))}, "embeddings are given"),
        ("chamfer_diversity", {"embeddings": np.eye(len(TEXTS))}, "embeddings are given"),
        ("probeval", {"vectors": {"pot": [1.0, 0.0], "dog": [0.0, 1.0]}}, "no encoder runs"),
        ("probeval", {"clustering": "none", "matcher": "wordnet"}, "no encoder runs"),
        ("gruen", {"components": ["non_redundancy"]}, "neither focus='embedding' nor, without parity, grammaticality"),
    ],
)
def test_where_it_has_no_effect_it_is_refused(load, tmp_path, monkeypatch, name, settings, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"cache_dir has no effect where {reason}.*: leave it out\. Got .*'cache'"):
        load(name).compute(**INPUTS[name], **settings, cache_dir="cache")
    assert not (tmp_path / "cache").exists()


def test_a_home_folder_is_found(tiny_model, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    encode(["a"], tiny_model, cache_dir="~/deep/cache")
    assert kept(tmp_path / "deep/cache") == {"local": 1}
