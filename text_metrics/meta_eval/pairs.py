"""Read judged pairs of sets, and pairs that people judged."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from text_metrics.files.rows import read_rows
from text_metrics.options import warn_of_marks
from text_metrics.texts import REASONING, SPECIAL, Marks, clean

_HIGH = {"original", "para_a", "para_b", "para_c"}
_LOW = {"nonsensical", "shuffle", "shuffled", "noun_shuffle", "random_shuffle"}
# The number of each distinct set, in the order in which they were read.
Sets = dict[tuple[str, ...], int]


def read_pairs(paths: Sequence[Path], sets: Sets, strip: Sequence[str] = ()) -> tuple[Any, Any]:
    """Read pairs from files of JSON lines; a file x_high or x_low belongs to the data set x.

    strip : the kinds of text, other than answers, that are removed

    Returns
    -------
    judged : data frame of the pairs that the judge decided, with the columns

        - first, second : numbers of sets
        - verdict : the set that the judge calls more diverse, 0 or 1
        - clear : whether the judge's scores are 0.5 or more apart, or unknown
        - data, part : the data set, and "high" or "low" quality or ""
        - label1, label2 : how the sets were made, or ""
        - concept : the same number for pairs about the same thing
    people : data frame of the pairs that people judged, with `first`, `second`, `concept`,
        `votes`, a list with the verdict of each person, and `verdict`, the judge's or 0.5
    """
    judged: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    left_out = 0
    marks = Marks()
    for path in paths:
        for where, record in read_rows(path):
            first, second = (read_texts(record, key, where) for key in ("set1", "set2"))
            if len(first) != len(second):
                got = f"Got {len(first)} and {len(second)}."
                raise ValueError(f"{where}: set1 and set2 must have the same number of texts. {got}")
            first, first_marks = clean(first, strip)
            second, second_marks = clean(second, strip)
            marks += first_marks + second_marks
            by_people = "human_diversity" in record
            row = _read_people(record, where, people) if by_people else _read_judged(record, where, path.stem)
            if row["verdict"] == 2:
                left_out += 1
                continue
            for name, texts in (("first", first), ("second", second)):
                row[name] = sets.setdefault(tuple(texts), len(sets))
            row["topic"] = read_topic(record)
            (people if by_people else judged).append(row)
    warn_of_marks(marks, (REASONING, SPECIAL))
    if left_out:
        print(f"{left_out} pairs without a verdict are left out.", file=sys.stderr)
    if paths and not judged and not people:
        raise ValueError(f"{paths[0]}: no pair has a verdict.")
    return _with_concepts(judged), _with_concepts(people)


def read_texts(record: dict[str, Any], key: str, where: str) -> list[str]:
    """Read a non-empty list of strings from an object."""
    texts = record.get(key)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where}: {key!r} must be a list of strings, at least one. Got {texts!r:.80}.")
    return texts


def read_topic(record: dict[str, Any]) -> str:
    """Read the topic of an object from its `src`, a string or a list of strings; empty if there is none."""
    topic = record.get("src") or ""
    return ", ".join(map(str, topic)) if isinstance(topic, list) else str(topic)


def _with_concepts(rows: list[dict[str, Any]]) -> Any:
    """Add the number of the topic of each row; a row without a topic is about something of its own."""
    # Its import takes a second.
    import pandas as pd

    topics = [row.pop("topic") or i for i, row in enumerate(rows)]
    return pd.DataFrame(rows).assign(concept=pd.factorize(pd.Series(topics, dtype=object))[0])


def _read_judged(record: dict[str, Any], where: str, file: str) -> dict[str, Any]:
    verdict = record.get("llm_diversity")
    if isinstance(verdict, bool) or verdict not in (0, 1, 2):
        raise ValueError(f"{where}: llm_diversity must be 0, 1 or 2. Got {verdict!r}.")
    stem, _, part = file.rpartition("_")
    first, second = (str(record.get(key) or "") for key in ("set1_label", "set2_label"))
    if part not in ("high", "low"):
        stem = file
        part = ""
        if _LOW & {first, second}:
            part = "low"
        elif _HIGH & {first, second}:
            part = "high"
    is_clear = True
    with suppress(KeyError, TypeError, OverflowError):  # scores may be missing, or not numbers
        # They are means: 3.4 - 2.9 is a little less than 0.5 in binary.
        is_clear = not abs(record["Diversity_Set1"] - record["Diversity_Set2"]) < 0.5 - 1e-9
    row = {"verdict": int(verdict), "clear": is_clear, "data": stem, "part": part}
    return {**row, "label1": first, "label2": second}


def _read_people(record: dict[str, Any], where: str, earlier: list[dict[str, Any]]) -> dict[str, Any]:
    votes = record["human_diversity"]
    verdict = record.get("llm_diversity")
    if not isinstance(votes, list) or not votes or any(vote not in (0, 1) for vote in votes):
        raise ValueError(f"{where}: human_diversity must be a list of 0 and 1. Got {votes!r:.80}.")
    if earlier and len(votes) != (n_votes := len(earlier[0]["votes"])):
        raise ValueError(f"{where}: human_diversity must have {n_votes} votes, as other pairs. Got {len(votes)}.")
    return {"votes": votes, "verdict": float(verdict) if verdict in (0, 1) else 0.5}
