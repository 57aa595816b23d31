"""gruen's backbones: the paper's on tiny models, parity with the original, and the search for the weights."""

import itertools
import json
import os
import shutil
import sys
from pathlib import Path

import evaluate
import nltk
import numpy as np
import pytest

from tests import programs
from tests.conftest import METRICS
from tests.references import gruen as reference

GRUEN = METRICS / "gruen"
WEIGHTS = "gruen_compact.safetensors"
TEXTS = [
    "The doctor told me the news. She was kind, and she took her time.",
    "The baker opened her shop at six. The baker opened her shop at six this morning. Nobody came.",
    "The cat sleeps on the warm stove. Stock prices fell sharply on Monday.",
    "The doctor told me the news.",
]
WORDS = {
    word: np.random.default_rng(i).standard_normal(4)
    for i, word in enumerate(["doctor", "told", "news", "kind", "took", "baker", "opened", "shop", "came", "cat"])
}


@pytest.fixture(scope="session")
def one_by_one(gruen_models):
    return reference.OneByOne(gruen_models["lm_model"], gruen_models["cola_model"])


@pytest.fixture
def punkt(tmp_path, monkeypatch):
    """Bring NLTK data with a Punkt model trained on a few sentences."""
    from nltk.tokenize.punkt import PunktTrainer, save_punkt_params

    text = "The doctor came at six. She met Mr. Lee there. Mr. Lee was ill. He got up. It rained. " * 20
    place = tmp_path / "tokenizers" / "punkt_tab" / "english"
    place.mkdir(parents=True)
    # NLTK writes nowhere else.
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    save_punkt_params(PunktTrainer(text).get_params(), dir=str(place))


# The paper's models.


def test_sentences_score_as_one_by_one(load, gruen_models, one_by_one):
    settings = {"components": ["grammaticality"], "details": True, **without_sop(gruen_models)}
    result = load("gruen").compute(predictions=TEXTS, **settings)
    for details in result["details"]:
        for sentence in details["sentences"]:
            loss = one_by_one.loss(sentence["text"])
            assert sentence["likelihood"] == pytest.approx(np.exp(-0.5 * np.exp(loss)), abs=1e-5)
            assert sentence["acceptability"] == pytest.approx(one_by_one.acceptability(sentence["text"]), abs=1e-4)
        means = []
        for name in ("likelihood", "acceptability"):
            means.append(np.mean([sentence[name] for sentence in details["sentences"]]))
        assert details["grammaticality"] == pytest.approx(np.clip(sum(means) / 8 + 0.5, 0, 1))


def test_order_is_alberts(load, gruen_models):
    import torch
    from transformers import AlbertForPreTraining, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gruen_models["sop_model"])
    model = AlbertForPreTraining.from_pretrained(gruen_models["sop_model"]).eval()
    result = load("gruen").compute(predictions=TEXTS, details=True, **gruen_models)
    for details in result["details"]:
        texts = [sentence["text"] for sentence in details["sentences"]]
        expected = []
        for first, second in itertools.pairwise(texts):
            with torch.no_grad():
                logits = model(**tokenizer(first, second, return_tensors="pt")).sop_logits
            expected.append(torch.softmax(logits, -1)[0, 0].item())
        assert [pair["probability"] for pair in details["order"]] == pytest.approx(expected, abs=1e-5)
        assert [pair["sentences"] for pair in details["order"]] == [[i, i + 1] for i in range(len(expected))]
        doubts = [max(0, 1 - 2 * probability) for probability in expected]
        assert details["coherence"] == pytest.approx(-0.1 * np.mean(doubts) if doubts else 0.0, abs=1e-6)
    assert result["coherence"] == pytest.approx(np.mean([details["coherence"] for details in result["details"]]))


@pytest.mark.filterwarnings("error")
def test_long_sentences_are_read_in_windows(load, gruen_models):
    sentence = "the cat sat on a mat and " * 30
    settings = {"components": ["grammaticality"], **without_sop(gruen_models)}
    scores = load("gruen").compute(predictions=[sentence, sentence + "xylophone"], **settings)["scores"]
    # The end changes the score, though the model reads 160 tokens.
    assert scores[0] != scores[1]


def test_long_pairs_are_cut_with_a_warning(load, gruen_models):
    long = "the cat sat on a mat and " * 30
    settings = {"components": ["coherence"], "backbone": "bert", "sop_model": gruen_models["sop_model"]}
    with pytest.warns(UserWarning, match="1 of 1 pairs .* sop_model"):
        result = load("gruen").compute(predictions=[f"{long} so. {long} so."], **settings)
    assert -0.1 <= result["coherence"] <= 0


@pytest.fixture(scope="module")
def pretraining_model(gruen_models, tmp_path_factory):
    """A model that predicts whether a sentence is the next one, and orders none: a folder."""
    from transformers import AutoConfig, AutoTokenizer, BertForPreTraining

    folder = tmp_path_factory.mktemp("pretraining")
    BertForPreTraining(AutoConfig.from_pretrained(gruen_models["cola_model"])).save_pretrained(folder)
    AutoTokenizer.from_pretrained(gruen_models["cola_model"]).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("parameter", "wrong", "message"),
    [
        ("lm_model", "cola_model", "lm_model: .* has no trained weights"),
        ("cola_model", "lm_model", "cola_model: .* has no trained weights"),
        ("sop_model", "cola_model", "sop_model"),
        ("sop_model", "pretraining_model", "sop_model"),
        ("sop_model", None, "sop_model"),
        ("lm_model", "no-one/nothing", "lm_model"),
        ("lm_model", 5, "lm_model"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(load, gruen_models, pretraining_model, parameter, wrong, message):
    folder = (gruen_models | {"pretraining_model": pretraining_model}).get(wrong, wrong)
    components = ["coherence"] if parameter == "sop_model" else ["grammaticality"]
    with pytest.raises((TypeError, ValueError), match=message):
        load("gruen").compute(predictions=TEXTS, components=components, **gruen_models | {parameter: folder})


# Parity.


def test_parity_is_the_original(load, gruen_models, one_by_one, punkt):
    texts = [*TEXTS, "", "A fine day.New words at 3.5 percent"]
    settings = {**without_sop(gruen_models), "parity": True, "vectors": WORDS, "details": True}
    with pytest.warns(UserWarning, match="1 of 6 texts"):
        result = load("gruen").compute(predictions=texts, **settings)
    split = nltk.tokenize.PunktTokenizer("english")
    for text, score, details in zip(texts, result["scores"], result["details"], strict=True):
        sentences = [s for s in split.tokenize(reference.normalize(text)) if len(s.strip(".").split()) > 1]
        assert [sentence["text"] for sentence in details["sentences"]] == sentences
        grammaticality = one_by_one.grammaticality(sentences)
        assert details["grammaticality"] == pytest.approx(grammaticality, abs=1e-5)
        flags = sum(len(flags) for _, _, flags in reference.redundant_pairs(sentences))
        assert details["non_redundancy"] == pytest.approx(-0.1 * flags)
        assert score == pytest.approx(np.clip(grammaticality - 0.1 * flags + details["focus"], 0, 1), abs=1e-5)
    assert result["scores"][4] == 0.625
    assert result["coherence"] is None
    assert "|parity:True|splitter:punkt|" in result["signature"]


def test_parity_cuts_long_sentences_as_the_original_does(load, gruen_models, one_by_one, punkt):
    sentence = "the cat sat on a mat and " * 12
    settings = {**without_sop(gruen_models), "parity": True, "components": ["grammaticality"]}
    with pytest.warns(UserWarning, match="1 of 1 different sentences"):
        result = load("gruen").compute(predictions=[sentence], details=True, **settings)
    acceptability = result["details"][0]["sentences"][0]["acceptability"]
    assert acceptability == pytest.approx(one_by_one.acceptability(sentence), abs=1e-4)


def test_parity_without_punkt_says_how_to_get_it(load, monkeypatch, tmp_path):
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(LookupError, match="NLTK's Punkt"):
        load("gruen").compute(predictions=TEXTS, parity=True, components=["non_redundancy"])


# The weights of the compact backbone.


SENTENCE = ["The cat sleeps on the stove."]
PROGRAM = (
    "import evaluate, json, sys\n"
    f"print(json.dumps(evaluate.load('someone/gruen').compute(predictions={SENTENCE})['scores']))"
)


def test_the_weights_come_from_the_space_that_the_code_came_from(load, hub_server, tmp_path):
    server = hub_server(GRUEN, "spaces", "someone/gruen")
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
        "HF_MODULES_CACHE": str(tmp_path / "cache"),
    }
    done = programs.run(PROGRAM, cwd=tmp_path, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx(load("gruen").compute(predictions=SENTENCE)["scores"], abs=1e-6)
    assert len(list((tmp_path / "cache").rglob(f"someone--gruen/**/{WEIGHTS}"))) == 1


@pytest.fixture
def copied(tmp_path):
    """A copy of the module, whose weights can be taken away."""
    folder = shutil.copytree(GRUEN, tmp_path / "gruen")
    script = folder / "gruen.py"
    # Code that differs has its own folder in evaluate's cache; comments make no difference.
    script.write_text(script.read_text(encoding="utf-8") + f"\n_PLACE = {str(tmp_path)!r}\n", encoding="utf-8")
    return folder


def test_the_weights_are_found_from_a_relative_path_and_then_from_elsewhere(load, copied, tmp_path, monkeypatch):
    expected = load("gruen").compute(predictions=SENTENCE)["scores"]
    monkeypatch.chdir(tmp_path)
    assert evaluate.load("gruen").compute(predictions=SENTENCE)["scores"] == expected
    # The recorded source of the code is the relative path, which does not exist here.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert evaluate.load(str(copied)).compute(predictions=SENTENCE)["scores"] == expected


def test_lost_and_changed_weights_are_an_error_that_says_what_to_do(copied):
    metric = evaluate.load(str(copied))
    original = copied / WEIGHTS
    copy = Path(sys.modules[type(metric).__module__].__file__).with_name(WEIGHTS)
    # Corrupted beside the code: it is copied again from the original.
    copy.write_bytes(b"something else")
    assert metric.compute(predictions=TEXTS)["gruen"] > 0
    original.write_bytes(b"something else")
    assert metric.compute(predictions=TEXTS)["gruen"] > 0
    copy.unlink()
    with pytest.raises(ValueError, match=rf"{WEIGHTS}, which are missing: .* is another file"):
        metric.compute(predictions=TEXTS)
    original.unlink()
    with pytest.raises(ValueError, match="backbone='bert'"):
        metric.compute(predictions=TEXTS)
    # Components without weights still work.
    assert metric.compute(predictions=TEXTS, components=["non_redundancy", "focus"])["grammaticality"] is None


def without_sop(models):
    return {name: value for name, value in models.items() if name != "sop_model"}
