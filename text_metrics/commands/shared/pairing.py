"""Rows of two files that belong together: line by line, or by an id."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

# A row with its file and line, for errors.
Row = tuple[str, Any]


def read_id(row: Row, id_key: str) -> str | int:
    """Read the id of a row; raises a ValueError that names a line without a string or an integer."""
    where, value = row
    if not isinstance(value, dict) or id_key not in value:
        keys = f": it has {', '.join(value)}"[:200] if isinstance(value, dict) else ""
        raise ValueError(f"{where} has no {id_key!r}{keys}.")
    name = value[id_key]
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise ValueError(f"{where}: {id_key} must be a string or an integer. Got {name!r:.80}.")
    return name


def rows_by_id(rows: Sequence[Row], id_key: str) -> dict[str | int, Row]:
    """Return the row of each id; raises a ValueError as `read_id` does, or if an id appears twice."""
    by_id: dict[str | int, Row] = {}
    for row in rows:
        name = read_id(row, id_key)
        if name in by_id:
            raise ValueError(f"{row[0]}: {id_key} {name!r} appears twice, first in {by_id[name][0]}.")
        by_id[name] = row
    return by_id


def pair_by_id(first: Sequence[Row], second: Sequence[Row], id_key: str) -> dict[str | int, tuple[Row, Row]]:
    """Pair the rows of two files by their ids; raises a ValueError as `rows_by_id` does, or if an id has one row."""
    sides = [rows_by_id(rows, id_key) for rows in (first, second)]
    for one, other in (sides, sides[::-1]):
        for name, row in one.items():
            if name not in other:
                raise ValueError(f"{row[0]}: {id_key} {name!r} is in only one of the files.")
    return {name: (row, sides[1][name]) for name, row in sides[0].items()}


def pair_by_line(first: Sequence[Row], second: Sequence[Row]) -> dict[str | int, tuple[Row, Row]]:
    """Pair the rows of two files by their order, numbered from 0; raises a ValueError unless there are as many."""
    if len(first) != len(second):
        raise ValueError(
            f"both files must have the same number of rows. Got {len(first)} up to {first[-1][0]}, and {len(second)} "
            f"up to {second[-1][0]}: pass --id-key to pair them by an id."
        )
    return dict(enumerate(zip(first, second, strict=True)))


def shared_ids(pairs: Sequence[tuple[Row, Row]], key: str) -> list[str | int]:
    """Read an id that both rows of each pair have, such as the group that they belong to."""
    for row, partner in pairs:
        if (name := read_id(row, key)) != (other := read_id(partner, key)):
            raise ValueError(f"{row[0]} and {partner[0]} must have the same {key}. Got {name!r} and {other!r}.")
    return [read_id(row, key) for row, _ in pairs]


def check_order(first: Sequence[Row], second: Sequence[Row], leave_out: str | None, advice: str) -> list[str]:
    """Check by their columns that two files of equal length have their rows in the same order.

    Returns a sentence for each column that shows the order in which some lines have values that the other file does not
    have. Raises a ValueError if a value of such a column is on another line of the other file.

    A column shows the order if it has the same values in both files, as often each; or if more than half of its values
    come once in each file. Columns of only true, false and null do not.

    Parameters
    ----------
    leave_out : a column that says nothing of the order, such as that of the texts
    advice : what to do about other orders, with {key} for the column
    """
    notes: list[str] = []
    values = [[value for _, value in rows] for rows in (first, second)]
    if not all(isinstance(value, dict) for column in values for value in column):
        return notes
    shared = set.intersection(*(set().union(*column) for column in values)) - {leave_out}
    for key in sorted(shared):
        columns = [[json.dumps(value.get(key), sort_keys=True) for value in column] for column in values]
        names = _names(*columns)
        apart = [i for i, (left, right) in enumerate(zip(*columns, strict=True)) if left != right]
        for i in apart:
            if columns[0][i] in names:
                j = columns[1].index(columns[0][i])
                raise ValueError(
                    f"{first[i][0]} has the {key!r} of {second[j][0]}: the files are in different orders. "
                    f"{advice.format(key=key)}"
                )
        if names and apart:
            i = apart[0]
            notes.append(f"{len(apart)} pairs differ in {key!r}, such as {first[i][0]} and {second[i][0]}.")
    return notes


def _names(first: list[str], second: list[str]) -> set[str]:
    """Find the values of a column, as JSON, that show where a row of one file is in the other."""
    counts, second_counts = Counter(first), Counter(second)
    if set(counts) <= {"true", "false", "null"}:
        return set()
    if counts == second_counts:
        return set(counts)
    once = {value for value in counts if counts[value] == second_counts[value] == 1}
    return once if 2 * len(once) > len(first) else set()
