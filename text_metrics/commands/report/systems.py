"""The systems of a report: their files, read to a set of texts for each prompt, and paired by the prompt.

Nothing here imports torch, so that what is wrong with a file is said at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.pieces import read_key
from text_metrics.commands.jobs.rows import Row, Source, show_values
from text_metrics.commands.report.command import MOST_SYSTEMS, NamedFile, ReportCommand
from text_metrics.commands.shared.files import file_format, parse_json
from text_metrics.commands.shared.pairing import check_order
from text_metrics.metrics._core.core_numbers import describe, to_float
from text_metrics.metrics._core.core_results import TEXTS

ADVICE = "Pass --id-key {key} if it pairs the rows."
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
    """The sets of a system by prompt, how many rows of its file were read and set aside, and hints at more systems."""

    name: str
    file: Path
    sets: dict[str, TextSet]
    n_rows: int
    n_bad: int
    hints: list[str]


class Columns(NamedTuple):
    """The columns of a file: of the text, the prompt, the system and the quality; None where there is none."""

    text: str
    id: str | None
    system: str | None = None
    quality: str | None = None


class _Part(NamedTuple):
    """What one row adds to the set of a prompt."""

    system: str
    prompt: str
    texts: list[str]
    quality: list[float] | None
    number: int
    values: dict[str, Any]


def read_systems(command: ReportCommand) -> tuple[list[System], list[BadRow], list[str]]:
    """Read all systems; returns them, the rows that are set aside, and notes on the order of rows."""
    paths = [file.path for file in command.files] + ([command.people] if command.people else [])
    if command.split is not None and not any(path.is_dir() for path in paths):
        raise UsageError("--split is for a folder of `datasets`.")
    columns = Columns(command.text_key, command.id_key, command.system_key, command.quality_key)
    parts = [_read_file(file, columns, command.split) for file in command.files]
    systems = [system for of_file, *_ in parts for system in of_file]
    if len(systems) > MOST_SYSTEMS:
        raise UsageError(f"at most {MOST_SYSTEMS} systems can be compared. {command.files[0].path} has {len(systems)}.")
    notes = _check_order(command, [rows for *_, rows in parts]) if command.id_key is None else []
    return systems, [row for _, bad, _ in parts for row in bad], notes


def _read_file(file: NamedFile, columns: Columns, split: str | None) -> tuple[list[System], list[BadRow], list[Row]]:
    """Read a file; returns its systems, what is set aside and, where rows are paired by their order, its rows."""
    source = Source(file.path, split if file.path.is_dir() else None)
    source.check_columns(*columns)
    parts: list[_Part] = []
    bad: list[BadRow] = []
    rows: list[Row] = []
    # The sets that lack a row, with the row that they lack.
    incomplete: dict[tuple[str, str], BadRow] = {}
    n_rows: dict[str, int] = defaultdict(int)
    reader = Reader(Command(data=file.path, metric="report", text_key=columns.text), TEXTS)
    for row, unit in _units(source, reader, columns):
        if columns.id is None:
            rows.append(row)
        prompt = str(sum(n_rows.values()) + 1) if columns.id is None else read_key(row.values, columns.id)
        system = file.name if columns.system is None else read_key(row.values, columns.system)
        n_rows[system or ""] += 1
        try:
            part = _read_part(row, unit, columns, prompt, system)
        except ValueError as error:
            raw = row.raw if row.values is None else show_values(row.values)
            bad.append(BadRow(file.path, system, row.number, str(error), raw))
            if system is not None and prompt is not None:
                incomplete.setdefault((system, prompt), bad[-1])
            continue
        if columns.id is None and unit.is_single:
            raise UsageError(
                f"{file.path}, row {row.number}: {columns.text!r} is one text: pass --id-key, so that the rows with "
                "one value make a set."
            )
        parts.append(part)
    good = []
    for part in parts:
        cause = incomplete.get((part.system, part.prompt))
        if cause is None:
            good.append(part)
        else:
            why = f"is set aside with its set, because of row {cause.number}: {cause.error}"
            bad.append(BadRow(file.path, part.system, part.number, why, show_values(part.values)))
    if not good:
        raise UsageError(
            f"{file.path}: no row can be used: {bad[0].error}" if bad else f"{file.path} has no row that can be used."
        )
    bad.sort(key=lambda row: row.number)
    names = [name for name in n_rows if name] if columns.system else [file.name]
    systems = []
    for name in names:
        sets = _gather([part for part in good if part.system == name])
        n_bad = sum(row.system == name for row in bad)
        systems.append(System(name, file.path, sets, n_rows[name], n_bad, _hints(file.path, good, columns)))
    return systems, bad, rows


def _hints(path: Path, parts: Sequence[_Part], columns: Columns) -> list[str]:
    """Name the columns, of no other use, that may hold systems: several strings, each in at least half of the sets."""
    if columns.id is None or columns.system is not None:
        return []
    n_prompts = len({part.prompt for part in parts})
    hints = []
    for name in dict.fromkeys(name for part in parts for name in part.values if name not in columns):
        prompts: dict[str, set[str]] = defaultdict(set)
        for part in parts:
            if isinstance(value := part.values.get(name), str):
                prompts[value].add(part.prompt)
        counts = [len(of_value) for of_value in prompts.values()]
        recurs = 2 <= len(counts) <= MOST_SYSTEMS and 2 * min(counts) >= max(n_prompts, 4)
        if recurs and sum(counts) >= 1.5 * n_prompts:
            hints.append(
                f"{path}: all rows count as one system. The column {name!r} has {len(prompts)} values, each for most "
                f"prompts: pass --system-key {name} if they are systems."
            )
    return hints


def _units(source: Source, reader: Reader, columns: Columns) -> Iterator[tuple[Row, Unit]]:
    """Yield the rows that are not blank, each with its texts; a row that is bad has none, and an error."""
    is_csv = file_format(source.path) == ".csv"
    for row in source.rows():
        if row.is_blank:
            continue
        if is_csv and row.values is not None:
            row = row._replace(values=_parse_cells(row.values, columns))
        (unit,) = reader.units(iter([row]))
        yield (row if unit.rows else row._replace(error=unit.bad[0].error)), unit


def _parse_cells(values: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Read a list of texts, and qualities, which are JSON in CSV."""
    parsed = dict(values)
    for key in (columns.text, columns.quality):
        if key is None or not isinstance(values.get(key), str):
            continue
        try:
            value = parse_json(values[key])
        except ValueError:
            continue
        is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if key == columns.quality or is_texts:
            parsed[key] = value
    return parsed


def _read_part(row: Row, unit: Unit, columns: Columns, prompt: str | None, system: str | None) -> _Part:
    """Read what a row adds to a set; raises a ValueError that says what is wrong with the row."""
    if row.error or row.values is None:
        raise ValueError(row.error)
    if prompt is None:
        raise ValueError(f"has no {columns.id!r}")
    if not system:
        raise ValueError(f"has no {columns.system!r}")
    quality = None if columns.quality is None else _read_quality(row.values, columns.quality, len(unit.texts))
    return _Part(system, prompt, list(unit.texts), quality, row.number, row.values)


def _read_quality(values: dict[str, Any], name: str, n_texts: int) -> list[float]:
    given = values.get(name)
    if given is None:
        raise ValueError(f"has no {name!r}")
    numbers = given if isinstance(given, list) else [given]
    if len(numbers) != n_texts:
        raise ValueError(f"{name!r} must have a number for each of the {n_texts} texts. Got {len(numbers)}")
    try:
        quality = [to_float(number) for number in numbers]
    except TypeError:
        raise ValueError(f"{name!r} must be a number for each text. Got {describe(given)}") from None
    if not np.isfinite(quality).all():
        raise ValueError(f"{name!r} must be finite. Got {describe(given)}")
    return quality


def _gather(parts: Iterable[_Part]) -> dict[str, TextSet]:
    """Join the texts of the rows of each prompt; rows are in order of content, so that their order does not matter."""
    by_prompt: dict[str, list[_Part]] = defaultdict(list)
    for part in parts:
        by_prompt[part.prompt].append(part)
    sets = {}
    for prompt, rows in by_prompt.items():
        rows.sort(key=lambda part: (part.texts, part.quality or []))
        quality = None if rows[0].quality is None else [value for part in rows for value in part.quality or []]
        sets[prompt] = TextSet([text for part in rows for text in part.texts], quality)
    return sets


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
            notes += check_order(named[0], part, command.text_key, ADVICE)
    return notes


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
    systems, bad, notes = read_systems(command)
    people = None
    if command.people is not None:
        columns = Columns(command.people_key or command.text_key, command.id_key)
        (people,), set_aside, _ = _read_file(NamedFile("people", command.people), columns, command.split)
        bad += set_aside
    hints = [hint for system in systems for hint in system.hints]
    return Inputs(systems, people, bad, notes, hints, pair(systems))


def pair(systems: Sequence[System]) -> Prompts:
    """Pair the sets of all systems by the prompt; raises a UsageError if no prompt has two texts of each system."""
    every = sorted({prompt for system in systems for prompt in system.sets})
    large = [
        {prompt for prompt, members in system.sets.items() if len(members.texts) >= SMALLEST_SET} for system in systems
    ]
    common = [prompt for prompt in every if all(prompt in prompts for prompts in large)]
    if not common:
        poor = min(zip(systems, large, strict=True), key=lambda pair: len(pair[1]))
        why = (
            f"{poor[0].name} has no set of {SMALLEST_SET} texts or more, and one text has no diversity"
            if not poor[1]
            else "no prompt has two texts or more of every system"
        )
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


def bad_lines(bad: Sequence[BadRow], with_texts: bool) -> list[dict[str, Any]]:
    """List the rows that are set aside, as JSON."""
    return [
        {"file": str(row.file), "row": row.number, "error": row.error, **({"text": row.text} if with_texts else {})}
        for row in bad
    ]
