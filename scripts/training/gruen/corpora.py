"""Documents of public corpora, as lists of sentences, which are lists of words."""

import re
from collections.abc import Iterator
from pathlib import Path

from text_metrics.commands.shared.files import read_archive

# The white space between two sentences.
_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]*[A-Z])")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks."""
    return _TOKEN.findall(text)


def read_brown(path: Path) -> Iterator[list[list[tuple[str, str]]]]:
    """Yield the documents of the tagged Brown corpus: sentences of (word, tag)."""
    for name, data in read_archive(path, r"^brown/c[a-r]\d\d$"):
        sentences: list[list[tuple[str, str]]] = []
        for number, line in enumerate(data.decode("utf-8", errors="replace").split("\n"), 1):
            tagged = [token.rsplit("/", 1) for token in line.split()]
            if any(len(pair) != 2 for pair in tagged):
                raise ValueError(f"{path}: {name}, line {number} has a word without a tag.")
            sentence = [(word, tag) for word, tag in tagged if word not in ("``", "''")]
            if sentence:
                sentences.append(sentence)
        yield sentences


def read_plain(path: Path, pattern: str, tokenized: bool = False) -> Iterator[list[str]]:
    """Yield documents as lists of sentences, from the files of an archive whose names match."""
    for _, data in read_archive(path, pattern):
        lines = [" ".join(line.split()) for line in data.decode("utf-8", errors="replace").split("\n")]
        yield [sentence for line in lines if line for sentence in ([line] if tokenized else _END.split(line))]


def documents(folder: Path) -> list[list[list[str]]]:
    """Read the documents of all corpora in a folder; the names of speakers are removed."""
    texts = [[[word for word, _ in sentence] for sentence in document] for document in read_brown(folder / "brown.zip")]
    for archive, pattern, tokenized in (
        ("abc.zip", r"\.txt$", False),
        ("state_union.zip", r"\.txt$", False),
        ("movie_reviews.zip", r"\.txt$", True),
        ("webtext.zip", r"(overheard|wine)\.txt$", False),
    ):
        for document in read_plain(folder / archive, pattern, tokenized):
            texts.append([split_words(re.sub(r"^[A-Z][\w #']{0,20}: ", "", sentence)) for sentence in document])
    return texts
