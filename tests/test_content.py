"""`model="content"`: the default encoder with adapters that learned what people call the same content."""

import itertools
import json
import shutil
import sys
import zipfile
from pathlib import Path

import evaluate
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import text_metrics
from scripts.training import content as training
from tests.conftest import METRICS, SETS, inputs_of, items_of
from text_metrics.metrics._core import core_content, core_encoder, core_models

# What a metric needs besides the model.
SETTINGS = {"semantic_entropy": {"same": 0.8}}
# Replies to a context that say one thing, and replies that say five, of our own words.
CONTEXT = "Are you coming to the lake on Sunday?"
ONE_THING = ["I can't make it.", "No, sorry.", "I won't be there.", "That does not work for me.", "Count me out."]
FIVE_THINGS = [
    "I can't make it.",
    "Who else is invited?",
    "Only if you drive.",
    "The lake is frozen over.",
    "Let us meet on Monday instead.",
]


def embed(texts, model="content"):
    return core_encoder.encode(texts, core_encoder.EncoderSettings(model=model)).rows.astype(float)


def metrics_with_a_model():
    classes = {name: type(text_metrics.load(name)) for name in text_metrics.METRICS}
    return [name for name, metric in classes.items() if "model" in metric.settings.declared()]


@pytest.mark.parametrize("name", metrics_with_a_model())
def test_every_metric_that_takes_a_model_takes_it_from_a_copied_folder(load, name, tmp_path):
    given = inputs_of(load(name), items_of(load(name))) | SETTINGS.get(name, {})
    expected = load(name).compute(**given, model="content")
    assert f"content@{core_content.CONTENT_SHA256[:8]}" in expected["signature"]
    copied = evaluate.load(str(shutil.copytree(METRICS / name, tmp_path / name)))
    assert copied.compute(**given, model="content")["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert "content" not in load(name).compute(**given)["signature"]


def test_embeddings_are_those_of_a_network_with_the_products_of_the_adapters_added():
    """The same by transformers, which shares no code with the encoder here."""
    import torch
    from transformers import AutoTokenizer, BertModel

    folder = core_models.find_model("all-MiniLM-L6-v2").path
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    tensors = load_file(METRICS / "_core" / "content.safetensors")
    with torch.no_grad():
        for name in {name.rpartition(".")[0] for name in tensors}:
            change = tensors[f"{name}.up"].astype(np.float32) @ tensors[f"{name}.down"].astype(np.float32)
            bert.get_submodule(name.removeprefix("adapters.")).weight += torch.tensor(change)
        texts = [CONTEXT, *FIVE_THINGS]
        tokens = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
        mask = tokens["attention_mask"][..., None]
        mean = (bert(**tokens).last_hidden_state * mask).sum(1) / mask.sum(1)
    assert embed(texts) == pytest.approx(torch.nn.functional.normalize(mean).numpy(), abs=2e-6)


def test_it_tells_one_thing_in_five_ways_from_five_things_better_than_the_default(load):
    def gap(model):
        sets = {"predictions": [ONE_THING, FIVE_THINGS], "contexts": [CONTEXT] * 2}
        one, five = load("vendi_embed").compute(**sets, model=model)["scores"]
        return five - one

    assert gap("content") > gap("all-MiniLM-L6-v2") + 0.1


def test_cosines_of_other_texts_stay_what_they_are():
    texts = list(dict.fromkeys(itertools.chain(*SETS)))
    now, before = (embed(texts, model) @ embed(texts, model).T for model in ("content", "all-MiniLM-L6-v2"))
    assert np.abs(now - before).max() > 1e-3
    assert np.sqrt(np.square(now - before).mean()) < 0.1


def test_embeddings_are_cached_apart_from_those_of_the_default(load, tmp_path):
    vendi = load("vendi_embed")
    expected = {model: vendi.compute(predictions=SETS, model=model) for model in ("content", "all-MiniLM-L6-v2")}
    for model in [*expected, *expected]:
        again = vendi.compute(predictions=SETS, model=model, cache_dir=tmp_path)
        assert again["scores"] == pytest.approx(expected[model]["scores"], abs=1e-6)
    assert len(list(tmp_path.glob("*.sqlite"))) == 2


def test_texts_in_another_script_are_warned_of(load):
    with pytest.warns(Warning, match="1 of 2 different texts .* script"):
        load("vendi_embed").compute(predictions=["Ein Hund.", "собака в парке"], model="content")


def test_counts_of_meanings_need_a_threshold_of_their_own(load):
    with pytest.raises(ValueError, match="same"):
        load("semantic_entropy").compute(predictions=SETS, model="content")


def test_a_folder_of_its_name_is_another_model(monkeypatch, tmp_path):
    (tmp_path / "content").mkdir()
    monkeypatch.chdir(tmp_path)
    assert core_content.find_encoder("content").identity == core_content.CONTENT_IDENTITY
    with pytest.raises(ValueError, match="not a saved model"):
        core_content.find_encoder("./content")


@pytest.fixture
def copied(tmp_path):
    """A copy of a metric, whose weights can be taken away."""
    folder = shutil.copytree(METRICS / "chamfer_diversity", tmp_path / "chamfer_diversity")
    script = folder / "chamfer_diversity.py"
    # Code that differs has its own folder in evaluate's cache; comments make no difference.
    script.write_text(script.read_text(encoding="utf-8") + f"\n_PLACE = {str(tmp_path)!r}\n", encoding="utf-8")
    return folder


def test_lost_and_changed_weights_are_an_error_that_says_what_to_do(copied):
    metric, original = evaluate.load(str(copied)), copied / "content.safetensors"
    copy = Path(sys.modules[type(metric).__module__].__file__).with_name("content.safetensors")
    expected = metric.compute(predictions=SETS, model="content")["scores"]
    # Another file beside the code, of the same form: it is copied again from the original.
    save_file({name: 2 * tensor for name, tensor in load_file(original).items()}, copy)
    assert metric.compute(predictions=SETS, model="content")["scores"] == expected
    save_file({name: 2 * tensor for name, tensor in load_file(copy).items()}, original)
    copy.unlink()
    with pytest.raises(ValueError, match=r"content\.safetensors, which are missing: .* is another file"):
        metric.compute(predictions=SETS, model="content")
    original.unlink()
    with pytest.raises(ValueError, match='pass model="all-MiniLM-L6-v2"'):
        metric.compute(predictions=SETS, model="content")
    assert metric.compute(predictions=SETS)["scores"] != expected


def test_a_metric_without_its_weights_loads_and_scores_by_the_default(copied):
    (copied / "content.safetensors").unlink()
    assert evaluate.load(str(copied)).compute(predictions=SETS)["chamfer_diversity"] > 0


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """The files that training reads, with few sets of our own words: the folder of METRICS_TEST_DATA."""
    data = tmp_path / "data"
    people = []
    for place in ("lake", "park", "cinema", "market", "museum", "beach", "zoo", "library"):
        for texts, is_different in ((ONE_THING, False), (FIVE_THINGS, True)):
            row = {"context": CONTEXT.replace("lake", place), "texts": [text.replace("lake", place) for text in texts]}
            people.append(row | {"task": "prompt", "different_content": is_different})
    files = {"people_sets/mcdiv_train.jsonl": people}
    files |= {f"diversity_sets/{kind}.jsonl": [{"sentences": SETS[0]}] * 2 for kind in ("a/original", "b/original")}
    for name, rows in files.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (data / "text").mkdir()
    (data / "text" / "coco_captions_20k.txt").write_text("\n".join(itertools.chain(*SETS)), encoding="utf-8")
    with zipfile.ZipFile(data / "text" / "movie_reviews.zip", "w") as archive:
        archive.writestr("neg/1.txt", " ".join(itertools.chain(*SETS, *SETS)))
    monkeypatch.setenv("METRICS_TEST_DATA", str(tmp_path))
    settings = training.SETTINGS.read_text(encoding="utf-8")
    for old, new in {
        "parts = 4": "parts = 2",
        '["gpt", "llama3", "qwen2"]': '["a", "b"]',
        '["original", "para_a", "para_b", "para_c", "nonsensical"]': '["original"]',
        "concepts = 100": "concepts = 2",
        "captions = 400": "captions = 3",
        "words = 100": "words = 5",
        "sets = 32": "sets = 4",
        "others = 8": "others = 3",
    }.items():
        assert settings.count(old) == 1, old
        settings = settings.replace(old, new)
    (tmp_path / "settings.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def test_training_writes_adapters_that_the_encoder_takes_and_writes_them_again(own_data, monkeypatch):
    for name in ("first", "second"):
        words = ["content.py", str(own_data / name), "--settings", str(own_data / "settings.toml")]
        monkeypatch.setattr(sys, "argv", words)
        training.main()
    assert (own_data / "first").read_bytes() == (own_data / "second").read_bytes()
    with safe_open(own_data / "first", framework="np") as file:
        accuracies = json.loads(file.metadata()["oca"])
    assert all(0.5 <= share <= 1 for of_scores in accuracies.values() for share in of_scores.values())
    trained, shipped = load_file(own_data / "first"), load_file(METRICS / "_core" / "content.safetensors")
    assert {name: tensor.shape for name, tensor in trained.items()} == {
        name: tensor.shape for name, tensor in shipped.items()
    }
    files = core_models.ModelFiles(own_data / "first", "content@own")
    encoder = core_content.load_content(files, "cpu")
    one, five = (mean_cosine(encoder, texts) for texts in (ONE_THING, FIVE_THINGS))
    default = core_encoder.load_encoder(core_models.find_model("all-MiniLM-L6-v2"), "cpu")
    assert one - five > mean_cosine(default, ONE_THING) - mean_cosine(default, FIVE_THINGS) + 0.02


def mean_cosine(encoder, texts):
    rows = encoder.encode(texts)
    return (rows @ rows.T)[np.triu_indices(len(texts), 1)].mean()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([1, 2, 3, 4], 0.75), ([1, 3, 2, 4], 1.0), ([4, 2, 3, 1], 0.5), ([1, 1, 1, 1], 0.5), ([1, 2, 2, 2], 0.75)],
)
def test_the_optimal_accuracy_is_that_of_the_best_threshold(scores, expected):
    different = np.array([0, 1, 0, 1])
    assert training.optimal_accuracy(different, np.array(scores, dtype=float)) == expected
    # By trying all thresholds.
    best = max(np.mean((np.array(scores) > threshold) == different) for threshold in (0, *scores))
    assert best == expected
