"""How near systems are to people: overlap of their texts in the space of embeddings, and a test of equality."""

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches
from tqdm import tqdm

from text_metrics.commands.report.embedding import Embedded, Encoder
from text_metrics.commands.report.likeness import MOST_TEXTS, PERMUTATIONS, Sets, partition, shuffled
from text_metrics.commands.report.scores import count_words
from text_metrics.metrics._core.core_results import mean_estimate

NEIGHBOURS = 5
# Standard deviations by which lengths must differ to explain the other numbers.
LENGTHS_APART = 0.5
# Entries of a block of similarities.
_BLOCK_ENTRIES = 2**23
# What rounding can do to a cosine.
_ROUNDING = 1e-9


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


def compare_with_people(sample: Sample, embedded: Embedded, encoder: Encoder, level: float) -> dict[str, Any]:
    """Compare each system, and other people, with people."""
    counts = np.array([len(texts) for texts in sample.people])
    n = int(counts.sum())
    # No more than a text has neighbours on its own prompt, where there are few.
    k = min(max(1, min(NEIGHBOURS, int(np.median(counts)) - 1)), n - 1)
    vectors, lengths = embedded.of(text for texts in sample.people for text in texts), word_counts(sample.people)
    candidates: list[tuple[int | None, list[list[str]]]] = [*enumerate(sample.systems)]
    if sample.others is not None:
        candidates.append((None, sample.others))
    rows = []
    for system, texts in tqdm(candidates, desc="People", unit="system", disable=encoder.quiet):
        side = embedded.of(text for members in texts for text in members)
        # Drawn texts are in random order, so the first of them are a random draw, too.
        part = partition([[drawn[:MOST_TEXTS] for drawn in sets] for sets in (sample.people, texts)], encoder, level)
        side_lengths = word_counts(texts)
        apart = standardized(side_lengths, lengths)
        rows.append(
            {
                "system": system,
                **overlap(vectors, side, k, counts, level),
                **{name: part[name] for name in ("between", "between_expected", "share", "p", "least_p")},
                "mean_length": float(side_lengths.mean()),
                "length_difference": apart,
                "length_warning": apart is None or abs(apart) >= LENGTHS_APART,
            }
        )
    return {
        "n_texts": n,
        "n_prompts": len(sample.prompts),
        "k": k,
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


def overlap(people: np.ndarray, side: np.ndarray, k: int, counts: np.ndarray, level: float) -> dict[str, Any]:
    """Compute precision, recall and coverage of n texts against n of people's.

    A text is near another if it is in the ball around it that reaches its k-th nearest neighbour of the same side.
    The intervals are those of means over the texts, with the prompts as units, for the balls as they are.

    Parameters
    ----------
    people, side : ndarrays of shape (n, d), unit rows
    k : 0 if there are no neighbours: then nothing is defined
    counts : ndarray of shape (p,), the number of texts of each prompt

    References
    ----------
    Kynkäänniemi, T., et al. (2019). Improved precision and recall metric for assessing generative models. NeurIPS.
    Naeem, M. F., et al. (2020). Reliable fidelity and diversity metrics for generative models. ICML.
    """
    if not k:
        return {name: {"value": None, "interval": None} for name in ("precision", "recall", "coverage")}
    reach, side_reach = (_nearest_cosines(vectors, k) - _ROUNDING for vectors in (people, side))
    n = len(people)
    near_people, near_side, covered = (np.zeros(n, dtype=bool) for _ in range(3))
    for part in gen_batches(n, max(1, _BLOCK_ENTRIES // n)):
        cosines = side[part] @ people.T
        near_people[part] = (cosines >= reach).any(axis=1)
        covered |= (cosines >= reach).any(axis=0)
        near_side |= (cosines >= side_reach[part, None]).any(axis=0)
    units = np.repeat(np.arange(len(counts)), counts)
    result = {}
    for name, is_near in {"precision": near_people, "recall": near_side, "coverage": covered}.items():
        estimate = mean_estimate(is_near.astype(np.float64), units)
        result[name] = {"value": estimate.value, "interval": estimate.interval(level, (0.0, 1.0))}
    return result


def _nearest_cosines(vectors: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th largest cosine of each of n unit vectors (n, d) with the others: (n,)."""
    n = len(vectors)
    nearest = np.empty(n)
    for part in gen_batches(n, max(1, _BLOCK_ENTRIES // n)):
        cosines = vectors[part] @ vectors.T
        rows = np.arange(part.start, part.stop)
        cosines[rows - part.start, rows] = -np.inf
        nearest[part] = np.partition(cosines, n - k, axis=1)[:, n - k]
    return nearest
