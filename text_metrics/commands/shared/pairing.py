"""Rows of two files that belong together: line by line, or by an id."""

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
