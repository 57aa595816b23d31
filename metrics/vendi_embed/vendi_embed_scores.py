"""The scores of sets, with weights and quality; contributions, and details."""

import math
from typing import Any

import numpy as np

from .core_inputs import TextSets, lists_by_set, sum_by_set
from .core_rarefaction import large_enough
from .core_results import ScoreSummary, format_order, rows_of
from .core_similarity import Similarities, source_keys
from .vendi_embed_kernels import ClassKernel, Kernel
from .vendi_embed_rarefied import Scored, rarefied
from .vendi_embed_settings import VendiSettings
from .vendi_embed_weighting import Weighting, mean_quality


def score_sets(
    kernel: Kernel, sets: TextSets, weighting: Weighting, similarities: Similarities | None, settings: VendiSettings
) -> Scored:
    """Score each set at each order, whole or rarefied."""
    if settings.rarefy is not None:
        large_enough(settings.rarefy, weighting.sizes(sets.sizes))
        contents = source_keys(sets, similarities, settings.embeddings, weighting.qualities)
        return rarefied(kernel, settings.orders, settings.rarefy, contents, weighting)
    by_order, eigenvalues = kernel.score(settings.orders, weighting.probabilities, settings.details)
    by_order[weighting.empty] = 0.0
    with_quality = None
    if weighting.qualities is not None:
        with_quality = mean_quality(weighting, sets.sizes) * by_order[:, 0]
    return Scored(by_order, with_quality, eigenvalues)


def name_orders(values: np.ndarray, orders: list[float]) -> list[dict[str, float]]:
    """Name the values (k, number of orders) of each row by their orders."""
    return [dict(zip(map(format_order, orders), row, strict=True)) for row in values.tolist()]


def describe_sets(
    scored: Scored, kernel: Kernel, weighting: Weighting, orders: list[float]
) -> list[dict[str, Any] | None]:
    """List for each set what `details` shows; None for a set without a score."""
    columns: dict[str, list] = {"size": kernel.sizes.tolist(), "by_order": name_orders(scored.by_order, orders)}
    if scored.errors is None:
        pairs = zip(scored.eigenvalues, weighting.empty, strict=True)
        columns["eigenvalues"] = [[] if is_empty else values.tolist() for values, is_empty in pairs]
    else:
        columns["standard_errors"] = name_orders(scored.errors, orders)
    if isinstance(kernel, ClassKernel):
        columns["classes"] = kernel.labels()
    return rows_of(columns, scored.has_score)


def utility(kernel: Kernel, weighting: Weighting, patience: float) -> np.ndarray:
    """Compute the utility of each set to a reader of this patience: (m,)."""
    assert isinstance(kernel, ClassKernel)
    assert weighting.qualities is not None
    return kernel.utility(weighting.qualities, patience)


def semantic_entropies(kernel: Kernel, weighting: Weighting, summary: ScoreSummary) -> dict[str, Any]:
    """Return `semantic_entropy`, the entropy of the classes of each set in nats, also divided by log n.

    A set of which no text counts has neither, and a set of one text has no second.
    """
    scores, _ = kernel.score([1.0], weighting.probabilities, False)
    entropies = np.log(np.maximum(scores[:, 0], 1.0))
    n_texts = weighting.sizes(kernel.sizes)
    scored, several = summary.scored & ~weighting.empty, summary.scored & ~weighting.empty & (n_texts > 1)
    limits = np.log(np.where(several, n_texts, 2))
    shares = np.minimum(entropies / limits, 1.0)
    name = "semantic_entropy"
    result = summary._replace(scored=scored, bounds=(0.0, math.inf)).of(name, entropies, f"{name}_")
    name = "normalized_semantic_entropy"
    return result | summary._replace(scored=several, bounds=(0.0, 1.0)).of(name, shares, f"{name}_")


def contributions(kernel: Kernel, scored: Scored, weighting: Weighting, order: float) -> dict[str, Any]:
    """Return `contributions`, what each text adds: the score of its set less that of the set without it, set by set.

    With quality also `quality_contributions`, of quality times Vendi score. A text alone, or with all the weight of its
    set, has none.
    """
    sizes, shares = kernel.sizes, weighting.shares
    whole = np.repeat(scored.main, sizes)
    without = kernel.score_without(order, weighting.probabilities)
    if weighting.counted is not None:
        # Without a text that counts, the score of a set is 0.
        without = np.where(np.isnan(without) | np.repeat(weighting.empty, sizes), 0.0, without)
    only = np.repeat(sizes == 1, sizes)
    undefined = only if weighting.given is None else only | (weighting.given == 1)
    result = {"contributions": by_set(np.where(undefined, np.nan, whole - without), sizes)}
    if weighting.qualities is None:
        return result
    products = weighting.qualities * shares
    left = _sums_of_others(shares, sizes)
    rest = _sums_of_others(products, sizes) / np.where(left > 0, left, 1.0)
    before = np.repeat(mean_quality(weighting, sizes) * scored.main, sizes)
    result["quality_contributions"] = by_set(np.where(undefined, np.nan, before - rest * without), sizes)
    return result


def _sums_of_others(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sum the values (n,) of the other texts of the set of each text: (n,)."""
    totals = np.repeat(sum_by_set(values, sizes), sizes)
    # If one value is most of the sum, the difference loses digits.
    largest = values > totals / 2
    small = np.repeat(sum_by_set(np.where(largest, 0.0, values), sizes), sizes)
    return np.where(largest, small, totals - values)


def by_set(values: np.ndarray, sizes: np.ndarray) -> list[list[float | None]]:
    """List the values of the texts of each set, with None for NaN."""
    is_number = ~np.isnan(values)
    return lists_by_set(values[is_number], sizes, is_number)
