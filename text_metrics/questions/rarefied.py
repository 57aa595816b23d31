"""Expected scores of k texts of each set."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from text_metrics.core_api import (
    ItemResult,
    ScoreSummary,
    batches_by_size,
    parse_confidence_by,
    parse_count,
    result_numbers,
)
from text_metrics.questions.subsets import Subsets, SubsetScorer

# Texts of sets whose subsets are drawn at a time, to bound the memory.
_TEXTS_AT_ONCE = 2**10


def rarefied(metric: Any, predictions: Any, k: int, draws: int = 200, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """Return the expected scores of k texts of each set, drawn without replacement.

    The expectation is the mean over all subsets of k texts, or over `draws` different random ones if there are more.
    They follow from `seed` and the size of a set, after its texts are sorted.

    Parameters
    ----------
    metric : a loaded metric of sets, or its name
    predictions, settings : as for its `compute`; settings given for texts are sliced along, and weights scaled to sum
        to 1 again. A subset without weight is left out.
    k : at least 1
    draws : the largest number of subsets of a set, at least 1
    seed : of the draws, at least 0

    Returns
    -------
    dict, as of `compute`, in which every number is an expectation; in `scores` and other lists, None for a set of
    fewer than k texts, without which means are. Of `pairs` of vendi_embed, it is the squared similarities that are
    averaged; `similarity_change` is the largest of all subsets, and `n_singletons` is from `compute`. `n_too_small` is
    the number of sets of fewer than k texts.

    Raises
    ------
    TypeError, ValueError
        If `compute` raises one, or a setting pools several sets to one score.
    """
    k = parse_count(k, "k")
    draws = parse_count(draws, "draws")
    seed = parse_count(seed, "seed", 0)
    scorer = SubsetScorer(metric, predictions, settings)
    _check_averaged(scorer)
    numbers = []
    maxima = []
    with scorer.caching(**scorer.singletons_skipped):
        for owners, part_result in scorer.results(_subsets(scorer, k, draws, seed), details=True):
            numbers.append(_numbers(scorer, owners, part_result))
            maxima.append({name: part_result[name] for name in scorer.metric.maxima if name in part_result})
    table = pd.concat([pd.DataFrame(), *numbers])
    expected = table.groupby(level=0).mean().reindex(range(len(scorer.sets.sizes)))
    result = _summary(scorer, expected, k)
    # NaN without any subset.
    largest = pd.DataFrame(maxima).max()
    result |= {name: None if math.isnan(value) else float(value) for name, value in largest.items()}
    if "singletons" in settings and "n_singletons" in scorer.whole:
        result["n_singletons"] = scorer.whole["n_singletons"]
    if settings.get("details"):
        names = [name for name in expected if not name.endswith("scores")]
        columns = expected[names]
        rows = columns.astype(object).where(columns.notna(), None).to_dict("records")
        result["details"] = [row if size >= k else None for row, size in zip(rows, scorer.sets.sizes, strict=True)]
    result["n_too_small"] = int((scorer.sets.sizes < k).sum())
    result["signature"] = scorer.signature(rarefy=k, draws=draws, seed=seed)
    return result


def _check_averaged(scorer: SubsetScorer) -> None:
    """Raise a ValueError for a setting that pools several sets, unless each set has the numbers that are pooled."""
    metric = scorer.metric
    pooled_by = metric.settings.read(scorer.settings, metric.name).pooled_by
    pooled_of_sets = {name for each in metric.item_results if each.is_reciprocal for name in each.needs}
    if pooled_by is not None and pooled_by not in pooled_of_sets and len(scorer.sets.sizes) > 1:
        raise ValueError(f"rarefied needs a mean of scores of sets: {metric.name} pools the sets here ({pooled_by}).")


def _subsets(scorer: SubsetScorer, k: int, draws: int, seed: int) -> Iterator[Subsets]:
    """Choose subsets of k texts of each set, the same for sets of one size."""
    for members, rows in batches_by_size(scorer.sets.sizes, _TEXTS_AT_ONCE):
        size = rows.shape[1]
        if size < k:
            continue
        places = _places(size, k, draws, seed)
        # Places are in sorted texts: the order in which texts were given does not change the draws.
        by_text = np.array([sorted(row, key=scorer.sets.texts.__getitem__) for row in rows.tolist()])
        # Texts keep the given order in a subset, because some results depend on it.
        chosen = np.sort(by_text[:, places], axis=2).reshape(-1, k)
        yield Subsets(np.repeat(members, len(places)), chosen).part(scorer.has_weight(chosen))


def _places(size: int, k: int, draws: int, seed: int) -> np.ndarray:
    """Choose different subsets of k of `size` places: (number of subsets, k)."""
    if math.comb(size, k) <= draws:
        return np.array(list(combinations(range(size), k)))
    generator = np.random.default_rng([seed, size])
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < draws:
        drawn[tuple(sorted(generator.choice(size, k, replace=False).tolist()))] = None
    return np.array(list(drawn))


def _numbers(scorer: SubsetScorer, owners: np.ndarray, result: dict[str, Any]) -> pd.DataFrame:
    """Return the numbers of each subset of a result that are averaged, a row of the index of its set."""
    scores = {name: values for name, values in result.items() if name.endswith("scores")}
    for each in scorer.metric.item_results:
        if each.is_reciprocal and each.name in scores:
            scores[each.name] = [0.0 if value is None else 1 / value for value in scores[each.name]]
    details = pd.DataFrame([dict(result_numbers(row or {})) for row in result.get("details", ())])
    return pd.DataFrame(scores | details.to_dict("list"), index=owners, dtype=float)


def _summary(scorer: SubsetScorer, expected: pd.DataFrame, k: int) -> dict[str, Any]:
    """Name the results, computed from the expected numbers of each set."""
    metric = scorer.metric
    whole = scorer.whole
    n = len(expected)
    read = metric.settings.read(scorer.settings, metric.name)
    units = parse_confidence_by(read.confidence_by, n, "set")
    summary = ScoreSummary(units, read.confidence, metric.bounds_under(read), np.full(n, k))
    declared = {each.name: each for each in metric.item_results}
    missing = pd.Series(math.nan, expected.index)
    result: dict[str, Any] = {}
    for name in whole:
        if name.endswith("scores"):
            prefix = name.removesuffix("scores")
            mean_name = prefix.removesuffix("_")
            if mean_name not in whole:
                mean_name = f"{prefix}{metric.name}"
            values = expected.get(name, missing).to_numpy()
            each = declared.get(name, ItemResult(name))
            if each.is_reciprocal:
                result |= summary.of_reciprocals(mean_name, values, prefix)
            else:
                result |= summary.of(mean_name, values, prefix, each.bounds)
    # The other numbers are means of those in `details`.
    means = {name: None if math.isnan(mean) else float(mean) for name, mean in expected.mean().items()}
    for name, value in whole.items():
        if isinstance(value, dict):
            result[name] = {key: means.get(f"{name}_{key}") for key in value}
        elif name not in result and (isinstance(value, float) or value is None):
            result[name] = means.get(name)
    return result
