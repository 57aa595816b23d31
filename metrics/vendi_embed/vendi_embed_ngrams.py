"""Similarities of texts by their n-grams of words, as in the Vendi Score paper."""

from collections.abc import Iterator, Sequence

import numpy as np

from .core import (
    LIMITS,
    NgramTable,
    TextSets,
    batches_by_size,
    find_different,
    is_unspaced,
    ngram_tables,
    number_tokens,
    owners_of,
    warn,
)

# The n-gram kernel of the paper (section 5.4, text) averages these orders.
_NGRAM_ORDERS = 4
# The indices of sets of equal size, (b,), and their matrices, (b, k, k).
Kernels = tuple[np.ndarray, np.ndarray]


def word_kernels(sets: TextSets) -> tuple[Iterator[Kernels], dict[str, str]]:
    """Return the mean of the cosines of 1- to 4-gram counts of words, and the entries of a signature."""
    import nltk
    from nltk.tokenize import NLTKWordTokenizer

    n_unspaced = sum(map(is_unspaced, sets.texts))
    if n_unspaced:
        reason = "are in a script without spaces, where kernel='ngram' takes a sentence for a word."
        warn(f"{n_unspaced} of {len(sets.texts)} texts {reason}")
    # NLTK's tokenizer takes most of the time, so each different text is tokenized once.
    texts, places = find_different(sets.texts)
    words = [NLTKWordTokenizer().tokenize(text) for text in texts]
    tokens = number_tokens([words[place] for place in places.tolist()])
    tables = list(ngram_tables(tokens, sets.sizes, _NGRAM_ORDERS))
    signed = {"tokenizer": f"nltk{nltk.__version__}"}
    return _ngram_kernels(tables, sets.sizes), signed


def _ngram_kernels(tables: Sequence[NgramTable], sizes: np.ndarray) -> Iterator[Kernels]:
    """Average the cosines of n-gram counts over the orders: positive semi-definite kernels, with a diagonal of 1.

    Two texts that are both too short for an n-gram of some order have a cosine of 1 in that order, and of 0 with any
    longer text.
    """
    from scipy import sparse

    n_texts = len(tables[0].totals)
    set_of = owners_of(sizes)
    vectors = []
    for table in tables:
        without = np.flatnonzero(table.totals == 0)
        rows_in_group = np.diff(table.set_groups, append=len(table.counts))
        columns = np.concatenate([owners_of(rows_in_group), len(table.set_groups) + set_of[without]])
        rows = np.concatenate([table.texts, without])
        counts = np.concatenate([table.counts, np.ones(len(without))])
        norms = np.sqrt(np.bincount(rows, weights=counts**2, minlength=n_texts))
        shape = (n_texts, len(table.set_groups) + len(sizes))
        vectors.append(sparse.csr_array((counts / norms[rows], (rows, columns)), shape=shape))
    stacked = sparse.hstack(vectors, format="csr") / np.sqrt(len(tables))
    for members, rows in batches_by_size(sizes, LIMITS.block_rows):
        b, k = rows.shape
        part = stacked[rows.ravel()]
        products = (part @ part.T).tocoo()
        kernels = np.zeros((b, k, k))
        kernels[products.row // k, products.row % k, products.col % k] = products.data
        yield members, kernels
