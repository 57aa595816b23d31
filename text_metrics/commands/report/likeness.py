"""How alike systems are, and how near people: the partition of diversity."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations, combinations_with_replacement
from typing import Any

import numpy as np

from text_metrics.commands.report.model import Pair, Partition, People, Similarity
from text_metrics.commands.shared.statistics import holm
from text_metrics.metrics._core.core_encoder import EmbeddedSetSettings, embed_sets
from text_metrics.metrics._core.core_inputs import TextSets
from text_metrics.metrics._core.core_numbers import tied_ranks, unit_vectors
from text_metrics.metrics._core.core_results import mean_estimate, ratio_estimate, signature
from text_metrics.questions.groups import FEW_SETS, between_groups

# Texts of each side on a prompt whose diversity is partitioned: the time grows with the third power.
MOST_TEXTS = 25
# Prompts whose texts are embedded at a time, to bound the memory.
_PROMPTS_AT_ONCE = 1024
# For each prompt, the texts of each side, such as a system, and what they answer.
ByPrompt = list[list[list[str]]]
Contexts = list[str | None] | None


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


def equal_numbers(sides: Sequence[Sequence[list[str]]], contexts: Contexts) -> tuple[ByPrompt, Contexts]:
    """Keep as many texts of each side on a prompt as the smallest side has, at most `MOST_TEXTS`.

    A prompt of which a side has no text is left out, with its context.
    """
    by_prompt, used = [], []
    for i, texts in enumerate(zip(*sides, strict=True)):
        n = min(MOST_TEXTS, *map(len, texts))
        if n:
            by_prompt.append([of_side[:n] for of_side in texts])
            used.append(None if contexts is None else contexts[i])
    return by_prompt, None if contexts is None else used


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


def compare_systems(
    by_prompt: ByPrompt, contexts: Contexts, level: float, encoder: dict[str, Any]
) -> tuple[Partition, list[Pair]] | None:
    """Partition diversity among all systems, and each pair of three or more, the most different first; None for one."""
    n = len(by_prompt[0])
    if n == 1:
        return None
    places = list(combinations(range(n), 2)) if n > 2 else []
    parts = [partition([[texts[i], texts[j]] for texts in by_prompt], contexts, level, encoder) for i, j in places]
    pairs = []
    for (i, j), part, p in zip(places, parts, holm([part.p for part in parts]), strict=True):
        # Whatever the place of a test in Holm's order, permutations bound it by this.
        least = p if part.p == part.least_p else None
        pairs.append(Pair(**vars(part), a=i, b=j, p_holm=p, least_p_holm=least))
    ranks = tied_ranks(-np.array([pair.share or 0.0 for pair in pairs]))
    order = np.argsort(ranks, kind="stable").tolist()
    return partition(by_prompt, contexts, level, encoder), [pairs[i] for i in order]


def compare_with_people(by_prompt: ByPrompt, contexts: Contexts, level: float, encoder: dict[str, Any]) -> People:
    """Partition diversity among people, the first side, and each other side."""
    rows = [
        partition([[texts[0], texts[i]] for texts in by_prompt], contexts, level, encoder)
        for i in range(1, len(by_prompt[0]))
    ]
    return People(n_texts=sum(len(texts[0]) for texts in by_prompt), n_prompts=len(by_prompt), rows=rows)


def partition(by_prompt: ByPrompt, contexts: Contexts, level: float, encoder: dict[str, Any]) -> Partition:
    """Divide the diversity of the texts of each prompt into that within and between sides.

    On few prompts, p is the share of permutations, and `least_p` the smallest one that they can give: so there are more
    of them. On more, the normal distribution gives p, and `least_p` is None.
    """
    given: dict[str, Any] = {} if contexts is None else {"contexts": contexts}
    permutations = 1000 if len(by_prompt) < FEW_SETS else 100
    result = between_groups(
        "vendi_embed",
        predictions=[[text for texts in sides for text in texts] for sides in by_prompt],
        groups=[[side for side, texts in enumerate(sides) for _ in texts] for sides in by_prompt],
        permutations=permutations,
        confidence=level,
        **encoder,
        **given,
    )
    n, interval = len(by_prompt[0]), result["between_confidence_interval"]
    return Partition(
        **{name: result[name] for name in ("within", "pooled", "between", "between_expected", "share", "signature")},
        between_interval=interval and [interval[0], min(interval[1], n)],
        share_interval=_share_interval(result, math.log(n), level),
        p=result.get("permutation_p", result["p_value"]),
        least_p=1 / (1 + permutations) if "permutation_p" in result else None,
    )


def _share_interval(result: dict[str, Any], most: float, level: float) -> list[float] | None:
    """Compute the interval of the share, a ratio of sums over prompts."""
    observed, chance = (np.log(result[f"between_{name}"]) for name in ("scores", "expected_scores"))
    if result["share"] is None:
        return None
    return ratio_estimate(observed - chance, most - chance).interval(level, (-math.inf, 1.0))


def similarities(
    sets: Sequence[Sequence[list[str]]], contexts: Contexts, level: float, encoder: dict[str, Any]
) -> tuple[list[Similarity], str]:
    """Average the cosines of two different texts on a prompt: of each system, and of each two systems.

    Each prompt has equal weight. All texts are used: a mean over pairs does not depend on their number.

    Parameters
    ----------
    sets : for each system, for each prompt, two texts or more

    Returns
    -------
    means in [-1, 1] with their intervals over prompts, and their signature

    References
    ----------
    Jiang, L., et al. (2025). Artificial Hivemind: The open-ended homogeneity of language models (and beyond).
    arXiv 2510.22954.
    """
    n, cosines, signed = len(sets), [], {}
    for start in range(0, len(sets[0]), _PROMPTS_AT_ONCE):
        parts = [of_system[start : start + _PROMPTS_AT_ONCE] for of_system in sets]
        part = [texts for of_prompt in zip(*parts, strict=True) for texts in of_prompt]
        sizes = np.array(list(map(len, part)))
        given: Contexts = None
        if contexts is not None:
            given = [context for context in contexts[start : start + _PROMPTS_AT_ONCE] for _ in range(n)]
        flat = TextSets(list(chain.from_iterable(part)), sizes, nested=True)
        encoded = embed_sets(flat, EmbeddedSetSettings(contexts=given, **encoder))
        rows, signed = unit_vectors(encoded.rows), encoded.signed
        sums = np.add.reduceat(rows, np.cumsum(sizes) - sizes).reshape(-1, n, rows.shape[1])
        products = sums @ sums.swapaxes(1, 2)
        counts = sizes.reshape(-1, n, 1) * sizes.reshape(-1, 1, n)
        # Of one system, the cosine of a text with itself is left out.
        diagonal = np.eye(n) * sizes.reshape(-1, n, 1)
        cosines.append((products - diagonal) / (counts - diagonal))
    whole = np.concatenate(cosines)
    means = []
    for a, b in combinations_with_replacement(range(n), 2):
        estimate = mean_estimate(whole[:, a, b])
        means.append(Similarity(estimate.value, estimate.interval(level, (-1.0, 1.0)), a, b))
    return means, signature("cosine", **signed)
