"""Expected scores of self_bleu for k texts drawn from each set without replacement."""

import numpy as np

from .core_inputs import TextSets, content_ranks, mean_by_set, sum_by_set
from .core_ngrams import (
    NgramTable,
    Tokens,
    bleu,
    bleu_statistics,
    entropy,
    ngram_tables,
)
from .core_rarefaction import content_keys, expected_distinct, expected_over_subsets
from .self_bleu_repetition import compression_ratios, self_repetition
from .self_bleu_settings import SelfBleuSettings


def rarefied_columns(
    sets: TextSets, tokens: Tokens, settings: SelfBleuSettings
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Find the expected scores of each set, by name.

    Parameters
    ----------
    sets : each of at least `rarefy` texts
    tokens : of all texts

    Returns
    -------
    columns : Distinct-n, the expected number of distinct n-grams over the expected number of n-grams; the others, from
        all subsets or a sample of them; each of shape (m,)
    errors : the standard errors of all but Distinct-n, each of shape (m,)
    """
    texts, sizes, k = sets.texts, sets.sizes, settings.rarefy
    assert k is not None
    max_order, smoothing = settings.max_order, settings.smoothed_by
    ends = np.cumsum(tokens.lengths)

    def score(rows: np.ndarray) -> np.ndarray:
        drawn_texts, subset_sizes = rows.ravel(), np.full(len(rows), k)
        lengths = tokens.lengths[drawn_texts]
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        ids = tokens.ids[np.repeat(ends[drawn_texts] - lengths, lengths) + places]
        drawn = Tokens(ids, lengths, tokens.vocabulary_size)
        tables = list(ngram_tables(drawn, subset_sizes, max_order))
        statistics = bleu_statistics(tables, lengths, subset_sizes)
        if settings.aggregate == "sentence":
            by_set = mean_by_set(bleu(statistics, smoothing), subset_sizes)
        else:
            by_set = bleu(statistics.pooled(subset_sizes), smoothing)
        columns = [*by_set, *(entropy(table, subset_sizes) for table in tables)]
        if settings.repetition:
            columns += [self_repetition(table, subset_sizes) for table in tables]
            columns.append(compression_ratios([texts[i] for i in drawn_texts.tolist()], subset_sizes))
        return np.stack(columns, axis=1)

    # In order of content, on which the compression ratio depends.
    expected = expected_over_subsets(score, content_keys(texts), sizes, k, content_ranks(texts))
    drawn = _names(max_order, "self_bleu", "entropy")
    order = _names(max_order, "self_bleu", "distinct", "entropy")
    if settings.repetition:
        more = [*_names(max_order, "self_repetition"), "compression_ratio"]
        drawn, order = drawn + more, order + more
    means, errors = (dict(zip(drawn, values.T, strict=False)) for values in expected)
    for i, table in enumerate(ngram_tables(tokens, sizes, max_order), 1):
        means[f"distinct_{i}"] = _expected_distinct(table, sizes, k)
    return {name: means.get(name, np.empty(0)) for name in order}, errors


def _names(max_order: int, *measures: str) -> list[str]:
    return [f"{measure}_{i}" for measure in measures for i in range(1, max_order + 1)]


def _expected_distinct(table: NgramTable, sizes: np.ndarray, k: int) -> np.ndarray:
    """Divide the expected number of distinct n-grams by that of all n-grams: (m,); 0 without n-grams."""
    holders = np.diff(table.set_groups, append=len(table.counts))
    owners = np.repeat(np.arange(len(sizes)), sizes)[table.texts[table.set_groups]]
    totals = sum_by_set(table.totals, sizes) * k / sizes
    return expected_distinct(holders, owners, sizes, k) / np.where(totals > 0, totals, 1.0)
