"""Prose that people wrote and edited, cut into texts of given numbers of sentences."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from text_metrics.commands.shared.files import read_archive
from text_metrics.metrics.gruen.gruen_text import split_texts

CORPORA = ("Brown", "ABC", "State of the Union", "film reviews")
SIZES = (3, 5, 10, 20, 40)
SEED = 0


class Text(NamedTuple):
    """Consecutive sentences of one document, which has a name of its own."""

    document: str
    sentences: list[str]


class Part(NamedTuple):
    """One half of the documents of a corpus.

    corpus : one of CORPORA
    texts : for each of SIZES, disjoint texts of this many sentences
    """

    corpus: str
    texts: dict[int, list[Text]]


def read_parts(folder: Path, spans: int, per_size: int) -> tuple[list[Part], list[Part]]:
    """Read the parts to choose by and to report on, one of each corpus.

    Parameters
    ----------
    folder : holds brown.zip, abc.zip, state_union.zip and movie_reviews.zip of NLTK
    spans : how many runs of 40 sentences are drawn from each part; of shorter documents, as many sentences
    per_size : how many texts of each size are cut from the runs, at most
    """
    halves: tuple[list[Part], list[Part]] = ([], [])
    for corpus, read in zip(CORPORA, (_brown, _abc, _addresses, _reviews), strict=True):
        draw = random.Random(SEED)
        documents = [(f"{corpus} {i}", text) for i, text in enumerate(read(folder))]
        draw.shuffle(documents)
        for half, part in zip(halves, (documents[::2], documents[1::2]), strict=True):
            half.append(Part(corpus, _cut(part, spans, per_size, draw)))
    return halves


def _cut(documents: list[tuple[str, str]], spans: int, per_size: int, draw: random.Random) -> dict[int, list[Text]]:
    """Cut documents into runs of sentences, and the runs into texts."""
    longest = max(SIZES)
    sentences = split_texts([text for _, text in documents])
    runs = [
        Text(name, text[start : start + longest])
        for (name, _), text in zip(documents, sentences, strict=True)
        for start in range(0, len(text), longest)
    ]
    draw.shuffle(runs)
    # Of short documents, such as news, there are few long runs.
    runs.sort(key=lambda run: len(run.sentences), reverse=True)
    ends = np.cumsum([len(run.sentences) for run in runs])
    runs = runs[: int(np.searchsorted(ends, longest * spans, "right"))]
    by_size = {}
    for size in SIZES:
        texts = [
            Text(run.document, run.sentences[start : start + size])
            for run in runs
            for start in range(0, len(run.sentences) - size + 1, size)
        ]
        by_size[size] = draw.sample(texts, min(per_size, len(texts)))
    return by_size


def _members(archive: Path, pattern: str, encoding: str) -> Iterator[str]:
    for _, data in read_archive(archive, pattern):
        yield data.decode(encoding, errors="replace").replace("\r", "")


def brown_paragraphs(folder: Path) -> Iterator[list[list[str]]]:
    """Read the documents of the tagged corpus as lists of paragraphs, which are lists of sentences.

    An indented line begins a paragraph; quotation marks are removed.
    """
    for document in _members(folder / "brown.zip", r"/c[a-r]\d\d$", "utf-8"):
        paragraphs: list[list[str]] = [[]]
        for line in document.splitlines():
            if line.startswith("\t"):
                paragraphs.append([])
            words = [token.rsplit("/", 1)[0] for token in line.split()]
            text = " ".join(word for word in words if word not in ("``", "''"))
            if text:
                paragraphs[-1].append(re.sub(r" (?=[.,;:?!])", "", text))
        yield [paragraph for paragraph in paragraphs if paragraph]


def _brown(folder: Path) -> Iterator[str]:
    for document in brown_paragraphs(folder):
        yield "\n\n".join(" ".join(paragraph) for paragraph in document)


def _abc(folder: Path) -> Iterator[str]:
    for text in _members(folder / "abc.zip", r"(rural|science)\.txt$", "latin-1"):
        yield from (" ".join(article.split()) for article in re.split(r"\n\s*\n", text) if article.strip())


def _addresses(folder: Path) -> Iterator[str]:
    """Read the addresses, without their titles."""
    for text in _members(folder / "state_union.zip", r"\.txt$", "latin-1"):
        yield text.split("\n \n", 1)[-1]


def _reviews(folder: Path) -> Iterator[str]:
    return _members(folder / "movie_reviews.zip", r"(neg|pos)/.*\.txt$", "utf-8")
