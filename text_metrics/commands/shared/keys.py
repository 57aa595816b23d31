"""Keys of rows: columns by their names, or JMESPath expressions, and ids that are read alike from all formats."""

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter

from text_metrics.metrics._core.core_numbers import describe

# Characters of a bad row, or of a message about it, that are shown.
SHOWN = 1000
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ])")


class _Interpreter(TreeInterpreter):
    """Evaluates JMESPath expressions, but keeps the nulls of a list, so that no text is dropped in silence."""

    def visit_projection(self, node: Any, value: Any) -> list[Any] | None:
        """Evaluate `list[].part` or `list[?condition].part`."""
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
    """Return what a key names in a row: a column of this name, or else what the JMESPath expression finds.

    Without a key, that is the row itself; None if there is nothing.
    """
    if key is None:
        return values
    if type(values) is dict and key in values:
        return values[key]
    parsed = _parsed(key)
    return None if parsed is None else _INTERPRETER.visit(parsed.parsed, values)


@cache
def _parsed(key: str) -> Any:
    """Parse a key as an expression; None for a plain name, and for what is none."""
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


def read_key(values: Any, key: str) -> str | None:
    """Read an id as a text, so that one id is equal in all formats; None if it is missing, empty or NaN.

    1, 1.0, "1" and "1.0" are one id, and so are a date and its text, and a time at any precision or time zone.
    """
    value = read_value(values, key)
    if isinstance(value, str):
        if not value.endswith((".0", "rue", "alse")) and "e+" not in value and not value[:1].isdigit():
            return value or None
        value = _from_text(value)
    if isinstance(value, (float, Decimal)):
        if math.isnan(value):
            return None
        value = int(value) if math.isfinite(value) and value == int(value) else float(value)
    if isinstance(value, datetime):
        value = value.astimezone(UTC) if value.tzinfo else value
        value = value.date() if value == datetime.combine(value, time()) else value
    if isinstance(value, date):
        return value.isoformat()
    value = msgspec.to_builtins(value, enc_hook=str)
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def _from_text(text: str) -> Any:
    """Read a text as the number, the time or the truth value that it is written for, as in CSV."""
    with suppress(ValueError):
        if text in ("True", "False"):
            return text == "True"
        if _DATE.match(text):
            return datetime.fromisoformat(text)
        if repr(number := float(text)) == text and number.is_integer():
            return number
    return text


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
            problem = f", which is no JMESPath expression either ({str(error).splitlines()[0]})"
    names = f"it has {', '.join(values) or 'no columns'}{delimiter_hint(list(values))}"
    return f"has no {key!r}{problem}: {names}"[:SHOWN]


def delimiter_hint(names: list[str], used: str = ",") -> str:
    """Name the likely delimiter of a table whose only column has it in its name."""
    likely = [mark for mark in ";\t|," if mark != used and len(names) == 1 and mark in names[0]]
    return f"; pass --delimiter {likely[0]!r} if that separates its columns" if likely else ""
