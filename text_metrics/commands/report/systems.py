"""The systems of a report: a set of texts for each prompt, read from files.

Nothing here imports torch, so that what is wrong with a file is said at once.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.shared.columns import Column, parse_list
from text_metrics.commands.shared.files import file_format
from text_metrics.commands.shared.rows import Row, Source, read_key
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe

# Cubes of larger ratings, which the intervals sum up, could overflow.
_LARGEST = 1e12
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


class Inputs(NamedTuple):
    """What a report is made from.

    systems : their names
    sources : for each system, its file, and numbers of rows, prompts and texts
    bad : file, row and error of each row that is skipped
    n_all : the number of prompts of any system
    ids : the p prompts of which every system has two texts or more, in order
    texts : for each system, for each of these prompts, a list of texts
    quality : of all these texts, in order: ndarray of shape (n,), NaN where no column holds it
    people : texts of people by prompt; None without their file
    """

    systems: list[str]
    sources: list[dict[str, Any]]
    bad: list[dict[str, Any]]
    n_all: int
    ids: list[str]
    texts: list[list[list[str]]]
    quality: np.ndarray
    people: dict[str, list[str]] | None

    def by_system(self) -> dict[str, list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        texts = [list(chain.from_iterable(sets)) for sets in self.texts]
        return dict(zip(self.systems, texts, strict=True))

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([[len(texts) for texts in sets] for sets in self.texts])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        sizes = self.sizes
        return int(sizes.min()) if sizes.min() < sizes.max() else None


def read_inputs(options: argparse.Namespace) -> Inputs:
    """Read all files, and pair the systems; raises a ValueError for a wrong file."""
    keys = Keys(options.text_key, options.id_key, options.system_key, options.quality_key)
    files = [(path, read_file(name, path, keys)) for name, path in options.files.items()]
    n_rows = sorted({int(rows[-1].given["prompt"]) for _, rows in files}) if keys.prompt is None else []
    if len(n_rows) > 1:
        raise ValueError(f"--by-line requires files of one length. Got {n_rows} lines: pass --id-key to pair them.")
    if keys.prompt is not None and keys.system is None and not options.one_system:
        for path, rows in files:
            _check_one_system(path, rows, keys)
    systems, sources, sets = [], [], []
    for path, rows in files:
        for system in dict.fromkeys(row.given["system"] for row in rows if row.given["system"]):
            members = [row for row in rows if row.given["system"] == system]
            sets.append(_sets(members))
            systems.append(system)
            sources.append(
                {
                    "file": str(path),
                    "n_rows": len(members),
                    "n_bad": sum(bool(row.error) for row in members),
                    "n_prompts": len(sets[-1]),
                    "n_texts": sum(map(len, sets[-1].values())),
                }
            )
    ids = _common(sets)
    people = None
    if options.people is not None:
        rows = read_file("people", options.people, keys._replace(system=None, quality=None))
        files.append((options.people, rows))
        people = {prompt: [text for text, _ in members] for prompt, members in _sets(rows).items()}
        if people.keys().isdisjoint(ids):
            raise ValueError("--people has no text for any prompt of the systems: check --id-key.")
    bad = [
        {"file": str(path), "row": row.number, "error": row.error} for path, rows in files for row in rows if row.error
    ]
    texts = [[[text for text, _ in of_system[prompt]] for prompt in ids] for of_system in sets]
    quality = np.array([rating for of_system in sets for prompt in ids for _, rating in of_system[prompt]])
    return Inputs(systems, sources, bad, len(set().union(*sets)), ids, texts, quality, people)


def _sets(rows: Sequence[Row]) -> dict[str, list[tuple[str, float]]]:
    """Join texts and their quality by prompt, in order of content."""
    sets: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if not row.error:
            rated = zip(row.texts, row.given["quality"], strict=True)
            sets.setdefault(row.given["prompt"], []).extend(rated)
    return {prompt: sorted(members, key=itemgetter(0)) for prompt, members in sets.items()}


def _common(systems: Sequence[dict[str, Any]]) -> list[str]:
    """List the prompts of which every system has two texts or more."""
    common = [prompt for prompt in sorted(systems[0]) if all(len(sets.get(prompt, ())) > 1 for sets in systems)]
    if not common:
        raise ValueError(
            "there is nothing to compare: no prompt has two texts or more of every system, and one text has no "
            "diversity. Check --id-key and --text-key."
        )
    return common


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
        column = Column("quality", keys.quality, True, (-_LARGEST, _LARGEST), False)
        quality = list(map(float, column.read(row.values, None if is_text else len(texts))))
    row.given["quality"] = quality
