"""Parse and check a visitor's input. Each error says what is wrong and what to do."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PLAIN = ".txt"
TABLES = (".csv", ".jsonl")


class InputError(ValueError):
    """The input cannot be scored; the message is shown to the visitor."""


class Limits(NamedTuple):
    """Upper bounds on one input."""

    sets: int = 100
    texts: int = 500
    text_characters: int = 5_000
    characters: int = 100_000
    # 1 MB to Gradio, which counts in powers of two.
    file_bytes: int = 2**20
    columns: int = 50
    rows: int = 10_000


class Role(NamedTuple):
    """A column that a demo reads from a table or a file.

    guesses : column names, in lower case, that select the column by default
    """

    name: str
    label: str
    required: bool = False
    guesses: tuple[str, ...] = ()


class Table(NamedTuple):
    """The content of a file: for each row a dict from column names to strings, or to lists of strings.

    has_header : whether the first line was taken for the names of the columns; None in a format without header
    """

    columns: list[str]
    rows: list[dict[str, Any]]
    has_header: bool | None = None


class Sets(list[list[str]]):
    """Sets of texts, with the names that a file gives them; "" for a set without a name."""

    def __init__(self, sets: Iterable[list[str]], names: Iterable[str] | None = None) -> None:
        super().__init__(sets)
        self.names = [""] * len(self) if names is None else list(names)


def check_typed(texts: Iterable[str], limits: Limits) -> None:
    """Check the length of what was typed, before anything parses it."""
    # Counts, blank lines and spaces are not part of the texts.
    _check_total(texts, 2 * limits.characters, limits)


def _check_total(texts: Iterable[str], most: int, limits: Limits) -> None:
    total = sum(map(len, texts))
    if total > most:
        raise InputError(
            f"The texts are too long: {total:,} characters in total, the limit here is {limits.characters:,}. "
            "Remove some, or run the metric on your own machine."
        )


def options(labels: dict[str, str]) -> list[tuple[str, str]]:
    """Return the options of a setting as Gradio lists them, from a dict of each value to its label."""
    return [(label, value) for value, label in labels.items()]


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Check that a setting is one of those offered."""
    known = list(known)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}. Got {str(value)[:80]!r}.")


def check_number(name: str, value: Any, low: float, high: float, *, is_integer: bool = False) -> None:
    """Check that a setting is a number in [low, high]."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high or (is_integer and value != int(value)):
        kind = "an integer" if is_integer else "a number"
        raise InputError(f"{name} must be {kind} from {low:g} to {high:g}. Got {str(value)[:80]!r}.")


def lines_of(text: str) -> list[str]:
    """Split at line ends only; `str.splitlines` also splits at form feeds and other separators."""
    return [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def sets_from_text(text: str) -> Sets:
    """Parse one text a line, with a blank line between sets."""
    sets: list[list[str]] = [[]]
    for line in lines_of(text):
        if line:
            sets[-1].append(line)
        elif sets[-1]:
            sets.append([])
    return Sets(sets if sets[-1] else sets[:-1])


def sets_from_rows(rows: list[dict[str, Any]]) -> Sets:
    """Group the texts of rows by their "set"; a cell with a list of texts is a separate set."""
    sets: dict[Any, list[str]] = {}
    names: dict[Any, str] = {}
    for i, row in enumerate(rows):
        name = _joined(row.get("set", ""))
        is_list = isinstance(row["text"], list)
        key, texts = ((i, name), row["text"]) if is_list else (name, [row["text"]])
        sets.setdefault(key, []).extend(text for text in texts if text.strip())
        names[key] = name
    filled = {key: texts for key, texts in sets.items() if texts}
    return Sets(filled.values(), [names[key] for key in filled])


def check_sets(sets: Any, limits: Limits) -> list[list[str]]:
    """Check the form and the size of sets; raises an InputError that names the set and the text."""
    if not isinstance(sets, list) or not all(isinstance(texts, list) for texts in sets):
        raise InputError('Texts must be a list of sets, each a list of texts: [["a text", "another"]].')
    if not any(sets):
        raise InputError("There is no text yet. Write one text a line, or click an example.")
    if len(sets) > limits.sets:
        raise InputError(f"Too many sets: {len(sets):,}, the limit here is {limits.sets:,}.")
    for i, texts in enumerate(sets, 1):
        if not texts:
            raise InputError(f"Set {i} is empty: a set contains at least one text.")
        for j, text in enumerate(texts, 1):
            if not isinstance(text, str):
                raise InputError(f"Text {j} of set {i} must be a string. Got {type(text).__name__}.")
    places = [f"Text {j} of set {i}" for i, texts in enumerate(sets, 1) for j in range(1, len(texts) + 1)]
    if len(sets) == 1:
        places = [place.removesuffix(" of set 1") for place in places]
    check_texts([text for texts in sets for text in texts], limits, places.__getitem__)
    return sets


def check_texts(texts: Sequence[str], limits: Limits, place: Callable[[int], str] = lambda i: f"Text {i + 1}") -> None:
    """Check the number of texts, their length, each and in total, and their characters."""
    if len(texts) > limits.texts:
        raise InputError(f"Too many texts: {len(texts):,}, the limit here is {limits.texts:,}.")
    for i, text in enumerate(texts):
        if len(text) > limits.text_characters:
            raise InputError(
                f"{place(i)} is too long: {len(text):,} characters, the limit here is {limits.text_characters:,}."
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"{place(i)} contains a broken character, such as half of an emoji. Delete it.")
    _check_total(texts, limits.characters, limits)


def read_text(path: str | Path, limits: Limits, suffixes: Sequence[str] = (PLAIN,)) -> str:
    """Read a file with one of these endings."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise InputError(f"The file name must end in {', '.join(suffixes)}. Got {path.suffix or 'no ending'}.")
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise InputError(f"The file is too large: {size:,} bytes, the limit here is {limits.file_bytes:,}.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"The file must be UTF-8 text, and byte {error.start:,} is not. Save it as UTF-8.") from None
    if not text.strip():
        raise InputError("The file contains no text.")
    return text


def read_table(
    path: str | Path,
    limits: Limits,
    roles: Sequence[Role],
    suffixes: Sequence[str] = TABLES,
    has_header: bool | None = None,
) -> Table:
    """Read a .csv or .jsonl file.

    suffixes : what an error about another file names
    has_header : of a .csv file; None to guess
    """
    text = read_text(path, limits, suffixes)
    if Path(path).suffix.lower() == ".csv":
        return parse_csv(text, limits, roles, has_header)
    return _checked(_read_jsonl(text, limits), limits)


def parse_csv(text: str, limits: Limits, roles: Sequence[Role], has_header: bool | None = None) -> Table:
    """Parse cells separated by tabs, commas or semicolons, whichever the first line has."""
    first = text.split("\n", 1)[0]
    delimiter = "\t" if "\t" in first else max(",;", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if line]
    except csv.Error as error:
        raise InputError(f"The table is not valid CSV: {error}.") from None
    if not lines:
        raise InputError("The table contains no text.")
    names = lines[0][1]
    _check_columns(len(names), limits)
    for number, line in lines:
        if any(cell.strip() for cell in line[len(names) :]):
            raise InputError(
                f"Line {number} has {len(line)} cells, and the first line has {len(names)}. "
                f"Put a text that contains “{delimiter}” in quotes."
            )
    cells = [line for _, line in lines]
    if has_header is None:
        has_header = _is_header(names, cells[1:], roles)
    columns: list[str] = []
    for i, name in enumerate(names, 1):
        name = (name.strip() if has_header else "") or f"column {i}"
        columns.append(name if name not in columns else f"{name} ({i})")
    rows = [dict(zip(columns, line, strict=False)) for line in cells[has_header:]]
    return _checked(Table(columns, rows, has_header), limits)


def _is_header(first: Sequence[str], rest: Sequence[Sequence[str]], roles: Sequence[Role]) -> bool:
    """Guess whether a line names the columns: it has a known name, or single words above texts of several."""
    names = [name.strip() for name in first]
    known = {guess for role in roles for guess in role.guesses}
    if any(name.lower() in known for name in names):
        return True
    return all(map(str.isidentifier, names)) and any(" " in cell.strip() for line in rest for cell in line)


def _checked(table: Table, limits: Limits) -> Table:
    if len(table.rows) > limits.rows:
        raise InputError(f"The table has too many rows: {len(table.rows):,}, the limit here is {limits.rows:,}.")
    if not table.rows:
        raise InputError("The table contains no text.")
    return table


def _check_columns(n: int, limits: Limits) -> None:
    if n > limits.columns:
        raise InputError(f"The table has too many columns: {n:,} or more, the limit here is {limits.columns:,}.")


def _read_jsonl(text: str, limits: Limits) -> Table:
    columns: dict[str, None] = {}
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(f"Line {number} of the file is not valid JSON: each line must be a JSON value.") from None
        if not isinstance(record, dict):
            record = {"text": record}
        row = {str(key): _cell(value) for key, value in record.items()}
        columns.update(dict.fromkeys(row))
        _check_columns(len(columns), limits)
        rows.append(row)
    return Table(list(columns), rows)


def _cell(value: Any) -> str | list[str]:
    if isinstance(value, list):
        return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in value]
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def guess_columns(table: Table, roles: Sequence[Role]) -> list[str | None]:
    """Guess the column of each role by its name; the fallback for the first role is the column with the most text."""
    chosen: list[str | None] = []
    for role in roles:
        names = [column for column in table.columns if column.lower().strip() in role.guesses]
        chosen.append(names[0] if names else None)
    if chosen[0] is None:
        free = [column for column in table.columns if column not in chosen] or table.columns
        chosen[0] = max(free, key=lambda column: sum(len(str(row.get(column, ""))) for row in table.rows))
    return chosen


def pick_columns(table: Table, roles: Sequence[Role], columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Select the columns of the roles; rows that are empty in the first role are omitted."""
    chosen = {}
    for role, column in zip(roles, columns, strict=True):
        if column in table.columns:
            chosen[role.name] = column
        elif column or role.required:
            raise InputError(f"Choose the column for “{role.label}”. The table has {_listed(table.columns)}.")
    rows = [{name: row.get(column, "") for name, column in chosen.items()} for row in table.rows]
    return [row for row in rows if _joined(row[roles[0].name]).strip()]


def table_remarks(table: Table, columns: Sequence[Any], n_rows: int) -> list[str]:
    """Say what of a table was taken, and what was left out; `n_rows` have a text."""
    remarks = []
    if table.has_header is not None:
        remarks.append("The first row names the columns." if table.has_header else "No header: the first row is data.")
    n_empty = len(table.rows) - n_rows
    if n_empty:
        remarks.append(f"{n_empty:,} row{'s' if n_empty > 1 else ''} without a text left out.")
    unread = [column for column in table.columns if column not in columns]
    if unread:
        remarks.append(f"Not read: {_listed(unread, 5)}.")
    return remarks


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " ".join(value)


def _listed(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
