"""BLEU of each text against the others of its set, Distinct-n and Entropy-n, in linear time.

Leave-one-out counts: among the other texts of a set, the largest count of an n-gram is the largest in the whole set, or
the second largest if this text alone holds the largest. So texts are never compared pair by pair.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .core import NgramTable, owners_of, starts_of, sum_by_set

# Constants that nlg-eval's BLEU adds to the counts to avoid zero precisions and divisions by zero.
_NLG_EVAL_TINY = 1e-15
_NLG_EVAL_SMALL = 1e-9
# Chen & Cherry (2014), smoothing 1, with NLTK's value: it replaces a count of zero.
_METHOD1_EPSILON = 0.1

SMOOTHINGS = ("nlg-eval", "method1", "none")


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


def leave_one_out_matches(table: NgramTable) -> np.ndarray:
    """Count each text's n-grams that another text of its set holds too, clipped at the largest count there: (n,)."""
    n_texts = len(table.totals)
    # An n-gram that only one text of the set holds matches nothing; most n-grams are dropped here.
    rows_in_group = np.diff(table.set_groups, append=len(table.counts))
    shared = np.repeat(rows_in_group > 1, rows_in_group)
    counts = table.counts[shared]
    texts = table.texts[shared]
    if not len(counts):
        return np.zeros(n_texts)
    rows_in_group = rows_in_group[rows_in_group > 1]
    groups = starts_of(rows_in_group)
    largest = counts == np.repeat(np.maximum.reduceat(counts, groups), rows_in_group)
    second = np.maximum.reduceat(np.where(largest, 0, counts), groups)
    alone = np.add.reduceat(largest, groups, dtype=np.int64) == 1
    clipped = np.where(largest & np.repeat(alone, rows_in_group), np.repeat(second, rows_in_group), counts)
    return np.bincount(texts, weights=clipped, minlength=n_texts)


def closest_other_lengths(lengths: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Find, for each text, the length closest to its own among the other texts of its set; the shorter on a tie: (n,).

    All sizes are >= 2.
    """
    set_of = owners_of(sizes)
    order = np.lexsort((lengths, set_of))
    ordered = lengths[order]
    far = np.iinfo(np.int64).max // 2
    below = np.full(len(ordered), -far)
    above = np.full(len(ordered), far)
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
    matches = statistics.matches
    totals = statistics.totals
    hypothesis = statistics.hypothesis_lengths
    reference = statistics.reference_lengths
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


def distinct(table: NgramTable, sizes: np.ndarray) -> np.ndarray:
    """Distinct-n (Li et al. 2016): the share of n-grams that are distinct; 0 without n-grams.

    Returns an ndarray of shape (m,), in [0, 1]; higher is more diverse.
    """
    return count_distinct(table, sizes) / np.maximum(sum_by_set(table.totals, sizes), 1)


def count_distinct(table: NgramTable, sizes: np.ndarray) -> np.ndarray:
    """Count the distinct n-grams of each set: (m,)."""
    return np.bincount(_set_of_groups(table, sizes), minlength=len(sizes))


def entropy(table: NgramTable, sizes: np.ndarray) -> np.ndarray:
    """Entropy-n (Zhang et al. 2018): Shannon entropy, in nats, of the n-gram distribution; 0 without n-grams.

    Returns an ndarray of shape (m,), >= 0; higher is more diverse.
    """
    set_of = _set_of_groups(table, sizes)
    shares = np.add.reduceat(table.counts, table.set_groups) / sum_by_set(table.totals, sizes)[set_of]
    return np.bincount(set_of, weights=-shares * np.log(shares), minlength=len(sizes))


def _set_of_groups(table: NgramTable, sizes: np.ndarray) -> np.ndarray:
    return owners_of(sizes)[table.texts[table.set_groups]]
