"""What the tests share: the loaded metrics, the real data where it is, and tiny models."""

import json
import os
from pathlib import Path

import evaluate
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
METRICS = ROOT / "metrics"
SET_METRICS = ("vendi_embed", "chamfer_diversity", "self_bleu")

# Five sets of our own words, of different sizes, with a repeated text.
SETS = [
    ["The couple take their dog to the park.", "A cat sleeps on the sofa.", "The park is closed.", "A dog barks."],
    ["Rain fell on the roof all night.", "All night the rain fell on the roof."],
    ["She sings.", "She sings.", "He paints small boats in bright colours."],
    ["one two three four five six", "six five four three two one", "seven", "eight nine"],
    ["We can't go: it's closed.", "Closed today, isn't it?"],
]


@pytest.fixture(scope="session")
def load():
    """Load a metric by path, once in a session."""
    loaded = {}

    def load_once(name):
        if name not in loaded:
            loaded[name] = evaluate.load(str(METRICS / name))
        return loaded[name]

    return load_once


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data and goldens that METRICS_TEST_DATA names."""
    folder = os.environ.get("METRICS_TEST_DATA")
    if not folder:
        pytest.skip("METRICS_TEST_DATA is not set: it names the folder with the real data and the goldens")
    return Path(folder)


@pytest.fixture(scope="session")
def examples():
    """Small sets of our own words, with the values of the original packages."""
    return json.loads((ROOT / "tests/data/ngram_examples.json").read_text(encoding="utf-8"))["sets"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Build a real sentence-transformers model with random weights, two layers of 32 units: a folder."""
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=0)


@pytest.fixture(scope="session")
def other_tiny_model(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1)


def build_tiny_model(folder, seed):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    folder.mkdir(parents=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(words), encoding="utf-8")
    bert = folder / "bert"
    BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(bert)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(bert)
    transformer = Transformer(str(bert), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(config.hidden_size)], device="cpu").save(str(folder / "model"))
    return folder / "model"
