"""Parse and check a visitor's input. Each error says what is wrong and what to do."""

import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

ENDINGS = (".csv", ".jsonl")


class InputError(ValueError):
    """The input cannot be scored; the message is shown to the visitor."""


class Limits(NamedTuple):
    """Upper bounds on one input, so that its score takes at most 3 seconds on two cores."""

    sets: int = 50
    texts: int = 200
    text_characters: int = 3_000
    characters: int = 6_000
    file_bytes: int = 50_000


class Row(NamedTuple):
    """A text, and the name of its set."""

    text: str
    set: str = ""


def lines_of(text: str) -> list[str]:
    """Split at line ends only; `str.splitlines` also splits at form feeds and other separators."""
    return [line.strip() for line in re.split("\r\n|\r|\n", text)]


def check_number(name: str, value: Any, low: float, high: float, *, is_integer: bool = False) -> None:
    """Check that a setting is a number in [low, high]."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high or (is_integer and value != int(value)):
        kind = "an integer" if is_integer else "a number"
        raise InputError(f"{name} must be {kind} from {low:g} to {high:g}. Got {str(value)[:80]!r}.")


def check_sets(sets: Any, limits: Limits, contexts: Any = None) -> list[list[str]]:
    """Check sets of texts, and the contexts of each; raises an InputError that names the set and the text."""
    if not isinstance(sets, list) or not all(isinstance(texts, list) for texts in sets):
        raise InputError('Texts must be a list of sets, each a list of texts: [["a text", "another"]].')
    if not any(sets):
        raise InputError("There is no text yet. Write one text a line, or click an example.")
    if len(sets) > limits.sets:
        raise InputError(f"Too many sets: {len(sets):,}, the limit here is {limits.sets:,}.")
    for i, texts in enumerate(sets, 1):
        if not texts:
            raise InputError(f"Set {i} is empty: a set contains at least one text.")
        check_texts(texts, limits, f" of set {i}" if len(sets) > 1 else "")
    check_texts([text for texts in sets for text in texts], limits)
    if contexts is not None:
        if not isinstance(contexts, list) or len(contexts) != len(sets):
            raise InputError(f"contexts must be a list with a text for each of {len(sets):,} sets.")
        check_texts(list({repr(context): context for context in contexts}.values()), limits, " of contexts")
    return sets


def check_texts(texts: Any, limits: Limits, where: str = "") -> list[str]:
    """Check the number of texts, the characters of each, and their total length."""
    if not isinstance(texts, list) or not texts:
        raise InputError("There is no text yet. Write one, or click an example.")
    if len(texts) > limits.texts:
        raise InputError(f"Too many texts{where}: {len(texts):,}, the limit here is {limits.texts:,}.")
    for i, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise InputError(f"Text {i}{where} must be a string. Got {type(text).__name__}.")
        if len(text) > limits.text_characters:
            raise InputError(
                f"Text {i}{where} is too long: {len(text):,} characters, the limit here is {limits.text_characters:,}."
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"Text {i}{where} contains a broken character, such as half of an emoji. Delete it.")
    check_total(texts, limits)
    return texts


def check_total(texts: Sequence[str], limits: Limits, times: int = 1) -> None:
    """Check the characters of all texts together, against a multiple of the limit."""
    total = sum(map(len, texts))
    if total > times * limits.characters:
        raise InputError(
            f"The texts are too long: {total:,} characters in total, the limit here is {limits.characters:,}. "
            "Remove some, or run the metric on your own machine."
        )


def read_table(path: str | None, limits: Limits) -> list[Row]:
    """Read the rows of a UTF-8 file of at most the limit; raises an InputError if it is not one that a demo reads."""
    if not path:
        raise InputError("Choose a file first.")
    file = Path(path)
    if not file.is_file():
        raise InputError("The file is no longer here, because files are soon deleted. Choose it again.")
    size = file.stat().st_size
    if size > limits.file_bytes:
        raise InputError(f"The file is too large: {size:,} bytes, the limit here is {limits.file_bytes:,}.")
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"The file name must end in {' or '.join(ENDINGS)}. Got {ending or 'no ending'}.")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"The file must be UTF-8 text, and byte {error.start:,} is not. Save it as UTF-8.") from None
    if not text.strip():
        raise InputError("The file contains no text.")
    return parse_table(text, ending)


def parse_table(text: str, ending: str) -> list[Row]:
    """Parse the columns `text` and `set` of a .csv or .jsonl file; other columns are not read."""
    try:
        if ending == ".csv":
            frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        else:
            frame = pd.read_json(io.StringIO(text), lines=True, dtype=False, convert_dates=False, convert_axes=False)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        kind = "CSV, with commas between cells" if ending == ".csv" else "JSON Lines, with one object a line"
        raise InputError(f"The file is not valid {kind}. Compare it with the sample file.") from None
    # A line with more cells than the first makes an index of its first cell.
    if ending == ".csv" and not isinstance(frame.index, pd.RangeIndex):
        raise InputError("The lines have more cells than the first. Put a text that contains a comma in quotes.")
    if "text" not in frame.columns:
        found = ", ".join(map(str, frame.columns[:10]))[:200]
        raise InputError(f"The file needs a column “text”. Its columns are: {found}.")
    if frame.empty:
        raise InputError("The file contains no text.")
    rows = []
    names = frame.get("set", pd.Series("", frame.index)).fillna("")
    for i, (content, name) in enumerate(zip(frame["text"], names, strict=True), 1):
        if not isinstance(content, str) or not content.strip():
            got = "nothing" if content == "" else repr(str(content)[:40])
            raise InputError(f"Row {i}: “text” must be a text. Got {got}.")
        rows.append(Row(content.strip(), str(name).strip()))
    return rows
