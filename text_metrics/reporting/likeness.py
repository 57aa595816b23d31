"""How alike systems are, and how near people: the partition of diversity."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations, combinations_with_replacement
from typing import Any

import numpy as np

import text_metrics
from text_metrics.core_api import (
    LIMITS,
    TextSets,
    batches_by_size,
    mean_estimate,
    ratio_estimate,
    signature,
    tied_ranks,
    unit_vectors,
)
from text_metrics.questions.groups import FEW_SETS, between_groups
from text_metrics.reporting.inputs import Inputs
from text_metrics.reporting.results import Likeness, Pair, Partition, People, Similarity
from text_metrics.statistics import holm

# Texts of each side on a prompt: the time of a partition grows with the third power.
MOST_TEXTS = 25
# For each prompt, the texts of each side, such as a system, and their context.
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

    A prompt without a text of some side is left out, with its context.
    """
    sizes = [min(MOST_TEXTS, *map(len, texts)) for texts in zip(*sides, strict=True)]
    by_prompt = []
    for p, n in enumerate(sizes):
        if n:
            by_prompt.append([texts[p][:n] for texts in sides])
    return by_prompt, contexts and [context for context, n in zip(contexts, sizes, strict=True) if n]


def compare_systems(inputs: Inputs, level: float, encoder: dict[str, Any]) -> Likeness | None:
    """Partition diversity among all systems, and each pair of three or more; None for one system."""
    n = len(inputs.systems)
    if n == 1:
        return None
    by_prompt, contexts = equal_numbers(_shuffled_sets(inputs), inputs.contexts)
    places = list(combinations(range(n), 2)) if n > 2 else []
    parts = [partition(_sides(by_prompt, i, j), contexts, level, encoder) for i, j in places]
    adjusted = holm([part.p for part in parts])
    pairs = []
    for (i, j), part, p in zip(places, parts, adjusted, strict=True):
        pairs.append(Pair(**vars(part), a=i, b=j, p_holm=p))
    # Not by share, which may be lower where systems share only some texts than where they share all.
    order = np.argsort(tied_ranks([-pair.between for pair in pairs]), kind="stable").tolist()
    whole = partition(by_prompt, contexts, level, encoder)
    cosines = similarities(inputs, level, encoder)
    return Likeness(whole, [pairs[i] for i in order], *cosines)


def compare_with_people(inputs: Inputs, level: float, encoder: dict[str, Any]) -> People | None:
    """Partition diversity among people and each system, and two halves of people; None without people."""
    if inputs.people is None:
        return None
    people = [shuffled(inputs.people.get(prompt, ()), prompt) for prompt in inputs.ids]
    others = _shuffled_sets(inputs)
    if max(map(len, people)) > 1:
        # One half stands for people; the other half is compared with it, like a system.
        others.append([texts[len(texts) // 2 :] for texts in people])
        people = [texts[: len(texts) // 2] for texts in people]
    by_prompt, contexts = equal_numbers([people, *others], inputs.contexts)
    n_sides = len(by_prompt[0])
    rows = [partition(_sides(by_prompt, 0, i), contexts, level, encoder) for i in range(1, n_sides)]
    return People(n_texts=sum(len(texts[0]) for texts in by_prompt), n_prompts=len(by_prompt), rows=rows)


def _shuffled_sets(inputs: Inputs) -> list[list[list[str]]]:
    return [list(map(shuffled, sets, inputs.ids)) for sets in inputs.texts]


def _sides(by_prompt: ByPrompt, i: int, j: int) -> ByPrompt:
    """Keep the texts of two sides on each prompt."""
    return [[texts[i], texts[j]] for texts in by_prompt]


def equal_share(by_prompt: ByPrompt) -> float:
    """Return the share of texts that equal one of another side on the same prompt."""
    n_equal = 0
    n_texts = 0
    for sides in by_prompt:
        n_sides = Counter(chain.from_iterable(map(set, sides)))
        for texts in sides:
            n_equal += sum(n_sides[text] > 1 for text in texts)
            n_texts += len(texts)
    return n_equal / n_texts


def partition(by_prompt: ByPrompt, contexts: Contexts, level: float, encoder: dict[str, Any]) -> Partition:
    """Divide the diversity of the texts of each prompt into that within and between sides.

    On few prompts, p is the share of permutations, and more of them are drawn; otherwise, the normal distribution
    gives it.
    """
    groups = [np.repeat(range(len(sides)), list(map(len, sides))).tolist() for sides in by_prompt]
    result = between_groups(
        "vendi_embed",
        predictions=[list(chain.from_iterable(sides)) for sides in by_prompt],
        groups=groups,
        permutations=1000 if len(by_prompt) < FEW_SETS else 100,
        confidence=level,
        contexts=contexts,
        **encoder,
    )
    n = len(by_prompt[0])
    between_interval = result["between_confidence_interval"]
    if between_interval is not None:
        low, high = between_interval
        between_interval = [low, min(high, n)]
    share_interval = None
    if result["share"] is not None:
        # The share is a ratio of sums over prompts.
        observed, chance = (np.log(result[f"between_{name}"]) for name in ("scores", "expected_scores"))
        estimate = ratio_estimate(observed - chance, math.log(n) - chance)
        share_interval = estimate.interval(level, (-math.inf, 1.0))
    return Partition(
        within=result["within"],
        pooled=result["pooled"],
        between=result["between"],
        between_interval=between_interval,
        between_expected=result["between_expected"],
        share=result["share"],
        share_interval=share_interval,
        p=result.get("permutation_p", result["p_value"]),
        equal_share=equal_share(by_prompt),
        signature=result["signature"],
    )


def similarities(inputs: Inputs, level: float, encoder: dict[str, Any]) -> tuple[list[Similarity], str]:
    """Average the cosines of two different texts on a prompt: of each system, and of each two systems.

    Each prompt has equal weight, and all texts are used, as in arXiv 2510.22954. Returns means in [-1, 1] with their
    intervals over prompts, and their signature.
    """
    n = len(inputs.systems)
    # The sets of all systems on the first prompt, then on the second.
    members = list(chain.from_iterable(zip(*inputs.texts, strict=True)))
    sizes = np.array(list(map(len, members)))
    flat = TextSets(list(chain.from_iterable(members)), sizes, nested=True)
    contexts = inputs.contexts and [context for context in inputs.contexts for _ in range(n)]
    metric = text_metrics.load("vendi_embed")
    vectors, signed = metric.embed(flat, metric.settings.read({"contexts": contexts, **encoder}, metric.name))
    sums = np.empty((len(sizes), vectors.shape[1]))
    for places, rows in batches_by_size(sizes, LIMITS.block_rows):
        sums[places] = unit_vectors(vectors[rows]).sum(axis=1)
    by_system = sums.reshape(-1, n, sums.shape[1])
    # Of one system, the cosine of a text with itself is left out.
    diagonal = np.eye(n) * sizes.reshape(-1, n, 1)
    counts = sizes.reshape(-1, n, 1) * sizes.reshape(-1, 1, n)
    cosines = (by_system @ by_system.swapaxes(1, 2) - diagonal) / (counts - diagonal)
    means = []
    for a, b in combinations_with_replacement(range(n), 2):
        estimate = mean_estimate(cosines[:, a, b])
        means.append(Similarity(estimate.value, estimate.interval(level, (-1.0, 1.0)), a, b))
    return means, signature("cosine", **signed)
