"""How alike systems are, and how near people: the partition of diversity."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from text_metrics.commands.shared.statistics import holm
from text_metrics.metrics._core.core_results import ratio_estimate
from text_metrics.questions.groups import between_groups

# Texts of each side on a prompt whose diversity is partitioned: the time grows with the third power.
MOST_TEXTS = 25
# For each prompt, the texts of each side, such as a system.
ByPrompt = list[list[list[str]]]


def shuffled(texts: Sequence[str], prompt: str) -> list[str]:
    """Return texts in a random order that depends only on their content and their prompt.

    Different sets are drawn from independently, also where they share texts.
    """
    whole = _digest("\0".join(["0", prompt, *sorted(texts)]))
    keys = []
    for text, count in Counter(texts).items():
        keys += [(_digest(f"{number}\0{text}", whole), text) for number in range(count)]
    return [text for _, text in sorted(keys)]


def _digest(text: str, key: bytes = b"") -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16, key=key).digest()


def equal_numbers(sides: Sequence[Sequence[list[str]]]) -> ByPrompt:
    """Keep as many texts of each side on a prompt as the smallest side has, at most `MOST_TEXTS`.

    A prompt of which a side has no text is left out.
    """
    by_prompt = []
    for texts in zip(*sides, strict=True):
        n = min(MOST_TEXTS, *map(len, texts))
        if n:
            by_prompt.append([of_side[:n] for of_side in texts])
    return by_prompt


def split_people(texts: Sequence[list[str]]) -> list[list[list[str]]]:
    """Divide people's texts on each prompt into halves, if any prompt has two."""
    if max(map(len, texts)) < 2:
        return [list(texts)]
    first, second = [], []
    for of_prompt in texts:
        middle = len(of_prompt) // 2
        first.append(of_prompt[:middle])
        second.append(of_prompt[middle:])
    return [first, second]


def compare_systems(by_prompt: ByPrompt, level: float, encoder: dict[str, Any]) -> dict[str, Any] | None:
    """Partition diversity among all systems, and each pair of them; None for one."""
    n = len(by_prompt[0])
    if n == 1:
        return None
    pairs = list(combinations(range(n), 2)) if n > 2 else []
    rows = []
    for i, j in pairs:
        parts = partition([[texts[i], texts[j]] for texts in by_prompt], level, encoder)
        rows.append({"a": i, "b": j, **parts})
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        # Whatever the place of a test in Holm's order, permutations bound it by this.
        row |= {"p_holm": p, "least_p_holm": p if row["p"] == row["least_p"] else None}
    rows.sort(key=lambda row: row["share"] or 0.0, reverse=True)
    return {"partition": partition(by_prompt, level, encoder), "pairs": rows}


def compare_with_people(by_prompt: ByPrompt, level: float, encoder: dict[str, Any]) -> dict[str, Any]:
    """Partition diversity among people, the first side, and each other side."""
    others = range(1, len(by_prompt[0]))
    return {
        "n_texts": sum(len(texts[0]) for texts in by_prompt),
        "n_prompts": len(by_prompt),
        "rows": [partition([[texts[0], texts[i]] for texts in by_prompt], level, encoder) for i in others],
    }


def partition(by_prompt: ByPrompt, level: float, encoder: dict[str, Any]) -> dict[str, Any]:
    """Divide the diversity of the texts of each prompt into that within and between sides.

    Below 20 prompts, p is the share of permutations, and `least_p` the smallest one that they can give: so there are
    more of them. From 20 on, the normal distribution gives p, and `least_p` is None.
    """
    permutations = 1000 if len(by_prompt) < 20 else 100
    result = between_groups(
        "vendi_embed",
        predictions=[[text for texts in sides for text in texts] for sides in by_prompt],
        groups=[[side for side, texts in enumerate(sides) for _ in texts] for sides in by_prompt],
        permutations=permutations,
        confidence=level,
        **encoder,
    )
    n, interval = len(by_prompt[0]), result["between_confidence_interval"]
    return {
        **{name: result[name] for name in ("within", "pooled", "between", "between_expected", "share", "signature")},
        "between_interval": interval and [interval[0], min(interval[1], n)],
        "share_interval": _share_interval(result, math.log(n), level),
        "p": result.get("permutation_p", result["p_value"]),
        "least_p": 1 / (1 + permutations) if "permutation_p" in result else None,
    }


def _share_interval(result: dict[str, Any], most: float, level: float) -> list[float] | None:
    """Compute the interval of the share, a ratio of sums over prompts."""
    observed, chance = (np.log(result[f"between_{name}"]) for name in ("scores", "expected_scores"))
    if result["share"] is None:
        return None
    return ratio_estimate(observed - chance, most - chance).interval(level, (-math.inf, 1.0))
