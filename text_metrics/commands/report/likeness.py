"""How alike systems are, and how near people: the partition of diversity, of texts drawn by their content alone."""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.shared.statistics import holm
from text_metrics.metrics._core.core_results import ratio_estimate
from text_metrics.questions.groups import between_groups

# Texts of each side on a prompt whose diversity is partitioned: the time grows with the third power.
MOST_TEXTS = 25
# Permutations of the test of all systems, and the most of those of pairs.
PERMUTATIONS, _MOST_OF_PAIRS = 100, 1000
_SEED = 0
# For each side, such as a system, the texts of each prompt.
Sets = Sequence[Sequence[list[str]]]


def shuffled(texts: Sequence[str], prompt: str) -> list[str]:
    """Return texts in a random order that depends only on their content and their prompt.

    Different sets are drawn from independently, also where they share texts.
    """
    whole = _digest("\0".join([str(_SEED), prompt, *sorted(texts)]))
    keys = []
    for text, count in Counter(texts).items():
        keys += [(_digest(f"{number}\0{text}", whole), text) for number in range(count)]
    return [text for _, text in sorted(keys)]


def _digest(text: str, key: bytes = b"") -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16, key=key).digest()


def equal_numbers(ids: Sequence[str], sets: Sets) -> list[list[list[str]]]:
    """Draw for each prompt as many texts of each side as the smallest side has, at most `MOST_TEXTS`."""
    counts = [min(MOST_TEXTS, *map(len, sides)) for sides in zip(*sets, strict=True)]
    return [
        [shuffled(texts, prompt)[:count] for texts, prompt, count in zip(side, ids, counts, strict=True)]
        for side in sets
    ]


def likeness(sets: Sets, command: ReportCommand) -> dict[str, Any] | None:
    """Partition diversity among all systems, and of three or more among each pair; None for one system.

    `sets` are those of `equal_numbers`.
    """
    if len(sets) == 1:
        return None
    whole = partition(sets, command)
    pairs = list(combinations(range(len(sets)), 2)) if len(sets) > 2 else []
    permutations = PERMUTATIONS
    if whole["least_p"] is not None:
        # After Holm's adjustment, the smallest p-value is then 0.8 of the level at which tests reject.
        needed = math.ceil(1.25 * len(pairs) / (1 - command.confidence))
        permutations = int(np.clip(needed, PERMUTATIONS, _MOST_OF_PAIRS))
    rows = [{"a": i, "b": j, **partition([sets[i], sets[j]], command, permutations)} for i, j in pairs]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        # Whatever the place of a test in Holm's order, permutations bound it by this.
        row |= {"p_holm": p, "least_p_holm": p if row["p"] == row["least_p"] else None}
    rows.sort(key=lambda row: row["share"] or 0.0, reverse=True)
    return {"partition": whole, "pairs": rows}


def partition(sets: Sets, command: ReportCommand, permutations: int = PERMUTATIONS) -> dict[str, Any]:
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
        confidence=command.confidence,
        **command.encoder,
    )
    between = result["between_confidence_interval"]
    share = _share_interval(result, math.log(len(sets)), command.confidence)
    return {
        **{name: result[name] for name in ("within", "pooled", "between", "between_expected", "share", "signature")},
        "between_interval": between and [between[0], min(between[1], len(sets))],
        "share_interval": share,
        "p": result.get("permutation_p", result["p_value"]),
        "least_p": 1 / (1 + permutations) if "permutation_p" in result else None,
    }


def _share_interval(result: dict[str, Any], most: float, level: float) -> list[float] | None:
    """Compute the interval of the share beyond chance, which is a ratio of sums over prompts."""
    observed, chance = (np.log(result[f"between_{name}"]) for name in ("scores", "expected_scores"))
    if result["share"] is None:
        return None
    return ratio_estimate(observed - chance, most - chance).interval(level, (-math.inf, 1.0))


def draw(ids: list[str], sets: Sets, people: dict[str, list[str]]) -> list[list[list[str]]]:
    """Draw equal numbers of texts for each prompt; raises a ValueError if people and systems share no prompt.

    Returns the texts of each prompt of people, of each system and, if any prompt has two texts of people, of other
    people. Texts are drawn by a digest of their content, so the order of the files does not matter.
    """
    halves = any(len(people.get(prompt, ())) > 1 for prompt in ids)
    sides: list[list[list[str]]] = [[] for _ in range(1 + len(sets) + halves)]
    for prompt, *of_systems in zip(ids, *sets, strict=True):
        of_people = shuffled(people.get(prompt, ()), prompt)
        count = min(len(of_people) // (1 + halves), *map(len, of_systems))
        if count:
            drawn = [of_people, *(shuffled(texts, prompt) for texts in of_systems), of_people[count:]]
            for side, texts in zip(sides, drawn, strict=False):
                side.append(texts[:count])
    if not sides[0]:
        raise ValueError("--people has no text for any prompt of the systems: check --id-key.")
    return sides


def compare_with_people(sides: Sets, command: ReportCommand) -> dict[str, Any]:
    """Partition diversity among people and each system, then other people; `sides` are those of `draw`."""
    people, *others = ([texts[:MOST_TEXTS] for texts in side] for side in sides)
    return {
        "n_texts": sum(map(len, sides[0])),
        "n_prompts": len(people),
        "rows": [partition([people, side], command) for side in others],
    }
