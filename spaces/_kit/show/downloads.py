"""Downloads of results as data URLs, so that no text of a visitor is written to the server's disk."""

import base64
import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from .panels import escape

# A spreadsheet evaluates a cell that begins with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "|", "%")


def csv_text(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a table as CSV in which no spreadsheet finds a formula."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([_harmless(cell) for cell in headers])
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return out.getvalue()


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and (cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA)):
        return "'" + cell
    return cell


def links(name: str, headers: Sequence[str], rows: Sequence[Sequence[Any]], report: dict[str, Any]) -> str:
    """Return links to the table as CSV and to the full report as JSON."""
    # Spreadsheets recognize UTF-8 by the byte order mark.
    table = "\ufeff" + csv_text(headers, rows)
    whole = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    return (
        '<p class="tm-downloads"><span>Download</span>'
        + _link(f"{name}.csv", "text/csv", table, "Table as CSV")
        + _link(f"{name}.json", "application/json", whole, "Result as JSON")
        + "</p>"
    )


def _link(name: str, kind: str, content: str, label: str) -> str:
    data = base64.b64encode(content.encode()).decode()
    return (
        f'<a class="tm-download" download="{escape(name)}" href="data:{kind};charset=utf-8;base64,{data}">{label}</a>'
    )
