"""The systems of a report: their files, read to a set of texts for each prompt, and paired by the prompt.

Nothing here imports torch, so that what is wrong with a file is said at once.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.shared.columns import Column, parse_list
from text_metrics.commands.shared.files import file_format
from text_metrics.commands.shared.rows import Row, Source, read_key
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe

_LARGEST = sys.float_info.max
# A column with more values holds something else.
_MOST_SYSTEMS = 20
# Each text of a set with its quality; None where no column holds it.
Rated = list[tuple[str, float | None]]


class Part(NamedTuple):
    """What a row adds to the set of a prompt; `error` is why it is set aside, or empty."""

    file: Path
    row: Row
    system: str | None
    prompt: str | None
    texts: Rated
    error: str


class System(NamedTuple):
    """The sets of a system by prompt, and how many rows of its file were read and set aside."""

    name: str
    file: Path
    sets: dict[str, Rated]
    n_rows: int
    n_bad: int

    def texts(self) -> dict[str, list[str]]:
        """Return the texts of each set by prompt."""
        return {prompt: [text for text, _ in members] for prompt, members in self.sets.items()}


class Inputs(NamedTuple):
    """What a report is made from.

    systems, people : what was read; people is None without their file
    bad : rows that are set aside
    hints : which columns may hold systems that count as one
    ids : the p prompts of which every system has two texts or more, in order
    n_all : the number of prompts of any system
    texts : for each system, for each of these prompts, a list of texts
    quality : of all these texts, in order, where a column holds it: ndarray of shape (n,)
    """

    systems: list[System]
    people: System | None
    bad: list[Part]
    hints: list[str]
    ids: list[str]
    n_all: int
    texts: list[list[list[str]]]
    quality: np.ndarray | None

    def by_system(self) -> list[list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        return [[text for texts in sets for text in texts] for sets in self.texts]

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([[len(texts) for texts in sets] for sets in self.texts])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        sizes = self.sizes
        return int(sizes.min()) if sizes.min() < sizes.max() else None


def read_inputs(command: ReportCommand) -> Inputs:
    """Read all files, and pair the systems; raises a ValueError if a file or a column is wrong."""
    parts, people = [], None
    hints: list[str] = []
    for name, path in command.files.items():
        of_file = read_parts(name, path, command)
        parts += of_file
        hints += _hints(path, of_file, command)
    names = dict.fromkeys(part.system for part in parts if part.system)
    systems = [_gather(name, [part for part in parts if part.system == name]) for name in names]
    n_rows = sorted({system.n_rows for system in systems})
    if command.id_key is None and len(n_rows) > 1:
        raise ValueError(f"--by-line requires files of one length. Got {n_rows} rows: pass --id-key to pair them.")
    if command.people is not None:
        of_people = read_parts("people", command.people, replace(command, system_key=None, quality_key=None))
        people = _gather("people", of_people)
        parts += of_people
    ids = _common(systems)
    sets = [system.sets[prompt] for system in systems for prompt in ids]
    ratings = [rating for members in sets for _, rating in members]
    return Inputs(
        systems,
        people,
        [part for part in parts if part.error],
        hints,
        ids,
        len({prompt for system in systems for prompt in system.sets}),
        [list(map(system.texts().__getitem__, ids)) for system in systems],
        None if command.quality_key is None else np.array(ratings),
    )


def _hints(path: Path, parts: Sequence[Part], command: ReportCommand) -> list[str]:
    """Name columns of no other use with a few strings, each of them in at least half of the sets: perhaps systems."""
    if command.id_key is None or command.system_key is not None:
        return []
    prompts: dict[str, dict[str, set[str | None]]] = {}
    for part in parts:
        for name, value in (part.row.values or {}).items():
            if name not in (command.text_key, command.id_key, command.quality_key) and isinstance(value, str):
                prompts.setdefault(name, {}).setdefault(value, set()).add(part.prompt)
    n, hints = len({part.prompt for part in parts}), []
    for name, by_value in prompts.items():
        counts = [len(of_value) for of_value in by_value.values()]
        if 2 <= len(counts) <= _MOST_SYSTEMS and 2 * min(counts) >= max(n, 4) and sum(counts) >= 1.5 * n:
            hints.append(
                f"{path}: all rows count as one system. The column {name!r} has {len(counts)} values, each for most "
                f"prompts: pass --system-key {name} if they are systems."
            )
    return hints


def _common(systems: Sequence[System]) -> list[str]:
    """List the prompts of which every system has two texts or more, since one text has no diversity."""
    large = [{prompt for prompt, members in system.sets.items() if len(members) > 1} for system in systems]
    common = sorted(set.intersection(*large))
    if not common:
        raise ValueError(
            "there is nothing to compare: no prompt has two texts or more of every system, and one text has no "
            "diversity. Check --id-key and --text-key."
        )
    return common


def _gather(name: str, parts: Sequence[Part]) -> System:
    """Join the texts of each prompt of a system, in order of content: that of the rows does not matter."""
    sets: dict[str, Rated] = {}
    good = [part for part in parts if not part.error]
    for part in good:
        sets.setdefault(part.prompt or "", []).extend(part.texts)
    ordered = {prompt: sorted(members, key=itemgetter(0)) for prompt, members in sets.items()}
    return System(name, parts[0].file, ordered, len(parts), len(parts) - len(good))


def read_parts(name: str, path: Path, command: ReportCommand) -> list[Part]:
    """Read the rows of a file, of which at least one is good; those of a set with a bad row are set aside."""
    rows = list(Source(path).rows())
    columns = list(dict.fromkeys(column for row in rows for column in row.values or ()))
    for key in (command.text_key, command.id_key, command.system_key, command.quality_key):
        if columns and key is not None and key not in columns:
            raise ValueError(f"{path} has no column {key!r}: it has {', '.join(columns)}.")
    parts = [_read_part(row, i, name, path, command) for i, row in enumerate(rows, 1)]
    causes: dict[tuple[str | None, str | None], Part] = {
        (part.system, part.prompt): part for part in reversed(parts) if part.error and part.prompt is not None
    }
    for i, part in enumerate(parts):
        cause = causes.get((part.system, part.prompt))
        if cause is not None and not part.error:
            why = f"is set aside with its set, because of row {cause.row.number}: {cause.error}"
            parts[i] = part._replace(error=why)
    if all(part.error for part in parts):
        raise ValueError(f"{path}: no row can be used{f': {parts[0].error}' if parts else '.'}")
    return parts


def _read_part(row: Row, position: int, name: str, path: Path, command: ReportCommand) -> Part:
    prompt = str(position) if command.id_key is None else read_key(row.values, command.id_key)
    system = name if command.system_key is None else read_key(row.values, command.system_key)
    part = Part(path, row, system or None, prompt, [], row.error)
    if row.values is None:
        return part
    try:
        if prompt is None or not system:
            raise ValueError(f"has no {command.id_key if prompt is None else command.system_key!r}")
        return part._replace(texts=_read_texts(row.values, command, file_format(path) == ".csv"))
    except (TypeError, ValueError) as error:
        return part._replace(error=str(error))


def _read_texts(values: Mapping[str, Any], command: ReportCommand, is_csv: bool) -> Rated:
    """Read the text of a row, or its list of texts, which is JSON in CSV, and their quality."""
    key = command.text_key
    texts = values.get(key)
    if is_csv and all(isinstance(text, str) for text in parse_list(texts)):
        texts = parse_list(texts)
    is_text = isinstance(texts, str)
    texts = [texts] if is_text else texts
    if is_text and command.id_key is None:
        raise ValueError(f"{key!r} is one text: --by-line requires lists; pass --id-key, whose rows make a set")
    if not isinstance(texts, list) or not texts:
        raise ValueError(f"{key!r} must be a text or a list of texts. Got {describe(texts)}")
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{key!r} must hold texts. Got {describe(text)}")
    check_characters(texts, lambda i: f"text {i} of {key!r}")
    if command.quality_key is None:
        return [(text, None) for text in texts]
    column = Column("quality", command.quality_key, True, (-_LARGEST, _LARGEST), False)
    ratings = column.read(values, None if is_text else len(texts))
    return [(text, float(rating)) for text, rating in zip(texts, ratings, strict=True)]
