"""Read judged pairs of sets: a judge's verdicts, and the verdicts of people."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.shared.files import read_objects, read_texts, read_topic

VAGUE = 0.5  # the paper leaves out pairs whose judge scores are less than this apart
# Differences between ratings, which are means, are subject to rounding: 3.4 - 2.9 is a little less than 0.5 in binary.
_ROUNDING = 1e-9
HIGH = {"original", "para_a", "para_b", "para_c"}
LOW = {"nonsensical", "shuffle", "shuffled", "noun_shuffle", "random_shuffle"}
NONSENSE = "nonsensical"


class Sets:
    """The distinct sets of all files, numbered in the order in which they were added."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}

    def add(self, texts: list[str]) -> int:
        """Return the number of a set."""
        return self._numbers.setdefault(tuple(texts), len(self._numbers))

    def texts(self) -> list[list[str]]:
        """List the sets."""
        return [list(texts) for texts in self._numbers]


class Pairs(NamedTuple):
    """Judged pairs of sets.

    first, second : ndarrays of shape (n,), numbers of the sets of each pair
    verdicts : ndarray of shape (n,): 0 if the judge calls the first more diverse, 1 if the second
    clear : ndarray of shape (n,), bool: whether the judge's scores are 0.5 or more apart; True where they are unknown
    data : ndarray of shape (n,), the name of the data set
    parts : ndarray of shape (n,), "high" or "low" quality, or ""
    concepts : ndarray of shape (n,), int: pairs about the same thing have the same number
    labels : ndarray of shape (n, 2), how the sets were made, or ""
    left_out : how many pairs have no verdict
    """

    first: np.ndarray
    second: np.ndarray
    verdicts: np.ndarray
    clear: np.ndarray
    data: np.ndarray
    parts: np.ndarray
    concepts: np.ndarray
    labels: np.ndarray
    left_out: int

    def by_label(self) -> dict[str, list[int]]:
        """List the numbers of the distinct sets that bear each label."""
        by_label: dict[str, dict[int, None]] = {}
        for column, numbers in enumerate((self.first, self.second)):
            for label, number in zip(self.labels[:, column].tolist(), numbers.tolist(), strict=True):
                if label:
                    by_label.setdefault(label, {})[number] = None
        return {label: list(numbers) for label, numbers in by_label.items()}


class People(NamedTuple):
    """Pairs that several people judged.

    first, second : ndarrays of shape (n,), numbers of the sets of each pair
    votes : ndarray of shape (n, number of people): 0 where a person calls the first set more diverse, 1 the second
    judge : ndarray of shape (n,), the verdict of the judge; 0.5 where it has none
    concepts : ndarray of shape (n,), int: pairs about the same thing have the same number
    """

    first: np.ndarray
    second: np.ndarray
    votes: np.ndarray
    judge: np.ndarray
    concepts: np.ndarray


def has_people(path: Path) -> bool:
    """Say whether a file holds pairs that people judged."""
    _, record = next(iter(read_objects(path)))
    return "human_diversity" in record


def read_pairs(paths: list[Path], sets: Sets) -> Pairs | None:
    """Read pairs from files of JSON lines, or None if there is none; a file x_high or x_low belongs to data set x."""
    if not paths:
        return None
    concepts: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []
    left_out = 0
    for path in paths:
        stem, _, suffix = path.stem.rpartition("_")
        named_part = suffix if suffix in ("high", "low") else ""
        data = stem if named_part else path.stem
        for where, record in read_objects(path):
            members = read_members(record, where)
            verdict = read_verdict(record, where)
            if verdict is None:
                left_out += 1
                continue
            first, second = map(sets.add, members)
            labels = [str(record.get(key) or "") for key in ("set1_label", "set2_label")]
            part = named_part or ("low" if LOW & set(labels) else "high" if HIGH & set(labels) else "")
            concept = concepts.setdefault(read_topic(record) or len(rows), len(concepts))
            rows.append((first, second, verdict, _is_clear(record), data, part, concept, labels))
    if not rows:
        raise ValueError(f"No pair has a verdict: all {left_out} are vague.")
    return Pairs._make([*(np.array(column) for column in zip(*rows, strict=True)), left_out])


def read_people(paths: list[Path], sets: Sets) -> People | None:
    """Read pairs that people judged: `human_diversity`, a list of 0 and 1, equally long for each pair; or None."""
    if not paths:
        return None
    concepts: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []
    for path in paths:
        for where, record in read_objects(path):
            first, second = map(sets.add, read_members(record, where))
            votes = read_votes(record, where)
            if rows and len(votes) != len(rows[0][2]):
                raise ValueError(
                    f"{where}: human_diversity must have as many votes as in the other pairs, "
                    f"{len(rows[0][2])}. Got {len(votes)}."
                )
            verdict = record.get("llm_diversity")
            judge = float(verdict) if verdict in (0, 1) else 0.5
            concept = concepts.setdefault(read_topic(record) or len(rows), len(concepts))
            rows.append((first, second, votes, judge, concept))
    return People(*(np.array(column) for column in zip(*rows, strict=True)))


def read_votes(record: dict[str, Any], where: str) -> list[int]:
    """Read the verdicts of people."""
    votes = record.get("human_diversity")
    if not isinstance(votes, list) or not votes or any(vote not in (0, 1) for vote in votes):
        raise ValueError(f"{where}: human_diversity must be a list of 0 and 1. Got {votes!r:.80}.")
    return votes


def read_members(record: dict[str, Any], where: str) -> list[list[str]]:
    """Read both sets of a pair, which have the same number of texts."""
    members = [read_texts(record, key, where) for key in ("set1", "set2")]
    if len(members[0]) != len(members[1]):
        raise ValueError(
            f"{where}: set1 and set2 must have the same number of texts. Got {len(members[0])} and {len(members[1])}."
        )
    return members


def read_verdict(record: dict[str, Any], where: str) -> int | None:
    """Read which set the judge calls more diverse: 0, 1, or None where the pair is vague."""
    if "llm_diversity" in record:
        verdict = record["llm_diversity"]
        if isinstance(verdict, bool) or verdict not in (0, 1, 2):
            raise ValueError(f"{where}: llm_diversity must be 0, 1 or 2. Got {verdict!r}.")
        return None if verdict == 2 else int(verdict)
    first, second = record.get("Diversity_Set1"), record.get("Diversity_Set2")
    if first is None or second is None:
        raise ValueError(f"{where} has no verdict: llm_diversity, or Diversity_Set1 and Diversity_Set2, must be given.")
    if not np.isfinite([_rating(score) for score in (first, second)]).all():
        raise ValueError(f"{where}: Diversity_Set1 and Diversity_Set2 must be numbers. Got {first!r} and {second!r}.")
    return int(_rating(first) < _rating(second)) if _is_clear(record) else None


def is_vague(first: float, second: float) -> bool:
    """Whether the judge's scores of two sets are less than `VAGUE` apart; False if one of them is NaN."""
    return abs(first - second) < VAGUE - _ROUNDING


def _is_clear(record: dict[str, Any]) -> bool:
    return not is_vague(*(_rating(record.get(key)) for key in ("Diversity_Set1", "Diversity_Set2")))


def _rating(value: Any) -> float:
    # Python's integers may be larger than any float.
    return float(value) if isinstance(value, (int, float)) and abs(value) <= sys.float_info.max else float("nan")
