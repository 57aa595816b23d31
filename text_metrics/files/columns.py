"""Resolve keys, which are columns or JMESPath expressions, to ids that are equal in all formats and to arguments."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter

from text_metrics.core_api import (
    CALL,
    ITEM,
    PAIR,
    SETS,
    TEXT,
    TEXTS,
    UNBOUNDED,
    Settings,
    describe,
    first_line,
)

# Characters of a bad row, or of a message about it, that are shown.
SHOWN = 1000
# The options that name the column of an argument, besides --column.
OPTIONS = {"confidence_by": "--cluster-key", "contexts": "--context-key", "references": "--reference-key"}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ])")
# The kinds of columns.
VALUE, ID, ANSWERS = "value", "id", "answers"
# The argument whose values an option divides.
_SCALED = "quality"


class _Interpreter(TreeInterpreter):
    """Evaluates JMESPath expressions, but keeps the nulls of a list, so that no text is dropped in silence."""

    def visit_projection(self, node: Any, value: Any) -> list[Any] | None:
        source, part, *conditions = node["children"]
        entries = self.visit(source, value)
        if not isinstance(entries, list):
            return None
        for condition in conditions:
            entries = [entry for entry in entries if self._is_true(self.visit(condition, entry))]
        return [self.visit(part, entry) for entry in entries]

    visit_filter_projection = visit_projection


_INTERPRETER = _Interpreter()


def read_value(values: Any, key: str | None) -> Any:
    """Return the value of a key in a row, None if there is none; without a key, the row itself.

    A key is the name of a column, or else a JMESPath expression.
    """
    if key is None:
        return values
    if type(values) is dict and key in values:
        return values[key]
    parsed = _parsed(key)
    return None if parsed is None else _INTERPRETER.visit(parsed.parsed, values)


@cache
def _parsed(key: str) -> Any:
    """Parse a key as an expression; None for a plain name, or an invalid expression."""
    if key.isidentifier():
        return None
    with suppress(JMESPathError):
        return jmespath.compile(key)
    return None


def column_of(key: str, columns: Iterable[str]) -> str | None:
    """Return the column that a key reads; None if its expression does not begin with one."""
    parsed = None if key in columns else _parsed(key)
    if parsed is None:
        return key
    node = parsed.parsed
    while node["children"]:
        node = node["children"][0]
    return node["value"] if node["type"] == "field" else None


def _has_null(values: Any, key: str) -> bool:
    """Tell whether a key without a value in a row names a null, and not an absent entry."""
    parsed = None if isinstance(values, dict) and key in values else _parsed(key)
    if parsed is not None and parsed.parsed["type"] == "subexpression":
        whole, part = parsed.parsed["children"]
        values = _INTERPRETER.visit(whole, values)
        key = part.get("value")
    return isinstance(values, dict) and key in values


def read_key(values: Any, key: str) -> str | None:
    """Read an id as a text, so that one id is equal in all formats; None if it is missing, empty or NaN.

    1, 1.0, "1" and "1.0" are one id, and so are a date and its text, and a time at any precision or time zone.
    """
    value = read_value(values, key)
    if is_missing(value):
        return None
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, (float, Decimal)):
        if math.isnan(value):
            return None
        is_integral = math.isfinite(value) and value == int(value)
        value = int(value) if is_integral else float(value)
    if isinstance(value, datetime):
        value = value.astimezone(UTC) if value.tzinfo else value
        value = value.date() if value == datetime.combine(value, time()) else value
    if isinstance(value, date):
        return value.isoformat()
    value = msgspec.to_builtins(value, enc_hook=str)
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _from_text(text: str) -> Any:
    """Parse a Boolean, a time or an integral float, as in CSV; any other text is returned unchanged."""
    if text in ("True", "False"):
        return text == "True"
    try:
        if _DATE.match(text):
            return datetime.fromisoformat(text)
        # Python writes integral floats as "1.0" or "1e+16": most texts need no parsing.
        if not (text.endswith(".0") or "e+" in text):
            return text
        number = float(text)
    except ValueError:
        return text
    # "01.0" and "1_0.0" are texts.
    return number if number.is_integer() and repr(number) == text else text


def missing(key: str | None, values: Any) -> str:
    """Say that a row has no value under a key, and which keys it has."""
    if key is None:
        return f"is an object: pass --text-key, one of {', '.join(values)}"[:SHOWN]
    if not isinstance(values, Mapping):
        return f"must be an object with {key!r}. Got {describe(values)}"
    if key in values:
        return f"has no {key!r}"
    problem = ""
    if not key.isidentifier():
        try:
            jmespath.compile(key)
        except JMESPathError as error:
            problem = f", which is not a JMESPath expression either ({first_line(error)})"
    names = f"it has {', '.join(values) or 'no columns'}{delimiter_hint(list(values))}"
    return f"has no {key!r}{problem}: {names}"[:SHOWN]


def without_value(error: str) -> str:
    """Cut the value that was got, which may be a text, off an error of a row."""
    return error.partition(" Got ")[0]


def delimiter_hint(names: list[str], used: str = ",") -> str:
    """Name the likely delimiter of a table whose only column has it in its name."""
    likely = [mark for mark in ";\t|," if mark != used and len(names) == 1 and mark in names[0]]
    return f"; pass --delimiter {likely[0]!r} if that separates its columns" if likely else ""


def is_missing(value: Any) -> bool:
    """Tell whether a cell has no value: it is null, or empty as in CSV."""
    return value is None or value == ""


class Column(NamedTuple):
    """A column with the values of an argument.

    argument : the name of the argument
    name : the key of the column
    per_text : whether each text has a value; otherwise each row has one, and the rows of a set share it
    numbers : the range of its numbers; None for labels and texts
    scale : the divisor of its numbers; None if they cannot be scaled
    kind : VALUE, or ID, equal in all formats, or ANSWERS, which the metric checks
    is_optional : whether it may be null
    is_argument : whether `compute` takes it; the prompts of a metric without contexts are only stripped
    """

    argument: str
    name: str
    per_text: bool = False
    numbers: tuple[float, float] | None = None
    scale: float | None = None
    kind: str = VALUE
    is_optional: bool = False
    is_argument: bool = True

    def read(self, row: Any, n_texts: int | None, has_cells: bool = False) -> Any:
        """Read the value of a row, or one for each of its texts; `n_texts` is None for a row of one text.

        `has_cells` says that a list is a string, as in CSV. Raises a ValueError that names the column.
        """
        read = read_key if self.kind == ID else read_value
        value = read(row, self.name)
        if is_missing(value):
            if self.is_optional and (value == "" or _has_null(row, self.name)):
                return None
            raise ValueError(f"{missing(self.name, row)} ({OPTIONS.get(self.argument, self.argument)})")
        values = parse_cell(value) if has_cells else value
        if self.kind == ANSWERS:
            # A bare text is one answer.
            return [values] if isinstance(values, str) else values
        if not self.per_text:
            return self._checked(value, "", has_cells)
        if n_texts is None:
            return [self._checked(value, "", has_cells)]
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
            scale = self.scale or 1
            number = parse_cell(value)
            # The metric checks vectors.
            if isinstance(number, list) and (has_cells or number is value):
                return number
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if is_number and low * scale <= number <= high * scale:
                return number if scale == 1 else number / scale
            expected = "a number" if self.numbers == UNBOUNDED else f"a number in [{low:g}, {high:g}]"
            likely = next((n for n in (5, 10, 100) if is_number and number <= n), None)
            if likely and self.scale is not None and (low, high) == (0, 1) and number > scale:
                expected += f": divide by {likely} with --{self.argument}-scale {likely}"
        raise ValueError(f"{self.name!r}{where} must be {expected}, for {self.argument}. Got {describe(value)}")


def parse_cell(value: Any) -> Any:
    """Parse a string, as in CSV, as JSON; a string that is not valid JSON, or another value, is returned unchanged."""
    if isinstance(value, str):
        # Rejects unpaired surrogates, which no file can hold.
        with suppress(ValueError, RecursionError):
            return msgspec.json.decode(value)
    return value


def columns_of(metric: Any, columns: Mapping[str, str], scale: float = 1, strips_prompt: bool = False) -> list[Column]:
    """Return the columns of arguments of a metric; raises a ValueError for one that is not given for items.

    `scale` is the divisor of quality. If `strips_prompt`, contexts are read for any metric.
    """
    settings: type[Settings] | None = getattr(metric, "settings", None)
    items = getattr(metric, "items", None)
    declared = settings.declared() if settings else {}
    given = {name: setting for name, setting in declared.items() if setting.given != CALL}
    arguments = []
    for argument, name in columns.items():
        if argument == "confidence_by":
            arguments.append(Column(argument, name, kind=ID))
        elif argument == "references" and items not in (SETS, TEXTS):
            arguments.append(Column(argument, name, kind=ANSWERS))
        elif argument in given:
            setting = given[argument]
            per_text = setting.given in (TEXT, PAIR) or (setting.given == ITEM and items == TEXTS)
            divisor = scale if argument == _SCALED else None
            is_optional = setting.is_optional
            arguments.append(Column(argument, name, per_text, setting.numbers, divisor, is_optional=is_optional))
        elif argument == "contexts" and strips_prompt:
            arguments.append(Column(argument, name, is_optional=True, is_argument=False))
        else:
            option = OPTIONS.get(argument, f"--column {argument}")
            raise ValueError(
                f"{option}: a column may give {metric.name} {', '.join(given) or 'no argument'}; a value for the "
                "whole call is a --setting."
            )
    return arguments


def to_arguments(columns: Sequence[Column], values: Sequence[Mapping[str, Any]], are_texts: bool) -> dict[str, Any]:
    """Make arguments of `compute`, without labels of clusters, from the values of each set by argument.

    `are_texts` says that the metric scores texts, so that one list is over all sets.
    """
    given = {}
    for column in columns:
        if column.kind == ID or not column.is_argument:
            continue
        entries = [by_argument[column.argument] for by_argument in values]
        if column.per_text and are_texts:
            entries = list(chain.from_iterable(entries))
        given[column.argument] = entries
    return given
