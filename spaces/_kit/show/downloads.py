"""Downloads of results as data URLs, so that no text of a visitor is written to the server's disk."""

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .panels import escape


class Table(NamedTuple):
    """Column names, and rows of cells."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]


# A spreadsheet evaluates a cell that begins with one of these as a formula. A cell begins at any delimiter, because
# spreadsheets of some locales split at semicolons or tabs, and do not know the quotes around a field with commas.
_FORMULA = frozenset("=+-@|%＝＋－＠")
_DELIMITERS = frozenset(";,|\t\r\n")
_CONTROLS = ("\t", "\r", "\n")


def csv_text(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a table as CSV in which no spreadsheet finds a formula."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_harmless(cell) for cell in headers])
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return out.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    if cell.startswith(_CONTROLS) or cell.lstrip()[:1] in _FORMULA:
        cell = "'" + cell
    is_begin, characters = False, []
    for character in cell:
        if is_begin and character in _FORMULA:
            characters.append("'")
        is_begin = character in _DELIMITERS or (is_begin and (character.isspace() or character in "\"'"))
        characters.append(character)
    return "".join(characters)


def links(name: str, tables: Mapping[str, Table], report: dict[str, Any]) -> str:
    """Return links to the tables as CSV, by their labels, and to the full report as JSON."""
    parts = ['<p class="tm-downloads"><span>Download</span>']
    for i, (label, table) in enumerate(tables.items()):
        # Spreadsheets recognize UTF-8 by the byte order mark.
        content = "\ufeff" + csv_text(table.headers, table.rows)
        parts.append(_link(f"{name}{'-scores' if i else ''}.csv", "text/csv", content, f"{label} as CSV"))
    whole = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    return "".join(parts) + _link(f"{name}.json", "application/json", whole, "Result as JSON") + "</p>"


def samples(name: str, rows: Sequence[Mapping[str, Any]], text: str) -> str:
    """Return links to sample files with these rows, and with this text unless it is empty."""
    columns = [column for column in rows[0] if any(row[column] != "" for row in rows)]
    records = [{column: row[column] for column in columns} for row in rows]
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    files = [
        (".txt", "text/plain", text),
        (".csv", "text/csv", csv_text(columns, [list(record.values()) for record in records])),
        (".jsonl", "application/jsonl", lines),
    ]
    links = "".join(_link(f"{name}-sample{end}", kind, content, end) for end, kind, content in files if content)
    return f'<p class="tm-downloads"><span>Sample files</span>{links}</p>'


def _link(name: str, kind: str, content: str, label: str) -> str:
    data = base64.b64encode(content.encode()).decode()
    return (
        f'<a class="tm-download" download="{escape(name)}" href="data:{kind};charset=utf-8;base64,{data}">{label}</a>'
    )
