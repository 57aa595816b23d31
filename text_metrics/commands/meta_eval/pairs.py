"""Read judged pairs of sets, pairs that people judged, and sets of several kinds about the same concepts."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from text_metrics.commands.shared.files import read_objects, read_texts, read_topic

if TYPE_CHECKING:  # its import takes a second
    import pandas as pd

VAGUE = 0.5  # the paper leaves out pairs whose judge scores are less than this apart
# Differences between ratings, which are means, are subject to rounding: 3.4 - 2.9 is a little less than 0.5 in binary.
_ROUNDING = 1e-9
_HIGH = {"original", "para_a", "para_b", "para_c"}
_LOW = {"nonsensical", "shuffle", "shuffled", "noun_shuffle", "random_shuffle"}
ORIGINAL = "original"
# The kinds that should rank below the original: the name of the file, and that in tables.
POORER = {
    "nonsensical": "nonsensical",
    "shuffle_nouns": "shuffled nouns",
    "shuffle": "shuffled words",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
}
_SEED = 0


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


def read_pairs(paths: Sequence[Path], sets: Sets) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Read pairs from files of JSON lines; a file x_high or x_low belongs to the data set x.

    Returns
    -------
    judged : the pairs that the judge decided, with the columns `first` and `second`, numbers of sets; `verdict`, 0 if
        the judge calls the first more diverse, 1 if the second; `clear`, whether the judge's scores are 0.5 or more
        apart, or unknown; `data`; `part`, "high" or "low" quality or ""; `label1` and `label2`, how the sets were
        made, or ""; and `concept`, the same number for pairs about the same thing
    people : the pairs that people judged, with `first`, `second` and `concept`; `verdict`, 0.5 where the judge has
        none; and `votes`, a list with the verdict of each person
    """
    judged: list[dict[str, Any]] = []
    people: list[dict[str, Any]] = []
    left_out = 0
    for path in paths:
        for where, record in read_objects(path):
            first, second = (read_texts(record, key, where) for key in ("set1", "set2"))
            if len(first) != len(second):
                got = f"Got {len(first)} and {len(second)}."
                raise ValueError(f"{where}: set1 and set2 must have the same number of texts. {got}")
            by_people = "human_diversity" in record
            row = _read_people(record, where, people) if by_people else _read_judged(record, where, path.stem)
            if row["verdict"] is None:
                left_out += 1
                continue
            row |= {"topic": read_topic(record), "first": sets.add(first), "second": sets.add(second)}
            (people if by_people else judged).append(row)
    if left_out:
        print(f"{left_out} pairs without a verdict are left out.", file=sys.stderr)
    if paths and not judged and not people:
        raise ValueError(f"{paths[0]}: no pair has a verdict.")
    return _with_concepts(judged), _with_concepts(people)


def _with_concepts(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Add the number of the topic of each row; a row without a topic is about something of its own."""
    import pandas as pd

    topics = [row.pop("topic") or i for i, row in enumerate(rows)]
    return pd.DataFrame(rows).assign(concept=pd.factorize(pd.Series(topics, dtype=object))[0])


def _read_judged(record: dict[str, Any], where: str, file: str) -> dict[str, Any]:
    stem, _, suffix = file.rpartition("_")
    data, part = (stem, suffix) if suffix in ("high", "low") else (file, "")
    first, second = (str(record.get(key) or "") for key in ("set1_label", "set2_label"))
    part = part or ("low" if _LOW & {first, second} else "high" if _HIGH & {first, second} else "")
    row = {"verdict": read_verdict(record, where), "clear": _is_clear(record)}
    return {**row, "data": data, "part": part, "label1": first, "label2": second}


def _read_people(record: dict[str, Any], where: str, earlier: list[dict[str, Any]]) -> dict[str, Any]:
    votes, verdict = record["human_diversity"], record.get("llm_diversity")
    if not isinstance(votes, list) or not votes or any(vote not in (0, 1) for vote in votes):
        raise ValueError(f"{where}: human_diversity must be a list of 0 and 1. Got {votes!r:.80}.")
    if earlier and len(votes) != (n_votes := len(earlier[0]["votes"])):
        raise ValueError(f"{where}: human_diversity must have {n_votes} votes, as other pairs. Got {len(votes)}.")
    return {"votes": votes, "verdict": float(verdict) if verdict in (0, 1) else 0.5}


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
    if not np.isfinite([_rating(first), _rating(second)]).all():
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


def read_kinds(folder: Path, most: int, sets: Sets) -> "pd.DataFrame":
    """Read a folder for each generator, with a file of JSON lines for each kind, and draw at most `most` concepts.

    Returns the columns `generator`, `kind`, `concept` and `set`, its number. Concepts whose sets differ in size are
    left out, since a Vendi score grows with the size of a set.
    """
    import pandas as pd

    rows = []
    for generator in sorted(path for path in folder.iterdir() if (path / f"{ORIGINAL}.jsonl").is_file()):
        names = [ORIGINAL, *(name for name in POORER if (generator / f"{name}.jsonl").is_file())]
        files = {name: list(read_objects(generator / f"{name}.jsonl")) for name in names}
        counts = {name: len(lines) for name, lines in files.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"{generator}: the files must have the same number of lines, one for each concept. Got {counts}."
            )
        drawn = np.random.default_rng(_SEED).permutation(counts[ORIGINAL])[:most].tolist()
        left_out = 0
        for concept, i in enumerate(drawn):
            lines = {name: files[name][i] for name in names}
            if len(topics := {read_topic(record) for _, record in lines.values()}) > 1:
                raise ValueError(f"{lines[ORIGINAL][0]}: the other kinds have a different src. Got {sorted(topics)}.")
            texts = {name: read_texts(record, "sentences", where) for name, (where, record) in lines.items()}
            if len({len(members) for members in texts.values()}) > 1:
                left_out += 1
                continue
            rows += [(generator.name, name, concept, sets.add(members)) for name, members in texts.items()]
        if left_out:
            print(f"{generator}: {left_out} concepts whose sets differ in size are left out.", file=sys.stderr)
    if not rows:
        raise ValueError(f"{folder} must hold a folder with {ORIGINAL}.jsonl for each generator.")
    return pd.DataFrame(rows, columns=["generator", "kind", "concept", "set"])


def labelled_sets(pairs: "pd.DataFrame", kinds: "pd.DataFrame | None") -> dict[str, list[int]]:
    """List the numbers of the distinct sets that bear each label: the kinds, or else the labels in the pairs."""
    import pandas as pd

    if kinds is not None:
        labels, numbers = kinds["kind"], kinds["set"]
    elif len(pairs):
        labels = pd.concat([pairs["label1"], pairs["label2"]])
        numbers = pd.concat([pairs["first"], pairs["second"]])
    else:
        return {}
    by_label = numbers[labels != ""].groupby(labels[labels != ""], sort=False)
    return {str(label): members.tolist() for label, members in by_label.unique().items()}
