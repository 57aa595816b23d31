"""The default encoder, of torch's own modules: equal to sentence-transformers, without importing it, and adapted."""

import json

import numpy as np
import pytest
import torch

from tests import programs
from tests.conftest import METRICS, SETS, encode
from text_metrics.metrics._core import core_encoder, core_minilm, core_models, core_windows

SENTENCE = "The old man walks in the park with a dog."
TEXTS = [
    *(text for members in SETS for text in members),
    "",
    " \t\n",
    "a",
    "It's 3.5 % of €1,000 — “naïve” café, Ångström, ﬁne, İstanbul!",
    "[CLS] is read as a word, and so are [SEP], [MASK] and [UNK].",
    "null \0 and soft\xadhyphen, zero\u200bwidth, \ufffd",
    "😀🎉 a party 👩‍👩‍👧",
    "我喜欢在公园里散步。",
    "Привет, как дела? مرحبا 개가",
    "x" * 150,
    # 256 tokens, special ones included, one less and one more; and a text that is cut.
    *("dog " * n for n in (253, 254, 255)),
    f"{SENTENCE} " * 60,
]


@pytest.fixture(scope="module")
def files():
    return core_models.find_model("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def minilm(files):
    return core_minilm.load_minilm(files, "cpu")


@pytest.fixture(scope="module")
def sentence_transformer(files):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(files.path), device="cpu")


@pytest.fixture(scope="module")
def bert(files):
    from transformers import BertModel

    return BertModel.from_pretrained(files.path, add_pooling_layer=False).eval()


@pytest.mark.filterwarnings("ignore:.* different texts are")
def test_each_text_is_embedded_as_by_sentence_transformers(minilm, sentence_transformer):
    expected = sentence_transformer.encode(TEXTS, batch_size=4, show_progress_bar=False)
    for batch_size in (1, None):
        encoded = encode(TEXTS, batch_size=batch_size, device="cpu", long_texts="cut")
        assert encoded.dtype == np.float32
        np.testing.assert_allclose(encoded, expected, atol=1e-6)
    np.testing.assert_allclose(minilm.encode(TEXTS[-3:]), expected[-3:], atol=1e-6)


def test_tokens_are_those_of_transformers(minilm, sentence_transformer):
    tokenizer = sentence_transformer.tokenizer
    for room in (20, 254):
        ours = core_windows.split_windows(minilm.tokenizer, TEXTS, room)
        theirs = core_windows.split_windows(tokenizer, TEXTS, room)
        assert ours.parts == theirs.parts
        assert ours.lengths.tolist() == theirs.lengths.tolist()
    expected = tokenizer(TEXTS, truncation=True, max_length=256)["input_ids"]
    assert [core_minilm.cut_tokens(encoding.ids) for encoding in minilm.tokenizer.encode_batch(TEXTS)] == expected


def test_adapters_are_added_to_the_weights_of_bert(minilm, bert):
    generator = torch.Generator().manual_seed(0)
    modules = [
        "encoder.layer.0.attention.self.query",
        "encoder.layer.2.attention.self.key",
        "encoder.layer.2.attention.self.value",
        "encoder.layer.3.attention.output.dense",
        "encoder.layer.4.intermediate.dense",
        "encoder.layer.5.output.dense",
    ]
    adapters = {}
    for module in modules:
        n_out, n_in = bert.get_submodule(module).weight.shape
        adapters[f"{module}.up"] = torch.randn(n_out, 4, generator=generator).half() / 10
        adapters[f"{module}.down"] = torch.randn(4, n_in, generator=generator).half() / 10
    before = minilm.encode(["a dog"])
    adapted = minilm.with_adapters(adapters)

    ids, mask = core_minilm.pad_tokens([[101, 1037, 3899, 102], [101, 1037, 102]], "cpu")
    with torch.no_grad():
        actual = core_minilm.hidden_states(adapted.network, ids, mask)
        for module in modules:
            up, down = (adapters[f"{module}.{part}"].float() for part in ("up", "down"))
            bert.get_submodule(module).weight += up @ down
        expected = bert(input_ids=ids, attention_mask=mask).last_hidden_state
    is_token = mask.bool()
    torch.testing.assert_close(actual[is_token], expected[is_token], atol=1e-5, rtol=0)
    # The encoder that it is made from is as before, and shares the weights that have no adapter.
    np.testing.assert_array_equal(minilm.encode(["a dog"]), before)
    shared = [name for name, weight in adapted.network.state_dict().items()
              if weight.data_ptr() == minilm.network.state_dict()[name].data_ptr()]  # fmt: skip
    assert len(minilm.network.state_dict()) - len(shared) == 5


def test_gruen_shares_the_encoder(load, monkeypatch):
    registry = core_models.model_registry()
    monkeypatch.setattr(registry, "models", {})
    load("gruen").compute(predictions=["The dog walks in the park. It barks at a cat."], device="cpu")
    load("vendi_embed").compute(predictions=["a", "b"], device="cpu")
    encoders = [model for model in registry.models.values() if hasattr(model, "with_adapters")]
    (graded,) = [loaded.model for key, loaded in registry.models.items() if key[0] == "gruen compact"]
    assert len(encoders) == 1
    words = encoders[0].network["words"].weight
    assert words.data_ptr() == graded.network["words"].weight.data_ptr()


def test_the_encoder_has_no_gradients_and_leaves_the_random_state(files, monkeypatch):
    monkeypatch.setattr(core_models.model_registry(), "models", {})
    before = torch.get_rng_state()
    loaded = core_encoder.load_encoder(files, "cpu")
    assert not any(parameter.requires_grad for parameter in loaded.network.parameters())
    assert torch.equal(torch.get_rng_state(), before)


# What metrics import until their first scores, and the memory after each in kB, without pages of files: how many of
# these are mapped depends on the system.
FIRST = """
import json, pathlib, re, sys
import text_metrics
calls, unneeded = map(json.loads, sys.argv[1:])
metrics = {name: text_metrics.load(name) for name in calls}
text_metrics.load("self_bleu").compute(predictions=["a b", "a c"])
assert not {"torch", "transformers", "scipy.stats"} & sys.modules.keys()
status = pathlib.Path("/proc/self/status")
for name, given in calls.items():
    metrics[name].compute(**given)
    used = int(re.search(r"RssAnon:\\s*(\\d+)", status.read_text())[1]) if status.exists() else 0
    print(json.dumps([name, sorted(sys.modules.keys() & set(unneeded)), used]))
"""
UNNEEDED = ["sentence_transformers", "transformers", "torch._dynamo", "sympy", "matplotlib"]
# Texts of several lengths, which are padded.
CALLS = {
    "vendi_embed": {"predictions": ["a dog", "the old house", "a bird"]},
    "chamfer_diversity": {"predictions": ["a dog", "the old house", "a bird"]},
    "semantic_entropy": {"predictions": [["a dog", "the old dog", "a bird"]]},
    "probeval": {"predictions": [["pot", "a kettle"]], "references": [["a pot", "kettle", "spoon"]]},
    "gruen": {"predictions": ["The dog walks in the park. It barks at a cat."]},
}


def test_the_default_path_imports_no_library_of_models():
    done = programs.run(FIRST, json.dumps(CALLS), json.dumps(UNNEEDED), cwd=METRICS.parent)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()[-len(CALLS) :]]
    assert [row[:2] for row in rows] == [[name, []] for name in CALLS]
    # All metrics share the encoder.
    assert max(used for _, _, used in rows) < 400_000
