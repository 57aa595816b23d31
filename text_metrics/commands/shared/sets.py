"""Rows joined to sets, as all commands read them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.shared.columns import Column, is_missing, parse_cell
from text_metrics.commands.shared.keys import missing, read_key, read_value
from text_metrics.commands.shared.rows import Row, Source
from text_metrics.metrics._core.core_numbers import describe

# Texts of --one-set, and rows whose sets are scattered over the file: these are in memory together.
LARGEST_SET = 1_000_000
# A row with the id of its set, and what is wrong with the set because of rows beside it.
Marked = tuple[Any, Row, str]


class Keys(NamedTuple):
    """What makes a set of rows: their prompt and system, their number, or all of them; otherwise, each row is a set.

    text, id, system : keys of the texts, of the prompt and of the system
    size : how many consecutive rows make a set
    is_one_set : whether all rows are one set
    is_scattered : whether rows of one prompt may have others between them, so that all rows are held in memory
    """

    text: str | None = None
    id: str | None = None
    system: str | None = None
    size: int | None = None
    is_one_set: bool = False
    is_scattered: bool = False

    @property
    def is_grouped(self) -> bool:
        """Whether several rows make a set."""
        return self.is_one_set or self.id is not None or self.size is not None

    @property
    def names(self) -> list[str]:
        """The keys of the id of a set."""
        return [key for key in (self.system, self.id) if key is not None]


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts; or only bad rows.

    rows, texts : those that are good, and their texts
    given : by argument, the values of columns: a list for the texts, or the one of the set, such as `references`
    bad : rows that are skipped, because of an error or with their set
    is_incomplete : whether the set lacks a row
    system, id : of the set; its id is the place of its row where no key gives it
    """

    rows: Sequence[Row] = ()
    texts: Sequence[str] = ()
    given: Mapping[str, Any] = {}
    bad: Sequence[Row] = ()
    is_incomplete: bool = False
    system: str | None = None
    id: str | None = None


class Reader:
    """Joins the rows of a file to units.

    A row keeps its place in its set if it is bad, so that the next set is never another one. A row without a readable
    id counts to the set before it; if it is not between two rows of one set, the set after it lacks a row, too. Where
    sets are scattered, it may be of any set, and raises a ValueError.

    Parameters
    ----------
    reads_sets : whether a row that is no part of a set must be a list; otherwise, it may be one text
    columns : with the values of arguments; a row without a valid value is bad
    chooses : whether rows of sets are chosen: each holds one text, and a set without its bad rows is a unit; otherwise
        its good rows are skipped with it
    """

    def __init__(self, keys: Keys, reads_sets: bool, columns: Sequence[Column] = (), *, chooses: bool = False) -> None:
        self._keys, self._reads_sets, self._columns, self._chooses = keys, reads_sets, columns, chooses
        # Of the cells of a table without types: whether those of texts are lists, as the first one is.
        self._has_cells, self._are_lists = False, False

    def units(self, source: Source) -> Iterator[Unit]:
        """Join rows to units, in order; each row belongs to a unit, as good or as bad."""
        keys, self._has_cells = self._keys, source.has_cells
        rows = self._checked(source)
        if keys.id is not None:
            marked: Iterable[Marked] = self._marked(rows, source)
            if keys.is_scattered:
                first: dict[Any, int] = {}
                marked = sorted(marked, key=lambda each: first.setdefault(each[0], len(first)))
            for key, run in groupby(marked, itemgetter(0)):
                of_set = list(run)
                unit = self._unit([row for _, row, _ in of_set], next(filter(None, (why for *_, why in of_set)), ""))
                # Without an id at the beginning of the file, no set lacks these rows but the next.
                is_incomplete = unit.is_incomplete and key is not None
                system, name = key or (None, None)
                yield unit._replace(system=system, id=name, is_incomplete=is_incomplete)
        elif keys.is_one_set:
            yield self._whole(rows)
        else:
            size = keys.size or 1
            while members := list(islice(rows, size)):
                left_over = f"is left over: fewer than {size} rows remain"
                unit = self._unit(members, left_over if len(members) < size else "")
                yield unit._replace(id=str(members[0].place))

    def _marked(self, rows: Iterator[Row], source: Source) -> Iterator[Marked]:
        last, cause = None, None
        for row in rows:
            key = [read_key(row.values, name) for name in self._keys.names] if row.values is not None else [None]
            if None in key:
                lacking = next((name for name, of_row in zip(self._keys.names, key, strict=False) if not of_row), "")
                row.error = row.error or missing(lacking, row.values)
                cause = row
                if self._keys.is_scattered:
                    raise ValueError(
                        f"{source.path}, row {row.number} {row.error}. The rows of a set are not next to each other in "
                        f"this file, so that this row may belong to any set: correct it, or sort the file."
                    )
                yield last, row, ""
                continue
            new = (key[0] if len(key) > 1 else None, key[-1])
            problem = ""
            if cause is not None and new != last:
                problem = f"skipped: its set may contain invalid row {cause.number} before it: {cause.error}"
            last, cause = new, None
            yield new, row, problem

    def _whole(self, rows: Iterator[Row]) -> Unit:
        good, bad, n_texts = list[Row](), list[Row](), 0
        for row in rows:
            (bad if row.error else good).append(row)
            n_texts += len(row.texts)
            if n_texts > LARGEST_SET:
                raise ValueError(f"--one-set holds at most {LARGEST_SET:,} texts in memory: this file has more.")
        return self._unit(good)._replace(bad=bad) if good else Unit(bad=bad)

    def _unit(self, members: list[Row], problem: str = "") -> Unit:
        """Join rows to a unit: it is incomplete if one of them is bad, or if there is a problem with another one."""
        good, bad = members, [row for row in members if row.error]
        if bad:
            good = [row for row in members if not row.error]
            place = f"rows {members[0].number} to {members[-1].number}"
            problem = f"skipped: its set ({place}) contains invalid row {bad[0].number}: {bad[0].error}"
        if good and (self._chooses or not problem):
            texts = good[0].texts if len(good) == 1 else [text for row in good for text in row.texts]
            try:
                return Unit(good, texts, self._given(good), bad, bool(problem))
            except ValueError as error:
                problem = str(error)
        for row in members:
            row.error = row.error or problem
        return Unit(bad=members, is_incomplete=self._keys.is_grouped)

    def _given(self, rows: list[Row]) -> dict[str, Any]:
        """Join the values of arguments of rows; raises a ValueError if those of a set differ, or are missing."""
        given: dict[str, Any] = {}
        for column in self._columns:
            values = [row.given[column.argument] for row in rows if column.argument in row.given]
            if column.per_text:
                given[column.argument] = list(chain.from_iterable(values))
            elif not values:
                given[column.argument] = column.read(rows[0].values, None)
            elif any(value != values[0] for value in values):
                raise ValueError(f"{column.name!r} differs between the rows of one set")
            else:
                given[column.argument] = values[0]
        return given

    def _checked(self, source: Source) -> Iterator[Row]:
        """Read the texts of rows, and their values of arguments; what is wrong with them is their error.

        Raises a ValueError if a row of CSV may be any number of rows, so that the later sets are unknown.
        """
        is_first = True
        for row in source.rows():
            if row.n_lines > 1 and self._keys.size:
                raise ValueError(
                    f"{source.path}, lines {row.number} to {row.number + row.n_lines - 1} cannot be counted as rows "
                    f"of sets of --set-size: the first {row.error}. Correct these lines."
                )
            if not row.error:
                if is_first and self._has_cells:
                    self._are_lists = _is_list_of_texts(parse_cell(read_value(row.values, self._keys.text)))
                    is_first = False
                try:
                    row.texts = self._texts(row)
                    row.given = self._values(row)
                except (ValueError, ArithmeticError, RecursionError) as error:
                    row.error = str(error)
            yield row

    def _texts(self, row: Row) -> list[str]:
        keys = self._keys
        name, is_chosen = "a row" if keys.text is None else repr(keys.text), self._chooses and keys.is_grouped
        texts = read_value(row.values, keys.text)
        if isinstance(texts, str) and self._are_lists:
            texts = cells if _is_list_of_texts(cells := parse_cell(texts)) else texts
        row.is_text = isinstance(texts, str)
        if isinstance(texts, str):
            if not keys.is_grouped and self._reads_sets:
                raise ValueError(f"{name} is one text: a set is a list, or needs --id-key or --set-size")
            texts = [texts]
        elif texts is None or (keys.text is None and isinstance(texts, dict)):
            raise ValueError(missing(keys.text, row.values))
        elif not isinstance(texts, list) or is_chosen:
            expected = "one text" if is_chosen else "a text or a list of texts"
            raise ValueError(f"{name} must be {expected}. Got {describe(texts)}")
        if not texts:
            raise ValueError(f"{name} is an empty list")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{name} must hold texts. Got {describe(text)}")
        return texts

    def _values(self, row: Row) -> dict[str, Any]:
        n_texts = None if row.is_text else len(row.texts)
        # Of a set, any row may have its value.
        return {
            column.argument: column.read(row.values, n_texts, self._has_cells)
            for column in self._columns
            if column.per_text or not is_missing(read_value(row.values, column.name))
        }


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def find_scattered(source: Source, keys: Keys) -> bool:
    """Whether the rows of a set are not all next to each other.

    Raises a ValueError if they are not, and there are too many rows to hold them in memory.
    """
    hashes = np.fromiter((hash(key) for _, key in _runs(source, keys)), np.int64)
    if len(np.unique(hashes)) == len(hashes):
        return False
    # Equal hashes are not yet equal keys.
    first: dict[Any, int] = {}
    again = ((number, key) for number, key in _runs(source, keys) if first.setdefault(key, number) != number)
    number, key = next(again, (0, ()))
    if number and sum(1 for _ in source.rows(*keys.names)) > LARGEST_SET:
        raise ValueError(
            f"{source.path}: {keys.id!r} is {key[-1]!r:.80} in row {first[key]}, and again in row {number}, after "
            f"other rows. The rows of a set must be next to each other in a file of more than {LARGEST_SET:,} rows: "
            f"sort the file by {keys.id!r} first."
        )
    return number > 0


def _runs(source: Source, keys: Keys) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    """Yield the number of the first row of each run of rows with one key, and the key."""
    last = None
    for row in source.rows(*keys.names):
        key = tuple(read_key(row.values, name) for name in keys.names) if row.values is not None else (None,)
        if None not in key and key != last:
            yield row.number, key
            last = key
