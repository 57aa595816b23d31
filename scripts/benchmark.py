"""Time and peak memory of the metrics, ours against a named peer in the same run.

Each side runs in a fresh process of its own, after a warm-up on a small input; the two take turns, so that what else
the machine does hits both alike. Time is the median over the turns. Memory is the largest increase of resident memory
over what was there once everything was imported and the input made. Both sides must give the same numbers.

    python scripts/benchmark.py                            all cases
    python scripts/benchmark.py --quick --only self_bleu   one case, without its long sizes
    python scripts/benchmark.py --check                    exit with 1 on a missed ratio, too much memory, or numbers
                                                           that differ
    python scripts/benchmark.py --report BENCHMARKS.md     write the table and the machine to a file

The captions are those of $METRICS_TEST_DATA/data/text/coco_captions_20k.txt; without it, sentences from templates.

To add a case: a function that makes an input of size n, one for each side that scores it, and an entry in CASES.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import itertools
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# Each size is measured this often, or until this time is spent; but once at least.
MAX_TURNS = 7
SECONDS = 20.0
# Thread pools spin for a while after their work is done: let one side's stop before the other side's turn.
REST_SECONDS = 0.2
MEGABYTE = 1e6

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


def encode(texts: list[str]) -> Any:
    """Embed with our encoder."""
    from metrics._core import core_encoder

    return core_encoder.encode(texts).embeddings


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


def gruen_one_by_one(texts: list[str]) -> Any:
    """Score it on the same weights as the paper's code does: likelihood, then acceptability padded to 128 tokens."""
    import torch

    from metrics.gruen import gruen
    from metrics.gruen.gruen_backbone import pad
    from metrics.gruen.gruen_compact import WEIGHTS_FILE, CompactBackbone, sentence_values
    from metrics.gruen.gruen_text import split_texts

    weights = ROOT / "metrics" / "gruen" / WEIGHTS_FILE
    judge = CompactBackbone(weights, gruen.WEIGHTS_SHA256, device="cpu")
    model, tokenizer, calibration, _ = judge._loaded

    def curve(values: np.ndarray, slope: float, intercept: float) -> np.ndarray:
        return 1 / (1 + np.exp(-(slope * values + intercept)))

    def forward(sentence: str, width: int) -> np.ndarray:
        ids = tokenizer(sentence, truncation=True, max_length=128)["input_ids"]
        rows, mask = (torch.from_numpy(part)[:1] for part in pad([ids, [0] * width], 0))
        with torch.inference_mode():
            if width:
                pooled = model.pool(model.hidden(rows, mask), mask)
                return torch.cat([model.soundness(pooled), model.acceptability(pooled)], dim=1)[0].numpy()
            return sentence_values(model, rows, mask)[0].numpy()

    scores = []
    for sentences in split_texts(texts, parity=False):
        losses = [forward(sentence, 0)[:2].sum() for sentence in sentences]
        logits = [forward(sentence, 128) for sentence in sentences]
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
    tolerance : how far these may be apart, relative to 1 or to their size
    warm_up : the size of the input to warm up on
    """

    title: str
    peer_name: str
    package: str
    inputs: Callable[[int], Any]
    ours: Callable[[Any], Any]
    peer: Callable[[Any], Any]
    sizes: tuple[Size, ...]
    tolerance: float
    warm_up: int = 500


CASES = {
    "self_bleu_core": Case(
        "Self-BLEU-3 of each of n tokenized captions in one set: core only",
        "fast-bleu SelfBLEU",
        "fast_bleu",
        tokenized_captions,
        self_bleu_core,
        fast_bleu,
        (Size(2_000), Size(20_000, ratio=25), Size(200_000, alone=True)),
        tolerance=1e-6,
    ),
    "self_bleu": Case(
        "Self-BLEU-3 of one set of n captions: the whole `compute`",
        "fast-bleu SelfBLEU",
        "fast_bleu",
        captions,
        self_bleu_compute,
        fast_bleu_mean,
        (Size(2_000), Size(20_000, ratio=10), Size(200_000, alone=True)),
        tolerance=1e-6,
    ),
    "vendi_sets": Case(
        "Vendi scores of n sets of 4 × 384, float32: the whole `compute`",
        "vendi-score score_X in a loop",
        "vendi_score",
        sets_of_four,
        vendi_compute,
        vendi_loop,
        (Size(2_000), Size(20_000, ratio=6)),
        tolerance=1e-4,
    ),
    "vendi_float64": Case(
        "Vendi score of one set of n × 384, float64: the whole `compute`",
        "vendi-score score_dual",
        "vendi_score",
        partial(one_set, dtype=np.float64),
        vendi_compute,
        vendi_dual,
        (Size(2_000), Size(20_000, ratio=1)),
        tolerance=1e-8,
    ),
    "vendi_float32": Case(
        "The same from float32, which the peer multiplies in float32, and ours in float64: no ratio is asked",
        "vendi-score score_dual",
        "vendi_score",
        one_set,
        vendi_compute,
        vendi_dual,
        (Size(2_000), Size(20_000), Size(1_000_000, megabytes=500, alone=True, long=True)),
        tolerance=1e-4,
    ),
    "chamfer": Case(
        "Chamfer diversity of one set of n × 384, float32: the whole `compute`",
        "full matrix, scikit-learn",
        "sklearn",
        one_set,
        chamfer_compute,
        chamfer_paper,
        (Size(5_000), Size(20_000, ratio=3), Size(200_000, megabytes=1_500, alone=True, long=True)),
        tolerance=1e-5,
    ),
    "chamfer_lean": Case(
        "The same as `chamfer`, against the fewest passes over a full matrix",
        "full matrix, numpy",
        "numpy",
        one_set,
        chamfer_compute,
        chamfer_full_matrix,
        (Size(5_000), Size(20_000)),
        tolerance=1e-5,
    ),
    "encode": Case(
        "Embeddings of n different captions",
        "SentenceTransformer.encode",
        "sentence_transformers",
        different_captions,
        encode,
        sentence_transformer_encode,
        (Size(1_000, ratio=1), Size(4_000, ratio=1)),
        tolerance=1e-5,
        warm_up=32,
    ),
    "encode_repeated": Case(
        "Embeddings of n captions, each there 4 times",
        "SentenceTransformer.encode",
        "sentence_transformers",
        repeated_captions,
        encode,
        sentence_transformer_encode,
        (Size(4_000, ratio=1), Size(16_000, ratio=1, long=True)),
        tolerance=1e-5,
        warm_up=32,
    ),
    "probeval": Case(
        "ProbEval of n questions with 100 answers, word vectors given: the whole `compute`",
        "-",
        "numpy",
        asked_questions,
        probeval_compute,
        probeval_compute,
        (Size(100, alone=True), Size(1_000, alone=True)),
        tolerance=0,
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
        tolerance=1e-9,
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
        tolerance=1e-6,
        warm_up=10,
    ),
    "gruen": Case(
        'Grammaticality of n texts of five sentences, `backbone="compact"`: the whole `compute`',
        "one sentence at a time",
        "torch",
        five_sentences,
        gruen_compute,
        gruen_one_by_one,
        (Size(100), Size(500, ratio=8)),
        tolerance=1e-4,
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
        tolerance=0,
        warm_up=20,
    ),
}


# Measuring.


class Measurement(NamedTuple):
    """What one side took for one size; megabytes are None where the system does not tell."""

    seconds: float
    megabytes: float | None
    numbers: np.ndarray


def peak_memory(reset: bool) -> float | None:
    """Read the peak of this process's resident memory, in bytes; to reset it first gives what is resident now."""
    if sys.platform != "linux":
        return None
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def serve(pipe: Connection, name: str, side: str, n: int) -> None:
    """Score an input each time the pipe says so, and send back seconds and megabytes; at the end, the numbers."""
    case = CASES[name]
    score = getattr(case, side)
    score(case.inputs(case.warm_up))
    inputs = case.inputs(n)
    before = peak_memory(reset=True)
    pipe.send("ready")
    numbers = None
    while pipe.recv():
        numbers = None
        peak_memory(reset=True)
        start = time.perf_counter()
        numbers = score(inputs)
        seconds = time.perf_counter() - start
        peak = peak_memory(reset=False)
        pipe.send((seconds, None if before is None or peak is None else (peak - before) / MEGABYTE))
    pipe.send(np.asarray(numbers))


@contextmanager
def worker(name: str, side: str, n: int) -> Iterator[Connection]:
    """Keep a fresh process that is ready to score."""
    context = multiprocessing.get_context("spawn")
    pipe, other_end = context.Pipe()
    process = context.Process(target=serve, args=(other_end, name, side, n))
    process.start()
    other_end.close()
    try:
        pipe.recv()
        yield pipe
    finally:
        process.terminate()
        process.join()


def measure(name: str, n: int, sides: list[str]) -> list[Measurement]:
    """Let the sides take turns.

    Raises
    ------
    EOFError
        If the process of a side ends before its time.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(name, side, n)) for side in sides]
        turns: list[list[tuple[float, float | None]]] = [[] for _ in sides]
        start = time.perf_counter()
        for _ in range(MAX_TURNS):
            for pipe, taken in zip(workers, turns, strict=True):
                time.sleep(REST_SECONDS)
                pipe.send(True)
                taken.append(pipe.recv())
            if time.perf_counter() - start > SECONDS:
                break
        measured = []
        for pipe, taken in zip(workers, turns, strict=True):
            pipe.send(False)
            seconds, megabytes = zip(*taken, strict=True)
            peak = None if None in megabytes else max(megabytes)
            measured.append(Measurement(statistics.median(seconds), peak, pipe.recv()))
    return measured


# The table.


class Row(NamedTuple):
    """One row of the table, with what is wrong and what could not be measured."""

    name: str
    size: Size
    ours: Measurement | None = None
    peer: Measurement | None = None
    failures: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Say how many times as fast as the peer ours is."""
        return self.peer.seconds / self.ours.seconds if self.peer and self.ours else None


def run(name: str, size: Size) -> Row:
    """Measure one size of a case and judge it."""
    case = CASES[name]
    installed = importlib.util.find_spec(case.package) is not None
    try:
        measured = measure(name, size.n, ["ours", "peer"] if installed and not size.alone else ["ours"])
    except EOFError:
        return Row(name, size, failures=("a process ended early",))
    ours, peer = measured if len(measured) == 2 else (measured[0], None)
    row = Row(name, size, ours, peer)
    failures, unmeasured = [], []
    if size.ratio and row.ratio is None:
        unmeasured.append(f"{case.peer_name} is not installed")
    if size.ratio and row.ratio is not None and row.ratio < size.ratio:
        failures.append(f"missed: {row.ratio:.2f} times as fast, not {size.ratio:g}")
    if size.megabytes and ours.megabytes is None:
        unmeasured.append("no memory figures on this system")
    if size.megabytes and ours.megabytes is not None and ours.megabytes > size.megabytes:
        failures.append(f"takes {ours.megabytes:.0f} MB, not {size.megabytes:g}")
    if peer and not np.allclose(ours.numbers, peer.numbers, rtol=case.tolerance, atol=case.tolerance):
        failures.append(f"numbers differ by {np.abs(ours.numbers - peer.numbers).max():.2g}")
    return row._replace(failures=tuple(failures), unmeasured=tuple(unmeasured))


COLUMNS = {
    "case": 16,
    "n": 9,
    "ours": 9,
    "growth": 7,
    "peer": 29,
    "its time": 9,
    "ratio": 6,
    "needed": 6,
    "MB": 10,
    "its MB": 6,
    "result": 6,
}


def line(cells: dict[str, str]) -> str:
    """Lay out a row."""
    return f"| {' | '.join(cells.get(name, '').ljust(width) for name, width in COLUMNS.items())} |"


def head() -> list[str]:
    """Lay out the head of the table."""
    return [line({name: name for name in COLUMNS}), line({name: "-" * width for name, width in COLUMNS.items()})]


def body(row: Row, smaller: Row | None) -> str:
    """Lay out a measured row; `smaller` is the row of the same case before it."""
    cells = {"case": row.name, "n": f"{row.size.n:,}".replace(",", " ")}
    if not row.size.alone:
        cells["peer"] = CASES[row.name].peer_name
    for measurement, seconds, megabytes in ((row.ours, "ours", "MB"), (row.peer, "its time", "its MB")):
        if measurement:
            cells[seconds] = f"{measurement.seconds:.3g} s"
            if measurement.megabytes is not None:
                cells[megabytes] = f"{measurement.megabytes:.0f}"
    if row.ours and smaller and smaller.ours:
        exponent = math.log(row.ours.seconds / smaller.ours.seconds) / math.log(row.size.n / smaller.size.n)
        cells["growth"] = f"n^{exponent:.2f}"
    if row.ratio:
        cells["ratio"] = f"{row.ratio:.2f}"
    if row.size.ratio:
        cells["needed"] = f"{row.size.ratio:g}"
    if row.size.megabytes and row.ours:
        cells["MB"] += f" < {row.size.megabytes:g}"
    cells["result"] = "; ".join(row.failures + row.unmeasured) or "ok"
    return line(cells)


def machine() -> list[str]:
    """Describe what this runs on."""
    processor = platform.processor() or platform.machine()
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next((text.split(":")[1].strip() for text in lines if text.startswith("model name")), processor)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ["numpy", "scipy", "torch", "sentence-transformers", "evaluate", "fast-bleu", "vendi-score", "rapidfuzz"]
    installed = {found.name.lower(): found.version for found in importlib.metadata.distributions()}
    versions = [f"{name} {installed[name]}" for name in packages if name in installed]
    file = captions_file()
    return [
        f"- Date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        f"- Processor: {processor}, {os.cpu_count()} cores; memory: {memory:.0f} GiB",
        f"- Python {platform.python_version()}, {', '.join(versions)}",
        f"- Captions: {f'COCO, {file.name}' if file else 'from templates'}; embeddings: random",
    ]


REPORT = """\
# Benchmarks

Written by `scripts/benchmark.py`. Each side runs in a fresh process, after a warm-up; the two take turns. Times are
medians over up to {turns} turns, fewer where they take long. Memory is the largest increase of resident memory over
what was there once everything was imported and the input made. `growth` is the growth of our time since the row above.
`ratio` is the peer's time divided by ours, `needed` the least that it must be. A row is `ok` only if both sides gave
the same numbers.

{machine}

{table}

{titles}
"""


def report(about: list[str], table: list[str]) -> str:
    """Write the table as a page."""
    titles = [f"- `{name}`: {case.title}. Tolerance {case.tolerance:g}." for name, case in CASES.items()]
    return REPORT.format(turns=MAX_TURNS, machine="\n".join(about), table="\n".join(table), titles="\n".join(titles))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row fails")
    parser.add_argument("--report", type=Path, metavar="PATH", help="write a Markdown report")
    parser.add_argument("--only", choices=CASES, help="run one case")
    parser.add_argument("--quick", action="store_true", help="leave out the long sizes")
    arguments = parser.parse_args()

    about = machine()
    print("\n".join([*about, "", *head()]), flush=True)
    table, rows = head(), []
    for name in [arguments.only] if arguments.only else CASES:
        row: Row | None = None
        for size in CASES[name].sizes:
            if size.long and arguments.quick:
                continue
            smaller, row = row, run(name, size)
            rows.append(row)
            table.append(body(row, smaller))
            print(table[-1], flush=True)
            if arguments.report:
                arguments.report.write_text(report(about, table), encoding="utf-8")

    failures = [f"{row.name} at {row.size.n}: {failure}" for row in rows for failure in row.failures]
    unmeasured = [f"{row.name} at {row.size.n}: not measured: {why}" for row in rows for why in row.unmeasured]
    print("\n".join(["", *unmeasured, *failures]))
    return 1 if arguments.check and failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
