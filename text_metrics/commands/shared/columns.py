"""Columns with the values of arguments that are given for sets or texts."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from text_metrics.commands.shared.keys import missing, read_key, read_value
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import SETS, TEXTS, UNBOUNDED
from text_metrics.metrics._core.core_settings import CALL, ITEM, PAIR, TEXT, Settings

# The options that name the column of an argument, besides --column.
OPTIONS = {"confidence_by": "--cluster-key", "contexts": "--context-key", "references": "--reference-key"}


def is_missing(value: Any) -> bool:
    """Whether a cell has no value; in CSV, that is an empty one."""
    return value is None or value == ""


class Column(NamedTuple):
    """A column with the values of an argument, as plain data that can be sent to other processes.

    argument, name : of the argument, and the key of the column
    per_text : whether each text has a value; otherwise each row, and the rows of a set share it
    numbers : the range of its numbers; None for labels and texts
    concatenated : whether the argument is one list over all sets
    scale : what its numbers are divided by
    """

    argument: str
    name: str
    per_text: bool = False
    numbers: tuple[float, float] | None = None
    concatenated: bool = False
    scale: float = 1

    def read(self, row: Any, n_texts: int | None, has_cells: bool = False) -> Any:
        """Read the value of a row, or a list with one for each of its texts; `n_texts` is None for a row of one text.

        `has_cells` says that a list is a string, as in CSV. Raises a ValueError that names the column if it has no
        value, too few or too many of them, or a wrong one.
        """
        value = read_value(row, self.name)
        if self.argument == "confidence_by":
            value = read_key(row, self.name)
        if is_missing(value):
            if self.argument == "contexts":
                return None
            raise ValueError(missing(self.name, row))
        if self.argument == "references":
            # A bare text is one answer.
            reference = parse_cell(value) if has_cells else value
            return [reference] if isinstance(reference, str) else reference
        if not self.per_text or n_texts is None:
            value = self._checked(value, "", has_cells)
            return [value] if self.per_text else value
        values = parse_cell(value) if has_cells else value
        if not isinstance(values, list) or len(values) != n_texts:
            got = f"{len(values)} of them" if isinstance(values, list) else describe(value)
            expected = f"a list of {n_texts} values, one for each text, for {self.argument}"
            raise ValueError(f"{self.name!r} must be {expected}. Got {got}")
        return [self._checked(entry, f" of text {i}", has_cells) for i, entry in enumerate(values)]

    def _checked(self, value: Any, where: str, has_cells: bool) -> Any:
        if self.numbers is None:
            if isinstance(value, (str, int)) and not isinstance(value, bool) and not is_missing(value):
                return value
            expected = "a string or an integer"
        else:
            low, high = self.numbers
            number = parse_cell(value)
            # The metric checks vectors.
            if isinstance(number, list) and (has_cells or number is value):
                return number
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if is_number and low * self.scale <= number <= high * self.scale:
                return number if self.scale == 1 else number / self.scale
            expected = "a number" if self.numbers == UNBOUNDED else f"a number in [{low:g}, {high:g}]"
            likely = next((n for n in (5, 10, 100) if is_number and number <= n), None)
            if likely and self.argument == "quality" and (low, high) == (0, 1) and number > self.scale:
                expected += f": divide by {likely} with --quality-scale {likely}"
        raise ValueError(f"{self.name!r}{where} must be {expected}, for {self.argument}. Got {describe(value)}")


def parse_cell(value: Any) -> Any:
    """Parse a value that is a string, as in CSV, as JSON; a string that is none is returned."""
    if isinstance(value, str):
        # Rejects unpaired surrogates, which no file can hold.
        with suppress(ValueError, RecursionError):
            return msgspec.json.decode(value)
    return value


def columns_of(metric: Any, columns: Mapping[str, str], scale: float = 1) -> list[Column]:
    """Return the columns of arguments of a metric; raises a ValueError if one is unknown, or is not given for items.

    `scale` is what quality is divided by. The rows of a set share their context, cluster and reference.
    """
    settings: type[Settings] | None = getattr(metric, "settings", None)
    items = getattr(metric, "items", None)
    declared = settings.declared() if settings else {}
    given = {name: setting for name, setting in declared.items() if setting.given != CALL}
    of_columns = []
    for argument, name in columns.items():
        if argument == "references" and items in (SETS, TEXTS):
            raise ValueError(f"--reference-key: {metric.name} takes no references.")
        if argument in ("references", "confidence_by"):
            of_columns.append(Column(argument, name))
            continue
        if argument not in given:
            option = OPTIONS.get(argument, f"--column {argument}")
            raise ValueError(
                f"{option}: a column may give {metric.name} {', '.join(given) or 'no argument'}; what is "
                "given once for a call is a --setting."
            )
        kind, of_texts = given[argument].given, items == TEXTS
        per_text = kind in (TEXT, PAIR) or (kind == ITEM and of_texts)
        divisor = scale if argument == "quality" else 1
        of_columns.append(Column(argument, name, per_text, given[argument].numbers, per_text and of_texts, divisor))
    return of_columns


def to_arguments(columns: Sequence[Column], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make arguments of `compute` from the values of each item, by argument; without the labels of clusters."""
    given = {}
    for column in columns:
        if column.argument == "confidence_by":
            continue
        of_items = [of_item[column.argument] for of_item in values]
        given[column.argument] = list(chain.from_iterable(of_items)) if column.concatenated else of_items
    return given
