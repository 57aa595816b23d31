"""Rows of two files that belong together: line by line, or by an id."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

# A row with its file and line, for errors.
Row = tuple[str, Any]


def read_id(row: Row, id_key: str) -> str | int:
    """Read the id of a row; raises a ValueError that names a line without a string or an integer."""
    where, value = row
    if not isinstance(value, dict) or id_key not in value:
        raise ValueError(f"{where} has no {id_key!r}.")
    name = value[id_key]
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise ValueError(f"{where}: {id_key} must be a string or an integer. Got {name!r:.80}.")
    return name


def places_by_id(rows: Sequence[Row], id_key: str) -> dict[str | int, int]:
    """Return the place of each id in the rows; raises a ValueError as `read_id` does, or if an id appears twice."""
    places: dict[str | int, int] = {}
    for i, row in enumerate(rows):
        name = read_id(row, id_key)
        if name in places:
            raise ValueError(f"{row[0]}: {id_key} {name!r} appears twice, first in {rows[places[name]][0]}.")
        places[name] = i
    return places


def order_by_id(names: Mapping[str | int, int], rows: Sequence[Row], id_key: str, files: str) -> list[int]:
    """Return the place of each id in another file; raises a ValueError if an id is in only one of the `files`."""
    places = places_by_id(rows, id_key)
    alone = [name for name in names if name not in places] or [name for name in places if name not in names]
    if alone:
        raise ValueError(f"{id_key} {alone[0]!r} is in only one of {files}.")
    return [places[name] for name in names]


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
