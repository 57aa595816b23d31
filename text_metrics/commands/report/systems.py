"""The systems of a report: their files, read to a set of texts for each prompt, and paired by the prompt.

Nothing here imports torch, so that what is wrong with a file is said at once.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.command import NamedFile, ReportCommand
from text_metrics.commands.shared.files import file_format, parse_json
from text_metrics.commands.shared.rows import Row, Source, read_key
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe

MOST_SYSTEMS = 20
# A set of one text has no diversity.
SMALLEST_SET = 2


class TextSet(NamedTuple):
    """The texts of a system for one prompt, and the quality of each where a column holds it."""

    texts: list[str]
    quality: list[float] | None


class System(NamedTuple):
    """The sets of a system by prompt, and how many rows of its file were read and set aside."""

    name: str
    file: Path
    sets: dict[str, TextSet]
    n_rows: int
    n_bad: int


class Part(NamedTuple):
    """What a row adds to the set of a prompt; `error` is why it is set aside, or empty."""

    file: Path
    row: Row
    system: str | None
    prompt: str | None
    texts: list[str]
    quality: list[float] | None
    error: str


class Prompts(NamedTuple):
    """The prompts that all systems have, in order, and the sets of each system for them.

    ids : list of p prompts
    texts : for each system, for each prompt, a list of texts
    quality : of all these texts, in order, where a column holds it: ndarray of shape (n,)
    missing : for each system the prompts of another one that it lacks, or has fewer than two texts for
    n_all : the number of prompts of any system
    """

    ids: list[str]
    texts: list[list[list[str]]]
    quality: np.ndarray | None
    missing: list[list[str]]
    n_all: int

    def by_system(self) -> list[list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        return [[text for members in sets for text in members] for sets in self.texts]

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([[len(members) for members in sets] for sets in self.texts])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        sizes = self.sizes
        return int(sizes.min()) if sizes.min() < sizes.max() else None


class Inputs(NamedTuple):
    """What a report is made from; `bad` rows are set aside, and `hints` name columns that may hold systems."""

    systems: list[System]
    people: System | None
    bad: list[Part]
    hints: list[str]
    prompts: Prompts


def read_inputs(command: ReportCommand) -> Inputs:
    """Read all files, and pair the systems; raises a ValueError if a file or a column is wrong."""
    systems: list[System] = []
    bad: list[Part] = []
    hints: list[str] = []
    for file in command.files:
        parts = read_parts(file, command)
        systems += _gather(file, parts, command)
        bad += [part for part in parts if part.error]
        hints += _hints(file.path, parts, command)
    if len(systems) > MOST_SYSTEMS:
        raise ValueError(f"at most {MOST_SYSTEMS} systems can be compared. Got {len(systems)}.")
    n_rows = sorted({system.n_rows for system in systems})
    if command.id_key is None and len(n_rows) > 1:
        raise ValueError(f"--by-line requires files of one length. Got {n_rows} rows: pass --id-key to pair them.")
    people = None
    if command.people is not None:
        of_people = replace(command, system_key=None, quality=None, quality_key=None)
        file = NamedFile("people", command.people)
        parts = read_parts(file, of_people)
        (people,) = _gather(file, parts, of_people)
        bad += [part for part in parts if part.error]
    return Inputs(systems, people, bad, hints, pair(systems))


def read_parts(file: NamedFile, command: ReportCommand) -> list[Part]:
    """Read the rows of a file, of which at least one is good; those of a set with a bad row are set aside."""
    rows = list(Source(file.path).rows())
    names = list(dict.fromkeys(name for row in rows for name in row.values or ()))
    for name in command.columns:
        if names and name is not None and name not in names:
            raise ValueError(f"{file.path} has no column {name!r}: it has {', '.join(names)}.")
    parts = [_read_part(row, i, file, command) for i, row in enumerate(rows, 1)]
    causes: dict[tuple[str | None, str | None], Part] = {
        (part.system, part.prompt): part for part in reversed(parts) if part.error and part.prompt is not None
    }
    for i, part in enumerate(parts):
        cause = causes.get((part.system, part.prompt))
        if cause is not None and not part.error:
            why = f"is set aside with its set, because of row {cause.row.number}: {cause.error}"
            parts[i] = part._replace(error=why)
    if all(part.error for part in parts):
        raise ValueError(f"{file.path}: no row can be used{f': {parts[0].error}' if parts else '.'}")
    return parts


def _read_part(row: Row, position: int, file: NamedFile, command: ReportCommand) -> Part:
    text_key, id_key, system_key, quality_key = command.columns
    prompt = str(position) if id_key is None else read_key(row.values, id_key)
    system = file.name if system_key is None else read_key(row.values, system_key)
    part = Part(file.path, row, system or None, prompt, [], None, row.error)
    if row.values is None:
        return part
    values = _parse_cells(row.values, command) if file_format(file.path) == ".csv" else row.values
    value = values.get(command.text_key)
    if id_key is None and isinstance(value, str):
        raise ValueError(
            f"{file.path}, row {row.number}: {text_key!r} is one text: pass --id-key, so that the rows with one value "
            "make a set."
        )
    try:
        texts = _read_texts(value, command.text_key)
        if prompt is None or not system:
            raise ValueError(f"has no {id_key if prompt is None else system_key!r}")
        quality = None if quality_key is None else _read_quality(values.get(quality_key), quality_key, len(texts))
    except ValueError as error:
        return part._replace(error=str(error))
    return part._replace(texts=texts, quality=quality)


def _parse_cells(values: Mapping[str, Any], command: ReportCommand) -> dict[str, Any]:
    """Read a list of texts, and qualities, which are JSON in CSV."""
    parsed = dict(values)
    for key in {command.text_key, command.quality_key or command.text_key} & values.keys():
        try:
            value = parse_json(values[key])
        except ValueError:
            continue
        if key == command.quality_key or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            parsed[key] = value
    return parsed


def _read_texts(value: Any, name: str) -> list[str]:
    if value is None:
        raise ValueError(f"has no {name!r}")
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise ValueError(f"{name!r} must be a text or a list of texts. Got {describe(value)}")
    if not texts:
        raise ValueError(f"{name!r} is an empty list")
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{name!r} must hold texts. Got {describe(text)}")
    check_characters(texts, lambda i: f"text {i} of {name!r}")
    return texts


def _read_quality(value: Any, name: str, n_texts: int) -> list[float]:
    numbers = value if isinstance(value, list) else [value]
    largest = sys.float_info.max
    are_finite = all(type(number) in (int, float) and -largest <= number <= largest for number in numbers)
    if len(numbers) != n_texts or not are_finite:
        raise ValueError(f"{name!r} must be a finite number for each of the {n_texts} texts. Got {describe(value)}")
    return list(map(float, numbers))


def _gather(file: NamedFile, parts: Sequence[Part], command: ReportCommand) -> list[System]:
    """Join the texts of each prompt of each system of a file, in order of content: that of the rows does not matter."""
    sets: dict[str | None, dict[str, TextSet]] = defaultdict(dict)
    for part in sorted((part for part in parts if not part.error), key=lambda part: (part.texts, part.quality or [])):
        texts, quality = sets[part.system].get(part.prompt or "", TextSet([], None))
        joined = None if part.quality is None else [*(quality or []), *part.quality]
        sets[part.system][part.prompt or ""] = TextSet([*texts, *part.texts], joined)
    n_rows, n_bad = (Counter(part.system for part in of) for of in (parts, [part for part in parts if part.error]))
    names = [file.name] if command.system_key is None else [name for name in n_rows if name]
    return [System(name, file.path, sets[name], n_rows[name], n_bad[name]) for name in names]


def _hints(path: Path, parts: Sequence[Part], command: ReportCommand) -> list[str]:
    """Name the columns, of no other use, that may hold systems: several strings, each in at least half of the sets."""
    if command.id_key is None or command.system_key is not None:
        return []
    good = [(part.prompt, part.row.values or {}) for part in parts if not part.error]
    n, hints = len({prompt for prompt, _ in good}), []
    for name in {name: None for _, values in good for name in values if name not in command.columns}:
        pairs = {(values[name], prompt) for prompt, values in good if isinstance(values.get(name), str)}
        counts = Counter(value for value, _ in pairs).values()
        recurs = 2 <= len(counts) <= MOST_SYSTEMS and 2 * min(counts) >= max(n, 4)
        if recurs and sum(counts) >= 1.5 * n:
            hints.append(
                f"{path}: all rows count as one system. The column {name!r} has {len(counts)} values, each for most "
                f"prompts: pass --system-key {name} if they are systems."
            )
    return hints


def pair(systems: Sequence[System]) -> Prompts:
    """Pair the sets of all systems by the prompt; raises a ValueError if no prompt has two texts of each system."""
    every = sorted({prompt for system in systems for prompt in system.sets})
    large = [
        {prompt for prompt, members in system.sets.items() if len(members.texts) >= SMALLEST_SET} for system in systems
    ]
    common = [prompt for prompt in every if all(prompt in prompts for prompts in large)]
    if not common:
        alone = [system.name for system, prompts in zip(systems, large, strict=True) if not prompts]
        why = "no prompt has two texts or more of every system"
        if alone:
            why = f"{alone[0]} has no set of {SMALLEST_SET} texts or more, and one text has no diversity"
        raise ValueError(f"there is nothing to compare: {why}. Check --id-key and --text-key.")
    sets = [[system.sets[prompt] for prompt in common] for system in systems]
    quality = [value for of_system in sets for members in of_system for value in members.quality or []]
    return Prompts(
        common,
        [[members.texts for members in of_system] for of_system in sets],
        np.array(quality) if quality else None,
        [[prompt for prompt in every if prompt not in prompts] for prompts in large],
        len(every),
    )
