"""`model="content"`: the default encoder with a linear map to what people call the same content; and its maker."""

import itertools
import json
import shutil
import sys
import tomllib
from pathlib import Path

import evaluate
import numpy as np
import pandas
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import text_metrics
from scripts.training import content as training
from tests.conftest import METRICS, SETS, inputs_of, items_of
from text_metrics.metrics._core import core_content, core_encoder, core_models

SHIPPED = METRICS / "_core" / core_content.CONTENT_FILE
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


def test_embeddings_are_those_of_the_default_times_the_matrix():
    weight = load_file(SHIPPED)["weight"].astype(float)
    # The last one is longer than the encoder reads.
    texts = [CONTEXT, *FIVE_THINGS, "The lake is frozen over. Nobody goes there. " * 40]
    expected = embed(texts, "all-MiniLM-L6-v2") @ weight.T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert embed(texts) == pytest.approx(expected, abs=2e-6)
    assert np.abs(expected - embed(texts, "all-MiniLM-L6-v2")).max() > 0.01


def test_the_encoder_is_that_of_the_default():
    files = core_content.find_content(), core_models.find_model("all-MiniLM-L6-v2")
    content, default = (core_encoder.load_encoder(found, "cpu") for found in files)
    assert content is default


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
    for model in 2 * list(expected):
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


def written_sets(chance, n=48, d=16):
    """Sets that say one thing if the first half of the numbers are alike; the second half, twice as large, is noise."""
    same = torch.arange(n) % 2
    things = torch.randn(n, 5, d // 2, generator=chance)
    things = torch.where(same.bool()[:, None, None], things[:, :1], things)
    noise = 2 * torch.randn(n, 5, d // 2, generator=chance)
    texts = torch.nn.functional.normalize(torch.cat([things, noise], dim=-1), dim=-1)
    contexts = torch.nn.functional.normalize(torch.randn(n, d, generator=chance), dim=-1)
    return training.WrittenSets(texts, contexts, same.float())


@pytest.fixture
def recipe():
    settings = tomllib.loads(training.SETTINGS.read_text(encoding="utf-8"))
    return settings | {"batch": 16, "rate": 2e-2, "epochs": 20, "parts": 2, "penalties": [0.1, 1.0, 100.0]}


def test_a_map_learns_what_tells_sets_apart_and_the_penalty_holds_it(recipe):
    chance = torch.Generator().manual_seed(1)
    seen, unseen = written_sets(chance), written_sets(chance)
    free, held = (training.fit_map(seen, penalty, recipe) for penalty in (0.1, 100.0))
    before, after = (np.mean(training.judge(sets)) for sets in (unseen, unseen.mapped(free)))
    assert after > before + 0.05
    # It keeps what tells, and drops the noise.
    assert free[:8, :8].diagonal().mean() > free[8:, 8:].diagonal().mean() + 0.2
    assert (held - torch.eye(16)).norm() < 0.1 < (free - torch.eye(16)).norm()
    assert torch.equal(training.fit_map(seen, 0.1, recipe), free)


def test_the_penalty_is_the_largest_that_is_as_good_on_contexts_that_a_map_did_not_see(recipe):
    sets = written_sets(torch.Generator().manual_seed(1))
    parts = np.arange(48) // 2 % 2
    means = {}
    for penalty in recipe["penalties"]:
        judged = []
        for part in range(2):
            weight = training.fit_map(sets.take(parts != part), penalty, recipe)
            judged.append(training.judge(sets.take(parts == part).mapped(weight)))
        means[penalty] = np.mean(judged)
    assert means[0.1] > means[1.0] > means[100.0]
    for tolerance, expected in ((0.0, 0.1), (means[0.1] - means[1.0] + 1e-9, 1.0)):
        assert training.choose_penalty(sets, parts, recipe | {"tolerance": tolerance}) == expected


def test_sets_of_a_context_are_in_one_part(recipe):
    contexts = pandas.Series([f"context {i // 2}" for i in range(40)])
    parts = training.parts_of(contexts, recipe | {"parts": 4})
    assert (parts[::2] == parts[1::2]).all()
    assert np.bincount(parts).tolist() == [10, 10, 10, 10]


def test_a_context_is_taken_out_as_metrics_do(load):
    chance = torch.Generator().manual_seed(1)
    sets = written_sets(chance, n=2)
    expected = load("vendi_embed").compute(
        predictions=[list("abcde")] * 2,
        embeddings=sets.texts.flatten(0, 1).numpy(),
        context_embeddings=sets.contexts.numpy(),
    )
    assert training.vendi(sets.without_contexts()) == pytest.approx(expected["scores"], abs=1e-5)


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """The file that training reads, with few sets of our own words: the folder of METRICS_TEST_DATA."""
    people = []
    for place in ("lake", "park", "cinema", "market", "museum", "beach", "zoo", "library"):
        for texts, is_different in ((ONE_THING, False), (FIVE_THINGS, True)):
            row = {"context": CONTEXT.replace("lake", place), "texts": [text.replace("lake", place) for text in texts]}
            people.append(row | {"task": "prompt", "different_content": is_different})
    file = tmp_path / "data" / "people_sets" / "mcdiv_train.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in people), encoding="utf-8")
    monkeypatch.setenv("METRICS_TEST_DATA", str(tmp_path))
    settings = training.SETTINGS.read_text(encoding="utf-8")
    for old, new in {"parts = 4": "parts = 2", "penalties = [0.001, 0.002, ": "penalties = ["}.items():
        assert settings.count(old) == 1, old
        settings = settings.replace(old, new)
    (tmp_path / "settings.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def test_training_writes_a_map_that_the_encoder_takes_and_writes_it_again(own_data, monkeypatch):
    n_threads = torch.get_num_threads()
    for name in ("first", "second"):
        words = ["content.py", str(own_data / name), "--settings", str(own_data / "settings.toml")]
        monkeypatch.setattr(sys, "argv", words)
        training.main()
    torch.set_num_threads(n_threads)
    assert (own_data / "first").read_bytes() == (own_data / "second").read_bytes()
    penalties = tomllib.loads(training.SETTINGS.read_text(encoding="utf-8"))["penalties"]
    for path in (own_data / "first", SHIPPED):
        with safe_open(path, framework="np") as file:
            assert float(file.metadata()["penalty"]) in penalties
            assert file.get_tensor("weight").shape == (384, 384)
            assert file.get_tensor("weight").dtype == np.float16
    files = core_models.ModelFiles(own_data / "first", "content@own")
    gaps = []
    for map_rows in (lambda rows: rows, lambda rows: core_content.map_embeddings(rows, files)):
        one, five = (map_rows(embed(texts, "all-MiniLM-L6-v2")) for texts in (ONE_THING, FIVE_THINGS))
        gaps.append(mean_cosine(one) - mean_cosine(five))
    assert gaps[1] > gaps[0] + 0.02


def mean_cosine(rows):
    return (rows @ rows.T)[np.triu_indices(len(rows), 1)].mean()
