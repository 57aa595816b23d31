"""Tokens to integer ids to n-gram tables, in numpy and in linear time."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from .core_inputs import owners_of

# Bound of the keys of n-grams, which must fit in an int64.
_MAX_KEY = 2**62

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
    """Count the n-grams of each order from 1 to `max_order`, in m sets of `sizes` texts."""
    n_texts = len(tokens.lengths)
    n_words = tokens.vocabulary_size
    text_of = owners_of(tokens.lengths)
    set_of = owners_of(sizes)
    positions = np.arange(len(tokens.ids))
    # Tokens from each position to the end of its text.
    left = np.repeat(np.cumsum(tokens.lengths), tokens.lengths) - positions
    keys = tokens.ids
    bound = max(n_words, 1)
    for order in range(1, max_order + 1):
        if order > 1:
            fits = left[positions] >= order
            positions = positions[fits]
            keys = keys[fits]
            if bound * n_words * n_texts >= _MAX_KEY:
                distinct, keys = np.unique(keys, return_inverse=True)
                bound = max(len(distinct), 1)
            keys = keys * n_words + tokens.ids[positions + order - 1]
            bound *= n_words
        # Sorted by n-gram, then by text; texts are already in order of their sets.
        pairs, counts = np.unique(keys * n_texts + text_of[positions], return_counts=True)
        grams, texts = np.divmod(pairs, max(n_texts, 1))
        is_new = np.diff(grams, prepend=-1) > 0
        is_new_in_set = is_new | (np.diff(set_of[texts], prepend=-1) != 0)
        totals = np.maximum(tokens.lengths - order + 1, 0)
        yield NgramTable(texts, counts, np.flatnonzero(is_new_in_set), np.flatnonzero(is_new), totals)
