"""Rows that may mislead a score without an error: of several systems in one set, or of one text several times."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from text_metrics.files.columns import column_of, read_key
from text_metrics.files.rows import Row
from text_metrics.files.sets import Unit
from text_metrics.files.storage import to_json
from text_metrics.reporting.formats import count

# A column names systems if it has at most this many values, each with at least this share of the prompts.
_MOST_SYSTEMS = 20
_NEARLY_ALL = 0.9
# On fewer prompts, any column seems to name systems.
_FEWEST_PROMPTS = 3
# Of more prompts, the first ones are looked at.
_MOST_PROMPTS = 1000


class SystemGuard:
    """Finds out whether rows of one prompt are of several systems, by a column that is not a key.

    Each value of such a column has two texts or more of nearly all prompts.

    used : the keys of columns that are read, which do not name systems
    """

    def __init__(self, used: Iterable[str | None]) -> None:
        self._used = [key for key in used if key is not None]
        self._prompts: set[Any] = set()
        # For each column, for each of its values, the number of texts by prompt; None for one with too many values.
        self._n_texts: dict[str, dict[str | None, Counter[Any]] | None] = {}
        self._of_text: set[str] = set()

    def add(self, prompt: Any, row: Any, n_texts: int) -> None:
        """Add a row of a prompt, which holds a number of texts."""
        if not isinstance(row, dict) or (prompt not in self._prompts and len(self._prompts) == _MOST_PROMPTS):
            return
        self._prompts.add(prompt)
        for name, value in row.items():
            by_value = self._n_texts.setdefault(name, {})
            if by_value is None or isinstance(value, bool) or not isinstance(value, (str, int, float)):
                continue
            by_value.setdefault(read_key(row, name), Counter())[prompt] += n_texts
            if isinstance(value, str):
                self._of_text.add(name)
            if len(by_value) > _MOST_SYSTEMS:
                self._n_texts[name] = None

    def check(self, path: Path) -> None:
        """Raise a ValueError that names the column that most likely holds systems, if there is one.

        Texts are preferred to numbers.
        """
        n_prompts = len(self._prompts)
        if n_prompts < _FEWEST_PROMPTS:
            return
        used = {column_of(key, self._n_texts) for key in self._used}
        candidates = []
        for name, by_value in self._n_texts.items():
            if by_value is None or len(by_value) < 2 or name in used:
                continue
            coverage = n_prompts
            for by_prompt in by_value.values():
                coverage = min(coverage, sum(n > 1 for n in by_prompt.values()))
            if coverage >= _NEARLY_ALL * n_prompts:
                candidates.append((coverage, name in self._of_text, name, len(by_value)))
        if candidates:
            _, _, name, n = max(candidates, key=lambda candidate: candidate[:2])
            raise ValueError(
                f"{path} seems to hold {n} systems: each of the {n} values of {name!r} has texts for nearly all "
                f"prompts. Pass this file alone, with --system-key {name}, or --one-system if they are one system."
            )


def check_one_system(path: Path, units: Sequence[Unit], used: Iterable[str | None]) -> None:
    """Raise a ValueError if sets that are read seem to be of several systems."""
    guard = SystemGuard(used)
    for unit in units:
        for row in unit.rows:
            guard.add(unit.id, row.values, len(row.texts))
    guard.check(path)


def count_repeats(units: Iterable[Unit]) -> Counter[str]:
    """Count likely faults in sets of several rows with one id.

    Returns `n_joined`, the sets with several rows that each hold a list of texts, and `n_repeated`, the rows that
    repeat another row of their set: in all columns, or in their texts if each text of the set is in several rows.
    """
    counts = Counter(n_joined=0, n_repeated=0)
    for unit in units:
        if len(unit.rows) < 2:
            continue
        counts["n_joined"] += sum(not row.is_text for row in unit.rows) > 1
        same_texts: dict[tuple[str, ...], list[Row]] = defaultdict(list)
        for row in unit.rows:
            same_texts[tuple(row.texts)].append(row)
        if all(len(rows) > 1 for rows in same_texts.values()):
            counts["n_repeated"] += len(unit.rows) - len(same_texts)
        else:
            counts["n_repeated"] += sum(map(_count_equal, same_texts.values()))
    return counts


def _count_equal(rows: Sequence[Row]) -> int:
    """Count the rows that equal an earlier one in all columns."""
    return len(rows) - len({to_json(row.values) for row in rows}) if len(rows) > 1 else 0


def repeat_sentences(counts: Mapping[str, int], id_key: str) -> list[str]:
    """Describe the counts of `count_repeats`, a sentence each."""
    cause = "A harness may log an answer once for each filter, trial or time: keep one row, or pass --system-key"
    sentences = []
    if n := counts.get("n_joined", 0):
        sentences.append(f"{count(n, 'set')} of one {id_key!r} join rows that hold a list of texts each. {cause}.")
    if n := counts.get("n_repeated", 0):
        verb = "repeats" if n == 1 else "repeat"
        sentences.append(f"{count(n, 'row')} {verb} another one of the same {id_key!r}: less diversity. {cause}.")
    return sentences


def warn_of_repeats(path: object, counts: Mapping[str, int], id_key: str) -> None:
    """Warn on stderr of the faults that `count_repeats` found, if any."""
    for sentence in repeat_sentences(counts, id_key):
        print(f"Warning: {path}: {sentence}", file=sys.stderr)
