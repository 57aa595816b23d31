"""What the benchmark measures: inputs of size n, the sides that score them, and CASES, which pairs the two.

The captions are those of $METRICS_TEST_DATA/data/text/coco_captions_20k.txt; without it, sentences from templates.

To add a case: a function that makes an input of size n, one for each side that scores it, and an entry in CASES.
"""

import inspect
import itertools
import json
import math
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


N_CAPTIONS = 20_000
DIMENSIONS = 384
TEMPLATE = (
    ("a", "the", "one", "another", "some"),
    ("young", "old", "small", "large", "brown", "white", "happy", "tired", "wet", "lonely"),
    ("man", "woman", "dog", "cat", "child", "horse", "bird", "couple", "surfer", "cook", "player", "bear"),
    ("sits", "stands", "waits", "plays", "sleeps", "walks", "looks around", "rests", "jumps", "eats"),
    ("in", "near", "behind", "in front of", "next to", "beside"),
    ("a park", "the street", "a kitchen", "the beach", "a field", "the table", "a train", "the lake", "a house"),
)


# Inputs of size n.


def captions_file() -> Path | None:
    """Name the file of captions; None if they are to come from templates."""
    folder = os.environ.get("METRICS_TEST_DATA")
    return Path(folder) / "data" / "text" / "coco_captions_20k.txt" if folder else None


@cache
def base_captions() -> list[str]:
    """Read the captions, or make as many."""
    file = captions_file()
    if file:
        return file.read_text(encoding="utf-8").splitlines()[:N_CAPTIONS]
    shape = tuple(map(len, TEMPLATE))
    drawn = np.random.default_rng(0).choice(math.prod(shape), N_CAPTIONS, replace=False)
    words = [np.array(slot)[places] for slot, places in zip(TEMPLATE, np.unravel_index(drawn, shape), strict=True)]
    return [" ".join(parts) for parts in zip(*words, strict=True)]


def captions(n: int) -> list[str]:
    """Take n captions; after the first 20 000, copies that end with a word of their own."""
    base = base_captions()
    copies = (base if k == 0 else [f"{caption} copy{k}" for caption in base] for k in range(-(-n // len(base))))
    return [caption for copy in copies for caption in copy][:n]


def tokenized_captions(n: int) -> list[list[str]]:
    """Split n captions into tokens."""
    return [caption.split() for caption in captions(n)]


def different_captions(n: int) -> list[str]:
    """Take n captions of which no two are the same."""
    return list(dict.fromkeys(base_captions()))[:n]


def repeated_captions(n: int) -> list[str]:
    """Take n captions: n / 4 different ones, four times over."""
    return different_captions(n // 4) * 4


class EmbeddedTexts(NamedTuple):
    """Predictions, whose words nobody reads, and their embeddings."""

    predictions: list[Any]
    embeddings: np.ndarray


def random_embeddings(n: int, dtype: type) -> np.ndarray:
    """Draw embeddings whose variance falls from one dimension to the next, as that of real ones does."""
    embeddings = np.random.default_rng(0).standard_normal((n, DIMENSIONS), dtype=dtype)
    embeddings *= np.linspace(1.0, 0.1, DIMENSIONS, dtype=dtype)
    return embeddings


def one_set(n: int, dtype: type = np.float32) -> EmbeddedTexts:
    """Make one set of n texts."""
    return EmbeddedTexts(["text"] * n, random_embeddings(n, dtype))


def sets_of_four(n: int) -> EmbeddedTexts:
    """Make n sets of four texts."""
    return EmbeddedTexts([["text"] * 4] * n, random_embeddings(4 * n, np.float32))


class Questions(NamedTuple):
    """Questions, 100 answers of a model and 100 of people to each, and a vector for each word."""

    predictions: list[list[str]]
    references: list[list[str]]
    vectors: dict[str, np.ndarray]


def asked_questions(n: int) -> Questions:
    """Draw the answers to each question from 40 phrases of its own, of one word to six."""
    rng = np.random.default_rng(0)
    _, adjectives, nouns, verbs, prepositions, places = TEMPLATE
    shapes = ((nouns,), (verbs,), (places,), (adjectives, nouns), (verbs, prepositions, places), (nouns, verbs, places))
    phrases = [" ".join(words) for shape in shapes for words in itertools.islice(itertools.product(*shape), 60)]
    pools = [rng.choice(phrases, 40, replace=False) for _ in range(n)]
    given, gold = ([rng.choice(pool, 100).tolist() for pool in pools] for _ in range(2))
    words = sorted({word for phrase in phrases for word in phrase.split()})
    return Questions(given, gold, dict(zip(words, rng.standard_normal((len(words), 100)), strict=True)))


class MatchedAnswers(NamedTuple):
    """Embeddings of answers, (n, d), and of gold answers, (n, d), with the counts of these by cluster, (n, 8)."""

    answers: np.ndarray
    gold: np.ndarray
    counts: np.ndarray


def matched_answers(n: int) -> MatchedAnswers:
    """Draw n answers and n gold answers in 8 clusters."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, n, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    counts = np.zeros((n, 8))
    counts[np.arange(n), np.arange(n) % 8] = rng.integers(1, 6, n)
    return MatchedAnswers(vectors[0], vectors[1], counts)


class LineFile(NamedTuple):
    """A file of JSON lines, a set of four captions a line, and a folder for what is made of it."""

    path: Path
    folder: Path


def file_of_sets(n: int) -> LineFile:
    """Write n captions to a file, in sets of four."""
    folder = Path(tempfile.mkdtemp())
    path, texts = folder / "sets.jsonl", captions(n)
    lines = [json.dumps({"generations": texts[i : i + 4]}) + "\n" for i in range(0, n, 4)]
    path.write_text("".join(lines), encoding="utf-8")
    return LineFile(path, folder)


def five_sentences(n: int) -> list[str]:
    """Make n texts of five different sentences, each of two captions: some 25 tokens."""
    drawn = iter(captions(10 * n))
    parts = ((next(drawn).strip(" ."), next(drawn).strip(" .")) for _ in range(5 * n))
    sentences = [f"{first[:1].upper()}{first[1:]}, and {second[:1].lower()}{second[1:]}." for first, second in parts]
    return [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]


# The sides of the cases. They import what they need themselves, so that a process holds one side alone.


@cache
def metric(name: str) -> Any:
    """Load a metric once."""
    import evaluate

    return evaluate.load(str(ROOT / "metrics" / name))


@cache
def sentence_transformer() -> Any:
    """Load the model that is our default from its folder."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    from metrics._core import core_encoder

    logging.disable_progress_bar()
    return SentenceTransformer(str(core_encoder.find_model(core_encoder.DEFAULT_MODEL).path))


def self_bleu_core(tokens: list[list[str]]) -> Any:
    """Score each text with the core alone."""
    from metrics._core import core_ngrams

    numbered, sizes = core_ngrams.number_tokens(tokens), np.array([len(tokens)])
    tables = list(core_ngrams.ngram_tables(numbered, sizes, max_order=3))
    return core_ngrams.bleu(core_ngrams.bleu_statistics(tables, numbered.lengths, sizes), "method1")[-1]


def fast_bleu(tokens: list[list[str]]) -> Any:
    """Score each text with fast-bleu: C++, threads."""
    from fast_bleu import SelfBLEU

    return SelfBLEU(tokens, {3: (1 / 3, 1 / 3, 1 / 3)}, smoothing_func=1).get_score()[3]


def self_bleu_compute(texts: list[str]) -> Any:
    """Score one set with the metric."""
    return metric("self_bleu").compute(predictions=texts, aggregate="sentence", max_order=3)["self_bleu"]


def fast_bleu_mean(texts: list[str]) -> Any:
    """Score one set with fast-bleu."""
    return np.mean(fast_bleu([text.split() for text in texts]))


def vendi_compute(texts: EmbeddedTexts) -> Any:
    """Score each set with the metric."""
    return metric("vendi_embed").compute(**texts._asdict())["scores"]


def vendi_loop(texts: EmbeddedTexts) -> Any:
    """Score each set with vendi-score, one after another."""
    from vendi_score.vendi import score_X

    return [score_X(members) for members in texts.embeddings.reshape(len(texts.predictions), -1, DIMENSIONS)]


def vendi_dual(texts: EmbeddedTexts) -> Any:
    """Score one set with vendi-score."""
    from vendi_score.vendi import score_dual

    return [score_dual(texts.embeddings)]


def chamfer_compute(texts: EmbeddedTexts) -> Any:
    """Score one set with the metric."""
    return metric("chamfer_diversity").compute(**texts._asdict())["scores"]


def chamfer_paper(texts: EmbeddedTexts) -> Any:
    """Score one set from scikit-learn's distances of all from all, as the diversity paper defines the score."""
    from sklearn.metrics.pairwise import cosine_distances

    distances = cosine_distances(texts.embeddings)
    np.fill_diagonal(distances, np.inf)
    return [np.mean(distances.min(axis=1))]


def chamfer_full_matrix(texts: EmbeddedTexts) -> Any:
    """Score one set from all similarities, in as few passes over the matrix as numpy needs."""
    unit = texts.embeddings / np.linalg.norm(texts.embeddings, axis=1, keepdims=True)
    similarities = unit @ unit.T
    np.fill_diagonal(similarities, -np.inf)
    return [np.mean(1 - similarities.max(axis=1))]


def encode(texts: list[str], **settings: Any) -> Any:
    """Embed with our encoder."""
    from metrics._core import core_encoder

    return core_encoder.encode(texts, **settings).embeddings


def encode_cached(texts: list[str]) -> Any:
    """Embed with our encoder, which keeps the embeddings on disk."""
    return encode(texts, cache_dir=Path(tempfile.gettempdir()) / "embeddings")


def sentence_transformer_encode(texts: list[str]) -> Any:
    """Embed with sentence-transformers."""
    return sentence_transformer().encode(texts)


def probeval_compute(questions: Questions) -> Any:
    """Score all questions with the metric, word vectors given."""
    return metric("probeval").compute(**questions._asdict(), clustering="hac")["scores"]


def wordnet_scores(questions: Questions) -> Any:
    """Sum our WordNet scores of all pairs of answers of each question."""
    from metrics.probeval.probeval_matching import WordNetMatcher
    from metrics.probeval.probeval_wordnet import load_wordnet

    matcher = WordNetMatcher(load_wordnet())
    sides = zip(questions.predictions, questions.references, strict=True)
    return [matcher.scores(sorted(set(given)), sorted(set(gold))).sum() for given, gold in sides]


def wordnet_pairs(questions: Questions) -> Any:
    """Sum the same scores from every pair of partitions of every pair of answers."""
    from metrics.probeval.probeval_wordnet import load_wordnet, tokenize
    from tests.references.probeval import wordnet_score

    wordnet = load_wordnet()
    sides = zip(questions.predictions, questions.references, strict=True)
    return [sum(wordnet_score(x, y, tokenize, wordnet) for x in set(given) for y in set(gold)) for given, gold in sides]


def gp_one_factor(matched: MatchedAnswers) -> Any:
    """Predict the clusters with one Cholesky factor."""
    from metrics.probeval.probeval_matching import gp_scores

    return gp_scores(*matched)


def gp_each_cluster(matched: MatchedAnswers) -> Any:
    """Predict the clusters with one scikit-learn regression for each."""
    from tests.references.probeval import gp_scores

    return gp_scores(*matched)


def gruen_compute(texts: list[str]) -> Any:
    """Score the grammaticality of each text with the metric."""
    return metric("gruen").compute(predictions=texts, components=["grammaticality"])["scores"]


@cache
def padded_compact() -> Any:
    """Load gruen's compact backbone with the body of transformers, which works on padding as on words."""
    from safetensors.torch import load_file
    from transformers import BertModel

    from metrics.gruen import gruen
    from metrics.gruen.core_encoder import DEFAULT_MODEL, find_model
    from metrics.gruen.gruen_compact import ADAPTERS, WEIGHTS_FILE, CompactBackbone, merge_adapters

    weights = ROOT / "metrics" / "gruen" / WEIGHTS_FILE
    judge = CompactBackbone(weights, gruen.WEIGHTS_SHA256, device="cpu")
    bert: Any = BertModel.from_pretrained(find_model(DEFAULT_MODEL).path, add_pooling_layer=False)
    adapters = {name: tensor.float() for name, tensor in load_file(weights).items() if name.startswith(ADAPTERS)}
    merge_adapters(bert, adapters)
    judge._loaded.model.bert = bert.eval()
    return judge


def gruen_one_by_one(texts: list[str]) -> Any:
    """Score it on the same weights as the paper's code does.

    Likelihood, over the whole vocabulary, then acceptability, padded to 128 tokens.
    """
    import torch

    from metrics.gruen.gruen_backbone import pad
    from metrics.gruen.gruen_text import split_texts

    judge = padded_compact()
    model, tokenizer, calibration, _ = judge._loaded

    def curve(values: np.ndarray, slope: float, intercept: float) -> np.ndarray:
        return 1 / (1 + np.exp(-(slope * values + intercept)))

    def encode(sentence: str, width: int) -> tuple[Any, Any]:
        ids = tokenizer(sentence, truncation=True, max_length=128)["input_ids"]
        rows, mask = (torch.from_numpy(part)[:1] for part in pad([ids, [0] * width], 0))
        return rows, mask

    @torch.inference_mode()
    def loss_over_frequency(sentence: str) -> float:
        rows, mask = encode(sentence, 0)
        predicted, tokens = model.vocabulary_logits(model.hidden(rows, mask))[0, 1:-1], rows[0, 1:-1]
        loss = torch.nn.functional.cross_entropy(predicted, tokens)
        return float(loss + model.log_frequency[tokens].mean())

    @torch.inference_mode()
    def two_logits(sentence: str) -> np.ndarray:
        rows, mask = encode(sentence, 128)
        pooled = model.pool(model.hidden(rows, mask), mask)
        return torch.cat([model.soundness(pooled), model.acceptability(pooled)], dim=1)[0].numpy()

    scores = []
    for sentences in split_texts(texts, parity=False):
        losses = list(map(loss_over_frequency, sentences))
        logits = list(map(two_logits, sentences))
        likelihood = curve(np.array(losses), *calibration.likelihood)
        soundness, acceptability = np.array(logits, dtype=np.float64).T
        acceptability = curve(soundness, *calibration.soundness) + curve(acceptability, *calibration.acceptability)
        scores.append(judge.grammaticality(likelihood.mean(), acceptability.mean() / 2))
    return scores


def redundancy_compute(captions: list[str]) -> Any:
    """Score the redundancy of one text, a sentence a caption, with the metric's own function."""
    from metrics.gruen.gruen_redundancy import find_redundancy

    return find_redundancy(captions).n_flags()


def redundancy_pairs(captions: list[str]) -> Any:
    """Score it from all four measures of every pair: difflib, and edit distance in C++."""
    from rapidfuzz.distance import Levenshtein

    from tests.references.gruen import redundant_pairs

    return sum(len(flags) for _, _, flags in redundant_pairs(captions, True, Levenshtein.distance))


def score_file(file: LineFile) -> Any:
    """Score the file with the command."""
    import pyarrow.parquet as pq

    from scripts import score

    out = file.folder / "scores.parquet"
    words = [str(file.path), "--metric", "self_bleu", "--text-key", "generations", "--out", str(out)]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        code = score.main([*words, "--restart", "--quiet"])
    if code != 0:
        raise RuntimeError(f"score.py ended with code {code}.")
    return pq.read_table(out)["self_bleu"].to_numpy()


def score_each_set(file: LineFile) -> Any:
    """Score it as one would without the command: pandas, and one `compute` for each set."""
    import pandas

    frame = pandas.read_json(file.path, lines=True)
    frame["self_bleu"] = [metric("self_bleu").compute(predictions=[texts])["self_bleu"] for texts in frame.generations]
    frame.to_parquet(file.folder / "scores.parquet")
    return frame["self_bleu"].to_numpy()


# How the numbers of both sides are held against each other: what is asked, and what is found.


class Values(NamedTuple):
    """No number is farther from its fellow than this, relative to 1 or to its size."""

    tolerance: float

    def __str__(self) -> str:
        return f"the same numbers to {self.tolerance:g}" if self.tolerance else "the same numbers"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Say how far apart they are, and whether that will do."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        close = np.allclose(ours, peer, rtol=self.tolerance, atol=self.tolerance)
        return f"{np.abs(ours - peer).max():.1g}", bool(close)


class Cosines(NamedTuple):
    """The cosine of no embedding to its fellow is farther from 1 than `largest`, nor is the mean than `mean`."""

    largest: float = math.inf
    mean: float = math.inf

    def __str__(self) -> str:
        named = {"every one": self.largest, "their mean": self.mean}
        asked = [f"{name} within {limit:g}" for name, limit in named.items() if limit < math.inf]
        return f"cosines to the peer's embeddings of 1, {', '.join(asked)}"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Say how far apart they are, and whether that will do."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        ours, peer = (side.astype(np.float64) for side in (ours, peer))
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(peer, axis=1)
        apart = np.maximum(1 - (ours * peer).sum(axis=1) / lengths, 0)
        found = f"cosines {apart.max():.1g} from 1, {apart.mean():.1g} in the mean"
        return found, bool(apart.max() <= self.largest and apart.mean() <= self.mean)


# What a case needs on our side; None if it is there, else the reason why the case cannot run.


def no_needs() -> str | None:
    """Need nothing."""
    return None


def needs_precision(precision: str) -> str | None:
    """Need a precision of the encoder."""
    from metrics._core import core_encoder

    return None if precision in core_encoder.PRECISIONS else f"the encoder has no precision={precision!r}"


def needs_encoder_cache() -> str | None:
    """Need the encoder's cache on disk."""
    from metrics._core import core_encoder

    return None if "cache_dir" in inspect.signature(core_encoder.encode).parameters else "the encoder has no cache_dir"


class Size(NamedTuple):
    """One row of the table.

    n : the size of the input
    ratio : how many times as fast as the peer ours must be
    megabytes : how much memory ours may take
    alone : leave the peer out
    long : leave the row out with --quick
    """

    n: int
    ratio: float | None = None
    megabytes: float | None = None
    alone: bool = False
    long: bool = False


class Case(NamedTuple):
    """What is measured.

    title : what is scored, with n for the size
    peer_name, package : the peer, and what is imported for it
    inputs : makes an input of size n
    ours, peer : score an input; each returns numbers, and the same
    agreement : how these are compared
    warm_up : the size of the input to warm up on; None for the input itself, so that no first run is timed
    needs : says why ours cannot run here; None if it can
    """

    title: str
    peer_name: str
    package: str
    inputs: Callable[[int], Any]
    ours: Callable[[Any], Any]
    peer: Callable[[Any], Any]
    sizes: tuple[Size, ...]
    agreement: Values | Cosines
    warm_up: int | None = 500
    needs: Callable[[], str | None] = no_needs


CASES = {
    "self_bleu_core": Case(
        "Self-BLEU-3 of each of n tokenized captions in one set: core only",
        "fast-bleu SelfBLEU",
        "fast_bleu",
        tokenized_captions,
        self_bleu_core,
        fast_bleu,
        (Size(2_000), Size(20_000, ratio=25), Size(200_000, alone=True)),
        Values(1e-6),
    ),
    "self_bleu": Case(
        "Self-BLEU-3 of one set of n captions: the whole `compute`",
        "fast-bleu SelfBLEU",
        "fast_bleu",
        captions,
        self_bleu_compute,
        fast_bleu_mean,
        (Size(2_000), Size(20_000, ratio=10), Size(200_000, alone=True)),
        Values(1e-6),
    ),
    "vendi_sets": Case(
        "Vendi scores of n sets of 4 × 384, float32: the whole `compute`",
        "vendi-score score_X in a loop",
        "vendi_score",
        sets_of_four,
        vendi_compute,
        vendi_loop,
        (Size(2_000), Size(20_000, ratio=6)),
        Values(1e-4),
    ),
    "vendi_float64": Case(
        "Vendi score of one set of n × 384, float64: the whole `compute`",
        "vendi-score score_dual",
        "vendi_score",
        partial(one_set, dtype=np.float64),
        vendi_compute,
        vendi_dual,
        (Size(2_000), Size(20_000, ratio=1)),
        Values(1e-8),
    ),
    "vendi_float32": Case(
        "Vendi score of one set of n × 384, float32: multiplied in float64, by the peer in float32",
        "vendi-score score_dual",
        "vendi_score",
        one_set,
        vendi_compute,
        vendi_dual,
        (Size(2_000), Size(20_000), Size(1_000_000, megabytes=500, alone=True, long=True)),
        Values(1e-4),
    ),
    "chamfer": Case(
        "Chamfer diversity of one set of n × 384, float32: the whole `compute`",
        "full matrix, scikit-learn",
        "sklearn",
        one_set,
        chamfer_compute,
        chamfer_paper,
        (Size(5_000), Size(20_000, ratio=3), Size(200_000, megabytes=1_500, alone=True, long=True)),
        Values(1e-5),
    ),
    "chamfer_lean": Case(
        "Chamfer diversity of one set of n × 384, against the fewest passes over a full matrix",
        "full matrix, numpy",
        "numpy",
        one_set,
        chamfer_compute,
        chamfer_full_matrix,
        (Size(5_000), Size(20_000)),
        Values(1e-5),
    ),
    "encode": Case(
        "Embeddings of n different captions",
        "SentenceTransformer.encode",
        "sentence_transformers",
        different_captions,
        encode,
        sentence_transformer_encode,
        (Size(1_000, ratio=1), Size(4_000, ratio=3)),
        Cosines(largest=1e-4),
        warm_up=32,
    ),
    "encode_int8": Case(
        'Embeddings of n different captions, `precision="int8"`',
        "SentenceTransformer.encode",
        "sentence_transformers",
        different_captions,
        partial(encode, precision="int8"),
        sentence_transformer_encode,
        (Size(1_000), Size(4_000, ratio=5)),
        Cosines(mean=0.02),
        warm_up=32,
        needs=partial(needs_precision, "int8"),
    ),
    "encode_bfloat16": Case(
        'Embeddings of n different captions, `precision="bfloat16"`',
        "SentenceTransformer.encode",
        "sentence_transformers",
        different_captions,
        partial(encode, precision="bfloat16"),
        sentence_transformer_encode,
        (Size(1_000), Size(4_000)),
        Cosines(mean=0.02),
        warm_up=32,
        needs=partial(needs_precision, "bfloat16"),
    ),
    "encode_repeated": Case(
        "Embeddings of n captions, each there 4 times",
        "SentenceTransformer.encode",
        "sentence_transformers",
        repeated_captions,
        encode,
        sentence_transformer_encode,
        (Size(4_000, ratio=1), Size(16_000, ratio=1, long=True)),
        Cosines(largest=1e-4),
        warm_up=32,
    ),
    "encode_cached": Case(
        "Embeddings of n different captions, a second time, with `cache_dir`",
        "SentenceTransformer.encode",
        "sentence_transformers",
        different_captions,
        encode_cached,
        sentence_transformer_encode,
        (Size(1_000, ratio=1), Size(4_000, ratio=1)),
        Cosines(largest=1e-4),
        warm_up=None,
        needs=needs_encoder_cache,
    ),
    "probeval": Case(
        "ProbEval of n questions with 100 answers, word vectors given: the whole `compute`",
        "-",
        "numpy",
        asked_questions,
        probeval_compute,
        probeval_compute,
        (Size(100, alone=True), Size(1_000, alone=True)),
        Values(0),
        warm_up=2,
    ),
    "probeval_wordnet": Case(
        "WordNet scores of all pairs of some 37 × 37 answers of n questions",
        "each pair of partitions",
        "nltk",
        asked_questions,
        wordnet_scores,
        wordnet_pairs,
        (Size(3), Size(12, ratio=50), Size(1_000, alone=True)),
        Values(1e-9),
        warm_up=1,
    ),
    "probeval_gp": Case(
        "Gaussian-process matching of n answers to n gold ones in 8 clusters",
        "scikit-learn, one a cluster",
        "sklearn",
        matched_answers,
        gp_one_factor,
        gp_each_cluster,
        (Size(50), Size(200, ratio=5)),
        Values(1e-6),
        warm_up=10,
    ),
    "gruen": Case(
        'Grammaticality of n texts of five sentences, `backbone="compact"`: the whole `compute`',
        "one sentence at a time",
        "torch",
        five_sentences,
        gruen_compute,
        gruen_one_by_one,
        (Size(50), Size(200, ratio=8)),
        # Ours estimates the sum over the vocabulary.
        Values(5e-3),
        warm_up=4,
    ),
    "gruen_redundancy": Case(
        "Redundancy of one text of n captions: all pairs",
        "difflib, all pairs",
        "difflib",
        different_captions,
        redundancy_compute,
        redundancy_pairs,
        (Size(50), Size(200, ratio=20), Size(2_000, alone=True), Size(10_000, alone=True, long=True)),
        Values(0),
        warm_up=20,
    ),
    "score_file": Case(
        "Self-BLEU of a file of n captions, four a set: the whole `scripts/score.py`",
        "pandas, one compute a set",
        "pandas",
        file_of_sets,
        score_file,
        score_each_set,
        (Size(4_000, ratio=1), Size(20_000), Size(200_000, alone=True, long=True)),
        Values(1e-9),
        warm_up=40,
    ),
}
