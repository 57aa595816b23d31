"""Tokens to integer ids to n-gram tables, in numpy and in linear time."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from .core_inputs import owners_of

# numpy sorts integers of this many bits in linear time.
_RADIX_BITS = 16

# Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese: scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class Tokens(NamedTuple):
    """Tokenized texts as integers.

    ids : ndarray of shape (N,), int64: the token ids of all texts, concatenated
    lengths : ndarray of shape (n,), int64: the number of tokens in each text
    vocabulary_size : int
    """

    ids: np.ndarray
    lengths: np.ndarray
    vocabulary_size: int


class NgramTable(NamedTuple):
    """The n-grams of one order: a row for each n-gram and each text that holds it, sorted by both.

    texts : ndarray of shape (e,): index of the text
    counts : ndarray of shape (e,): count of the n-gram in the text
    set_groups : ndarray: first row of each n-gram in each set
    corpus_groups : ndarray: first row of each n-gram
    totals : ndarray of shape (n,): number of n-grams in each text, repeats included
    """

    texts: np.ndarray
    counts: np.ndarray
    set_groups: np.ndarray
    corpus_groups: np.ndarray
    totals: np.ndarray


def is_unspaced(text: str) -> bool:
    """Tell whether most characters of a text are of a script without spaces between words."""
    return not text.isascii() and 2 * len(_UNSPACED.findall(text)) > len(text)


def number_tokens(tokens: Sequence[Sequence[str]]) -> Tokens:
    """Map each distinct token to an integer."""
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    return Tokens(np.fromiter(map(numbers.__getitem__, chain.from_iterable(tokens)), np.int64), lengths, len(numbers))


def ngram_tables(tokens: Tokens, sizes: np.ndarray, max_order: int) -> Iterator[NgramTable]:
    """Count the n-grams of each order from 1 to `max_order`, in m sets of `sizes` texts.

    An n-gram is the (n-1)-gram at its position, by its number, and the token after it.
    """
    n_tokens = len(tokens.ids)
    text_of = owners_of(tokens.lengths)
    set_of = owners_of(sizes)
    positions = np.arange(n_tokens)
    # Tokens from each position to the end of its text.
    left = np.repeat(np.cumsum(tokens.lengths), tokens.lengths) - positions
    prefixes = np.zeros(n_tokens, np.int64)
    for order in range(1, max_order + 1):
        fits = left[positions] >= order
        positions = positions[fits]
        prefixes = prefixes[fits]
        last = tokens.ids[positions + order - 1]
        # Sorted by n-gram, then by text; texts are already in order of their sets.
        by_last = stable_order(last)
        sorting = by_last[stable_order(prefixes[by_last])]
        is_new = _differs(prefixes[sorting]) | _differs(last[sorting])
        texts = text_of[positions[sorting]]
        rows = np.flatnonzero(is_new | _differs(texts))
        prefixes[sorting] = np.cumsum(is_new) - 1
        texts_of_rows = texts[rows]
        is_new_row = is_new[rows]
        yield NgramTable(
            texts=texts_of_rows,
            counts=np.diff(rows, append=len(texts)),
            set_groups=np.flatnonzero(is_new_row | _differs(set_of[texts_of_rows])),
            corpus_groups=np.flatnonzero(is_new_row),
            totals=np.maximum(tokens.lengths - order + 1, 0),
        )


def stable_order(numbers: np.ndarray) -> np.ndarray:
    """Return the indices that sort integers, (n,), all >= 0; equal ones stay in order. Linear time: a radix sort."""
    largest = int(numbers.max(initial=0))
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(_RADIX_BITS, largest.bit_length(), _RADIX_BITS):
        digits = (numbers >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def _differs(values: np.ndarray) -> np.ndarray:
    """Tell where values, (n,), differ from the one before; the first does."""
    differs = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs
