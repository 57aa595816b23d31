"""What the tests share: the loaded metrics, the real data where it is, and tiny models."""

import copy
import gc
import hashlib
import json
import os
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub.constants import HF_HOME

ROOT = Path(__file__).resolve().parents[1]
METRICS = ROOT / "metrics"
# Five sets of our own words, of different sizes, with a repeated text.
SETS = [
    ["The couple take their dog to the park.", "A cat sleeps on the sofa.", "The park is closed.", "A dog barks."],
    ["Rain fell on the roof all night.", "All night the rain fell on the roof."],
    ["She sings.", "She sings.", "He paints small boats in bright colours."],
    ["one two three four five six", "six five four three two one", "seven", "eight nine"],
    ["We can't go: it's closed.", "Closed today, isn't it?"],
]
TEXTS = [" ".join(members) for members in SETS]
# The answers of a model and of people to five questions.
QUESTIONS = [
    (["a kettle", "a pot", "a pot", "tea"], ["a kettle"] * 5 + ["a pot"] * 2 + ["a cup"]),
    (["by bus", "on foot", "by the bus", "by train"], ["by bus"] * 3 + ["on foot"] * 3 + ["a taxi"]),
    (["a dog"] * 6, ["a dog"] * 4 + ["a cat"] * 4),
    (["in the garden", "at home", "somewhere else"], ["at home"] * 6 + ["in the kitchen", "in a garden"]),
    (["to read", "to read books", "to sleep", "to eat"], ["to sleep"] * 2 + ["to read"] * 2 + ["to eat"] * 4),
]


# Each property of tests/test_invariants.py holds for all metrics, by what they score; a new one falls under them.
def metrics_of(*kinds):
    """Name the metrics that score sets, texts or questions; all metrics without a kind."""
    import text_metrics

    return [name for name in text_metrics.METRICS if not kinds or text_metrics.load(name).items in kinds]


def items_of(metric):
    """Give five of what a metric scores: sets, texts, or answers to questions."""
    return copy.deepcopy({"sets": SETS, "texts": TEXTS, "questions": QUESTIONS}[metric.items])


def inputs_of(metric, items):
    """Give items as arguments of `compute` and `add_batch`."""
    if metric.items != "questions":
        return {"predictions": items}
    return {"predictions": [answers for answers, _ in items], "references": [people for _, people in items]}


def pytest_configure(config):
    if config.getoption("dist", "no") != "no":
        # This process shares the tests out to others and runs none, so that it needs none of their imports. The others
        # send it warnings by the names of their classes, some of which loaded metrics define.
        # It must exist already: a folder that is missing when it is first searched is never searched again.
        modules = Path(os.environ.get("HF_MODULES_CACHE", f"{HF_HOME}/modules"))
        modules.mkdir(parents=True, exist_ok=True)
        sys.path.append(str(modules))
        return
    # Imports make many objects that stay: the search for garbage among them would take a third of the collection.
    gc.disable()
    import hypothesis

    # A deadline would fail tests on a busy machine.
    hypothesis.settings.register_profile("no deadline", deadline=None)
    hypothesis.settings.load_profile("no deadline")


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


# Files that take longest come first, so that no process is left alone with one at the end.
LONGEST = (
    "test_spaces",
    "test_ray",
    "test_spaces_requests",
    "test_hosts",
    "test_kills",
    "test_report_page",
    "test_package",
    "test_forks",
    "test_examples",
)


def pytest_collection_modifyitems(items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))


def encode(texts, *args, **settings):
    """Return the embeddings of texts by the core, with the settings of the encoder as arguments."""
    from text_metrics.metrics._core import core_encoder

    return core_encoder.encode(texts, core_encoder.EncoderSettings(*args, **settings))[0]


@pytest.fixture(scope="session")
def load():
    """Load a metric by path, once in a session."""
    import evaluate

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
    import numpy as np

    return np.random.default_rng(7)


@pytest.fixture
def set_block_rows(monkeypatch):
    """Return a function that sets how many rows the core holds at a time."""
    from text_metrics.metrics._core.core_inputs import LIMITS

    return lambda n: monkeypatch.setattr(LIMITS, "block_rows", n)


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


@pytest.fixture(scope="session")
def gruen_models(tmp_path_factory):
    """Settings for the models of the paper's backbone: real ones, with random weights, two layers of 32 units."""
    return build_gruen_models(tmp_path_factory.mktemp("gruen"), seed=0)


@pytest.fixture(scope="session")
def other_gruen_models(tmp_path_factory):
    return build_gruen_models(tmp_path_factory.mktemp("gruen"), seed=1)


def build_gruen_models(folder, seed):
    import torch
    from transformers import (
        AlbertConfig,
        AlbertForPreTraining,
        BertConfig,
        BertForMaskedLM,
        BertForSequenceClassification,
        BertTokenizer,
    )

    torch.manual_seed(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(words), encoding="utf-8")
    tokenizer = BertTokenizer(vocab=str(vocabulary))
    # Weights that are far from zero, so that no two sentences score alike.
    sizes = {
        "vocab_size": len(words),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 160,
        "initializer_range": 0.3,
    }
    models = {
        "lm_model": BertForMaskedLM(BertConfig(**sizes)),
        "cola_model": BertForSequenceClassification(BertConfig(**sizes, num_labels=2)),
        "sop_model": AlbertForPreTraining(AlbertConfig(**sizes, embedding_size=16)),
    }
    teach_to_copy(models["lm_model"], len(words))
    for name, model in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return {"backbone": "bert", **{name: str(folder / name) for name in models}}


@pytest.fixture(scope="session")
def nli_model(gruen_models, tmp_path_factory):
    """The classifier of gruen's backbone with a class named "entailment": a folder."""
    folder = tmp_path_factory.mktemp("nli") / "model"
    shutil.copytree(gruen_models["cola_model"], folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {"0": "other", "1": "entailment"}, "label2id": {"other": 0, "entailment": 1}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def teach_to_copy(model, vocabulary):
    """Train a language model to say what it reads: a loss near 4 would make every likelihood 0."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        ids = torch.randint(vocabulary, (16, 16))
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    model.eval()


class HubHandler(BaseHTTPRequestHandler):
    """The part of the Hub's file protocol that a download of one model, or one Space, uses."""

    folder: Path
    kind: str
    repo: str
    revision = "0123456789abcdef0123456789abcdef01234567"

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        path = self.path.split("?")[0]
        prefix = "" if self.kind == "models" else f"/{self.kind}"
        names = [file.relative_to(self.folder).as_posix() for file in self.folder.rglob("*") if file.is_file()]
        files = {
            f"{prefix}/{self.repo}/resolve/{revision}/{name}": self.folder / name
            for revision in (self.revision, "main")
            for name in names
        }
        if path.startswith(f"/api/{self.kind}/{self.repo}/tree/"):
            entries = [{"type": "file", "path": name, "size": 1, "oid": name} for name in names]
            body, content = json.dumps(entries).encode(), "application/json"
        elif path.startswith(f"/api/{self.kind}/{self.repo}"):
            info = {"id": self.repo, "sha": self.revision, "siblings": [{"rfilename": name} for name in names]}
            body, content = json.dumps(info).encode(), "application/json"
        elif path in files:
            body, content = files[path].read_bytes(), "application/octet-stream"
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.revision)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub_server():
    """Start servers that hold a folder as a repository of the Hub: "models" or "spaces"."""
    servers = []

    def start(folder, kind, repo):
        handler = type("Handler", (HubHandler,), {"folder": Path(folder), "kind": kind, "repo": repo})
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
