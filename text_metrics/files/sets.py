"""Rows joined to sets, as all commands read them."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from text_metrics.core_api import describe
from text_metrics.files.columns import (
    OPTIONS,
    Column,
    column_of,
    is_missing,
    missing,
    parse_cell,
    read_key,
    read_value,
)
from text_metrics.files.rows import Row, Source
from text_metrics.texts import Marks, clean

# The most texts of --one-set, or rows of scattered sets, that are in memory together.
LARGEST_SET = 1_000_000
# The id of a set: its system, if it has one, and its prompt.
Id = tuple[str | None, str]


class Keys(NamedTuple):
    """Keys that join rows to a set: their prompt and system, or their number; otherwise, each row is a set.

    text, id, system : keys of the texts, of the prompt and of the system
    size : how many consecutive rows make a set
    is_one_set : whether all rows are one set
    """

    text: str | None = None
    id: str | None = None
    system: str | None = None
    size: int | None = None
    is_one_set: bool = False

    @property
    def is_grouped(self) -> bool:
        """True if several rows make a set."""
        return self.is_one_set or self.id is not None or self.size is not None

    @property
    def names(self) -> list[str]:
        """The keys of the id of a set."""
        return [key for key in (self.system, self.id) if key is not None]

    def id_of(self, row: Row) -> Id | None:
        """Read the id of a row's set; None if a key is missing."""
        prompt = None if self.id is None else read_key(row.values, self.id)
        system = None if self.system is None else read_key(row.values, self.system)
        lacks_system = system is None and self.system is not None
        return None if prompt is None or lacks_system else (system, prompt)

    def lacking(self, row: Row) -> str:
        """Name the key that a row lacks for the id of its set."""
        key = next(key for key in self.names if read_key(row.values, key) is None)
        return f"{missing(key, row.values)} ({'--id-key' if key == self.id else '--system-key'})"


class Unit(NamedTuple):
    """Rows that are scored together: a set, or a row of texts; or only bad rows.

    rows, texts : the good rows, and their texts
    given : by argument, a value for each text, or one for the set
    bad : rows that are skipped, because of an error or with their set
    is_incomplete : whether the set lacks a row
    is_joined : whether its rows are joined; otherwise, its only row stays as it is
    system : the system of the set, if there is a key for it
    id : the id of the set; without a key, the place of its row
    marks : counts of its texts that hold more than the answer
    """

    rows: Sequence[Row] = ()
    texts: Sequence[str] = ()
    given: Mapping[str, Any] = {}
    bad: Sequence[Row] = ()
    is_incomplete: bool = False
    is_joined: bool = False
    system: str | None = None
    id: str | None = None
    marks: Marks | None = None


def common_size(sizes: np.ndarray) -> int | None:
    """Return the least size of sets, to which all are rarefied; None if they have one size."""
    return int(sizes.min()) if sizes.min() < sizes.max() else None


def total_marks(units: Iterable[Unit]) -> Marks:
    """Add up the marks of units; invalid rows have none."""
    return sum((unit.marks for unit in units if unit.marks is not None), Marks())


@dataclass
class Reader:
    """Joins the rows of a file to units.

    A row keeps its place in its set if it is bad. A row without a readable id is assigned to the preceding set; if it
    is not between two rows of one set, the set after it lacks a row, too. Where sets are scattered, it is an error.

    reads_sets : whether a row that is a set of its own must be a list; otherwise, it may be one text
    columns : with the values of arguments; a row without a valid value is bad
    chooses : whether rows of sets are chosen: each holds one text, and good rows are not skipped with bad ones
    is_scattered : whether rows of a set may have others between them, so that all are in memory; `prepare` finds out
    strip : the kinds of marks, such as reasoning, that are removed from texts
    guard : a `SystemGuard` that `prepare` asks about the rows that it reads
    """

    keys: Keys
    reads_sets: bool
    columns: Sequence[Column] = ()
    chooses: bool = False
    is_scattered: bool = False
    strip: Sequence[str] = ()
    guard: Any = None

    def __post_init__(self) -> None:
        # Unless no two rows have one id, as `prepare` finds out.
        self.joins_rows = self.keys.is_grouped

    def prepare(self, source: Source) -> None:
        """Tell whether the rows of each set are adjacent.

        Raises a ValueError if they are not, and there are too many rows to hold them in memory, if no row has an id,
        for a column that a table does not have, or if the rows seem to be of several systems.
        """
        keys = {"--text-key": self.keys.text, "--id-key": self.keys.id, "--system-key": self.keys.system}
        for column in self.columns:
            keys[OPTIONS.get(column.argument, column.argument)] = column.name
        source.check_columns(keys)
        if self.keys.id is None or self.is_scattered:
            return
        rows = source.rows(*self.keys.names) if self.guard is None else self._guarded(source)
        hashes, numbers, has_long_runs = self._find_runs(rows)
        if not numbers:
            first_good = next((row for row in source.rows() if not row.error), None)
            if first_good is not None:
                problem = f"Row {first_good.number} {self.keys.lacking(first_good)}"
                raise ValueError(f"{source.path}: no row has an id. {problem}.")
        if self.guard is not None:
            self.guard.check(source.path)
            self.guard = None
        _, first_runs, codes = np.unique(np.asarray(hashes), return_index=True, return_inverse=True)
        # The first run with the id of each run: an earlier run where rows of a set are apart.
        first_of_id = first_runs[codes]
        repeated = np.flatnonzero(first_of_id < np.arange(len(numbers)))
        self.is_scattered = len(repeated) > 0
        self.joins_rows = self.is_scattered or has_long_runs
        if self.is_scattered and sum(1 for _ in source.rows(*self.keys.names)) > LARGEST_SET:
            run = repeated[0]
            raise ValueError(
                f"{source.path}: row {numbers[run]} has the {self.keys.id!r} of row {numbers[first_of_id[run]]}, and "
                "rows between them have another one. The rows of a set must be next to each other in a file of more "
                f"than {LARGEST_SET:,} rows: sort the file first."
            )

    def _find_runs(self, rows: Iterable[Row]) -> tuple["array[int]", "array[int]", bool]:
        """Return the hash of each run of equal ids, the number of its first row, and whether any has several rows."""
        hashes = array("q")
        numbers = array("q")
        has_long_runs = False
        last = None
        for row in rows:
            key = self.keys.id_of(row)
            if key is None:
                continue
            if key == last:
                has_long_runs = True
            else:
                hashes.append(hash(key))
                numbers.append(row.number)
                last = key
        return hashes, numbers, has_long_runs

    def _guarded(self, source: Source) -> Iterator[Row]:
        """Read the rows, and show them to the guard: of a table, the columns that it may need."""
        fields = list(source.schema or ())
        texts = None if self.keys.text is None else column_of(self.keys.text, [each.name for each in fields])
        plain = [each.name for each in fields if each.name == texts or not pa.types.is_nested(each.type)]
        names = dict.fromkeys(plain + self.keys.names)
        for row in source.rows(*names):
            key = None if row.error else self.keys.id_of(row)
            if key is not None:
                value = read_value(row.values, self.keys.text)
                value = parse_cell(value) if row.has_cells else value
                self.guard.add(key, row.values, len(value) if isinstance(value, list) else int(value is not None))
            yield row

    def units(self, source: Source) -> Iterator[Unit]:
        """Join rows to units, in order; each row belongs to a unit, as good or as bad."""
        rows = self._checked(source)
        if self.keys.id is not None:
            yield from self._sets(rows, source)
        elif self.keys.is_one_set:
            members: list[Row] = []
            n_texts = 0
            for row in rows:
                members.append(row)
                n_texts += len(row.texts) or 1
                if n_texts > LARGEST_SET:
                    raise ValueError(f"--one-set holds at most {LARGEST_SET:,} texts in memory: this file has more.")
            yield self._unit(members)
        else:
            size = self.keys.size or 1
            while members := list(islice(rows, size)):
                left_over = f"is left over: fewer than {size} rows remain"
                unit = self._unit(members, left_over if len(members) < size else "")
                yield unit._replace(id=str(members[0].place))

    def _sets(self, rows: Iterator[Row], source: Source) -> Iterator[Unit]:
        """Join rows with one id; `problems` has the errors of sets that a row beside them causes."""
        problems: dict[Id | None, str] = {}
        placed: Iterable[tuple[Id | None, Row]] = self._placed(rows, source, problems)
        if self.is_scattered:
            first: dict[Id | None, int] = {}
            placed = sorted(placed, key=lambda each: first.setdefault(each[0], len(first)))
        for key, run in groupby(placed, itemgetter(0)):
            members = [row for _, row in run]
            unit = self._unit(members, problems.get(key, ""))
            system, prompt = key or (None, None)
            # Without an id at the beginning of the file, no set lacks these rows but the next.
            yield unit._replace(system=system, id=prompt, is_incomplete=unit.is_incomplete and key is not None)

    def _placed(
        self, rows: Iterator[Row], source: Source, problems: dict[Id | None, str]
    ) -> Iterator[tuple[Id | None, Row]]:
        """Yield each row with the id of its set: a row without one is assigned to the preceding set."""
        last: Id | None = None
        invalid: Row | None = None
        for row in rows:
            key = self.keys.id_of(row)
            if key is None:
                row.error = row.error or self.keys.lacking(row)
                invalid = row
                if self.is_scattered:
                    raise ValueError(
                        f"{source.path}, row {row.number} {row.error}. The rows of a set may be anywhere in this file, "
                        f"and this row may belong to any set: correct or remove it."
                    )
            else:
                if invalid is not None and key != last:
                    before = f"invalid row {invalid.number} before it: {invalid.error}"
                    problems[key] = f"skipped: its set may contain {before}"
                last = key
                invalid = None
            yield last, row

    def _unit(self, members: list[Row], problem: str = "") -> Unit:
        """Join rows to a unit, which is incomplete if one of them is bad, or for a `problem` beside them."""
        good = [row for row in members if not row.error]
        bad = [row for row in members if row.error]
        if bad and not self.keys.is_one_set:
            place = f"rows {members[0].number} to {members[-1].number}"
            problem = f"skipped: its set ({place}) contains invalid row {bad[0].number}: {bad[0].error}"
        if good and (self.chooses or not problem):
            texts = list(chain.from_iterable(row.texts for row in good))
            try:
                given = self._given(good)
                texts, marks = clean(texts, self.strip, given.get("contexts"))
                return Unit(good, texts, given, bad, bool(problem), self.joins_rows, marks=marks)
            except ValueError as error:
                problem = str(error) or type(error).__name__
        for row in members:
            row.error = row.error or problem
        return Unit(bad=members, is_incomplete=self.keys.is_grouped and not self.keys.is_one_set)

    def _given(self, rows: list[Row]) -> dict[str, Any]:
        """Join the values of arguments of a set; raises a ValueError if they differ, or are missing."""
        given: dict[str, Any] = {}
        for column in self.columns:
            values = [row.given[column.argument] for row in rows if column.argument in row.given]
            if column.per_text:
                given[column.argument] = list(chain.from_iterable(values))
            elif any(value != values[0] for value in values):
                raise ValueError(f"{column.name!r} differs between the rows of one set")
            else:
                given[column.argument] = values[0] if values else column.read(rows[0].values, None)
        return given

    def _checked(self, source: Source) -> Iterator[Row]:
        """Read the texts of rows, and their values of arguments; invalid rows get an error."""
        # Of each file of CSV, whether cells of texts are lists: if the first one is.
        are_lists: dict[int, bool] = {}
        for row in source.rows():
            if row.n_lines > 1 and self.keys.size:
                raise ValueError(
                    f"{source.path}, lines {row.number} to {row.number + row.n_lines - 1} cannot be counted as rows "
                    f"of sets of --set-size: the first {row.error}. Correct these lines."
                )
            if not row.error:
                try:
                    texts = read_value(row.values, self.keys.text)
                    cells = parse_cell(texts) if row.has_cells and are_lists.get(row.file, True) else None
                    is_list = isinstance(cells, list) and bool(cells) and all(isinstance(text, str) for text in cells)
                    are_lists.setdefault(row.file, is_list)
                    self._read_texts(row, cells if is_list else texts)
                    n_texts = None if row.is_text else len(row.texts)
                    # Of a set, any row may have its value.
                    row.given = {
                        column.argument: column.read(row.values, n_texts, row.has_cells)
                        for column in self.columns
                        if column.per_text or not is_missing(read_value(row.values, column.name))
                    }
                except (ValueError, ArithmeticError, RecursionError) as error:
                    row.error = str(error) or type(error).__name__
            yield row

    def _read_texts(self, row: Row, texts: Any) -> None:
        name = "a row" if self.keys.text is None else repr(self.keys.text)
        is_chosen = self.chooses and self.keys.is_grouped
        row.is_text = isinstance(texts, str)
        if row.is_text:
            if not self.keys.is_grouped and self.reads_sets:
                raise ValueError(f"{name} is one text: a set is a list, or needs --id-key or --set-size")
            texts = [texts]
        elif texts is None or (self.keys.text is None and isinstance(texts, dict)):
            raise ValueError(missing(self.keys.text, row.values))
        elif not isinstance(texts, list) or is_chosen:
            expected = "one text" if is_chosen else "a text or a list of texts"
            raise ValueError(f"{name} must be {expected}. Got {describe(texts)}")
        if not texts:
            raise ValueError(f"{name} is an empty list")
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(f"{name} must hold texts. Got {describe(text)}")
        row.texts = texts
