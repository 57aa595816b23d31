"""BERT without padding: the numbers of sentence-transformers, and those of gruen's models as transformers runs them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from metrics._core import core_encoder, core_unpadded
from metrics.gruen import gruen, gruen_bert, gruen_compact
from tests.conftest import METRICS, SETS

DEFAULT = "all-MiniLM-L6-v2"
RAGGED = [
    "",
    " ",
    "A dog.",
    "  Blanks\tand\nlines,  CAPITALS, café, 東京, 👍 ",
    "One two three.",
    "un" * 90,
    "word " * 300,
    *(text for members in SETS for text in members),
    "word " * 260,
]


@pytest.fixture(scope="module")
def default_encoder():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(core_encoder.find_model(DEFAULT).path), device="cpu")


@pytest.fixture(scope="module")
def expected(default_encoder):
    return default_encoder.encode(RAGGED)


@pytest.fixture(scope="module")
def tiny_encoder(tiny_model):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(tiny_model), device="cpu").eval()


def letters(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(list("abcdefghij"), rng.integers(0, 30))) + f" {i:04d}" for i in range(n)]


def embed(fast, texts):
    ids, lengths, _ = fast.tokenize(texts)
    return fast.embed(ids, lengths)


def cosines(left, right):
    left, right = left.astype(np.float64), right.astype(np.float64)
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.filterwarnings("ignore:.*longer than the 256 tokens")
@pytest.mark.parametrize(("precision", "near"), [("float32", 2e-6), (None, 3e-4)])
@pytest.mark.parametrize("batch_size", [None, 1, 7, 64])
def test_the_default_model_gives_what_sentence_transformers_gives(expected, batch_size, precision, near):
    assert core_encoder.load_model(DEFAULT, precision, "cpu")[0].fast is not None
    encoded = core_encoder.encode([*RAGGED, RAGGED[2]], precision=precision, batch_size=batch_size, device="cpu")
    np.testing.assert_allclose(encoded.embeddings, [*expected, expected[2]], atol=near)
    assert encoded.precision == "float32"


def test_one_text_and_a_thousand(tiny_model, tiny_encoder):
    texts = letters(1000)
    expected = tiny_encoder.encode(texts)
    np.testing.assert_allclose(core_encoder.encode(texts, tiny_model, device="cpu").embeddings, expected, atol=1e-5)
    np.testing.assert_allclose(
        core_encoder.encode(texts[:1], tiny_model, device="cpu").embeddings, expected[:1], atol=1e-5
    )


def test_more_texts_than_are_tokenized_at_once(tiny_model, tiny_encoder, monkeypatch):
    monkeypatch.setattr(core_encoder, "_TOKENIZED_AT_ONCE", 7)
    monkeypatch.setattr(type(core_encoder.load_model(tiny_model, None, "cpu")[0].fast), "tokens_at_once", 50)
    texts = [*letters(100), "a " * 100]
    with pytest.warns(UserWarning, match=r"1 of 101 different texts are longer than the 64 tokens .*longest has 102"):
        found = core_encoder.encode(texts, tiny_model, device="cpu").embeddings
    np.testing.assert_allclose(found, tiny_encoder.encode(texts), atol=1e-5)


@pytest.mark.parametrize("precision", [None, "bfloat16", "int8"])
def test_threads_may_encode_at_once(tiny_model, precision):
    parts = [letters(200, seed) for seed in range(4)]
    alone = [core_encoder.encode(part, tiny_model, precision=precision, device="cpu").embeddings for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda part: core_encoder.encode(part, tiny_model, precision=precision, device="cpu"), parts)
        )
    for encoded, one in zip(found, alone, strict=True):
        np.testing.assert_allclose(encoded.embeddings, one, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*longer than the 256 tokens")
@pytest.mark.parametrize(("precision", "least", "mean"), [("bfloat16", 0.9999, 0.99998), ("int8", 0.98, 0.99)])
def test_less_precision_is_near_and_no_matter_of_the_batch(expected, precision, least, mean):
    encoded = core_encoder.encode(RAGGED, precision=precision, device="cpu")
    found = cosines(encoded.embeddings, expected)
    assert (found.min() >= least, found.mean() >= mean) == (True, True)
    # It is rounded: these are not the numbers of float32.
    assert np.abs(encoded.embeddings - expected).max() > 1e-4
    assert encoded.precision == precision
    alone = core_encoder.encode(RAGGED, precision=precision, batch_size=1, device="cpu").embeddings
    assert cosines(alone, encoded.embeddings).min() >= 1 - 1e-5


def test_int8_is_signed(load):
    texts = SETS[0]
    exact = load("vendi_embed").compute(predictions=texts)
    result = load("vendi_embed").compute(predictions=texts, precision="int8", device="cpu")
    assert "precision:int8" in result["signature"]
    assert result["vendi_embed"] == pytest.approx(exact["vendi_embed"], rel=0.02)
    assert result["vendi_embed"] != exact["vendi_embed"]
    assert load("vendi_embed").compute(predictions=texts) == exact


@pytest.mark.parametrize(
    "pooling", ["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("mean", "max")]
)
def test_any_pooling_and_what_follows_it(tiny_encoder, pooling):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Pooling

    pool = Pooling(32, pooling_mode=pooling)
    modules = [tiny_encoder[0], pool, Dense(pool.pooling_output_dimension, 16), Normalize()]
    encoder = SentenceTransformer(modules=modules, device="cpu").eval()
    fast = core_unpadded.unpadded_encoder(encoder, "float32")
    texts = letters(50)
    np.testing.assert_allclose(embed(fast, texts), encoder.encode(texts), atol=1e-5)


def test_settings_of_a_model_are_kept_to(tiny_encoder):
    from sentence_transformers import SentenceTransformer

    def form(**settings):
        encoder = SentenceTransformer(modules=list(tiny_encoder), device="cpu", **settings).eval()
        return encoder, core_unpadded.unpadded_encoder(encoder, "float32")

    limit = tiny_encoder.max_seq_length
    try:
        tiny_encoder.max_seq_length = 9
        encoder, fast = form()
        texts = letters(20)
        np.testing.assert_allclose(embed(fast, texts), encoder.encode(texts), atol=1e-5)
        tiny_encoder.max_seq_length = 65
        assert form()[1] is None
    finally:
        tiny_encoder.max_seq_length = limit
    assert form(prompts={"query": "q "})[1] is not None
    assert form(prompts={"query": "q "}, default_prompt_name="query")[1] is None
    assert form(truncate_dim=8)[1] is None


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"is_decoder": True}])
def test_another_bert_is_not_known(change):
    from transformers import BertConfig, BertModel

    sizes = {"vocab_size": 60, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    assert core_unpadded.is_known(BertModel(BertConfig(**sizes)))
    assert not core_unpadded.is_known(BertModel(BertConfig(**sizes, **change)))
    assert not core_unpadded.is_known(BertModel(BertConfig(**sizes)).bfloat16())


def test_another_architecture_goes_the_usual_way(tiny_model, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    folder = tmp_path / "distil"
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    tokenizer.save_pretrained(folder)
    DistilBertModel(
        DistilBertConfig(vocab_size=len(tokenizer), dim=32, n_layers=1, n_heads=2, hidden_dim=32)
    ).save_pretrained(folder)
    encoder = SentenceTransformer(modules=[Transformer(str(folder), max_seq_length=64), Pooling(32)], device="cpu")
    encoder.save(str(tmp_path / "model"))
    loaded, _ = core_encoder.load_model(tmp_path / "model", None, "cpu")
    assert loaded.fast is None
    texts = letters(20)
    found = core_encoder.encode(texts, tmp_path / "model", device="cpu").embeddings
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-5)
    assert core_encoder.load_model(tmp_path / "model", "bfloat16", "cpu")[0].precision == "bfloat16"
    with pytest.raises(
        ValueError, match=r"precision='int8' is for encoders that are a BERT with pooling\. Model local@"
    ):
        core_encoder.encode(texts, tmp_path / "model", precision="int8", device="cpu")


def test_what_does_not_agree_is_not_taken(tiny_encoder, monkeypatch):
    attend = core_unpadded.UnpaddedBert._attend
    monkeypatch.setattr(core_unpadded.UnpaddedBert, "_attend", lambda self, *parts: attend(self, *parts) * 1.1)
    assert core_unpadded.unpadded_encoder(tiny_encoder, "float32") is None


@pytest.mark.parametrize(("precision", "near"), [("float32", 1e-6), ("bfloat16", 1e-4), ("int8", 1e-3)])
def test_without_torchs_own_kernels_the_numbers_are_the_same(default_encoder, precision, near, monkeypatch):
    monkeypatch.setattr(core_unpadded, "has_kernels", lambda bits: False)
    texts = [text for text in RAGGED if len(text) < 100]
    found = embed(core_unpadded.unpadded_encoder(default_encoder, precision), texts)
    monkeypatch.setattr(core_unpadded, "_has_kernel", lambda precision: False)
    plain = embed(core_unpadded.unpadded_encoder(default_encoder, precision), texts)
    assert cosines(found, plain).min() >= 1 - near


def test_the_kernel_is_found_out_once():
    core_unpadded._has_kernel.cache_clear()
    for precision in ("float32", "bfloat16", "int8"):
        assert core_unpadded._has_kernel(precision) in (True, False)
    assert core_unpadded._has_kernel.cache_info().currsize == 3


SENTENCES = [
    "It rains.",
    "The old man walked slowly along the river and looked at the boats.",
    "Dog the sofa on sleeps.",
    "He go to school every days with his sister, who like it " + "very much and " * 60 + "so on.",
    "x",
]


@pytest.fixture
def compact(monkeypatch):
    """Make a compact backbone; with `padded`, as transformers runs its body."""

    def make(precision=None, padded=False):
        with monkeypatch.context() as patched:
            patched.setattr(core_encoder.model_registry(), "models", {})
            if padded:
                patched.setattr(gruen_compact, "unpad_body", lambda model, precision: False)
            weights = Path(METRICS) / "gruen" / gruen_compact.WEIGHTS_FILE
            backbone = gruen_compact.CompactBackbone(weights, gruen.WEIGHTS_SHA256, precision=precision, device="cpu")
        assert (type(backbone._loaded.model.bert).__name__ == "UnpaddedBert") is not padded
        return backbone

    return make


def test_the_compact_backbone_scores_as_with_padding(compact):
    fast, padded = compact("float32"), compact(padded=True)
    for found, expected in zip(fast.score_sentences(SENTENCES), padded.score_sentences(SENTENCES), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert fast.find_suspects(SENTENCES) == padded.find_suspects(SENTENCES)


def test_the_compact_backbone_scores_nearly_so_by_default(compact):
    found, expected = (compact(precision).score_sentences(SENTENCES) for precision in (None, "float32"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=5e-4)


@pytest.mark.parametrize(("precision", "near"), [("bfloat16", 0.03), ("int8", 0.1)])
def test_the_compact_backbone_in_less_precision(compact, precision, near):
    exact, rounded = compact().score_sentences(SENTENCES), compact(precision)
    scores = rounded.score_sentences(SENTENCES)
    np.testing.assert_allclose(scores.acceptability, exact.acceptability, atol=near)
    assert np.abs(scores.loss - exact.loss).max() > 1e-4
    assert rounded.identity["precision"] == precision
    if precision == "int8":
        alone = [rounded.score_sentences([sentence]) for sentence in SENTENCES]
        for name in ("likelihood", "acceptability"):
            one_by_one = np.concatenate([getattr(score, name) for score in alone])
            np.testing.assert_allclose(one_by_one, getattr(scores, name), atol=1e-4)


@pytest.mark.parametrize("likelihood", ["one-pass", "pseudo"])
def test_the_papers_backbone_scores_as_with_padding(gruen_models, monkeypatch, likelihood):
    settings = {name: gruen_models[name] for name in ("lm_model", "cola_model")}
    sentences = ["a b c", "d e f g h i j", "a", "k l m n o p q r s t"]

    def score(precision=None):
        with monkeypatch.context() as patched:
            patched.setattr(core_encoder.model_registry(), "models", {})
            backbone = gruen_bert.BertBackbone(
                ("grammaticality",), likelihood=likelihood, precision=precision, device="cpu", **settings
            )
        return backbone.score_sentences(sentences), backbone

    found, backbone = score()
    for loaded in (backbone._lm, backbone._cola):
        assert type(loaded.model.bert).__name__ == "UnpaddedBert"
    rounded, backbone = score("int8")
    assert backbone.identity["precision"] == "int8"
    monkeypatch.setattr(gruen_bert, "unpad_body", lambda model, precision: False)
    expected, backbone = score()
    assert type(backbone._lm.model.bert).__name__ == "BertModel"
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(rounded.loss, expected.loss, rtol=0.05)
    assert (rounded.loss != expected.loss).any()
    with pytest.raises(
        ValueError, match=r"lm_model: precision='int8' is for a BERT on the CPU\. Got a BertForMaskedLM"
    ):
        score("int8")
