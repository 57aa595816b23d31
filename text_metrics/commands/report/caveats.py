"""What could mislead in a report."""

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np

from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.formats import count, number
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20
# Standard deviations by which lengths must differ to explain other numbers.
_LENGTHS_APART = 0.5
# Texts of a system whose language is identified, which takes time.
_MOST_IDENTIFIED = 500
# What spaces separate; each character of Chinese and Japanese, which are written without spaces.
_WORDS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_Caveats = Iterator[tuple[str, str]]


def word_counts(texts: Iterable[str]) -> np.ndarray:
    """Count the words of each text: (n,), float64."""
    return np.array([len(_WORDS.findall(text)) for text in texts], dtype=np.float64)


def find_caveats(inputs: Inputs, options: argparse.Namespace) -> list[dict[str, str]]:
    """Return the entries of `caveats`."""
    is_english = (options.quality == "gruen" and options.quality_key is None) or "model" not in options.setting
    found = [*_of_reading(inputs), *_of_lengths(inputs), *_of_texts(inputs, is_english)]
    return [{"kind": kind, "sentence": sentence} for kind, sentence in found]


def _of_reading(inputs: Inputs) -> _Caveats:
    """Say what was read, and what of it was not used."""
    n, sizes = len(inputs.ids), inputs.sizes
    if inputs.bad:
        yield "invalid rows", f"{count(len(inputs.bad), 'row')} could not be used: see bad.jsonl."
    if n < inputs.n_all:
        of = f"{n:,} of {count(inputs.n_all, 'prompt')}"
        yield "missing prompts", f"Only {of} have two texts or more from every system; the others are ignored."
    if inputs.smallest is not None:
        yield (
            "sets of different sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: scores are what is expected of {inputs.smallest} texts "
            "of each (rarefied), except for length and quality.",
        )
    if n < FEW_PROMPTS:
        yield "few prompts", f"With {count(n, 'prompt')}, intervals may be too narrow, and tests find little."


def _of_lengths(inputs: Inputs) -> _Caveats:
    """Name the pair whose texts differ most in length."""
    lengths = {name: word_counts(texts) for name, texts in inputs.by_system().items()}
    if inputs.people is not None:
        lengths["people"] = word_counts(text for texts in inputs.people.values() for text in texts)
    apart = {}
    for first, second in combinations(lengths, 2):
        spread = np.sqrt((lengths[first].var() + lengths[second].var()) / 2)
        apart[first, second] = abs(lengths[first].mean() - lengths[second].mean()) / max(spread, 1e-9)
    first, second = max(apart, key=lambda pair: apart[pair], default=("", ""))
    if apart and apart[first, second] >= _LENGTHS_APART:
        words = f"{number(lengths[first].mean(), 1)} words, of {second} {number(lengths[second].mean(), 1)}"
        yield (
            "different lengths",
            f"Texts of {first} have {words}: self-BLEU, Distinct-2 and compression ratio depend on length.",
        )


def _of_texts(inputs: Inputs, is_english: bool) -> _Caveats:
    """Name systems with texts that are empty or in another language."""
    for name, texts in inputs.by_system().items():
        n_empty = sum(not text.strip() for text in texts)
        if n_empty:
            yield "empty texts", f"{n_empty:,} of {count(len(texts), 'text')} of {name} are empty."
        sample = texts[:: -(-len(texts) // _MOST_IDENTIFIED)] if is_english else []
        n_foreign = sum(map(len, find_unread(sample)))
        if n_foreign:
            of = f"{count(len(sample), 'text')} of {name} that were looked at"
            yield "language", f"{n_foreign:,} of {of} are source code or not in English."
