"""Rows of two files that belong together: line by line, or by an id."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

# A row with its file and line, for errors.
Row = tuple[str, Any]


def read_id(row: Row, id_key: str) -> str | int:
    """Read the id of a row.

    Raises
    ------
    ValueError
        If it has none, or one that is neither a string nor an integer; it names the line.
    """
    where, value = row
    if not isinstance(value, dict) or id_key not in value:
        raise ValueError(f"{where} has no {id_key!r}.")
    name = value[id_key]
    if not isinstance(name, (str, int)):
        raise ValueError(f"{where}: {id_key} must be a string or an integer. Got {name!r:.80}.")
    return name


def places_by_id(rows: Sequence[Row], id_key: str) -> dict[str | int, int]:
    """Return the place of each id in the rows.

    Raises
    ------
    ValueError
        As `read_id` does, or if an id comes twice: which of its rows belongs to which of the other file is not known.
    """
    places: dict[str | int, int] = {}
    for i, row in enumerate(rows):
        name = read_id(row, id_key)
        if name in places:
            raise ValueError(f"{row[0]}: {id_key} {name!r} comes twice, first in {rows[places[name]][0]}.")
        places[name] = i
    return places


def order_by_id(names: Mapping[str | int, int], rows: Sequence[Row], id_key: str, files: str) -> list[int]:
    """Return for each id the place of its row among those of another file, which must have the same ids.

    Raises
    ------
    ValueError
        As `places_by_id` does, or if an id is in only one of the files, which `files` names.
    """
    places = places_by_id(rows, id_key)
    alone = [name for name in names if name not in places] or [name for name in places if name not in names]
    if alone:
        raise ValueError(f"{id_key} {alone[0]!r} is in only one of {files}.")
    return [places[name] for name in names]


def check_order(first: Sequence[Row], second: Sequence[Row], leave_out: str | None, advice: str) -> None:
    """Raise a ValueError if a column shows that the rows of two files are in different orders.

    Such a column has the same values in both files, as often each; or more than half of its values come once in each
    file. And one of these values is on another line. Columns of only true, false and null are not looked at.

    Parameters
    ----------
    leave_out : a column that says nothing of the order, such as that of the texts
    advice : what to do about it, with {key} for the column
    """
    values = [[value for _, value in rows] for rows in (first, second)]
    if not all(isinstance(value, dict) for own in values for value in own):
        return
    shared = set.intersection(*(set().union(*own) for own in values)) - {leave_out}
    for key in sorted(shared):
        columns = [[json.dumps(value.get(key), sort_keys=True) for value in own] for own in values]
        moved = _moved(*columns)
        if moved is not None:
            i, j = moved
            raise ValueError(
                f"{first[i][0]} has the {key!r} of {second[j][0]}: the files are in different orders. "
                f"{advice.format(key=key)}"
            )


def _moved(first: list[str], second: list[str]) -> tuple[int, int] | None:
    """Find a value of a column, as JSON, and its place in both files, if the column shows different orders."""
    counts, others = Counter(first), Counter(second)
    if set(counts) <= {"true", "false", "null"}:
        return None
    shown = {value for value in counts if counts[value] == others[value] == 1}
    if counts == others:
        shown = set(counts)
    elif 2 * len(shown) <= len(first):
        return None
    moved = (i for i, value in enumerate(first) if value in shown and value != second[i])
    i = next(moved, None)
    return None if i is None else (i, second.index(first[i]))
