"""The sets of a generator, original and poorer ones about the same concepts, and how often the original ranks above."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.meta_eval.agreement import Draws, Row, compare
from text_metrics.commands.meta_eval.pairs import Sets
from text_metrics.commands.shared.files import read_objects, read_texts, read_topic

ORIGINAL = "original"
# The kinds that should rank below the original: the name of the file, and that in reports.
POORER = {
    "nonsensical": "nonsensical",
    "shuffle_nouns": "shuffled nouns",
    "shuffle": "shuffled words",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
}
_SEED = 0


class Kinds(NamedTuple):
    """The sets of one generator, by kind.

    name : the generator
    numbers : for each kind an ndarray of shape (n,), the numbers of its sets, in the order of the concepts
    left_out : how many of the concepts drawn have sets of different sizes
    """

    name: str
    numbers: dict[str, np.ndarray]
    left_out: int


def read_kinds(folder: Path, most: int, sets: Sets) -> list[Kinds]:
    """Read a folder for each generator, with a file of JSON lines for each kind, and draw at most `most` concepts."""
    generators = []
    for generator in sorted(path for path in folder.iterdir() if (path / f"{ORIGINAL}.jsonl").is_file()):
        names = [ORIGINAL, *(name for name in POORER if (generator / f"{name}.jsonl").is_file())]
        files = {name: list(read_objects(generator / f"{name}.jsonl")) for name in names}
        counts = {name: len(lines) for name, lines in files.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"{generator}: the files must have the same number of lines, one for each concept. Got {counts}."
            )
        drawn = np.random.default_rng(_SEED).permutation(counts[ORIGINAL])[:most].tolist()
        numbers: dict[str, list[int]] = {name: [] for name in names}
        for i in drawn:
            lines = {name: files[name][i] for name in names}
            topics = {read_topic(record) for _, record in lines.values()}
            if len(topics) > 1:
                raise ValueError(f"{lines[ORIGINAL][0]}: the other kinds have a different src. Got {sorted(topics)}.")
            texts = {name: read_texts(record, "sentences", where) for name, (where, record) in lines.items()}
            # A Vendi score grows with the size of a set.
            if len({len(members) for members in texts.values()}) == 1:
                for name, members in texts.items():
                    numbers[name].append(sets.add(members))
        arrays = {name: np.array(members_of_kind) for name, members_of_kind in numbers.items()}
        generators.append(Kinds(generator.name, arrays, len(drawn) - len(arrays[ORIGINAL])))
    return generators


def originals_above(kinds: Kinds, row: Row) -> dict[str, dict[str, Any]]:
    """Say how often a row ranks the original above each poorer kind of the same concept, ties counting half."""
    draws = Draws(np.arange(len(kinds.numbers[ORIGINAL])))
    original = row.sign * row.scores[kinds.numbers[ORIGINAL]]
    shares = {}
    for name, numbers in kinds.numbers.items():
        if name != ORIGINAL:
            wins = 1 - compare(original, row.sign * row.scores[numbers])
            shares[name] = {"share": float(wins.mean()), "interval": draws.interval(draws.means(wins))}
    return shares
