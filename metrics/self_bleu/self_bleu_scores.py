"""The numbers of self_bleu for each set and over all sets, their interval, and details."""

from typing import Any, NamedTuple

import numpy as np

from .core import (
    Estimate,
    NgramTable,
    TextSets,
    Tokens,
    mean_by_set,
    mean_over_sets,
    ngram_tables,
    sum_by_set,
    warn,
)
from .self_bleu_ngrams import BleuStatistics, bleu, bleu_statistics, count_distinct, distinct, entropy
from .self_bleu_repetition import compression_ratios, rouge_sums, self_repetition
from .self_bleu_settings import SelfBleuSettings


class Scored(NamedTuple):
    """The numbers of m sets.

    columns : by name, ndarrays of shape (m,)
    means : by name, over all sets; None without any
    statistics : of BLEU, with a value for each set; None without `aggregate="corpus"`
    text_scores : ndarray of shape (n,), the BLEU of each text; None without `aggregate="sentence"`
    """

    columns: dict[str, np.ndarray]
    means: dict[str, Any]
    statistics: BleuStatistics | None = None
    text_scores: np.ndarray | None = None


def score_sets(sets: TextSets, tokens: Tokens, settings: SelfBleuSettings) -> Scored:
    """Score each set, and all of them together.

    Warns with the count of sets in which fewer than two texts have an n-gram of the highest order: whether their texts
    are equal or different, they share no such n-gram, and the smoothing determines their self-BLEU.
    """
    sizes, order, smoothing = sets.sizes, settings.max_order, settings.smoothed_by
    n_short = int((sum_by_set((tokens.lengths >= order).astype(np.int64), sizes) < 2).sum())
    if n_short:
        warn(
            f"{n_short} of {len(sizes)} sets have fewer than two texts of {order} tokens or more: their self_bleu is "
            "the same for equal and for different texts, or nearly so. Pass a smaller max_order."
        )
    tables = list(ngram_tables(tokens, sizes, order))
    statistics = bleu_statistics(tables, tokens.lengths, sizes)
    of_sets, text_scores = statistics.pooled(sizes), None
    if settings.aggregate == "sentence":
        of_texts = bleu(statistics, smoothing)
        by_order, text_scores = mean_by_set(of_texts, sizes), of_texts[-1]
    else:
        by_order = bleu(of_sets, smoothing)
    columns = _columns(by_order, tables, sets.texts, sizes, settings)
    means: dict[str, Any] = {name: mean_over_sets(column) for name, column in columns.items()}
    pooled = settings.aggregate == "corpus" and len(sizes) > 0
    if pooled:
        # All sets are one, except that the references of a text are those of its own set.
        whole, merged = sizes.sum(keepdims=True), [table._replace(set_groups=table.corpus_groups) for table in tables]
        of_whole = _columns(bleu(statistics.pooled(whole), smoothing), merged, sets.texts, whole, settings)
        means = {name: float(column[0]) for name, column in of_whole.items()}
    if settings.homogenization:
        sums, n_pairs = rouge_sums(sets.texts, sizes)
        columns["rouge_l"] = sums / n_pairs
        means["rouge_l"] = float(sums.sum() / n_pairs.sum()) if pooled else mean_over_sets(columns["rouge_l"])
    return Scored(columns, means, of_sets if pooled else None, text_scores)


def _columns(
    by_order: np.ndarray, tables: list[NgramTable], texts: list[str], sizes: np.ndarray, settings: SelfBleuSettings
) -> dict[str, np.ndarray]:
    """Name the numbers of each set, (m,): BLEU of each order, (max_order, m), and those of its n-grams and texts."""
    measures = {"distinct": distinct, "entropy": entropy}
    if settings.repetition:
        measures["self_repetition"] = self_repetition
    columns = {f"self_bleu_{i}": row for i, row in enumerate(by_order, 1)}
    for name, measure in measures.items():
        columns |= {f"{name}_{i}": measure(table, sizes) for i, table in enumerate(tables, 1)}
    if settings.vocabulary_size is not None:
        n_distinct, n_tokens = count_distinct(tables[0], sizes), sum_by_set(tables[0].totals, sizes)
        columns["ead"] = adjusted_distinct(n_distinct, n_tokens, settings.vocabulary_size)
    if settings.repetition:
        columns["compression_ratio"] = compression_ratios(texts, sizes)
    return columns


def adjusted_distinct(n_distinct: np.ndarray, n_tokens: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Divide numbers of distinct tokens by those expected of as many tokens drawn at random: EAD.

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
    """Estimate the score of m sets pooled, which is no mean, by the jackknife: from that without each unit in turn.

    The statistics of BLEU have a value for each set; units, (m,), are equal for sets that are not independent.
    """
    index = np.unique(units, return_inverse=True)[1]

    def without(statistics: np.ndarray) -> np.ndarray:
        rows = np.atleast_2d(statistics)
        of_units = np.stack([np.bincount(index, row) for row in rows])
        return (of_units.sum(axis=1, keepdims=True) - of_units).reshape(*statistics.shape[:-1], -1)

    left_out = bleu(BleuStatistics(*map(without, statistics)), smoothing)[-1]
    return Estimate.of(score, (len(left_out) - 1) * (left_out.mean() - left_out))
