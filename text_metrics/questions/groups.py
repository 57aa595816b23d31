"""The effective number of groups of texts: alpha, beta and gamma diversity.

The entropy S of a set is the entropy of the mixture of its groups, which have shares w_g of the probability.
Holevo's chi = S - sum of w_g S_g is 0 if the groups do not differ, and at most H(w), the entropy of the shares. This
needs a score whose entropies mix so: Vendi's at order 1, and the entropy of classes.

References
----------
Holevo, A. S. (1973). Problems of Information Transmission 9(3), 177-183.
Leinster, T., & Cobbold, C. A. (2012). Measuring diversity. Ecology 93, 477-489.
Reeve, R., et al. (2014). How to partition diversity. arXiv 1404.6520.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from text_metrics import METRICS, load
from text_metrics.core_api import (
    TIE,
    ScoreSummary,
    describe,
    flatten,
    number_labels,
    parse_confidence_by,
    parse_count,
    split_list,
)
from text_metrics.questions.subsets import Subsets, SubsetScorer

# With fewer sets, the sum over sets may be far from normal.
FEW_SETS = 20


def between_groups(
    metric: Any, predictions: Any, groups: Any, permutations: int = 100, seed: int = 0, **settings: Any
) -> dict[str, Any]:
    """Divide the diversity of each set into that within and between groups of its texts.

    A permutation draws which text of a set takes which slot, each a group and a weight. The draws follow from `seed`,
    the place of the set and its sorted texts and slots.

    Parameters
    ----------
    metric : vendi_embed, at order 1, or semantic_entropy; loaded, or the name
    predictions, settings : as for its `compute`, without `quality` and `log_probs`
    groups : shaped like `predictions`, a string or an integer for each text; a text of weight 0 takes no part
    permutations : at least 2
    seed : of the permutations, at least 0

    Returns
    -------
    dict with means over the m sets, values for each as `<name>_scores`, and with `confidence` their intervals:
        within : effective number of different texts, or meanings, within a group (alpha), in [1, pooled]
        pooled : of all groups together (gamma)
        between : pooled over within, the effective number of different groups (beta), in [1, exp(H(w))]
        between_expected : what `between` is if texts are permuted, as a geometric mean for each set
    and
        p_value : one-sided, of the sum of chi over sets against the means and variances of its permutations, by the
            normal distribution; 1 where no permutation changes chi
        permutation_p : only for fewer than 20 sets with several groups: the share of arrangements of at least this
            sum, the observed one included
        share : how far chi is from its expectation, over how far it can be: 0 by chance, 1 if groups have nothing in
            common; it may be negative. None if nothing is possible beyond chance
        signature : of the pooled score, and `groups`, `permutations` and `seed`

    Raises
    ------
    TypeError, ValueError
        If `compute` raises one, labels have another type or shape, no set has two groups, or the parts of the
        diversity do not add up for the metric, the order or a setting.
    """
    permutations = parse_count(permutations, "permutations", 2)
    seed = parse_count(seed, "seed", 0)
    scorer = SubsetScorer(metric, predictions, settings)
    if not hasattr(scorer.metric, "entropies"):
        names = [name for name in METRICS if hasattr(load(name), "entropies")]
        raise ValueError(
            f"metric must be {' or '.join(names)}: the diversity of others does not divide into parts. "
            f"Got {scorer.metric.name}."
        )
    read = scorer.metric.settings.read(settings, scorer.metric.name)
    if read.undivided_by is not None:
        raise ValueError(
            f"{read.undivided_by} must be left out: with it, the parts of the diversity do not add up. "
            f"Got {describe(settings[read.undivided_by])}."
        )
    flat = flatten(groups, scorer.sets, "groups", "label")
    number_labels(flat, lambda i: f"groups ({scorer.sets.where(i)})")
    labels = split_list(list(map(str, flat)), scorer.sets.sizes)
    if not any(len(set(row)) > 1 for row in labels):
        raise ValueError("groups must have two different labels in at least one set.")
    finds_parts = hasattr(scorer.metric, "found")
    with scorer.caching(**({"details": True} if finds_parts else {})):
        if finds_parts:
            scorer.fix(scorer.metric.found(scorer.whole))
        arranged = [_arrange(scorer, i, row, permutations, seed) for i, row in enumerate(labels)]
        scores = _score_different(scorer, [part for _, parts in arranged for part in parts])
    entropies = scorer.metric.entropies(scores)
    pooled = []
    chi = []
    # The entropies of the shares.
    limits = np.zeros(len(arranged))
    start = 0
    for i, (shares, parts) in enumerate(arranged):
        # The whole set, then each of its groups.
        whole, *of_groups = entropies[start : start + len(parts)]
        pooled.append(whole[0])
        chi.append(whole - shares @ np.array(of_groups))
        limits[i] = max(0.0, -float(shares @ np.log(shares)))
        start += len(parts)
    result = _results(scorer, np.array(pooled), np.clip(chi, 0.0, limits[:, None]), limits)
    result["signature"] = scorer.signature(groups="given", permutations=permutations, seed=seed)
    return result


def _arrange(
    scorer: SubsetScorer, set_index: int, labels: list[str], permutations: int, seed: int
) -> tuple[np.ndarray, list[Subsets]]:
    """Permute the texts of a set among its slots, each a group and a weight.

    Returns the shares of the g groups, and 1 + g batches of subsets: all texts, then the texts of each group. A batch
    has a subset for each arrangement, the observed one first.
    """
    start = int(scorer.starts[set_index])
    part = slice(start, start + len(labels))
    texts = scorer.sets.texts[part]
    weights = np.ones(len(texts)) if scorer.weights is None else scorer.weights[part]
    present = np.flatnonzero(weights > 0).tolist()
    slots = sorted(present, key=lambda i: (labels[i], weights[i], texts[i]))
    weights = weights[slots] / weights[slots].sum()
    codes = np.unique([labels[i] for i in slots], return_inverse=True)[1]
    by_text = sorted(present, key=texts.__getitem__)
    generator = np.random.default_rng([seed, set_index])
    drawn = generator.permuted(np.tile(by_text, (permutations, 1)), axis=1)
    rows = start + np.vstack([slots, drawn])
    groups = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    sets = np.full(len(rows), set_index)
    subsets = [
        Subsets(sets, rows[:, part], np.tile(weights[part], (len(rows), 1)))
        for part in (np.arange(len(slots)), *groups)
    ]
    return np.bincount(codes, weights), subsets


def _score_different(scorer: SubsetScorer, batches: list[Subsets]) -> np.ndarray:
    """Score b batches of s subsets, (b, s): each different subset once."""
    scores = np.empty((len(batches), len(batches[0].rows)))
    sizes = np.array([batch.rows.shape[1] for batch in batches])
    for size in np.unique(sizes):
        members = np.flatnonzero(sizes == size)
        same_size = [batches[i] for i in members]
        owners, rows, weights = (np.concatenate(parts) for parts in zip(*same_size, strict=True))
        order = np.argsort(rows, axis=1)
        rows = np.take_along_axis(rows, order, axis=1)
        weights = np.take_along_axis(weights, order, axis=1)
        keys = np.concatenate([rows, weights.view(np.int64)], axis=1)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        different = scorer.scores(Subsets(owners, rows, weights).part(first))
        scores[members] = different[inverse.ravel()].reshape(len(members), -1)
    return scores


def _results(scorer: SubsetScorer, pooled: np.ndarray, chi: np.ndarray, limits: np.ndarray) -> dict[str, Any]:
    """Name the results: pooled entropies (m,), chi (m, 1 + permutations), its limits (m,)."""
    observed = chi[:, 0]
    permuted = chi[:, 1:]
    expected = permuted.mean(axis=1)
    settings = scorer.settings
    units = parse_confidence_by(settings.get("confidence_by"), len(pooled), "set")
    summary = ScoreSummary(units, settings.get("confidence"), (1.0, float), scorer.sets.sizes)
    excess = float(observed.sum() - expected.sum())
    possible = float(limits.sum() - expected.sum())
    rounding = TIE * len(pooled)
    # The means of permutations are estimates too.
    variance = float(permuted.var(axis=1, ddof=1).sum()) * (1 + 1 / permuted.shape[1])
    is_constant = variance <= len(observed) * TIE**2
    p_value = 1.0 if is_constant else float(ndtr(-excess / math.sqrt(variance)))
    without_interval = summary._replace(level=None)
    result: dict[str, Any] = {}
    result |= summary.of("within", np.exp(pooled - observed), "within_")
    result |= summary.of("pooled", np.exp(pooled), "pooled_")
    result |= summary.of("between", np.exp(observed), "between_")
    result |= without_interval.of("between_expected", np.exp(expected), "between_expected_")
    result["p_value"] = p_value
    result["share"] = excess / possible if possible > rounding else None
    if np.count_nonzero(limits) < FEW_SETS:
        larger = int(np.count_nonzero(permuted.sum(axis=0) >= observed.sum() - rounding))
        result["permutation_p"] = (1 + larger) / (1 + permuted.shape[1])
    return result
