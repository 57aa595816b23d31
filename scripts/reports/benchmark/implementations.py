"""The two sides of each case of the benchmark: our code, and the peer that it is measured against.

Each function imports what it needs, so that a process loads only one side.
"""

import csv
import json
import os
import tempfile
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from scripts import ROOT
from scripts.reports.benchmark.inputs import DIMENSIONS, Arguments
from text_metrics import load

# The default of vendi_embed's `same`.
SAME = 0.83
metric = cache(load)


@cache
def sentence_transformer() -> Any:
    """Load our default model from its folder."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model

    logging.disable_progress_bar()
    return SentenceTransformer(str(find_model(DEFAULT_MODEL).path))


def scores_of_metric(given: Arguments, name: str, **settings: Any) -> Any:
    """Score each set, or each question, with the metric."""
    return metric(name).compute(**given, **settings)["scores"]


def self_bleu_core(tokens: list[list[str]]) -> Any:
    """Score each text with the core functions."""
    from text_metrics.metrics._core import core_ngrams

    numbered, sizes = core_ngrams.number_tokens(tokens), np.array([len(tokens)])
    tables = list(core_ngrams.ngram_tables(numbered, sizes, max_order=3))
    return core_ngrams.bleu(core_ngrams.bleu_statistics(tables, numbered.lengths, sizes), "method1")[-1]


def fast_bleu(tokens: list[list[str]]) -> Any:
    """Score each text with fast-bleu, which is multithreaded C++."""
    from fast_bleu import SelfBLEU

    return SelfBLEU(tokens, {3: (1 / 3, 1 / 3, 1 / 3)}, smoothing_func=1).get_score()[3]


def self_bleu_compute(texts: list[str]) -> Any:
    """Score one set with the metric."""
    return metric("self_bleu").compute(predictions=texts, aggregate="sentence", max_order=3)["self_bleu"]


def fast_bleu_mean(texts: list[str]) -> Any:
    """Score one set with fast-bleu."""
    return np.mean(fast_bleu([text.split() for text in texts]))


def vendi_loop(texts: Arguments) -> Any:
    """Score each set with vendi-score, one after another."""
    from vendi_score.vendi import score_X

    return [score_X(members) for members in texts["embeddings"].reshape(len(texts["predictions"]), -1, DIMENSIONS)]


def vendi_dual(texts: Arguments) -> Any:
    """Score one set with vendi-score."""
    from vendi_score.vendi import score_dual

    return [score_dual(texts["embeddings"])]


def classes_loop(texts: Arguments) -> Any:
    """Count the classes of each set text by text, each compared with all members of each class."""
    rows = iter(texts["embeddings"])
    counts = []
    for members in texts["predictions"]:
        vectors = np.stack([next(rows) for _ in members]).astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        same = vectors @ vectors.T >= SAME
        classes: list[list[int]] = []
        for i in sorted(range(len(members)), key=members.__getitem__):
            for members_of_class in classes:
                if all(same[i, j] for j in members_of_class):
                    members_of_class.append(i)
                    break
            else:
                classes.append([i])
        counts.append(len(classes))
    return counts


def contributions_compute(texts: Arguments, name: str = "vendi_embed") -> Any:
    """Find the contribution of each text with the metric."""
    by_set = metric(name).compute(**texts, contributions=True)["contributions"]
    return [value for values in by_set for value in values]


def contributions_loop(texts: Arguments, name: str = "vendi_embed") -> Any:
    """Score each set, and each set without each text, with the metric, one after another."""
    contributions, start = [], 0
    for members in texts["predictions"]:
        rows = texts["embeddings"][start : start + len(members)]
        start += len(members)
        whole = metric(name).compute(predictions=members, embeddings=rows)[name]
        for i in range(len(members)):
            rest = np.delete(rows, i, axis=0)
            contributions.append(
                whole - metric(name).compute(predictions=members[:i] + members[i + 1 :], embeddings=rest)[name]
            )
    return contributions


def chamfer_paper(texts: Arguments) -> Any:
    """Score one set from the full distance matrix of scikit-learn, as the diversity paper defines the score."""
    from sklearn.metrics.pairwise import cosine_distances

    distances = cosine_distances(texts["embeddings"])
    np.fill_diagonal(distances, np.inf)
    return [np.mean(distances.min(axis=1))]


def chamfer_full_matrix(texts: Arguments) -> Any:
    """Score one set from the full similarity matrix, in the fewest passes that numpy needs."""
    unit = texts["embeddings"] / np.linalg.norm(texts["embeddings"], axis=1, keepdims=True)
    similarities = unit @ unit.T
    np.fill_diagonal(similarities, -np.inf)
    return [np.mean(1 - similarities.max(axis=1))]


def encode(texts: list[str], **settings: Any) -> Any:
    """Embed with our encoder."""
    from text_metrics.metrics._core import core_encoder

    return core_encoder.encode(texts, core_encoder.EncoderSettings(**settings)).embeddings


def encode_cached(texts: list[str]) -> Any:
    """Embed with our encoder, with a cache on disk."""
    return encode(texts, cache_dir=Path(tempfile.gettempdir()) / "embeddings")


def sentence_transformer_encode(texts: list[str]) -> Any:
    """Embed with sentence-transformers."""
    return sentence_transformer().encode(texts)


def wordnet_scores(questions: Arguments) -> Any:
    """Sum our WordNet scores of all pairs of answers of each question."""
    from text_metrics.metrics.probeval.probeval_matching import WordNetMatcher
    from text_metrics.metrics.probeval.probeval_wordnet import load_wordnet

    matcher = WordNetMatcher(load_wordnet())
    sides = zip(questions["predictions"], questions["references"], strict=True)
    return [matcher.scores(sorted(set(given)), sorted(set(gold))).sum() for given, gold in sides]


def wordnet_pairs(questions: Arguments) -> Any:
    """Sum the same scores from every pair of partitions of every pair of answers."""
    from tests.references.probeval import wordnet_score
    from text_metrics.metrics.probeval.probeval_wordnet import load_wordnet, tokenize

    wordnet = load_wordnet()
    sides = zip(questions["predictions"], questions["references"], strict=True)
    return [sum(wordnet_score(x, y, tokenize, wordnet) for x in set(given) for y in set(gold)) for given, gold in sides]


def gp_one_factor(matched: tuple[np.ndarray, ...]) -> Any:
    """Predict the clusters with one Cholesky factor."""
    from text_metrics.metrics.probeval.probeval_matching import gp_scores

    return gp_scores(*matched)


def gp_each_cluster(matched: tuple[np.ndarray, ...]) -> Any:
    """Predict the clusters with one scikit-learn regression for each."""
    from tests.references.probeval import gp_scores

    return gp_scores(*matched)


def gruen_compute(texts: list[str]) -> Any:
    """Score the grammaticality of each text with the metric."""
    return metric("gruen").compute(predictions=texts, components=["grammaticality"])["scores"]


@cache
def compact_backbone() -> Any:
    """Load gruen's compact backbone once."""
    from text_metrics.metrics.gruen import gruen
    from text_metrics.metrics.gruen.core_encoder import EncoderSettings
    from text_metrics.metrics.gruen.gruen_compact import WEIGHTS_FILE, CompactBackbone

    weights = ROOT / "metrics" / "gruen" / WEIGHTS_FILE
    return CompactBackbone(weights, gruen.WEIGHTS_SHA256, EncoderSettings(device="cpu"))


def gruen_one_by_one(texts: list[str]) -> Any:
    """Score it with the same weights in the way of the paper's code, a sentence at a time.

    That is the likelihood over the whole vocabulary, and then the acceptability, padded to 128 tokens.
    """
    import torch

    from text_metrics.metrics.gruen.gruen_backbone import pad
    from text_metrics.metrics.gruen.gruen_text import split_texts

    judge = compact_backbone()
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
    for sentences in split_texts(texts):
        losses = list(map(loss_over_frequency, sentences))
        logits = list(map(two_logits, sentences))
        likelihood = curve(np.array(losses), *calibration.likelihood)
        soundness, acceptability = np.array(logits, dtype=np.float64).T
        acceptability = curve(soundness, *calibration.soundness) + curve(acceptability, *calibration.acceptability)
        scores.append(judge.grammaticality(likelihood.mean(), acceptability.mean() / 2))
    return scores


def redundancy_compute(captions: list[str]) -> Any:
    """Score the redundancy of one text, whose sentences are captions, with the metric's function."""
    from text_metrics.metrics.gruen.gruen_redundancy import find_redundancy

    return find_redundancy(captions).n_flags()


def repeats_by_default(texts: list[list[str]]) -> int:
    """Find the repeats of each text by the metric's default rule; returns the number of texts."""
    from text_metrics.metrics.gruen.gruen_repeats import find_repeats

    return len([find_repeats(sentences) for sentences in texts])


def repeats_by_paper(texts: list[list[str]]) -> int:
    """Find the repeats of each text by the measures of the paper; returns the number of texts."""
    from text_metrics.metrics.gruen.gruen_redundancy import find_redundancy

    return len([find_redundancy(sentences) for sentences in texts])


def redundancy_pairs(captions: list[str]) -> Any:
    """Score it by all four measures of every pair, with difflib and an edit distance in C++."""
    from rapidfuzz.distance import Levenshtein

    from tests.references.gruen import redundant_pairs

    return sum(len(flags) for _, _, flags in redundant_pairs(captions, True, Levenshtein.distance))


def score_file(file: Path) -> Any:
    """Score the file with the command."""
    import pyarrow.parquet as pq

    from text_metrics.commands.score import main as score

    out = file.parent / "scores.parquet"
    words = [str(file), "--metric", "self_bleu", "--text-key", "generations", "--out", str(out)]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        code = score.main([*words, "--restart", "--quiet"])
    if code != 0:
        raise RuntimeError(f"score.py ended with code {code}.")
    return pq.read_table(out)["self_bleu"].to_numpy()


def score_each_set(file: Path) -> Any:
    """Score the file with pandas and one `compute` for each set."""
    import pandas

    frame = pandas.read_json(file, lines=True)
    frame["self_bleu"] = [metric("self_bleu").compute(predictions=[texts])["self_bleu"] for texts in frame.generations]
    frame.to_parquet(file.parent / "scores.parquet")
    return frame["self_bleu"].to_numpy()


def read_file(file: Path) -> Any:
    """Read the rows of the file as commands do, and measure their texts."""
    from text_metrics.commands.jobs.rows import Source

    return [len(row.values["text"]) for row in Source(file, None).rows(0) if row.values is not None]


def read_units(file: Path) -> Any:
    """Read the file in batches of units, as `text-metrics score` does, and measure their texts."""
    from text_metrics.commands.jobs.batches import Job, open_reader, read_items
    from text_metrics.commands.jobs.options import Command
    from text_metrics.metrics._core.core_results import TEXTS

    job = Job(Command(data=file, metric="gruen", text_key="text"), TEXTS)
    read = open_reader(job)
    return [len(unit.texts[0]) for item in read_items(job) for units, _ in read(item) for unit in units]


def read_json_lines(file: Path) -> Any:
    """Read each line with `json`."""
    with file.open(encoding="utf-8") as lines:
        return [len(json.loads(line)["text"]) for line in lines]


def read_csv(file: Path) -> Any:
    """Read each row with `csv`."""
    with file.open(encoding="utf-8", newline="") as lines:
        return [len(row["text"]) for row in csv.DictReader(lines)]


def read_parquet(file: Path) -> Any:
    """Read batches with pyarrow, each to a list of rows."""
    import pyarrow.parquet as pq

    batches = pq.ParquetFile(file).iter_batches()
    return [len(row["text"]) for batch in batches for row in batch.to_pylist()]
