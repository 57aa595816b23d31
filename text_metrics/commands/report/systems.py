"""The systems of a report: their files, read to a set of texts for each prompt, and paired by the prompt.

Nothing here imports torch, so that what is wrong with a file is said at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.jobs.keys import read_key
from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.jobs.rows import Row, Source, show_values
from text_metrics.commands.report.command import MOST_SYSTEMS, NamedFile, ReportCommand
from text_metrics.commands.shared.files import file_format, parse_json
from text_metrics.commands.shared.pairing import check_order
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe, to_float

# A set of one text has no diversity.
SMALLEST_SET = 2


class TextSet(NamedTuple):
    """The texts of a system for one prompt, and the quality of each where a column holds it."""

    texts: list[str]
    quality: list[float] | None


class BadRow(NamedTuple):
    """A row that is set aside, with the reason; `system` is None where it cannot be read."""

    file: Path
    system: str | None
    number: int
    error: str
    text: str


class System(NamedTuple):
    """The sets of a system by prompt, and how many rows of its file were read and set aside."""

    name: str
    file: Path
    sets: dict[str, TextSet]
    n_rows: int
    n_bad: int


class Columns(NamedTuple):
    """The columns of a file: of the text, the prompt, the system and the quality; None where there is none."""

    text: str
    id: str | None
    system: str | None = None
    quality: str | None = None


class _Part(NamedTuple):
    """What a row adds to the set of a prompt; `error` is why it is set aside, or empty."""

    row: Row
    system: str | None
    prompt: str | None
    texts: list[str]
    quality: list[float] | None
    error: str


class _File(NamedTuple):
    systems: list[System]
    bad: list[BadRow]
    rows: list[Row]
    hints: list[str]


class Prompts(NamedTuple):
    """The prompts that all systems have, in order, and the sets of each system for them.

    ids : list of p prompts
    sets : for each system a list of p sets
    missing : for each system the prompts of another one that it lacks, or has fewer than two texts for
    n_all : the number of prompts of any system
    """

    ids: list[str]
    sets: list[list[TextSet]]
    missing: list[list[str]]
    n_all: int

    def texts(self) -> list[list[list[str]]]:
        """Return the texts of each prompt of each system."""
        return [[members.texts for members in sets] for sets in self.sets]

    def by_system(self) -> list[list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        return [[text for members in sets for text in members.texts] for sets in self.sets]

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([[len(members.texts) for members in sets] for sets in self.sets])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        sizes = self.sizes
        return int(sizes.min()) if sizes.min() < sizes.max() else None


class Inputs(NamedTuple):
    """What a report is made from.

    bad : the rows of all files that are set aside
    notes : on the order of rows
    hints : columns that may hold systems
    """

    systems: list[System]
    people: System | None
    bad: list[BadRow]
    notes: list[str]
    hints: list[str]
    prompts: Prompts


def read_inputs(command: ReportCommand) -> Inputs:
    """Read all files, and pair the systems."""
    systems, bad, notes, hints = read_systems(command)
    people = None
    if command.people is not None:
        columns = Columns(command.people_key or command.text_key, command.id_key)
        of_people = _read_file(NamedFile("people", command.people), columns, command.split)
        people, bad = of_people.systems[0], bad + of_people.bad
    return Inputs(systems, people, bad, notes, hints, pair(systems))


def read_systems(command: ReportCommand) -> tuple[list[System], list[BadRow], list[str], list[str]]:
    """Read all systems; returns them, the rows that are set aside, notes on the order of rows, and hints."""
    paths = [file.path for file in command.files] + ([command.people] if command.people else [])
    if command.split is not None and not any(path.is_dir() for path in paths):
        raise UsageError("--split is for a folder of `datasets`.")
    columns = Columns(command.text_key, command.id_key, command.system_key, command.quality_key)
    files = [_read_file(file, columns, command.split) for file in command.files]
    systems = [system for file in files for system in file.systems]
    if len(systems) > MOST_SYSTEMS:
        raise UsageError(f"at most {MOST_SYSTEMS} systems can be compared. {command.files[0].path} has {len(systems)}.")
    notes = _check_order(command, [file.rows for file in files]) if command.id_key is None else []
    return systems, [row for file in files for row in file.bad], notes, [hint for file in files for hint in file.hints]


def _read_file(file: NamedFile, columns: Columns, split: str | None) -> _File:
    source = Source(file.path, split if file.path.is_dir() else None)
    rows = [row for row in source.rows(0) if not row.is_blank]
    names = list(dict.fromkeys(name for row in rows for name in row.values or ()))
    for name in columns:
        if names and name is not None and name not in names:
            raise UsageError(f"{file.path} has no column {name!r}: it has {', '.join(names)}.")
    parts = [_read_part(row, i, file, columns) for i, row in enumerate(rows, 1)]
    # The sets that lack a row, with the row that they lack.
    lacking = {(part.system, part.prompt): part for part in reversed(parts) if part.error and part.prompt is not None}
    for i, part in enumerate(parts):
        cause = lacking.get((part.system, part.prompt))
        if cause is not None and not part.error:
            why = f"is set aside with its set, because of row {cause.row.number}: {cause.error}"
            parts[i] = part._replace(error=why)
    good = [part for part in parts if not part.error]
    bad = [
        BadRow(file.path, part.system, part.row.number, part.error, _shown(part.row)) for part in parts if part.error
    ]
    if not good:
        reason = f": {bad[0].error}" if bad else ""
        raise UsageError(f"{file.path}: no row can be used{reason or '; it has none.'}")
    labels = dict.fromkeys(part.system for part in parts if part.system) if columns.system else {file.name: None}
    systems = [
        System(
            label,
            file.path,
            _gather(part for part in good if part.system == label),
            sum(part.system == label for part in parts),
            sum(row.system == label for row in bad),
        )
        for label in labels
    ]
    return _File(systems, bad, rows, _hints(file.path, good, columns))


def _shown(row: Row) -> str:
    return row.raw if row.values is None else show_values(row.values)


def _read_part(row: Row, position: int, file: NamedFile, columns: Columns) -> _Part:
    prompt = str(position) if columns.id is None else read_key(row.values, columns.id)
    system = file.name if columns.system is None else read_key(row.values, columns.system)
    part = _Part(row, system or None, prompt, [], None, row.error)
    if row.values is None:
        return part
    values = _parse_cells(row.values, columns) if file_format(file.path) == ".csv" else row.values
    if columns.id is None and isinstance(values.get(columns.text), str):
        raise UsageError(
            f"{file.path}, row {row.number}: {columns.text!r} is one text: pass --id-key, so that the rows with one "
            "value make a set."
        )
    try:
        texts = _read_texts(values.get(columns.text), columns.text)
        if prompt is None or not system:
            raise ValueError(f"has no {columns.id if prompt is None else columns.system!r}")
        quality = _read_quality(values.get(columns.quality), columns.quality, len(texts)) if columns.quality else None
    except ValueError as error:
        return part._replace(error=str(error))
    return part._replace(texts=texts, quality=quality)


def _parse_cells(values: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Read a list of texts, and qualities, which are JSON in CSV."""
    parsed = dict(values)
    for key in (columns.text, columns.quality):
        try:
            value = parse_json(values[key]) if key is not None else None
        except (KeyError, ValueError):
            continue
        if key == columns.quality or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
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
    if value is None:
        raise ValueError(f"has no {name!r}")
    numbers = value if isinstance(value, list) else [value]
    if len(numbers) != n_texts:
        raise ValueError(f"{name!r} must have a number for each of the {n_texts} texts. Got {len(numbers)}")
    try:
        quality = [to_float(number) for number in numbers]
    except TypeError:
        raise ValueError(f"{name!r} must be a number for each text. Got {describe(value)}") from None
    if not np.isfinite(quality).all():
        raise ValueError(f"{name!r} must be finite. Got {describe(value)}")
    return quality


def _gather(parts: Iterable[_Part]) -> dict[str, TextSet]:
    """Join the texts of the rows of each prompt; rows are in order of content, so that their order does not matter."""
    by_prompt: dict[str, list[_Part]] = defaultdict(list)
    for part in parts:
        by_prompt[part.prompt or ""].append(part)
    sets = {}
    for prompt, rows in by_prompt.items():
        rows.sort(key=lambda part: (part.texts, part.quality or []))
        quality = None if rows[0].quality is None else [value for part in rows for value in part.quality or []]
        sets[prompt] = TextSet([text for part in rows for text in part.texts], quality)
    return sets


def _hints(path: Path, parts: Sequence[_Part], columns: Columns) -> list[str]:
    """Name the columns, of no other use, that may hold systems: several strings, each in at least half of the sets."""
    if columns.id is None or columns.system is not None:
        return []
    prompts: dict[str, dict[str, set[str | None]]] = defaultdict(lambda: defaultdict(set))
    for part in parts:
        for name, value in (part.row.values or {}).items():
            if name not in columns and isinstance(value, str):
                prompts[name][value].add(part.prompt)
    n_prompts = len({part.prompt for part in parts})
    hints = []
    for name, by_value in prompts.items():
        counts = [len(of_value) for of_value in by_value.values()]
        recurs = 2 <= len(counts) <= MOST_SYSTEMS and 2 * min(counts) >= max(n_prompts, 4)
        if recurs and sum(counts) >= 1.5 * n_prompts:
            hints.append(
                f"{path}: all rows count as one system. The column {name!r} has {len(counts)} values, each for most "
                f"prompts: pass --system-key {name} if they are systems."
            )
    return hints


def _check_order(command: ReportCommand, rows: Sequence[Sequence[Row]]) -> list[str]:
    """Check that the rows of all files, which are paired by their order, are in the same order."""
    notes: list[str] = []
    named = [
        [(f"{file.path}, row {row.number}", row.values or {}) for row in part]
        for file, part in zip(command.files, rows, strict=True)
    ]
    for file, part in zip(command.files[1:], named[1:], strict=True):
        if len(part) != len(named[0]):
            raise UsageError(
                f"{command.files[0].path} has {len(named[0])} rows and {file.path} has {len(part)}: pass --id-key, so "
                "that they are paired by it."
            )
        with as_usage():
            notes += check_order(named[0], part, command.text_key, "Pass --id-key {key} if it pairs the rows.")
    return notes


def pair(systems: Sequence[System]) -> Prompts:
    """Pair the sets of all systems by the prompt; raises a UsageError if no prompt has two texts of each system."""
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
        raise UsageError(f"there is nothing to compare: {why}. Check --id-key and --text-key.")
    return Prompts(
        common,
        [[system.sets[prompt] for prompt in common] for system in systems],
        [[prompt for prompt in every if prompt not in prompts] for prompts in large],
        len(every),
    )


def describe_source(system: System) -> dict[str, Any]:
    """Return the entry of `sources`: what was read of a system."""
    sizes = [len(members.texts) for members in system.sets.values()]
    middle = float(np.median(sizes))
    return {
        "system": system.name,
        "file": str(system.file),
        "n_rows": system.n_rows,
        "n_bad": system.n_bad,
        "n_prompts": len(sizes),
        "n_texts": sum(sizes),
        "set_sizes": [min(sizes), int(middle) if middle.is_integer() else middle, max(sizes)],
    }
