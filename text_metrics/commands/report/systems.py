"""The systems of a report, read from files, without an import of torch."""

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.inputs import LARGEST_RATING, Inputs, RatedSets, pair_systems
from text_metrics.commands.report.model import Origin
from text_metrics.commands.shared.columns import Column, parse_list
from text_metrics.commands.shared.files import file_format
from text_metrics.commands.shared.rows import Row, Source, read_key
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe

# A column with more distinct values does not name systems, nor does one whose values each lack more of the prompts.
_MOST_SYSTEMS, _NEARLY_ALL = 20, 0.9
# On fewer prompts, any column looks like that.
_FEWEST_PROMPTS = 3


class Keys(NamedTuple):
    """The columns of a text or a list of texts, and of what belongs to it."""

    text: str
    prompt: str | None = None
    system: str | None = None
    quality: str | None = None
    context: str | None = None


def read_inputs(options: argparse.Namespace) -> Inputs:
    """Read all files, and pair the systems; raises a ValueError for a wrong file."""
    keys = Keys(options.text_key, options.id_key, options.system_key, options.quality_key, options.context_key)
    files = [(path, read_file(name, path, keys)) for name, path in options.files.items()]
    n_rows = sorted({int(rows[-1].given["prompt"]) for _, rows in files}) if keys.prompt is None else []
    if len(n_rows) > 1:
        raise ValueError(f"--by-line requires files of one length. Got {n_rows} lines: pass --id-key to pair them.")
    if keys.prompt is not None and keys.system is None and not options.one_system:
        for path, rows in files:
            _check_one_system(path, rows, keys)
    systems: dict[str, RatedSets] = {}
    sources = []
    for path, rows in files:
        for system in dict.fromkeys(row.given["system"] for row in rows if row.given["system"]):
            members = [row for row in rows if row.given["system"] == system]
            sets = systems[system] = _sets(members)
            n_bad, n_texts = sum(bool(row.error) for row in members), sum(map(len, sets.values()))
            sources.append(Origin(str(path), len(members), n_bad, len(sets), n_texts))
    contexts = _contexts([row for _, rows in files for row in rows]) if keys.context is not None else None
    people = None
    if options.people is not None:
        rows = read_file("people", options.people, keys._replace(system=None, quality=None, context=None))
        files.append((options.people, rows))
        people = {prompt: [text for text, _ in members] for prompt, members in _sets(rows).items()}
    bad = [
        {"file": str(path), "row": row.number, "error": row.error} for path, rows in files for row in rows if row.error
    ]
    return pair_systems(systems, sources, bad, people, contexts)


def _sets(rows: Sequence[Row]) -> RatedSets:
    """Join the texts of good rows and their quality by prompt."""
    sets: RatedSets = {}
    for row in rows:
        if not row.error:
            sets.setdefault(row.given["prompt"], []).extend(zip(row.texts, row.given["quality"], strict=True))
    return sets


def _contexts(rows: Sequence[Row]) -> dict[str, str]:
    """Return the context of each prompt; raises a ValueError if two rows of it have different ones."""
    contexts: dict[str, str] = {}
    for row in rows:
        context, prompt = row.given.get("context"), row.given["prompt"]
        if not row.error and context and contexts.setdefault(prompt, context) != context:
            raise ValueError(f"--context-key: the prompt {prompt!r:.80} has two contexts. Systems must share them.")
    return contexts


def _check_one_system(path: Path, rows: Sequence[Row], keys: Keys) -> None:
    """Raise a ValueError that names the column that most likely holds systems, if there is one.

    Each of its values has two texts or more of nearly all prompts. Texts are preferred to numbers.
    """
    good = [row for row in rows if not row.error]
    prompts = {row.given["prompt"] for row in good}
    candidates = []
    for name in dict.fromkeys(column for row in good for column in row.values):
        n_texts: Counter[tuple[str | None, str]] = Counter()
        values, is_text = set(), False
        for row in good:
            value = row.values.get(name)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                values.add(key := read_key(row.values, name))
                n_texts[key, row.given["prompt"]] += len(row.texts)
                is_text = is_text or isinstance(value, str)
            if len(values) > _MOST_SYSTEMS:
                break
        complete = Counter(value for (value, _), n in n_texts.items() if n > 1)
        coverage = min((complete[value] for value in values), default=0) / len(prompts)
        if name not in keys and 2 <= len(values) <= _MOST_SYSTEMS and coverage >= _NEARLY_ALL:
            candidates.append((coverage, is_text, name, len(values)))
    if candidates and len(prompts) >= _FEWEST_PROMPTS:
        _, _, name, n = max(candidates, key=lambda candidate: candidate[:2])
        raise ValueError(
            f"{path} seems to hold {n} systems: each of the {n} values of {name!r} has texts for nearly all prompts. "
            f"Pass --system-key {name}, or --one-system if they are one system."
        )


def read_file(name: str, path: Path, keys: Keys) -> list[Row]:
    """Read the rows of a file, of which at least one is good; those of a set with a bad row are bad too.

    A good row has `texts`, and `given` its prompt, its system, and the quality of its texts.
    """
    rows = list(Source(path).rows())
    for row in rows:
        if not row.error and not isinstance(row.values, dict):
            row.error, row.values = f"must be a JSON object. Got {describe(row.values)}", None
    columns = list(dict.fromkeys(column for row in rows for column in row.values or ()))
    for key in keys:
        if columns and key is not None and key not in columns:
            raise ValueError(f"{path} has no column {key!r}: it has {', '.join(columns)}.")
    # Blank lines of JSON count as lines.
    has_lines = file_format(path) in (".jsonl", ".ndjson")
    for i, row in enumerate(rows, 1):
        try:
            _read_row(row, name, str(row.number if has_lines else i), keys, file_format(path) == ".csv")
        except (TypeError, ValueError) as error:
            row.error = str(error)
    _skip_sets(path, rows)
    if all(row.error for row in rows):
        raise ValueError(f"{path}: no row can be used{f': {rows[0].error}' if rows else '.'}")
    return rows


def _skip_sets(path: Path, rows: Sequence[Row]) -> None:
    """Make the other rows of a set with a bad row bad, too.

    A row without a readable key belongs to the set around it, or else the sets before and after it both lack it; where
    each set is one row, it is a set of its own. Raises a ValueError if rows of a set are not adjacent: it could be of
    any set.
    """
    keys = [(row.given["system"], row.given["prompt"]) for row in rows]
    runs = [key for key, _ in groupby(filter(all, keys))]
    has_sets = len(runs) < sum(map(all, keys))
    causes: dict[Any, Row] = {}
    before, lost = None, None
    for row, key in [*zip(rows, keys, strict=True), (None, None)]:
        if key is not None and not all(key):
            lost = lost or row
            continue
        if lost is not None and has_sets:
            if len(set(runs)) < len(runs):
                raise ValueError(
                    f"{path}, row {lost.number} {lost.error}. It may be of any set, because the rows of a set are not "
                    "adjacent: correct it, remove it, or sort the rows by prompt."
                )
            causes |= {side: lost for side in (before, key) if side not in causes}
        if row is not None and row.error:
            causes.setdefault(key, row)
        before, lost = key, None
    for row, key in zip(rows, keys, strict=True):
        if key in causes and not row.error:
            row.error = f"skipped: its set contains invalid row {causes[key].number}: {causes[key].error}"


def _read_row(row: Row, name: str, line: str, keys: Keys, is_csv: bool) -> None:
    """Read a row into its `texts` and `given`; a list of texts is JSON in CSV."""
    row.given = {
        "prompt": line if keys.prompt is None else read_key(row.values, keys.prompt),
        "system": name if keys.system is None else read_key(row.values, keys.system),
    }
    if row.error:
        return
    if not row.given["prompt"]:
        raise ValueError(f"has no {keys.prompt!r}")
    if not row.given["system"]:
        raise ValueError(f"has no {keys.system!r}")
    texts = row.values.get(keys.text)
    if is_csv and all(isinstance(text, str) for text in parse_list(texts)):
        texts = parse_list(texts)
    is_text = isinstance(texts, str)
    texts = [texts] if is_text else texts
    if is_text and keys.prompt is None:
        raise ValueError(f"{keys.text!r} is one text: --by-line requires lists; pass --id-key, whose rows make a set")
    if not isinstance(texts, list) or not texts:
        raise ValueError(f"{keys.text!r} must be a text or a list of texts. Got {describe(texts)}")
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{keys.text!r} must hold texts. Got {describe(text)}")
    check_characters(texts, lambda i: f"text {i} of {keys.text!r}")
    row.texts, quality = texts, [np.nan] * len(texts)
    if keys.quality is not None:
        column = Column("quality", keys.quality, True, (-LARGEST_RATING, LARGEST_RATING), False)
        quality = list(map(float, column.read(row.values, None if is_text else len(texts), is_csv)))
    row.given["quality"] = quality
    if keys.context is not None:
        context = row.values.get(keys.context)
        if context is not None and not isinstance(context, str):
            raise ValueError(f"{keys.context!r} must be a text. Got {describe(context)}")
        row.given["context"] = context
