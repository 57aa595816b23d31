"""How near systems are to people: the partition of diversity between them, with other people as the scale."""

import math
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.likeness import MOST_TEXTS, PERMUTATIONS, Sets, partition, shuffled
from text_metrics.commands.report.scores import count_words

# Standard deviations by which lengths must differ to explain the other numbers.
LENGTHS_APART = 0.5


class Sample(NamedTuple):
    """As many texts of each system as of people for each prompt, and of other people where there are enough.

    prompts : list of the prompts with any
    people, others : for each prompt a list of texts; `others` is None where people have one text each
    systems : for each system the same
    """

    prompts: list[str]
    people: list[list[str]]
    others: list[list[str]] | None
    systems: list[list[list[str]]]


def draw(ids: list[str], sets: Sets, people: dict[str, list[str]]) -> Sample | None:
    """Draw equal numbers of texts for each prompt; None if people and systems share no prompt.

    Texts are drawn by a digest of their content, so the order of the files does not matter.
    """
    shared = [p for p, prompt in enumerate(ids) if prompt in people]
    halves = any(len(people[ids[p]]) > 1 for p in shared)
    counts = {p: min(len(people[ids[p]]) // (1 + halves), *(len(of_system[p]) for of_system in sets)) for p in shared}
    counts = {p: count for p, count in counts.items() if count}
    if not counts:
        return None
    drawn = {p: shuffled(people[ids[p]], ids[p]) for p in counts}
    return Sample(
        [ids[p] for p in counts],
        [drawn[p][:count] for p, count in counts.items()],
        [drawn[p][count : 2 * count] for p, count in counts.items()] if halves else None,
        [[shuffled(of_system[p], ids[p])[:count] for p, count in counts.items()] for of_system in sets],
    )


def compare_with_people(sample: Sample, command: ReportCommand) -> dict[str, Any]:
    """Compare each system, and other people, with people."""
    lengths = word_counts(sample.people)
    candidates: list[tuple[int | None, list[list[str]]]] = [*enumerate(sample.systems)]
    if sample.others is not None:
        candidates.append((None, sample.others))
    rows = []
    for system, texts in tqdm(candidates, desc="People", unit="system", disable=command.quiet):
        # Drawn texts are in random order, so the first of them are a random draw, too.
        part = partition([[drawn[:MOST_TEXTS] for drawn in sets] for sets in (sample.people, texts)], command)
        side_lengths = word_counts(texts)
        apart = standardized(side_lengths, lengths)
        rows.append(
            {
                "system": system,
                **{name: part[name] for name in ("between", "between_expected", "share", "p", "least_p")},
                "interval": part["intervals"]["share"],
                "mean_length": float(side_lengths.mean()),
                "length_difference": apart,
                "length_warning": apart is None or abs(apart) >= LENGTHS_APART,
            }
        )
    return {
        "n_texts": len(lengths),
        "n_prompts": len(sample.prompts),
        "permutations": PERMUTATIONS,
        "lengths": {"people": float(lengths.mean()), "unit": "words"},
        "rows": rows,
    }


def word_counts(sets: list[list[str]]) -> np.ndarray:
    """Count the words of each text: (n,), float64."""
    return np.array([count_words(text) for texts in sets for text in texts], dtype=np.float64)


def standardized(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return the difference of two means in standard deviations (Cohen's d); None if there is no deviation."""
    difference = float(first.mean() - second.mean())
    spread = math.sqrt((float(first.var()) + float(second.var())) / 2)
    if spread:
        return difference / spread
    return None if difference else 0.0
