"""The systems of a report, read from files, without an import of torch."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.report.inputs import LARGEST_RATING, Inputs, RatedSets, pair_systems
from text_metrics.commands.report.model import Origin
from text_metrics.commands.shared.columns import Column
from text_metrics.commands.shared.keys import column_of, read_key
from text_metrics.commands.shared.rows import Source, form_of
from text_metrics.commands.shared.sets import Keys, Reader, Unit

# A column names systems if it has at most this many values, each with at least this share of the prompts.
_MOST_SYSTEMS, _NEARLY_ALL = 20, 0.9
# On fewer prompts, any column looks like that.
_FEWEST_PROMPTS = 3


def read_inputs(options: argparse.Namespace) -> Inputs:
    """Read all files, and pair the systems; raises a ValueError for a wrong file."""
    keys, form, columns = Keys(options.text_key, options.id_key, options.system_key), form_of(options), list[Column]()
    if options.quality_key is not None:
        numbers = (-LARGEST_RATING, LARGEST_RATING)
        columns.append(Column("quality", options.quality_key, True, numbers, scale=options.quality_scale))
    if options.context_key is not None:
        columns.append(Column("contexts", options.context_key))
    files = {path: read_units(path, keys, columns, **form) for path in options.files.values()}
    if keys.id is None:
        ends = sorted({int(units[-1].id or 0) for units in files.values()})
        if len(ends) > 1:
            raise ValueError(f"--by-line requires files of one length. Got {ends} lines: pass --id-key to pair them.")
    elif keys.system is None and not options.one_system:
        read = {options.text_key, options.id_key, *(column.name for column in columns)}
        for path, units in files.items():
            _check_one_system(path, units, read)
    systems: dict[str, RatedSets] = {}
    sources, contexts = [], dict[str, str]()
    for name, path in options.files.items():
        for system in dict.fromkeys(unit.system for unit in files[path] if unit.id is not None):
            units = [unit for unit in files[path] if unit.system == system and unit.id is not None]
            sets = systems[name if system is None else system] = _rated(units)
            n_bad, n_texts = sum(len(unit.bad) for unit in units), sum(map(len, sets.values()))
            sources.append(Origin(str(path), sum(len(unit.rows) for unit in units) + n_bad, n_bad, len(sets), n_texts))
            _add_contexts(contexts, units)
    people = None
    if options.people is not None:
        files[options.people] = read_units(options.people, keys._replace(system=None), **form)
        people = {prompt: [text for text, _ in rated] for prompt, rated in _rated(files[options.people]).items()}
    bad = [
        {"file": str(path), "row": row.number, "error": row.error}
        for path, units in files.items()
        for row in sorted((row for unit in units for row in unit.bad), key=lambda row: row.number)
    ]
    return pair_systems(systems, sources, bad, people, contexts if options.context_key is not None else None)


def read_units(path: Path, keys: Keys, columns: Sequence[Column] = (), **form: Any) -> list[Unit]:
    """Read the sets of a file, of which at least one is good."""
    source = Source(path, **form)
    reader = Reader(keys, reads_sets=True, columns=columns)
    reader.prepare(source)
    units = list(reader.units(source))
    if not any(unit.texts for unit in units):
        bad = [row.error for unit in units for row in unit.bad]
        raise ValueError(f"{path}: no row can be used{f': {bad[0]}' if bad else '.'}")
    return units


def _rated(units: Sequence[Unit]) -> RatedSets:
    """Return the texts of good sets with their ratings by prompt."""
    sets: RatedSets = {}
    for unit in units:
        if unit.texts and unit.id is not None:
            ratings = unit.given.get("quality", [float("nan")] * len(unit.texts))
            sets.setdefault(unit.id, []).extend(zip(unit.texts, map(float, ratings), strict=True))
    return sets


def _add_contexts(contexts: dict[str, str], units: Sequence[Unit]) -> None:
    """Add the contexts of prompts; raises a ValueError if a prompt has another one already."""
    for unit in units:
        context = unit.given.get("contexts")
        if context and unit.id is not None and contexts.setdefault(unit.id, context) != context:
            raise ValueError(f"--context-key: the prompt {unit.id!r:.80} has two contexts. Systems must share them.")


def _check_one_system(path: Path, units: Sequence[Unit], read: set[str | None]) -> None:
    """Raise a ValueError that names the column that most likely holds systems, if there is one.

    Each of its values has two texts or more of nearly all prompts. Texts are preferred to numbers.
    """
    rows = [(unit.id, row) for unit in units for row in unit.rows if isinstance(row.values, dict)]
    n_prompts = len({prompt for prompt, _ in rows})
    columns = dict.fromkeys(name for _, row in rows for name in row.values)
    used = {column_of(key, columns) for key in read if key is not None}
    candidates = []
    for name in columns:
        n_texts: Counter[tuple[str | None, str | None]] = Counter()
        values, is_text = set(), False
        for prompt, row in rows if name not in used else ():
            value = row.values.get(name)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                values.add(key := read_key(row.values, name))
                n_texts[key, prompt] += len(row.texts)
                is_text = is_text or isinstance(value, str)
            if len(values) > _MOST_SYSTEMS:
                break
        complete = Counter(value for (value, _), n in n_texts.items() if n > 1)
        coverage = min((complete[value] for value in values), default=0)
        if 2 <= len(values) <= _MOST_SYSTEMS and coverage >= _NEARLY_ALL * n_prompts:
            candidates.append((coverage, is_text, name, len(values)))
    if candidates and n_prompts >= _FEWEST_PROMPTS:
        _, _, name, n = max(candidates, key=lambda candidate: candidate[:2])
        raise ValueError(
            f"{path} seems to hold {n} systems: each of the {n} values of {name!r} has texts for nearly all prompts. "
            f"Pass this file alone, with --system-key {name}, or --one-system if they are one system."
        )
