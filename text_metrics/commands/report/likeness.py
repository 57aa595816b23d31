"""How alike systems are: mean cosines, and how many different systems there are, of texts drawn by content alone."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from tqdm import tqdm

from text_metrics.commands.report.embedding import Embedded, Encoder
from text_metrics.commands.shared.statistics import holm
from text_metrics.metrics._core.core_results import Estimate, jackknife_estimate, mean_estimate
from text_metrics.questions.groups import between_groups

# Texts of each side on a prompt whose diversity is partitioned: the time grows with the third power.
MOST_TEXTS = 25
_SEED = 0


def shuffled(texts: Sequence[str], prompt: str) -> list[str]:
    """Return texts in a random order that depends only on their content, their prompt and how often each is there.

    Different sets are drawn from independently, also where they share texts.
    """
    whole = hashlib.blake2b("\0".join([str(_SEED), prompt, *sorted(texts)]).encode(), digest_size=16).digest()
    keys = [
        (hashlib.blake2b(f"{number}\0{text}".encode(), digest_size=16, key=whole).digest(), text)
        for text, count in Counter(texts).items()
        for number in range(count)
    ]
    return [text for _, text in sorted(keys)]


def equal_numbers(ids: Sequence[str], sets: Sequence[Sequence[list[str]]]) -> list[list[list[str]]]:
    """Draw for each prompt as many texts of each side as the smallest side has, at most `MOST_TEXTS`.

    `sets` holds for each side, such as a system, the texts of each prompt. A set that has no more is returned as it is.
    """
    counts = [min(MOST_TEXTS, *map(len, sides)) for sides in zip(*sets, strict=True)]
    return [
        [
            texts if len(texts) == count else shuffled(texts, prompt)[:count]
            for texts, prompt, count in zip(side, ids, counts, strict=True)
        ]
        for side in sets
    ]


_COSINES = (-1.0, 1.0)
# Permutations of the test of all systems, and the most of those of pairs.
PERMUTATIONS, _MOST_OF_PAIRS = 100, 1000

Sets = Sequence[Sequence[list[str]]]


def likeness(
    ids: Sequence[str], sets: Sets, embedded: Embedded, encoder: Encoder, level: float
) -> dict[str, Any] | None:
    """Compare the systems by the texts of each of their prompts; None for one system."""
    if len(sets) < 2:
        return None
    return {
        "cosine": mean_cosines([embedded.sums(of_system) for of_system in sets], _sizes(sets), level),
        **partitions(equal_numbers(ids, sets), encoder, level),
    }


def _sizes(sets: Sets) -> np.ndarray:
    return np.array([[len(texts) for texts in of_system] for of_system in sets])


def mean_cosines(sums: Sequence[np.ndarray], sizes: np.ndarray, level: float) -> dict[str, Any]:
    """Average the cosines of the texts of two systems, or of one, over all pairs on one prompt and on two prompts.

    All follow from the sums of unit vectors: the mean cosine of two sets is the product of their mean vectors, and that
    of the different texts of a set of n with sum v is (|v|² - n) / (n (n - 1)).

    Parameters
    ----------
    sums : for each system an ndarray of shape (p, d), the sum of the unit vectors of each set
    sizes : ndarray of shape (systems, p), the number of texts of each set

    Returns
    -------
    dict : `same_prompt`, means over prompts, and `other_prompts`, means over pairs of prompts; matrices of the systems
    """
    means = [rows / counts[:, None] for rows, counts in zip(sums, sizes, strict=True)]
    n = len(sums)
    same: list[list[dict[str, Any]]] = [[{}] * n for _ in range(n)]
    different: list[list[dict[str, Any]]] = [[{}] * n for _ in range(n)]
    for i, j in combinations_with_replacement(range(n), 2):
        products = np.einsum("pd,pd->p", means[i], means[j])
        within = products
        if i == j:
            counts = sizes[i]
            within = (np.einsum("pd,pd->p", sums[i], sums[i]) - counts) / (counts * (counts - 1))
        same[i][j] = same[j][i] = _cell(mean_estimate(np.clip(within, -1, 1)), level)
        different[i][j] = different[j][i] = _cell(_across_prompts(means[i], means[j], products), level)
    return {"same_prompt": same, "other_prompts": different}


def _across_prompts(first: np.ndarray, second: np.ndarray, products: np.ndarray) -> Estimate:
    """Estimate the mean product of the vectors (p, d) of one system with those of another on other prompts."""
    n = len(first)
    if n < 2:
        return Estimate(n, math.nan, math.nan, math.nan)
    totals = first.sum(axis=0), second.sum(axis=0)
    whole, diagonal = float(totals[0] @ totals[1]), float(products.sum())
    value = (whole - diagonal) / (n * (n - 1))
    if n < 3:
        return Estimate(n, value, math.nan, math.nan)
    # Without each prompt in turn.
    rest = whole - first @ totals[1] - second @ totals[0] + products - (diagonal - products)
    return jackknife_estimate(value, rest / ((n - 1) * (n - 2)))


def _cell(estimate: Estimate, level: float) -> dict[str, Any]:
    value = None if math.isnan(estimate.value) else estimate.value
    return {"mean": value, "interval": estimate.interval(level, _COSINES)}


def partitions(sets: Sets, encoder: Encoder, level: float) -> dict[str, Any]:
    """Return the partition of diversity among all systems, and among each pair of them, at equal numbers of texts."""
    pairs = list(combinations(range(len(sets)), 2))
    whole = partition(sets, encoder, level)
    permutations = PERMUTATIONS
    if whole["least_p"] is not None and len(sets) > 2:
        # After Holm's adjustment, the smallest p-value is then 0.8 of the level at which tests reject.
        permutations = min(max(math.ceil(1.25 * len(pairs) / (1 - level)), PERMUTATIONS), _MOST_OF_PAIRS)
    rows = []
    for i, j in tqdm(pairs, desc="Pairs of systems", unit="pair", disable=encoder.quiet or len(pairs) < 2):
        part = whole if len(sets) == 2 else partition([sets[i], sets[j]], encoder, level, permutations)
        names = ("between", "between_expected", "p", "least_p", "share")
        rows.append({"a": i, "b": j, **{name: part[name] for name in names}, "interval": part["intervals"]["share"]})
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
        # Whatever the place of a test in Holm's order, permutations bound it by this.
        row["least_p_holm"] = p if row["p"] == row["least_p"] else None
    rows.sort(key=lambda row: -math.inf if row["share"] is None else row["share"], reverse=True)
    return {"partition": whole, "pairs": rows, "pairs_permutations": permutations}


def partition(sets: Sets, encoder: Encoder, level: float, permutations: int = PERMUTATIONS) -> dict[str, Any]:
    """Divide the diversity of the texts of each prompt into that within and between groups, such as systems.

    `least_p` is the smallest p-value that the permutations can give; None for many prompts, where the normal
    distribution gives p.
    """
    by_prompt = list(zip(*sets, strict=True))
    result = between_groups(
        "vendi_embed",
        predictions=[[text for texts in groups for text in texts] for groups in by_prompt],
        groups=[[group for group, texts in enumerate(groups) for _ in texts] for groups in by_prompt],
        permutations=permutations,
        confidence=level,
        **encoder.settings,
    )
    between = result["between_confidence_interval"]
    return {
        **{name: result[name] for name in ("within", "pooled", "between", "between_expected")},
        "p": result.get("permutation_p", result["p_value"]),
        "least_p": 1 / (1 + permutations) if "permutation_p" in result else None,
        "share": result["share"],
        "intervals": {
            **{name: result[f"{name}_confidence_interval"] for name in ("within", "pooled")},
            "between": between and [between[0], min(between[1], len(sets))],
            "share": _share_interval(result, _sizes(sets), level),
        },
        "n_groups": len(sets),
        "texts_of_each": [int(_sizes(sets).min()), int(_sizes(sets).max())],
        "permutations": permutations,
        "signature": result["signature"],
    }


def _share_interval(result: dict[str, Any], sizes: np.ndarray, level: float) -> list[float] | None:
    """Compute the interval of the share beyond chance, which is a ratio of means, by the jackknife over prompts."""
    observed, chance = (np.log(result[f"between_{name}"]) for name in ("scores", "expected_scores"))
    shares = sizes / sizes.sum(axis=0)
    most = -(shares * np.log(shares)).sum(axis=0)
    above, possible = observed - chance, most - chance
    left = possible.sum() - possible
    if len(above) < 2 or result["share"] is None or not (left > 0).all():
        return None
    return jackknife_estimate(result["share"], (above.sum() - above) / left).interval(level, (-math.inf, 1.0))
