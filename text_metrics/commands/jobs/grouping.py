"""Rows grouped into units, each of which is scored as one."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.pieces import read_key
from text_metrics.commands.jobs.rows import Row, show_values
from text_metrics.commands.shared.columns import Column, is_missing
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import TEXTS

# Texts of --one-set, which are in memory together.
LARGEST_SET = 1_000_000
# In characters: a row may have any number of columns.
_LONGEST_ERROR = 1000


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts; or only bad rows.

    values : by argument, those of the columns of --column: a list for the texts, or the one of the set, such as
        `references`
    is_single : whether it is a row that holds a text, not a list of texts
    numbers : of the rows, from 1
    bad : rows that are set aside, because of an error or with their set
    is_incomplete : whether the set lacks a row
    """

    rows: Sequence[dict[str, Any]] = ()
    texts: Sequence[str] = ()
    values: Mapping[str, Any] = {}
    is_single: bool = False
    numbers: Sequence[int] = ()
    bad: Sequence[Row] = ()
    is_incomplete: bool = False


class _Member(NamedTuple):
    """A row that was checked: `row.error` is empty if it is good.

    values : those of the columns that have one for each text, by argument
    """

    row: Row
    texts: list[str]
    values: dict[str, list[Any]]


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
        self._command, self.items, self._chooses = command, items, chooses
        self._of_texts = [column for column in columns if column.per_text]
        # The columns of which a set has one value, by what it is given for, and how each is read.
        self._of_sets: list[tuple[str, str, Callable[[dict[str, Any]], Any]]] = [
            (column.argument, column.name, partial(column.read, n_texts=None))
            for column in columns
            if not column.per_text
        ]
        if (key := command.reference_key) is not None:
            self._of_sets.append(("references", key, lambda row: _parse_reference(row[key])))

    def units(self, rows: Iterator[Row]) -> Iterator[Unit]:
        """Join rows to units, in order; each row that is not blank belongs to a unit, as good or as bad."""
        members = (self._check(row) for row in rows if not row.is_blank)
        command = self._command
        if command.group_key is not None:
            yield from self._keyed_sets(members, command.group_key)
        elif command.one_set:
            yield self._whole(members)
        elif command.set_size is None:
            for member in members:
                yield self._unit([member])
        else:
            while run := list(islice(members, command.set_size)):
                short = f"is left over: fewer than {command.set_size} rows remain in the file"
                yield self._unit(run, short if len(run) < command.set_size else "")

    def _keyed_sets(self, members: Iterator[_Member], name: str) -> Iterator[Unit]:
        run: list[_Member] = []
        problem, key = "", None
        for member in members:
            new_key = read_key(member.row.values, name)
            if run and new_key is not None and new_key != key:
                yield self._unit(run, problem)
                last = run[-1].row
                problem = "" if read_key(last.values, name) is not None else _beside(last)
                run = []
            run.append(member)
            key = key if new_key is None else new_key
        if run:
            yield self._unit(run, problem)

    def _whole(self, members: Iterator[_Member]) -> Unit:
        rows: list[_Member] = []
        n_texts = 0
        for member in members:
            rows.append(member)
            n_texts += len(member.texts)
            if n_texts > LARGEST_SET:
                raise UsageError(f"--one-set holds all texts in memory, at most {LARGEST_SET:,}: this file has more.")
        good = [member for member in rows if not member.row.error]
        bad = [_set_aside(member, "") for member in rows if member.row.error]
        return self._unit(good)._replace(bad=bad) if good else Unit(bad=bad)

    def _unit(self, members: list[_Member], problem: str = "") -> Unit:
        """Join rows to a unit: it is incomplete if one of them is bad, or if there is a problem with another one."""
        good = [member for member in members if not member.row.error]
        bad = [_set_aside(member, "") for member in members if member.row.error]
        if bad:
            place = f"rows {members[0].row.number} to {members[-1].row.number}"
            problem = f"is set aside with its set, {place}, because of row {bad[0].number}: {bad[0].error}"
        if not problem or (self._chooses and good):
            rows: list[Any] = [member.row.values for member in good]
            try:
                of_sets = self._values_of_set(rows)
            except ValueError as error:
                problem = str(error)
            else:
                texts = good[0].texts if len(good) == 1 else [text for member in good for text in member.texts]
                of_texts = {
                    column.argument: [value for member in good for value in member.values[column.argument]]
                    for column in self._of_texts
                }
                is_single = not self._command.is_grouped and isinstance(rows[0][self._command.text_key], str)
                numbers = [member.row.number for member in good]
                return Unit(rows, texts, {**of_sets, **of_texts}, is_single, numbers, bad, bool(problem))
        return Unit(bad=[_set_aside(member, problem) for member in members], is_incomplete=self._command.is_grouped)

    def _values_of_set(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Read what a set has one of, from those of its rows that have it; raises a ValueError if they differ."""
        found = {}
        for argument, name, read in self._of_sets:
            values = [read(row) for row in rows if not is_missing(row.get(name))]
            if not values:
                raise ValueError(missing(name, rows[0]))
            if any(value != values[0] for value in values):
                raise ValueError(f"{name!r} differs between the rows of one set")
            found[argument] = values[0]
        return found

    def _check(self, row: Row) -> _Member:
        if row.values is None:
            return _Member(row, [], {})
        try:
            texts = self._texts(row.values)
            return _Member(row, texts, self._values_of_texts(row.values, texts) if self._of_texts else {})
        except ValueError as error:
            return _Member(row._replace(error=str(error)), [], {})

    def _texts(self, values: dict[str, Any]) -> list[str]:
        """Read the texts of a row; raises a ValueError if it has none, or lacks a key."""
        command = self._command
        key, is_grouped = command.text_key, command.is_grouped
        if command.group_key is not None and read_key(values, command.group_key) is None:
            raise ValueError(missing(command.group_key, values))
        texts = values.get(key)
        if texts is None:
            raise ValueError(missing(key, values))
        if isinstance(texts, str):
            texts = [texts]
            if not is_grouped and self.items != TEXTS and not (texts := parse_set(texts[0])):
                raise ValueError(f"{key!r} is one text: a set is a list, or needs --group-key or --set-size")
        elif not isinstance(texts, list) or (self._chooses and is_grouped):
            expected = "one text" if self._chooses and is_grouped else "a text or a list of texts"
            raise ValueError(f"{key!r} must be {expected}. Got {describe(texts)}")
        if not texts:
            raise ValueError(f"{key!r} is an empty list")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{key!r} must hold texts. Got {describe(text)}")
        if not all(map(str.isascii, texts)):
            check_characters(texts, lambda i: f"text {i} of {key!r}")
        return texts

    def _values_of_texts(self, values: dict[str, Any], texts: list[str]) -> dict[str, list[Any]]:
        command = self._command
        is_text = isinstance(values[command.text_key], str) and (command.is_grouped or self.items == TEXTS)
        return {column.argument: column.read(values, None if is_text else len(texts)) for column in self._of_texts}


def _beside(row: Row) -> str:
    return f"is set aside with its set, because of row {row.number} before it: {row.error}"


def _set_aside(member: _Member, problem: str) -> Row:
    """Return the row of a member as a bad one, with its line; what was wrong with it before stays its error."""
    row = member.row
    raw = row.raw if row.values is None else show_values(row.values)
    return row._replace(error=row.error or problem, raw=raw)


def _parse_reference(reference: Any) -> Any:
    """Read a reference that is a string: in CSV, a list is JSON; a bare text is one answer."""
    if not isinstance(reference, str):
        return reference
    with suppress(ValueError):
        reference = json.loads(reference)
    return [reference] if isinstance(reference, str) else reference


def parse_set(text: str) -> list[Any]:
    """Read a set of texts that is one string, in JSON, as in CSV; empty if it is none."""
    try:
        texts = json.loads(text)
    except ValueError:
        return []
    return texts if isinstance(texts, list) else []


def missing(key: str, values: Mapping[str, Any]) -> str:
    """Say that a row has no value under a key, and which keys it has."""
    columns = "" if key in values else f": it has {', '.join(values) or 'no columns'}"
    return f"has no {key!r}{columns}"[:_LONGEST_ERROR]
