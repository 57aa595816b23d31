"""The numbers of self_bleu for each set and over all sets, their interval, and details."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .core import (
    Estimate,
    NgramTable,
    TextSets,
    mean_by_set,
    mean_over_sets,
    ngram_tables,
    number_tokens,
    sum_by_set,
    warn,
)
from .self_bleu_ngrams import BleuStatistics, bleu, bleu_statistics, count_distinct, distinct, entropy
from .self_bleu_repetition import compression_ratios, rouge_sums, self_repetition
from .self_bleu_settings import SelfBleuSettings


class Scored(NamedTuple):
    """The numbers of m sets; k of them have two texts or more.

    columns : by name, ndarrays of shape (m,); NaN for a set of one text, where texts are compared
    means : by name, over the sets that have a value; None without any
    statistics : of BLEU, with a value for each of the k sets; None without `aggregate="corpus"`
    text_scores : the BLEU of each text of the k sets; None without `aggregate="sentence"`
    """

    columns: dict[str, np.ndarray]
    means: dict[str, Any]
    statistics: BleuStatistics | None = None
    text_scores: np.ndarray | None = None


class _Counted(NamedTuple):
    """Texts in sets of some sizes, their numbers of tokens, and their n-grams of each order."""

    texts: list[str]
    sizes: np.ndarray
    lengths: np.ndarray
    tables: list[NgramTable]

    @classmethod
    def of(cls, texts: list[str], words: Sequence[Sequence[str]], sizes: np.ndarray, max_order: int) -> "_Counted":
        tokens = number_tokens(words)
        return cls(texts, sizes, tokens.lengths, list(ngram_tables(tokens, sizes, max_order)))

    def merged(self) -> "_Counted":
        """Return all texts as one set."""
        tables = [table._replace(set_groups=table.corpus_groups) for table in self.tables]
        return self._replace(sizes=self.sizes.sum(keepdims=True), tables=tables)


def score_sets(
    sets: TextSets, words: Sequence[Sequence[str]], compared: np.ndarray, settings: SelfBleuSettings
) -> Scored:
    """Score each set, and all of them together.

    words : the tokens of each text
    compared : ndarray of shape (m,), bool: the sets of two texts or more

    Warns with the count of sets in which fewer than two texts have an n-gram of the highest order: whether their texts
    are equal or different, they share no such n-gram, and the smoothing determines their self-BLEU.
    """
    order = settings.max_order
    smoothing = settings.smoothed_by
    whole = _Counted.of(sets.texts, words, sets.sizes, order)
    part = whole
    if not compared.all():
        rows = np.flatnonzero(np.repeat(compared, sets.sizes)).tolist()
        texts = [sets.texts[i] for i in rows]
        part = _Counted.of(texts, [words[i] for i in rows], sets.sizes[compared], order)
    _warn_of_short_sets(part, order)

    statistics = bleu_statistics(part.tables, part.lengths, part.sizes)
    set_statistics = statistics.pooled(part.sizes)
    text_scores = None
    if settings.aggregate == "sentence":
        bleu_of_texts = bleu(statistics, smoothing)
        by_order = mean_by_set(bleu_of_texts, part.sizes)
        text_scores = bleu_of_texts[-1]
    else:
        by_order = bleu(set_statistics, smoothing)
    part_columns = _comparisons(by_order, part, settings)
    if settings.homogenization:
        sums, n_pairs = rouge_sums(part.texts, part.sizes)
        part_columns["rouge_l"] = sums / n_pairs
    columns = {name: _spread(column, compared) for name, column in part_columns.items()} | _contents(whole, settings)
    means: dict[str, Any] = {name: mean_over_sets(column[~np.isnan(column)]) for name, column in columns.items()}

    is_pooled = settings.aggregate == "corpus"
    if is_pooled and len(whole.sizes):
        means |= _first(_contents(whole.merged(), settings))
    if is_pooled and len(part.sizes):
        # All sets are one, except that a text has the references of its own set.
        merged = part.merged()
        means |= _first(_comparisons(bleu(statistics.pooled(merged.sizes), smoothing), merged, settings))
        if settings.homogenization:
            means["rouge_l"] = float(sums.sum() / n_pairs.sum())
    return Scored(columns, means, set_statistics if is_pooled and len(part.sizes) else None, text_scores)


def _warn_of_short_sets(part: _Counted, order: int) -> None:
    is_long = (part.lengths >= order).astype(np.int64)
    n_short = int((sum_by_set(is_long, part.sizes) < 2).sum())
    if n_short:
        warn(
            f"{n_short} of {len(part.sizes)} sets have fewer than two texts of {order} tokens or more: their self_bleu "
            "is the same for equal and for different texts, or nearly so. Pass a smaller max_order."
        )


def _spread(column: np.ndarray, compared: np.ndarray) -> np.ndarray:
    """Scatter the values of k sets to their places among m sets; NaN elsewhere."""
    spread = np.full(len(compared), np.nan)
    spread[compared] = column
    return spread


def _first(columns: dict[str, np.ndarray]) -> dict[str, float]:
    return {name: float(column[0]) for name, column in columns.items()}


def _comparisons(by_order: np.ndarray, counted: _Counted, settings: SelfBleuSettings) -> dict[str, np.ndarray]:
    """Name the numbers that compare the texts of each set: BLEU of each order, (max_order, m), and self-repetition."""
    columns = {f"self_bleu_{i}": row for i, row in enumerate(by_order, 1)}
    if settings.repetition:
        for i, table in enumerate(counted.tables, 1):
            columns[f"self_repetition_{i}"] = self_repetition(table, counted.sizes)
    return columns


def _contents(counted: _Counted, settings: SelfBleuSettings) -> dict[str, np.ndarray]:
    """Name the numbers that count all n-grams of each set."""
    tables = counted.tables
    sizes = counted.sizes
    columns = {f"distinct_{i}": distinct(table, sizes) for i, table in enumerate(tables, 1)}
    columns |= {f"entropy_{i}": entropy(table, sizes) for i, table in enumerate(tables, 1)}
    if settings.vocabulary_size is not None:
        n_distinct = count_distinct(tables[0], sizes)
        n_tokens = sum_by_set(tables[0].totals, sizes)
        columns["ead"] = adjusted_distinct(n_distinct, n_tokens, settings.vocabulary_size)
    if settings.repetition:
        columns["compression_ratio"] = compression_ratios(counted.texts, sizes)
    return columns


def adjusted_distinct(n_distinct: np.ndarray, n_tokens: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Divide numbers of distinct tokens by their expectation for as many random tokens: EAD.

    Equation 4 of Liu et al. (2022), Rethinking and Refining the Distinct Metric: of C tokens drawn uniformly from a
    vocabulary of V, V (1 - ((V - 1) / V)^C) distinct ones are expected. Maps numbers (m,) to (m,), at least 0; above 1
    if fewer tokens are repeated than chance repeats; higher is more diverse. Raises a ValueError if a set has more
    distinct tokens than the vocabulary.
    """
    most = int(n_distinct.max(initial=0))
    if most > vocabulary_size:
        raise ValueError(f"vocabulary_size is {vocabulary_size}, but a set has {most} distinct tokens.")
    expected = -vocabulary_size * np.expm1(n_tokens * np.log1p(-1 / vocabulary_size))
    return n_distinct / np.where(n_tokens > 0, expected, 1.0)


def estimate_pooled(score: float, statistics: BleuStatistics, units: np.ndarray, smoothing: str) -> Estimate:
    """Compute the jackknife estimate of the pooled score of m sets, which is not a mean over sets.

    The statistics of BLEU have a value for each set; units, (m,), are equal for sets that are not independent.
    """
    index = np.unique(units, return_inverse=True)[1]

    def without(statistics: np.ndarray) -> np.ndarray:
        rows = np.atleast_2d(statistics)
        unit_statistics = np.stack([np.bincount(index, row) for row in rows])
        return (unit_statistics.sum(axis=1, keepdims=True) - unit_statistics).reshape(*statistics.shape[:-1], -1)

    left_out = bleu(BleuStatistics(*map(without, statistics)), smoothing)[-1]
    return Estimate.of(score, (len(left_out) - 1) * (left_out.mean() - left_out))
