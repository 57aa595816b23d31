"""Inputs of size n for the cases of the benchmark.

The captions are those of $METRICS_TEST_DATA/data/text/coco_captions_20k.txt; without it, sentences from templates.
"""

import itertools
import json
import math
import os
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


def captions_file() -> Path | None:
    """Return the path of the captions; None if they come from templates."""
    folder = os.environ.get("METRICS_TEST_DATA")
    return Path(folder) / "data" / "text" / "coco_captions_20k.txt" if folder else None


@cache
def base_captions() -> list[str]:
    """Read the captions, or make as many from templates."""
    file = captions_file()
    if file:
        return file.read_text(encoding="utf-8").splitlines()[:N_CAPTIONS]
    shape = tuple(map(len, TEMPLATE))
    drawn = np.random.default_rng(0).choice(math.prod(shape), N_CAPTIONS, replace=False)
    words = [np.array(slot)[places] for slot, places in zip(TEMPLATE, np.unravel_index(drawn, shape), strict=True)]
    return [" ".join(parts) for parts in zip(*words, strict=True)]


def captions(n: int) -> list[str]:
    """Take n captions; those after the first 20 000 are copies, each copy with a further word at its end."""
    base = base_captions()
    copies = (base if k == 0 else [f"{caption} copy{k}" for caption in base] for k in range(-(-n // len(base))))
    return [caption for copy in copies for caption in copy][:n]


def tokenized_captions(n: int) -> list[list[str]]:
    """Split n captions into tokens."""
    return [caption.split() for caption in captions(n)]


def different_captions(n: int) -> list[str]:
    """Take n different captions."""
    return list(dict.fromkeys(base_captions()))[:n]


def repeated_captions(n: int) -> list[str]:
    """Take n captions: n / 4 different ones, repeated four times."""
    return different_captions(n // 4) * 4


# The arguments of `compute`, such as predictions and their embeddings.
Arguments = dict[str, Any]


def random_embeddings(n: int, dtype: type) -> np.ndarray:
    """Draw embeddings whose variance decreases over the dimensions, as that of real ones does."""
    embeddings = np.random.default_rng(0).standard_normal((n, DIMENSIONS), dtype=dtype)
    embeddings *= np.linspace(1.0, 0.1, DIMENSIONS, dtype=dtype)
    return embeddings


def one_set(n: int, dtype: type = np.float32) -> Arguments:
    """Make one set of n texts."""
    return {"predictions": ["text"] * n, "embeddings": random_embeddings(n, dtype)}


def sets_of_four(n: int) -> Arguments:
    """Make n sets of four texts."""
    return {"predictions": [["text"] * 4] * n, "embeddings": random_embeddings(4 * n, np.float32)}


def restated_sets(n: int, size: int = 4) -> Arguments:
    """Make n sets of texts that state a few meanings each, with cosines around the threshold of classes."""
    rng = np.random.default_rng(0)
    n_meanings = max(2, size // 10)
    meanings = rng.standard_normal((n, n_meanings, DIMENSIONS))
    stated = np.take_along_axis(meanings, rng.integers(0, n_meanings, (n, size, 1)), axis=1)
    vectors = stated + 0.45 * rng.standard_normal((n, size, DIMENSIONS))
    texts = [[f"text {j} of set {i}" for j in range(size)] for i in range(n)]
    return {"predictions": texts, "embeddings": vectors.reshape(-1, DIMENSIONS).astype(np.float32)}


def restated_set(n: int) -> Arguments:
    """Make one set of n such texts."""
    return restated_sets(1, n)


def asked_questions(n: int) -> Arguments:
    """Draw 100 answers of a model and 100 of people to each question, from 40 phrases of its own of one word to six."""
    rng = np.random.default_rng(0)
    _, adjectives, nouns, verbs, prepositions, places = TEMPLATE
    shapes = ((nouns,), (verbs,), (places,), (adjectives, nouns), (verbs, prepositions, places), (nouns, verbs, places))
    phrases = [" ".join(words) for shape in shapes for words in itertools.islice(itertools.product(*shape), 60)]
    pools = [rng.choice(phrases, 40, replace=False) for _ in range(n)]
    given, gold = ([rng.choice(pool, 100).tolist() for pool in pools] for _ in range(2))
    words = sorted({word for phrase in phrases for word in phrase.split()})
    vectors = dict(zip(words, rng.standard_normal((len(words), 100)), strict=True))
    return {"predictions": given, "references": gold, "vectors": vectors}


def matched_answers(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw embeddings of n answers and n gold answers, both (n, d), and the counts of these by cluster, (n, 8)."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, n, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    counts = np.zeros((n, 8))
    counts[np.arange(n), np.arange(n) % 8] = rng.integers(1, 6, n)
    return vectors[0], vectors[1], counts


def file_of_sets(n: int) -> Path:
    """Write n captions to a file of JSON lines in a folder of its own, in sets of four."""
    path, texts = Path(tempfile.mkdtemp()) / "sets.jsonl", captions(n)
    lines = [json.dumps({"generations": texts[i : i + 4]}) + "\n" for i in range(0, n, 4)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def file_of_captions(n: int, ending: str) -> Path:
    """Write n captions to a file of JSON lines, CSV or Parquet: a row for each, with its number."""
    import pandas

    path = Path(tempfile.mkdtemp()) / f"captions{ending}"
    frame = pandas.DataFrame({"id": range(n), "text": captions(n)})
    if ending == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    elif ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def twenty_sentences(n: int) -> list[list[str]]:
    """Make n texts of 20 captions each, as lists of sentences."""
    sentences = captions(20 * n)
    return [sentences[i : i + 20] for i in range(0, len(sentences), 20)]


def five_sentences(n: int) -> list[str]:
    """Make n texts of five different sentences, each of two captions and about 25 tokens."""
    drawn = iter(captions(10 * n))
    parts = ((next(drawn).strip(" ."), next(drawn).strip(" .")) for _ in range(5 * n))
    sentences = [f"{first[:1].upper()}{first[1:]}, and {second[:1].lower()}{second[1:]}." for first, second in parts]
    return [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]
