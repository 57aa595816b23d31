"""Self-BLEU, Distinct-n and Entropy-n of one set from its parts: n-gram tables that merge.

An n-gram is identified by a hash of 64 bits, so that tables merge whatever the vocabulary of each part. Among n
different n-grams, a share of about n / 2^65 collides.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from .core_ngrams import BleuStatistics, bleu, closest_other_lengths, number_tokens, run_starts
from .core_rarefaction import to_key
from .core_statistics import Arrays, SetParts
from .self_bleu_scores import adjusted_distinct
from .self_bleu_tokenizers import tokenize

COUNTS = np.dtype([("key", np.uint64), ("total", np.int64), ("largest", np.int32), ("second", np.int32)])


def ngram_counts(tokens: Sequence[Sequence[str]], max_order: int) -> list[np.ndarray]:
    """Count the n-grams of texts of one set, for each order from 1 to `max_order`, in a form that merges.

    Parameters
    ----------
    tokens : list of n lists of tokens

    Returns
    -------
    list of ndarrays of dtype COUNTS, sorted by key: for each n-gram its count in all texts, and the largest and the
    second largest count in a single text (equal if two texts share the largest)
    """
    numbered = number_tokens(tokens)
    hashes = np.array([to_key(token.encode()) for token in dict.fromkeys(chain.from_iterable(tokens))], dtype=np.uint64)
    text_of = np.repeat(np.arange(len(tokens)), numbered.lengths)
    left = np.repeat(np.cumsum(numbered.lengths), numbered.lengths) - np.arange(len(numbered.ids))
    of_tokens = hashes[numbered.ids] if len(hashes) else np.empty(0, np.uint64)
    positions, keys = np.arange(len(of_tokens)), of_tokens
    tables = []
    for order in range(1, max_order + 1):
        if order > 1:
            has_ngram = left[positions] >= order
            positions = positions[has_ngram]
            keys = _mix(keys[has_ngram] + _mix(of_tokens[positions + order - 1] + np.uint64(order)))
        tables.append(_count_keys(keys, text_of[positions]))
    return tables


def _mix(values: np.ndarray) -> np.ndarray:
    """Spread 64 bits over 64 bits, one to one (splitmix64, Steele et al. 2014)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _count_keys(keys: np.ndarray, texts: np.ndarray) -> np.ndarray:
    order = np.argsort(keys, kind="stable")
    keys, texts = keys[order], texts[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (texts[1:] != texts[:-1])
    starts = np.flatnonzero(new)
    table = np.zeros(len(starts), COUNTS)
    table["key"] = keys[starts]
    table["total"] = table["largest"] = np.diff(starts, append=len(keys))
    return merge_counts([table])


def merge_counts(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Merge the tables of parts of a set into the table of the whole: arrays of dtype COUNTS, sorted by key."""
    rows = np.concatenate(tables)
    rows = rows[np.argsort(rows["key"], kind="stable")]
    starts = run_starts(rows["key"])
    merged = np.zeros(len(starts), COUNTS)
    if not len(starts):
        return merged
    merged["key"] = rows["key"][starts]
    merged["total"] = np.add.reduceat(rows["total"], starts)
    merged["largest"] = np.maximum.reduceat(rows["largest"], starts)
    at_top = rows["largest"] == np.repeat(merged["largest"], np.diff(starts, append=len(rows)))
    runner_up = np.maximum.reduceat(np.where(at_top, rows["second"], rows["largest"]), starts)
    several = np.add.reduceat(at_top, starts, dtype=np.int64) > 1
    merged["second"] = np.where(several, merged["largest"], runner_up)
    return merged


class CountSums(NamedTuple):
    """Sums over the n-grams of one order of a set, from which it is scored; sums over ranges of keys add up.

    matches : n-grams also held by another text, clipped at its count there, as in `leave_one_out_matches`
    total, distinct : all n-grams, and the different ones
    logs : sum over different n-grams of count times log count
    """

    matches: int
    total: int
    distinct: int
    logs: float


def sum_counts(table: np.ndarray) -> CountSums:
    """Sum a merged table, or its rows within a range of keys."""
    total = int(table["total"].sum())
    alone = int((table["largest"] - table["second"]).sum(dtype=np.int64))
    counts = table["total"].astype(np.float64)
    return CountSums(total - alone, total, len(table), float((counts * np.log(counts)).sum()))


def entropy_from_sums(sums: CountSums) -> float:
    """Compute Entropy-n of a set, equal to `entropy` of core_ngrams."""
    return max(math.log(sums.total) - sums.logs / sums.total, 0.0) if sums.total else 0.0


def closest_length_sum(lengths: np.ndarray, times: np.ndarray) -> int:
    """Sum over the texts of one set of the closest other length.

    Parameters
    ----------
    lengths, times : ndarrays of shape (k,): the different lengths, and how many texts have each; at least two texts
    """
    # The closest other length of equally long texts is their own: two of them stand for all.
    shown = np.minimum(times, 2)
    closest = closest_other_lengths(np.repeat(lengths, shown), shown.sum(keepdims=True))
    return int(closest[np.cumsum(shown) - shown] @ times)


def merge_lengths(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Add up how many texts have each length: arrays of shape (2, k), the lengths and the numbers of texts."""
    both = np.concatenate(parts, axis=1)
    lengths, places = np.unique(both[0], return_inverse=True)
    times = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(times, places, both[1])
    return np.stack([lengths, times])


class SelfBleuParts(SetParts):
    """Tables of the n-grams of parts of a set, and the lengths of their texts."""

    replaces = False
    least = 2

    def check(self) -> None:
        """Raise a ValueError for a mean over texts, which needs the matches of each text."""
        if self.settings.aggregate == "sentence":
            raise ValueError(
                "aggregate='sentence' needs the matches of each text, which merged tables do not have; 'set' does not."
            )
        super().check()

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Count some texts: `lengths`, of shape (2, k), and `counts_1`, `counts_2`, ..., of dtype COUNTS."""
        # Checks the settings before they are used.
        self.signature()
        words, _ = tokenize(texts, self.settings.tokenizer, lambda i: f"text {i}")
        tables = ngram_counts(words, self.settings.max_order)
        lengths = np.unique(list(map(len, words)), return_counts=True)
        return {"lengths": np.stack(lengths), **dict(zip(self.tables, tables, strict=True))}

    @property
    def tables(self) -> list[str]:
        """The names of the arrays that are tables, one for each order."""
        return [f"counts_{i}" for i in range(1, self.settings.max_order + 1)]

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Merge tables and lengths."""
        merged = {name: merge_counts([part[name] for part in parts]) for name in self.tables}
        return {"lengths": merge_lengths([part["lengths"] for part in parts]), **merged}

    def score(self, sums: Sequence[CountSums], lengths: np.ndarray) -> dict[str, Any]:
        """Score the set, as `compute` does, from the sums over the whole table of each order and the merged lengths."""
        statistics = BleuStatistics(
            np.array([[of_order.matches] for of_order in sums], dtype=np.float64),
            np.array([[of_order.total] for of_order in sums]),
            np.array([int(lengths[0] @ lengths[1])]),
            np.array([closest_length_sum(*lengths)]),
        )
        size, of_tokens = self.settings.vocabulary_size, sums[0]
        adjusted = {}
        if size is not None:
            n_distinct, n_tokens = np.array([of_tokens.distinct]), np.array([of_tokens.total])
            adjusted["ead"] = float(adjusted_distinct(n_distinct, n_tokens, size)[0])
        smoothing = self.settings.smoothed_by
        scores = bleu(statistics, smoothing)[:, 0].tolist()
        return {
            "self_bleu": scores[-1],
            **{f"self_bleu_{i}": score for i, score in enumerate(scores, 1)},
            **{f"distinct_{i}": of_order.distinct / max(of_order.total, 1) for i, of_order in enumerate(sums, 1)},
            **{f"entropy_{i}": entropy_from_sums(of_order) for i, of_order in enumerate(sums, 1)},
            **adjusted,
        }
