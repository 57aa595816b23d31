"""Inputs of size n: captions, sets with embeddings, questions, and files.

The captions are from $METRICS_TEST_DATA/data/text/coco_captions_20k.txt; without it, sentences from templates.
"""

import atexit
import itertools
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

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


@cache
def _all_captions() -> list[str]:
    folder = os.environ.get("METRICS_TEST_DATA")
    if folder:
        file = Path(folder) / "data" / "text" / "coco_captions_20k.txt"
        return file.read_text(encoding="utf-8").splitlines()[:N_CAPTIONS]
    sentences = [" ".join(words) for words in itertools.product(*TEMPLATE)]
    return np.random.default_rng(0).choice(sentences, N_CAPTIONS, replace=False).tolist()


def captions(n: int) -> list[str]:
    """Take n of 20 000 captions."""
    return _all_captions()[:n]


def different_captions(n: int) -> list[str]:
    """Take n different captions."""
    return list(dict.fromkeys(_all_captions()))[:n]


def one_set(n: int, dtype: type = np.float64) -> dict[str, Any]:
    """Make one set of n texts, whose embeddings vary less from dimension to dimension, as real ones do."""
    embeddings = np.random.default_rng(0).standard_normal((n, DIMENSIONS), dtype=dtype)
    embeddings *= np.linspace(1.0, 0.1, DIMENSIONS, dtype=dtype)
    return {"predictions": [f"text {i}" for i in range(n)], "embeddings": embeddings}


def sets_of_four(n: int) -> dict[str, Any]:
    """Make n sets of four texts that state two meanings each, with cosines around the threshold of one meaning."""
    rng = np.random.default_rng(0)
    meanings = rng.standard_normal((n, 2, DIMENSIONS))
    stated = np.take_along_axis(meanings, rng.integers(0, 2, (n, 4, 1)), axis=1)
    vectors = stated + 0.45 * rng.standard_normal((n, 4, DIMENSIONS))
    texts = []
    for i in range(n):
        texts.append([f"text {j} of set {i}" for j in range(4)])
    return {"predictions": texts, "embeddings": vectors.reshape(-1, DIMENSIONS).astype(np.float32)}


def asked_questions(n: int) -> dict[str, Any]:
    """Draw 100 answers of a model and 100 of people to each question, from 40 phrases of its own of one word to six."""
    rng = np.random.default_rng(0)
    _, adjectives, nouns, verbs, prepositions, places = TEMPLATE
    shapes = ((nouns,), (verbs,), (places,), (adjectives, nouns), (verbs, prepositions, places), (nouns, verbs, places))
    phrases = [" ".join(words) for shape in shapes for words in itertools.islice(itertools.product(*shape), 60)]
    pools = [rng.choice(phrases, 40, replace=False) for _ in range(n)]
    given = [rng.choice(pool, 100).tolist() for pool in pools]
    gold = [rng.choice(pool, 100).tolist() for pool in pools]
    words = sorted({word for phrase in phrases for word in phrase.split()})
    vectors = dict(zip(words, rng.standard_normal((len(words), 100)), strict=True))
    return {"predictions": given, "references": gold, "vectors": vectors}


def five_sentences(n: int) -> dict[str, Any]:
    """Make n texts of five different sentences, each of two captions and about 25 tokens."""
    drawn = iter(captions(10 * n))
    parts = ((next(drawn).strip(" ."), next(drawn).strip(" .")) for _ in range(5 * n))
    sentences = [f"{first[:1].upper()}{first[1:]}, and {second[:1].lower()}{second[1:]}." for first, second in parts]
    return {"predictions": [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]}


def temporary_folder() -> Path:
    """Make a folder that is removed when the process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def file_of_sets(texts: list[str]) -> Path:
    """Write texts to a file of JSON lines in a folder of its own, in sets of four."""
    path = temporary_folder() / "sets.jsonl"
    lines = [json.dumps({"generations": texts[i : i + 4]}) + "\n" for i in range(0, len(texts), 4)]
    path.write_text("".join(lines), encoding="utf-8")
    return path
