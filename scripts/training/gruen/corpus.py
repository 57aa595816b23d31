"""The training data of the compact backbone of `gruen`, and the sentences that are held out."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.training.gruen.corpora import documents, split_words
from scripts.training.gruen.corruptions import Corruptor
from scripts.training.gruen.lexicon import is_clean, learn_lexicon
from scripts.training.gruen.names import Renamer
from text_metrics.commands.shared.files import read_text_lines

HELD_OUT = 1500  # clean sentences
COLA_HELD_OUT = 800


class Corpus(NamedTuple):
    """The training data.

    sentences, masked : sentences to corrupt and to mask, as words
    captions : captions of pictures, as words
    cola, cola_held_out : pairs of a sentence and a label, 1 if acceptable
    held_out : clean sentences that the training does not see
    corruptor, renamer : make these from a seed, the latter also from the share of names made of common words
    """

    sentences: list[list[str]]
    masked: list[list[str]]
    captions: list[list[str]]
    cola: list[tuple[str, int]]
    cola_held_out: list[tuple[str, int]]
    held_out: list[list[str]]
    corruptor: Callable[[int], Corruptor]
    renamer: Callable[[int, float], Renamer]


def read_corpus(text: Path, cola: Path) -> Corpus:
    """Read all text, and hold some of it out."""
    lexicon = learn_lexicon(text / "brown.zip")
    sentences = [sentence for document in documents(text) for sentence in document]
    clean = [sentence for sentence in sentences if is_clean(sentence, lexicon)]
    rows = read_cola(cola / "cola_in_domain_train.tsv")
    random.Random(5).shuffle(rows)
    random.Random(1).shuffle(clean)
    held_out, rest = clean[:HELD_OUT], clean[HELD_OUT:]
    # Short sentences teach more in the same time, and are closer to the texts that are scored.
    rest = [sentence for i, sentence in enumerate(rest) if len(sentence) <= 20 or i % 6 == 0]
    cola_held_out, rows = rows[:COLA_HELD_OUT], rows[COLA_HELD_OUT:]
    examples = [words for sentence, label in rows if label for words in [split_words(sentence)] if len(words) >= 4]
    captions = [split_words(line) for line in read_text_lines(text / "coco_captions_20k.txt")]
    masked = rest + [sentence for sentence in sentences if 5 <= len(sentence) <= 26][::3] + captions[::2]
    return Corpus(
        rest + examples * 2,
        masked,
        captions[::2],
        rows,
        cola_held_out,
        held_out,
        lambda seed: Corruptor(lexicon, seed),
        lambda seed, made: Renamer(lexicon, rest, seed, made),
    )


def read_cola(path: Path) -> list[tuple[str, int]]:
    """Read sentences and labels, 1 if acceptable."""
    rows = []
    for number, line in enumerate(read_text_lines(path), 1):
        fields = line.split("\t")
        if len(fields) < 4 or fields[1] not in ("0", "1"):
            raise ValueError(f"{path}, line {number} must be source, 0 or 1, a mark and a sentence, between tabs.")
        rows.append((fields[3], int(fields[1])))
    return rows
