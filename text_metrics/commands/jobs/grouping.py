"""Rows grouped into units, each of which is scored as one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.jobs.options import Command
from text_metrics.commands.shared.columns import Column, is_missing, parse_list
from text_metrics.commands.shared.rows import Row, Source, missing, read_key
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import TEXTS

# Texts of --one-set, which are in memory together.
LARGEST_SET = 1_000_000


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts; or only bad rows.

    rows, texts : those that are good, and their texts
    given : by argument, the values of columns: a list for the texts, or the one of the set, such as `references`
    bad : rows that are set aside, because of an error or with their set
    is_incomplete : whether the set lacks a row
    """

    rows: Sequence[Row] = ()
    texts: Sequence[str] = ()
    given: Mapping[str, Any] = {}
    bad: Sequence[Row] = ()
    is_incomplete: bool = False


class Reader:
    """Joins rows to units, as the command says.

    A row keeps its place in its set if it is bad, so that the next set is never another one. A row without a readable
    key counts to the set before it; if it is not between two rows of one set, the set after it lacks a row, too.

    Parameters
    ----------
    items : what is scored: SETS, TEXTS or QUESTIONS
    columns : with the values of arguments; a row without a valid value is bad
    chooses : whether rows of sets are chosen: each holds one text, and a set without its bad rows is a unit; otherwise
        its good rows are set aside with it
    """

    def __init__(self, command: Command, items: str, columns: Sequence[Column] = (), *, chooses: bool = False) -> None:
        self._command, self._items, self._columns, self._chooses = command, items, columns, chooses

    def units(self, rows: Iterator[Row]) -> Iterator[Unit]:
        """Join rows to units, in order; each row belongs to a unit, as good or as bad."""
        command, size = self._command, self._command.set_size or 1
        rows = map(self._check, rows)
        if command.group_key is not None:
            yield from self._keyed_sets(rows, command.group_key)
        elif command.one_set:
            yield self._whole(rows)
        else:
            while members := list(islice(rows, size)):
                left_over = f"is left over: fewer than {size} rows remain"
                yield self._unit(members, left_over if len(members) < size else "")

    def _keyed_sets(self, rows: Iterator[Row], name: str) -> Iterator[Unit]:
        members: list[Row] = []
        key = last = None
        problem = ""
        for row in rows:
            new = read_key(row.values, name)
            if new is None:
                row.error = row.error or missing(name, row.values)
            elif new != key:
                if members:
                    yield self._unit(members, problem)
                    before = members[-1]
                    cause = f"is set aside with its set, because of row {before.number} before it: {before.error}"
                    problem = cause if last is None else ""
                key, members = new, []
            members.append(row)
            last = new
        if members:
            yield self._unit(members, problem)

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
            problem = f"is set aside with its set, {place}, because of row {bad[0].number}: {bad[0].error}"
        if good and (self._chooses or not problem):
            texts = good[0].texts if len(good) == 1 else [text for row in good for text in row.texts]
            try:
                return Unit(good, texts, self._given(good), bad, bool(problem))
            except ValueError as error:
                problem = str(error)
        for row in members:
            row.error = row.error or problem
        return Unit(bad=members, is_incomplete=self._command.is_grouped)

    def _given(self, rows: list[Row]) -> dict[str, Any]:
        """Join the values of arguments of rows; raises a ValueError if those of a set differ, or are missing."""
        given: dict[str, Any] = {}
        for column in self._columns:
            values = [row.given[column.argument] for row in rows if column.argument in row.given]
            if column.per_text:
                given[column.argument] = list(chain.from_iterable(values))
            elif not values:
                raise ValueError(missing(column.name, rows[0].values))
            elif any(value != values[0] for value in values):
                raise ValueError(f"{column.name!r} differs between the rows of one set")
            else:
                given[column.argument] = values[0]
        return given

    def _check(self, row: Row) -> Row:
        """Read the texts of a row, and its values of arguments; what is wrong with them is its error.

        Raises a ValueError if a row of CSV may be any number of rows, so that the later sets are unknown.
        """
        if row.n_lines > 1 and self._command.set_size:
            raise ValueError(
                f"{self._command.data}, lines {row.number} to {row.number + row.n_lines - 1} cannot be counted as rows "
                f"of sets of --set-size: the first {row.error}. Correct these lines."
            )
        if not row.error:
            try:
                row.texts = self._texts(row.values)
                if self._columns:
                    row.given = self._values(row)
            except ValueError as error:
                row.error = str(error)
        return row

    def _texts(self, values: dict[str, Any]) -> list[str]:
        key, is_grouped = self._command.text_key, self._command.is_grouped
        texts = values.get(key)
        if isinstance(texts, str):
            texts = [texts]
            if not is_grouped and self._items != TEXTS:
                texts = parse_list(texts[0])
                if not isinstance(texts, list):
                    raise ValueError(f"{key!r} is one text: a set is a list, or needs --group-key or --set-size")
        elif texts is None:
            raise ValueError(missing(key, values))
        elif not isinstance(texts, list) or (self._chooses and is_grouped):
            expected = "one text" if self._chooses and is_grouped else "a text or a list of texts"
            raise ValueError(f"{key!r} must be {expected}. Got {describe(texts)}")
        if not texts:
            raise ValueError(f"{key!r} is an empty list")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{key!r} must hold texts. Got {describe(text)}")
        return texts

    def _values(self, row: Row) -> dict[str, Any]:
        is_text = isinstance(row.values[self._command.text_key], str)
        is_text = is_text and (self._command.is_grouped or self._items == TEXTS)
        n_texts = None if is_text else len(row.texts)
        # Of a set, any row may have its value.
        return {
            column.argument: column.read(row.values, n_texts)
            for column in self._columns
            if column.per_text or not is_missing(row.values.get(column.name))
        }


def check_keys(source: Source, name: str) -> None:
    """Raise a ValueError if a key comes back after rows of another one."""
    hashes = np.fromiter((hash(key) for _, key in _runs(source, name)), np.int64)
    if len(np.unique(hashes)) == len(hashes):
        return
    # Equal hashes are not yet equal keys.
    first: dict[str, int] = {}
    for number, key in _runs(source, name):
        if first.setdefault(key, number) != number:
            raise ValueError(
                f"{source.path}: {name!r} is {key!r:.80} in row {first[key]}, and again in row {number}, after other "
                f"rows. The rows of a set must be next to each other: sort the file by {name!r} first."
            )


def _runs(source: Source, name: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the first row of each run of rows with one key, and the key."""
    last = None
    for row in source.rows(name):
        key = read_key(row.values, name)
        if key is not None and key != last:
            yield row.number, key
            last = key
