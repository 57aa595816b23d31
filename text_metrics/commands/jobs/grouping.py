"""Rows grouped into units, each of which is scored as one."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from text_metrics.commands.jobs.keys import read_key
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Row, show_values
from text_metrics.commands.shared.columns import Column, is_missing
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import TEXTS

# In characters: a row may have any number of columns.
_LONGEST_ERROR = 1000


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts.

    values : by argument, those of the columns of --column: a list for the texts, or the one of the set
    is_single : whether it is a row that holds a text, not a list of texts
    numbers : of the rows, from 1
    bad : bad rows that were read before the unit was complete
    excluded : rows that are good, but are set aside because their set lacks a row
    n_dropped : how many good rows are left out with their set, as --drop-incomplete says
    is_incomplete : whether the set lacks a row
    end : how many rows of the file were read up to here
    """

    rows: list[dict[str, Any]]
    texts: list[str]
    reference: Any
    values: dict[str, Any]
    is_single: bool
    numbers: list[int]
    bad: Sequence[Row]
    excluded: Sequence[Row]
    n_dropped: int
    is_incomplete: bool
    end: int


# Makes a unit of a tuple of all fields: much faster than the constructor, which is Python code.
_new_unit: Callable[[tuple[Any, ...]], Unit] = partial(tuple.__new__, Unit)


class _Member(NamedTuple):
    """A row that was checked: `row.error` is empty if it is good; `end` is how many rows were read up to it.

    values : those of the columns that have one for each text, by argument
    """

    row: Row
    texts: list[str]
    values: dict[str, list[Any]]
    end: int


class Reader:
    """Joins rows to units, by the keys of the command.

    A row keeps its place in its set if it is bad, so that the next set is never another one. A row without a readable
    key that is not between two rows of one set may belong to the set before or after it: both lack a row then.

    Parameters
    ----------
    columns : with the values of arguments; a row without a valid value is bad
    one_group : whether all rows are one unit
    keeps_incomplete : whether a set without its bad rows is a unit; otherwise its good rows are set aside with it
    one_text : whether a row of a set holds one text, and no list of texts
    """

    def __init__(
        self,
        command: Command,
        items: str,
        columns: Sequence[Column] = (),
        *,
        one_group: bool = False,
        keeps_incomplete: bool = False,
        one_text: bool = False,
    ) -> None:
        self._data = command.data
        self.text_key, self.reference_key = command.text_key, command.reference_key
        self.group_key, self.set_size = command.group_key, command.set_size
        self.grouped = one_group or self.group_key is not None or self.set_size is not None
        self.items = items
        self._of_texts = [column for column in columns if column.per_text]
        self._of_sets = [column for column in columns if not column.per_text]
        self._has_columns = bool(columns)
        self._drops, self._keeps, self._one_text = command.drop_incomplete, keeps_incomplete, one_text
        # Rows of one set share what the set has one of, such as its reference, which one of the rows has.
        self._shares_reference = self.grouped or command.one_set
        # The columns of which a set has one value, and how each is read from a row that has it.
        self._shared: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
            (column.name, partial(column.read, n_texts=None)) for column in self._of_sets
        ]
        self._shared += [(key, itemgetter(key)) for key in [self.reference_key] if key is not None]

    def units(self, rows: Iterator[Row], start: int) -> Iterator[Unit]:
        """Join rows to units, in order; each row that was read belongs to a unit, as good or as bad."""
        if not self.grouped:
            return self._of_rows(rows, start)
        members = (self._check(row, end) for end, row in enumerate(rows, start + 1))
        if self.group_key is not None:
            return self._keyed_sets(members, self.group_key)
        if self.set_size is not None:
            return self._counted_sets(members, self.set_size)
        return self._one_set(members)

    def _of_rows(self, rows: Iterator[Row], start: int) -> Iterator[Unit]:
        """Make a unit of each row."""
        key = self.text_key
        # Without other columns, a text of a metric of texts needs no other checks than these.
        is_plain = self.items == TEXTS and not self._has_columns and self.reference_key is None
        for end, row in enumerate(rows, start + 1):
            number, values, *_ = row
            if is_plain and values is not None:
                text = values.get(key)
                if type(text) is str and text.isascii():
                    yield _new_unit(([values], [text], None, {}, True, [number], (), (), 0, False, end))
                    continue
            yield self._single(self._check(row, end))

    def _check(self, row: Row, end: int) -> _Member:
        texts: list[str] = []
        values: dict[str, list[Any]] = {}
        if row.values is not None:
            try:
                texts = self._texts(row.values)
                if self._has_columns:
                    values = self._values(row.values, texts)
            except ValueError as error:
                row = row._replace(error=str(error))
        return _Member(row, texts, values, end)

    def _single(self, member: _Member) -> Unit:
        if _is_good(member):
            return self._unit([member], (), member.end)
        return self._unit([], _bad_rows([member]), member.end)

    def _one_set(self, members: Iterator[_Member]) -> Iterator[Unit]:
        good: list[_Member] = []
        bad: list[Row] = []
        for member in members:
            if _is_good(member):
                good.append(member)
            elif good:
                bad += _bad_rows([member])
            else:
                yield self._single(member)
        if good:
            yield self._unit(good, bad, member.end)

    def _counted_sets(self, members: Iterator[_Member], size: int) -> Iterator[Unit]:
        members_of_set: list[_Member] = []
        for member in members:
            row = member.row
            if row.is_blank:
                continue
            if row.values is None and row.n_lines > 1:
                last = row.number + row.n_lines - 1
                raise UsageError(
                    f"{self._data}, lines {row.number} to {last} cannot be read: the first {row.error}. They may be "
                    f"any number of rows, so that the later sets of --set-size are unknown. Correct these lines."
                )
            members_of_set.append(member)
            if len(members_of_set) == size:
                yield self._set(members_of_set)
                members_of_set = []
        if members_of_set:
            yield self._set(members_of_set, problem=f"is left over: fewer than {size} rows remain in the file")

    def _keyed_sets(self, members: Iterator[_Member], name: str) -> Iterator[Unit]:
        members_of_set: list[_Member] = []
        # The last row before the set, if it has no key, and all those after the set.
        before: list[_Member] = []
        after: list[_Member] = []
        key = None
        for member in members:
            if member.row.is_blank:
                continue
            new_key = read_key(member.row.values, name)
            if members_of_set and new_key == key:
                members_of_set += [*after, member]
                after = []
                continue
            if members_of_set and new_key is not None:
                yield self._set(members_of_set, before, after)
                members_of_set, before, after = [], after, []
            if new_key is None:
                (after if members_of_set else before).append(member)
            else:
                members_of_set, key = [member], new_key
            # The next set has to know of the last one only, also if a job is resumed here.
            for other in before[:-1]:
                yield self._unit([], _bad_rows([other]), other.end)
            before = before[-1:]
        if members_of_set:
            yield self._set(members_of_set, before, after)
            before = after
        for other in before:
            yield self._unit([], _bad_rows([other]), other.end)

    def _set(
        self, members: list[_Member], before: Sequence[_Member] = (), after: Sequence[_Member] = (), problem: str = ""
    ) -> Unit:
        """Join rows to a set: it is incomplete if one of them is bad, or one beside it, or if there is a problem."""
        self._check_shared(members)
        good = [member for member in members if _is_good(member)]
        # The rows after the set belong to the next unit: a restart reads them again.
        bad = _bad_rows([*before, *members])
        end = members[-1].end
        cause = next(iter([*bad, *_bad_rows(after)]), None)
        if cause is None and not problem:
            return self._unit(good, bad, end)
        if cause is not None:
            rows = f"rows {members[0].row.number} to {members[-1].row.number}"
            problem = f"is set aside with its set, {rows}, because of row {cause.number}: {cause.error}"
        if self._drops:
            return self._unit([], bad, end)._replace(n_dropped=len(good), is_incomplete=True)
        if self._keeps:
            return self._unit(good, bad, end)._replace(is_incomplete=True)
        excluded = [_set_aside(member.row, problem) for member in good]
        return self._unit([], bad, end)._replace(excluded=excluded, is_incomplete=True)

    def _check_shared(self, members: list[_Member]) -> None:
        """Make a row bad that does not share what its set has one of, and the first row if no row has it."""
        for key, parse in self._shared:
            first: tuple[int, Any] | None = None
            for i, member in enumerate(members):
                if member.row.values is None or is_missing(member.row.values.get(key)):
                    continue
                try:
                    value = parse(member.row.values)
                    if first is not None and value != first[1]:
                        raise ValueError(f"{key!r} is not that of row {first[0]}, in the same set")
                    first = first or (member.row.number, value)
                except ValueError as error:
                    members[i] = _as_bad(member, str(error))
            if first is None:
                members[0] = _as_bad(members[0], missing(key, members[0].row.values or {}))

    def _unit(self, good: list[_Member], bad: Sequence[Row], end: int) -> Unit:
        rows: list[dict[str, Any]] = []
        texts: list[str] = []
        numbers: list[int] = []
        for member in good:
            row = member.row
            assert row.values is not None
            rows.append(row.values)
            numbers.append(row.number)
            texts += member.texts
        reference: Any = None
        values: dict[str, Any] = {}
        if self._shared:
            shared = {
                key: next((parse(row) for row in rows if not is_missing(row.get(key))), None)
                for key, parse in self._shared
            }
            reference = _parse_reference(shared.get(self.reference_key)) if self.reference_key else None
            values = {column.argument: shared[column.name] for column in self._of_sets}
        for column in self._of_texts:
            values[column.argument] = [value for member in good for value in member.values[column.argument]]
        is_single = bool(rows) and not self.grouped and isinstance(rows[0][self.text_key], str)
        return Unit(rows, texts, reference, values, is_single, numbers, bad, (), 0, False, end)

    def _texts(self, values: dict[str, Any]) -> list[str]:
        """Read the texts of a row; raises a ValueError if it has none, or lacks a key or a reference."""
        if self.group_key is not None and read_key(values, self.group_key) is None:
            raise ValueError(missing(self.group_key, values))
        value = values.get(self.text_key)
        if value is None:
            raise ValueError(missing(self.text_key, values))
        if self.reference_key and not self._shares_reference and is_missing(values.get(self.reference_key)):
            raise ValueError(missing(self.reference_key, values))
        if isinstance(value, str):
            texts = [value]
            if not self.grouped and self.items != TEXTS:
                texts = parse_set(value)
                if not texts:
                    raise ValueError(
                        f"{self.text_key!r} is one text: a set is a list, or needs --group-key or --set-size"
                    )
        elif isinstance(value, list):
            texts = value
        else:
            raise ValueError(f"{self.text_key!r} must be a text or a list of texts. Got {describe(value)}")
        if not texts:
            raise ValueError(f"{self.text_key!r} is an empty list")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{self.text_key!r} must hold texts. Got {describe(text)}")
        if not all(map(str.isascii, texts)):
            check_characters(texts, lambda i: f"text {i} of {self.text_key!r}")
        if self._one_text and self.grouped and not isinstance(value, str):
            raise ValueError(f"{self.text_key!r} must be one text in a row of a group. Got {describe(value)}")
        return texts

    def _values(self, values: dict[str, Any], texts: list[str]) -> dict[str, list[Any]]:
        """Read the values of the texts of a row, by argument; of those of the set, check that a row alone has them."""
        is_text = isinstance(values[self.text_key], str) and (self.grouped or self.items == TEXTS)
        if not self.grouped:
            for column in self._of_sets:
                column.read(values, None)
        return {column.argument: column.read(values, None if is_text else len(texts)) for column in self._of_texts}


def _as_bad(member: _Member, problem: str) -> _Member:
    """Return a member whose row is bad; what was wrong with it before stays its error."""
    return member._replace(row=member.row._replace(error=member.row.error or problem))


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


def _is_good(member: _Member) -> bool:
    return member.row.values is not None and not member.row.error


def _bad_rows(members: Sequence[_Member]) -> list[Row]:
    return [_set_aside(member.row, member.row.error) for member in members if member.row.error]


def _set_aside(row: Row, problem: str) -> Row:
    """Return a row with what is wrong with it, and with its line."""
    return row._replace(error=problem, raw=row.raw if row.values is None else show_values(row.values))
