"""What the tests share: the loaded metrics, the real data where it is, and tiny models."""

import copy
import gc
import hashlib
import json
import os
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
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
# The last one has a sentence that is longer than models read.
TEXTS = [" ".join(members) for members in SETS]
TEXTS[-1] += " He go to school every days with his sister, who like it " + "very much and " * 16 + "so on."
# The answers of a model and of people to five questions.
QUESTIONS = [
    (["a kettle", "a pot", "a pot", "tea"], ["a kettle"] * 5 + ["a pot"] * 2 + ["a cup"]),
    (["by bus", "on foot", "by the bus", "by train"], ["by bus"] * 3 + ["on foot"] * 3 + ["a taxi"]),
    (["a dog"] * 6, ["a dog"] * 4 + ["a cat"] * 4),
    (["in the garden", "at home", "somewhere else"], ["at home"] * 6 + ["in the kitchen", "in a garden"]),
    (["to read", "to read books", "to sleep", "to eat"], ["to sleep"] * 2 + ["to read"] * 2 + ["to eat"] * 4),
]


def own_data(name):
    """Read a JSON file of tests/data, of our own words."""
    return json.loads((ROOT / "tests/data" / name).read_text(encoding="utf-8"))


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


# Files that share a server of processes, which takes long to start.
TOGETHER = (
    {"test_spaces", "test_spaces_build", "test_spaces_requests"},
    {"test_kills", "test_rewards", "test_samples", "test_trainer"},
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Share the tests out by files, some of which go to one process."""
    from xdist.scheduler import LoadFileScheduling

    class ByServers(LoadFileScheduling):
        def _split_scope(self, nodeid):
            stem = Path(nodeid.split("::")[0]).stem
            return next((str(sorted(names)) for names in TOGETHER if stem in names), stem)

    return ByServers(config, log) if config.getoption("dist") == "loadfile" else None


# Files that take longest come first, so that no process is left alone with one at the end.
LONGEST = (
    "test_spaces",
    "test_ray",
    "test_kills",
    "test_hosts",
    "test_invariants",
    "test_report",
    "test_package",
)


def pytest_collection_modifyitems(items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))


def encode(texts, *args, **settings):
    """Return the embeddings of texts by the core, with the settings of the encoder as arguments."""
    from text_metrics.metrics._core import core_encoder

    return core_encoder.encode(texts, core_encoder.EncoderSettings(*args, **settings))[0]


def approx(value, tolerance=1e-6):
    """Expect a value, or all that is in lists and dictionaries, with its floats up to a tolerance."""
    if isinstance(value, dict):
        return {key: approx(entry, tolerance) for key, entry in value.items()}
    if isinstance(value, list):
        return [approx(entry, tolerance) for entry in value]
    return pytest.approx(value, abs=tolerance) if isinstance(value, float) else value


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run commands in a folder of their own: each call returns an exit code, what was printed, and stderr."""
    from tests.commands import run_command

    monkeypatch.chdir(tmp_path)
    return lambda *words: (run_command(monkeypatch, *words), *capsys.readouterr())


@pytest.fixture
def encoded_texts(monkeypatch):
    """The texts that the default model reads, as it happens."""
    from text_metrics.metrics._core import core_encoder, core_models

    model = core_encoder.load_encoder(core_models.find_model(core_models.DEFAULT_MODEL), "cpu")
    texts_read = []
    encode = model.encode

    def record(texts, **settings):
        texts_read.extend(texts)
        return encode(texts, **settings)

    monkeypatch.setattr(model, "encode", record)
    return texts_read


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
def probeval(load):
    return load("probeval")


@pytest.fixture(scope="session")
def cfc(probeval):
    """Two questions of our own words in the format of Commonsense Frame Completion."""
    data = ROOT / "tests/data"
    return probeval.from_cfc(data / "probeval_cfc_targets.jsonl", data / "probeval_cfc_predictions.json")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data and goldens that METRICS_TEST_DATA names."""
    folder = os.environ.get("METRICS_TEST_DATA")
    if not folder:
        pytest.skip("METRICS_TEST_DATA is not set: it names the folder with the real data and the goldens")
    return Path(folder)


@pytest.fixture(params=["examples", "goldens"])
def original_scores(request):
    """Sets of texts, with the values of the original packages: of our own words, and those of a paper."""
    if request.param == "examples":
        return own_data("ngram_examples.json")["sets"]
    path = request.getfixturevalue("shared_data") / "goldens/ngram_goldens.json"
    return [row | {"texts": row["sentences"]} for row in json.loads(path.read_text(encoding="utf-8"))]


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(7)


def limits_of(metric):
    """Return the sizes of what a loaded metric computes at a time; each has a core of its own."""
    return sys.modules[type(metric).__module__.rpartition(".")[0] + ".core"].LIMITS


@pytest.fixture
def set_block_rows(load, monkeypatch):
    """Return a function that sets how many rows the core, and each metric, holds at a time."""
    from text_metrics.metrics._core.core_inputs import LIMITS

    def set_rows(n):
        for limits in (LIMITS, *(limits_of(load(name)) for name in metrics_of())):
            monkeypatch.setattr(limits, "block_rows", n)

    return set_rows


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Build a real sentence-transformers model with random weights, two layers of 32 units: a folder."""
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=0)


@pytest.fixture(scope="session")
def other_tiny_model(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1)


# Of each tiny BERT.
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def build_tokenizer(folder, *marks):
    """Write the vocabulary of a BERT that knows letters and some marks; returns its tokenizer."""
    from transformers import BertTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *marks]
    for form in ("{}", "##{}"):
        words += [form.format(letter) for letter in letters]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    return BertTokenizer(vocab=str(folder / "vocab.txt"))


def build_tiny_model(folder, seed):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = build_tokenizer(folder)
    tokenizer.save_pretrained(folder / "bert")
    BertModel(BertConfig(**SIZES, vocab_size=len(tokenizer), max_position_embeddings=64)).save_pretrained(
        folder / "bert"
    )
    transformer = Transformer(str(folder / "bert"), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(32)], device="cpu").save(str(folder / "model"))
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
    )

    torch.manual_seed(seed)
    tokenizer = build_tokenizer(folder, ".", ",")
    # Weights that are far from zero, so that no two sentences score alike.
    sizes = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 160, "initializer_range": 0.3}
    models = {
        "lm_model": BertForMaskedLM(BertConfig(**sizes)),
        "cola_model": BertForSequenceClassification(BertConfig(**sizes, num_labels=2)),
        "sop_model": AlbertForPreTraining(AlbertConfig(**sizes, embedding_size=16)),
    }
    teach_to_copy(models["lm_model"], len(tokenizer))
    for name, model in models.items():
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return {"backbone": "bert", **{name: str(folder / name) for name in models}}


# The classes of tiny models of pairs, by kind.
PAIR_CLASSES = {"score": ["score"], "two": ["other", "same"], "nli": ["Contradiction", "neutral", "entailment"]}


@pytest.fixture(scope="session")
def pair_models(gruen_models, tmp_path_factory):
    """Models of pairs of texts with random weights, by kind: folder, model and tokenizer."""
    return {
        kind: build_pair_model(tmp_path_factory.mktemp(kind), gruen_models["cola_model"], classes, seed)
        for seed, (kind, classes) in enumerate(PAIR_CLASSES.items())
    }


@pytest.fixture(scope="session")
def nli_model(gruen_models, tmp_path_factory):
    """The folder of a model of two classes, of which one is named "entailment"."""
    folder = tmp_path_factory.mktemp("nli")
    build_pair_model(folder, gruen_models["cola_model"], ["other", "entailment"], seed=3)
    return str(folder)


def build_pair_model(folder, source, classes, seed):
    import torch
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(source)
    config = AutoConfig.from_pretrained(source, id2label=dict(enumerate(classes)), num_labels=len(classes))
    model = BertForSequenceClassification(config).eval()
    # Else, the scores of all pairs are nearly equal.
    model.classifier.weight.data *= 30
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model, tokenizer


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


class HubHandler(SimpleHTTPRequestHandler):
    """The part of the Hub's file protocol that a download of one model, or one Space, uses."""

    revision = "0123456789abcdef0123456789abcdef01234567"
    files: dict[str, Path]

    def translate_path(self, path):
        return str(self.files.get(path.split("?")[0], "absent"))

    def end_headers(self):
        self.send_header("ETag", f'"{hashlib.sha1(self.path.encode()).hexdigest()}"')
        self.send_header("X-Repo-Commit", self.revision)
        super().end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def hub_server(tmp_path_factory):
    """Start servers that hold a folder as a repository of the Hub: "models" or "spaces"."""
    servers = []

    def start(folder, kind, repo):
        names = [file.relative_to(folder).as_posix() for file in Path(folder).rglob("*") if file.is_file()]
        api = f"/api/{kind}/{repo}"
        prefix = "" if kind == "models" else f"/{kind}"
        files = {}
        info = {"id": repo, "sha": HubHandler.revision, "siblings": [{"rfilename": name} for name in names]}
        tree = [{"type": "file", "path": name, "size": 1, "oid": name} for name in names]
        answers = tmp_path_factory.mktemp("hub")
        (answers / "info.json").write_text(json.dumps(info), encoding="utf-8")
        (answers / "tree.json").write_text(json.dumps(tree), encoding="utf-8")
        for revision in (HubHandler.revision, "main"):
            files |= {f"{prefix}/{repo}/resolve/{revision}/{name}": Path(folder) / name for name in names}
            files |= dict.fromkeys((api, f"{api}/revision/{revision}"), answers / "info.json")
            files[f"{api}/tree/{revision}"] = answers / "tree.json"
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (HubHandler,), {"files": files})))
        # Else, its shutdown takes half a second.
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
