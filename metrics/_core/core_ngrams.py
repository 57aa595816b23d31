"""Tokens to integer ids to n-gram tables, and the scores counted from them, in numpy and in linear time.

The scores are BLEU of each text against the others of its set, Distinct-n, Entropy-n, and n-gram kernels.

Leave-one-out counts: among the other texts of a set, the largest count of an n-gram is the largest in the whole set, or
the second largest if this text alone holds the largest. So texts are never compared pair by pair.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from .core_inputs import batches_by_size, sum_by_set

# Bound of the keys of n-grams, which must fit in an int64.
_MAX_KEY = 2**62

# Constants that nlg-eval's BLEU adds to the counts to avoid zero precisions and divisions by zero.
_NLG_EVAL_TINY = 1e-15
_NLG_EVAL_SMALL = 1e-9
# Chen & Cherry (2014), smoothing 1, with NLTK's value: it replaces a count of zero.
_METHOD1_EPSILON = 0.1

# Thai, Lao, Tibetan, Burmese, Khmer, Chinese and Japanese: scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

SMOOTHINGS = ("nlg-eval", "method1", "none")


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


class BleuStatistics(NamedTuple):
    """Statistics of BLEU of each text against the other texts of its set; sums over texts pool them.

    matches : ndarray of shape (max_order, n): n-grams that another text holds too, clipped at its count there
    totals : ndarray of shape (max_order, n): number of n-grams
    hypothesis_lengths, reference_lengths : ndarrays of shape (n,): its own length, and the closest of the others
    """

    matches: np.ndarray
    totals: np.ndarray
    hypothesis_lengths: np.ndarray
    reference_lengths: np.ndarray

    def pooled(self, sizes: np.ndarray) -> "BleuStatistics":
        """Sum over the texts of each set: arrays of m in place of n columns."""
        return BleuStatistics(*(sum_by_set(field, sizes) for field in self))


def is_unspaced(text: str) -> bool:
    """Whether most characters of a text are of a script that has no spaces between words."""
    return 2 * len(_UNSPACED.findall(text)) > len(text)


def number_tokens(tokens: Sequence[Sequence[str]]) -> Tokens:
    """Map each distinct token to an integer."""
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    flat = list(chain.from_iterable(tokens))
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(flat))}
    return Tokens(np.fromiter(map(vocabulary.__getitem__, flat), np.int64, len(flat)), lengths, len(vocabulary))


def ngram_tables(tokens: Tokens, sizes: np.ndarray, max_order: int) -> Iterator[NgramTable]:
    """Count the n-grams of each order from 1 to `max_order`, in m sets of `sizes` texts."""
    n_texts = len(tokens.lengths)
    text_of = np.repeat(np.arange(n_texts), tokens.lengths)
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    # Tokens from each position to the end of its text.
    left = np.repeat(np.cumsum(tokens.lengths), tokens.lengths) - np.arange(len(tokens.ids))
    positions = np.arange(len(tokens.ids))
    keys, bound = tokens.ids, max(tokens.vocabulary_size, 1)
    for order in range(1, max_order + 1):
        if order > 1:
            fits = left[positions] >= order
            positions, keys = positions[fits], keys[fits]
            if (bound * tokens.vocabulary_size) << _text_bits(n_texts) >= _MAX_KEY:
                distinct, keys = np.unique(keys, return_inverse=True)
                bound = max(len(distinct), 1)
            keys = keys * tokens.vocabulary_size + tokens.ids[positions + order - 1]
            bound *= tokens.vocabulary_size
        totals = np.maximum(tokens.lengths - order + 1, 0)
        yield _table(keys, text_of[positions], n_texts, set_of, totals)


def _table(keys: np.ndarray, texts: np.ndarray, n_texts: int, set_of: np.ndarray, totals: np.ndarray) -> NgramTable:
    # One sort of integers groups by n-gram, then by text; texts are already in order of their sets.
    bits = _text_bits(n_texts)
    merged = (keys << bits) | texts
    merged.sort()
    starts = run_starts(merged)
    counts = np.diff(starts, append=len(merged))
    merged = merged[starts]
    grams, texts = merged >> bits, merged & ((1 << bits) - 1)
    corpus_groups = run_starts(grams)
    if len(grams):
        first = np.zeros(len(grams), dtype=bool)
        first[corpus_groups] = True
        sets = set_of[texts]
        first[1:] |= sets[1:] != sets[:-1]
        set_groups = np.flatnonzero(first)
    else:
        set_groups = corpus_groups
    return NgramTable(texts, counts, set_groups, corpus_groups, totals)


def _text_bits(n_texts: int) -> int:
    """Return the number of bits of a merged key that hold the index of a text."""
    return max(n_texts - 1, 1).bit_length()


def run_starts(values: np.ndarray) -> np.ndarray:
    """Find where each run of equal values begins."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    new = np.empty(len(values), dtype=bool)
    new[0] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return np.flatnonzero(new)


def leave_one_out_matches(table: NgramTable) -> np.ndarray:
    """Count each text's n-grams that another text of its set holds too, clipped at the largest count there: (n,)."""
    n_texts = len(table.totals)
    if not len(table.counts):
        return np.zeros(n_texts)
    # An n-gram that only one text of the set holds matches nothing; most n-grams are dropped here.
    rows_in_group = np.diff(table.set_groups, append=len(table.counts))
    shared = np.repeat(rows_in_group > 1, rows_in_group)
    counts, texts = table.counts[shared], table.texts[shared]
    if not len(counts):
        return np.zeros(n_texts)
    rows_in_group = rows_in_group[rows_in_group > 1]
    groups = np.cumsum(rows_in_group) - rows_in_group
    largest = counts == np.repeat(np.maximum.reduceat(counts, groups), rows_in_group)
    second = np.maximum.reduceat(np.where(largest, 0, counts), groups)
    alone = np.add.reduceat(largest, groups, dtype=np.int64) == 1
    clipped = np.where(largest & np.repeat(alone, rows_in_group), np.repeat(second, rows_in_group), counts)
    return np.bincount(texts, weights=clipped, minlength=n_texts)


def closest_other_lengths(lengths: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Find, for each text, the length closest to its own among the other texts of its set; the shorter on a tie: (n,).

    All sizes are >= 2.
    """
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((lengths, set_of))
    ordered = lengths[order]
    far = np.iinfo(np.int64).max // 2
    below, above = np.full(len(ordered), -far), np.full(len(ordered), far)
    same_set = set_of[1:] == set_of[:-1]
    below[1:][same_set] = ordered[:-1][same_set]
    above[:-1][same_set] = ordered[1:][same_set]
    closest = np.empty_like(lengths)
    closest[order] = np.where(ordered - below <= above - ordered, below, above)
    return closest


def bleu_statistics(tables: Sequence[NgramTable], lengths: np.ndarray, sizes: np.ndarray) -> BleuStatistics:
    """Compute the statistics of BLEU of each text, with the other texts of its set as references.

    `tables` are of orders 1 to max_order, `lengths` (n,) the numbers of tokens, and all sizes (m,) >= 2.
    """
    return BleuStatistics(
        np.stack([leave_one_out_matches(table) for table in tables]),
        np.stack([table.totals for table in tables]),
        lengths,
        closest_other_lengths(lengths, sizes),
    )


def bleu(statistics: BleuStatistics, smoothing: str) -> np.ndarray:
    """Compute BLEU of every order up to max_order (Papineni et al. 2002, with uniform weights).

    Maps statistics with c columns, single or pooled, to (max_order, c), in [0, 1]. The smoothing is "nlg-eval" (its
    constants), "method1" (Chen & Cherry 2014, as in NLTK) or "none".
    """
    matches, totals = statistics.matches, statistics.totals
    hypothesis, reference = statistics.hypothesis_lengths, statistics.reference_lengths
    if smoothing == "nlg-eval":
        precisions = (matches + _NLG_EVAL_TINY) / (totals + _NLG_EVAL_SMALL)
        ratio = (hypothesis + _NLG_EVAL_TINY) / (reference + _NLG_EVAL_SMALL)
    else:
        if smoothing == "method1":
            # NLTK scores 0 if no word matches, with any smoothing.
            matches = np.where((matches == 0) & (matches[0] > 0), _METHOD1_EPSILON, matches)
        precisions = matches / np.maximum(totals, 1)
        ratio = hypothesis / np.maximum(reference, 1)
    with np.errstate(divide="ignore"):
        mean_logs = np.cumsum(np.log(precisions), axis=0) / np.arange(1, len(precisions) + 1)[:, None]
        brevity_penalty = np.where(ratio < 1, np.exp(1 - 1 / ratio), 1.0)
    return np.exp(mean_logs) * brevity_penalty


def distinct(table: NgramTable, sizes: np.ndarray, pooled: bool = False) -> np.ndarray:
    """Distinct-n (Li et al. 2016): the share of n-grams that are distinct; 0 without n-grams.

    Returns an ndarray of shape (m,), or (1,) when counted over all sets together, in [0, 1]; higher is more diverse.
    """
    _, owners, totals = _group_totals(table, sizes, pooled)
    n_distinct = np.bincount(owners, minlength=len(totals))
    return n_distinct / np.maximum(totals, 1)


def entropy(table: NgramTable, sizes: np.ndarray, pooled: bool = False) -> np.ndarray:
    """Entropy-n (Zhang et al. 2018): Shannon entropy, in nats, of the n-gram distribution; 0 without n-grams.

    Returns an ndarray of shape (m,), or (1,) when pooled, >= 0; higher is more diverse.
    """
    counts, owners, totals = _group_totals(table, sizes, pooled)
    shares = counts / totals[owners]
    return np.bincount(owners, weights=-shares * np.log(shares), minlength=len(totals))


def _group_totals(table: NgramTable, sizes: np.ndarray, pooled: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum the counts of each n-gram over a set, or over all sets; return the set of each sum and its total, too."""
    if pooled:
        sizes, groups = np.array([sizes.sum()]), table.corpus_groups
    else:
        groups = table.set_groups
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    totals = sum_by_set(table.totals, sizes)
    if not len(groups):
        return np.empty(0), np.empty(0, dtype=np.int64), totals
    return np.add.reduceat(table.counts, groups), set_of[table.texts[groups]], totals


def ngram_kernels(
    tables: Sequence[NgramTable],
    sizes: np.ndarray,
    max_rows: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Mean over orders of the cosine between n-gram count vectors, for all pairs of texts of a set.

    Two texts that are both too short for an n-gram of some order have a cosine of 1 in that order, and of 0 with any
    longer text: so the diagonal is 1, and equal texts have a similarity of 1, however short.

    Yields the indices (b,) of sets of equal size, of at most `max_rows` texts, and their kernels (b, k, k), positive
    semi-definite with unit diagonal.
    """
    from scipy import sparse

    n_texts = len(tables[0].totals)
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    vectors = []
    for table in tables:
        without = np.flatnonzero(table.totals == 0)
        rows_in_group = np.diff(table.set_groups, append=len(table.counts))
        columns = np.concatenate(
            [np.repeat(np.arange(len(table.set_groups)), rows_in_group), len(table.set_groups) + set_of[without]]
        )
        rows = np.concatenate([table.texts, without])
        counts = np.concatenate([table.counts, np.ones(len(without))])
        norms = np.sqrt(np.bincount(rows, weights=counts**2, minlength=n_texts))
        shape = (n_texts, len(table.set_groups) + len(sizes))
        vectors.append(sparse.csr_array((counts / norms[rows], (rows, columns)), shape=shape))
    stacked = sparse.hstack(vectors, format="csr") / np.sqrt(len(tables))
    for members, rows in batches_by_size(sizes, max_rows):
        b, k = rows.shape
        part = stacked[rows.ravel()]
        products = (part @ part.T).tocoo()
        kernels = np.zeros((b, k, k))
        kernels[products.row // k, products.row % k, products.col % k] = products.data
        yield members, kernels
