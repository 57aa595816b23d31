"""Columns with the values of arguments that are given for sets or texts: --column ARGUMENT=COLUMN."""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import TEXTS, UNBOUNDED
from text_metrics.metrics._core.core_settings import CALL, ITEM, PAIR, TEXT, Settings


def is_missing(value: Any) -> bool:
    """Whether a cell has no value; in CSV, that is an empty one."""
    return value is None or value == ""


class Column(NamedTuple):
    """A column with the values of an argument, as plain data that can be sent to other processes.

    argument, name : of the argument, and of the column
    per_text : whether each text has a value; otherwise each row, and the rows of a set share it
    numbers : the range of its numbers; None for labels and texts
    concatenated : whether the argument is one list over all sets
    """

    argument: str
    name: str
    per_text: bool = False
    numbers: tuple[float, float] | None = None
    concatenated: bool = False

    def read(self, row: Any, n_texts: int | None) -> Any:
        """Read the value of a row, or a list with one for each of its texts; `n_texts` is None for a row of one text.

        Raises a ValueError that names the column if it has no value, too few or too many of them, or a wrong one.
        """
        value = row.get(self.name) if isinstance(row, Mapping) else None
        if is_missing(value):
            raise ValueError(f"has no {self.name!r}, the column of {self.argument}")
        if self.argument == "references":
            # A bare text is one answer.
            reference = parse_cell(value)
            return [reference] if isinstance(reference, str) else reference
        if not self.per_text or n_texts is None:
            value = self._checked(value, "")
            return [value] if self.per_text else value
        values = parse_cell(value)
        if not isinstance(values, list) or len(values) != n_texts:
            got = f"{len(values)} of them" if isinstance(values, list) else describe(value)
            expected = f"a list of {n_texts} values, one for each text, for {self.argument}"
            raise ValueError(f"{self.name!r} must be {expected}. Got {got}")
        return [self._checked(entry, f" of text {i}") for i, entry in enumerate(values)]

    def _checked(self, value: Any, where: str) -> Any:
        if self.numbers is None:
            if isinstance(value, (str, int)) and not isinstance(value, bool) and not is_missing(value):
                return value
            expected = "a string or an integer"
        else:
            low, high = self.numbers
            number = parse_cell(value)
            # The metric checks vectors.
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if isinstance(number, list) or (is_number and low <= number <= high):
                return number
            expected = "a number" if self.numbers == UNBOUNDED else f"a number in [{low:g}, {high:g}]"
        raise ValueError(f"{self.name!r}{where} must be {expected}, for {self.argument}. Got {describe(value)}")


def parse_cell(value: Any) -> Any:
    """Parse a value that is a string, as in CSV, as JSON; a string that is none is returned."""
    if isinstance(value, str):
        # Rejects unpaired surrogates, which no file can hold.
        with suppress(ValueError, RecursionError):
            return msgspec.json.decode(value)
    return value


def parse_list(value: Any) -> Any:
    """Parse a list that is a string; anything else is returned."""
    parsed = parse_cell(value)
    return parsed if isinstance(parsed, list) else value


def add_columns(
    parser: argparse.ArgumentParser, arguments: str = "an argument that is given for sets or texts"
) -> None:
    """Add --column, which may be given many times."""
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ARGUMENT=COLUMN",
        help=f"take {arguments} from a column: a row of a set has a list, a row of one text a value",
    )


def parse_pairs(pairs: Sequence[str], option: str = "--column") -> dict[str, str]:
    """Read the NAME=VALUE pairs of an option that may be given many times; of a name, the last one counts."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{option} must be NAME=VALUE. Got {pair!r}.")
        values[name] = value
    return values


def columns_of(metric: Any, columns: Mapping[str, str]) -> list[Column]:
    """Return the columns of arguments of a metric; raises a ValueError if one is unknown, or is not given for items."""
    settings: type[Settings] | None = getattr(metric, "settings", None)
    declared = settings.declared() if settings else {}
    given = {name: setting for name, setting in declared.items() if setting.given != CALL}
    found = []
    for argument, name in columns.items():
        if argument not in given:
            raise ValueError(
                f"--column {argument}: a column may give {metric.name} {', '.join(given) or 'no argument'}; what is "
                "given once for a call is a --setting."
            )
        kind, of_texts = given[argument].given, metric.items == TEXTS
        per_text = kind in (TEXT, PAIR) or (kind == ITEM and of_texts)
        found.append(Column(argument, name, per_text, given[argument].numbers, per_text and of_texts))
    return found


def to_arguments(columns: Sequence[Column], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make arguments of `compute` from the values of each item, by argument."""
    given = {}
    for column in columns:
        of_items = [of_item[column.argument] for of_item in values]
        given[column.argument] = list(chain.from_iterable(of_items)) if column.concatenated else of_items
    return given
