"""Recognize files that commands wrote, by a record in or beside them, so that they are not read as data."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = "text-metrics"
# The first key of a JSON file that a command writes, with the command.
WRITTEN_BY = "written_by"
# The ends of the names of files that a job and a chat command write beside their output.
SUMMARY = ".summary.json"
BAD = ".bad.jsonl"
PARTS = ".parts"
JOURNAL = ".journal"
# The record of a job in the folder of its pieces.
JOB = "job.json"
# The tables of text-metrics meta-eval; the last one, of signatures, is its record, which begins like this.
TABLES = ("agreement.csv", "kappa.csv", "kappa_means.csv", "distributions.csv", "people.csv", "signatures.csv")
_SIGNATURES = re.compile(r"metric,signature\r?\nself-BLEU-3,\"?self_bleu\|")
_MARK = re.compile(rf'\s*\{{\s*"{WRITTEN_BY}":\s*"({PROGRAM}[a-z -]*)"')
# The keys of rows that were skipped, by a job or by a report.
_BAD_ROWS = ({"row", "error", "text"}, {"file", "row", "error"})
# The keys of records of versions before 0.10, which had no mark.
_RECORDS = ({"command", "signature", "n_bad"}, {"metric", "result", "systems", "signatures"})
# Characters of a file that are searched; older records are not longer.
_HEAD = 2**16


class Written(NamedTuple):
    """The command that wrote a file.

    command : such as "text-metrics score", or only "text-metrics" where several may have written it
    is_record : whether the file holds no texts: a summary, a report, a journal or skipped rows
    of : the path, the size and the time of the data that it was made from; empty if they are not recorded
    """

    command: str
    is_record: bool = False
    of: Mapping[str, Any] = {}


def mark(command: str) -> dict[str, str]:
    """Return the entry that begins a record of a command, such as `score`."""
    return {WRITTEN_BY: f"{PROGRAM} {command}"}


def find_writer(path: Path) -> Written | None:
    """Say which command wrote a file or folder; None for any other one, and for a URL, where no command writes."""
    if not isinstance(path, Path):
        return None
    if path.is_dir():
        is_job = path.name.endswith(PARTS) and "command" in first_value(path / JOB)
        return Written(PROGRAM, is_record=True) if is_job else _by_content(path / "report.json")
    return _by_record_beside(path) or _by_content(path)


def _by_record_beside(path: Path) -> Written | None:
    """Find the writer of an output by the summary, the pieces, the journal or the signatures beside it."""
    for record in (_beside(path, SUMMARY), _beside(path, PARTS) / JOB):
        command = first_value(record).get("command") if record.is_file() else None
        if isinstance(command, dict):
            return Written(f"{PROGRAM} {'choose' if command.get('metric') == 'choose' else 'score'}", of=command)
    if {"key", "answer"} <= first_value(_beside(path, JOURNAL)).keys():
        return Written(PROGRAM)
    if path.name in TABLES and is_evaluation(path.parent):
        return Written(f"{PROGRAM} meta-eval", is_record=True)
    return None


def is_evaluation(folder: Path) -> bool:
    """Tell whether text-metrics meta-eval wrote tables into a folder."""
    with suppress(OSError, UnicodeDecodeError), (folder / TABLES[-1]).open(encoding="utf-8") as file:
        return _SIGNATURES.match(file.readline() + file.readline()) is not None
    return False


def _by_content(path: Path) -> Written | None:
    """Find the writer of a record by its beginning, and the writer of ratings by their signature."""
    if path.suffix not in (".json", ".jsonl", JOURNAL) or not path.is_file():
        return None
    with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(_HEAD)
        if marked := _MARK.match(head):
            return Written(marked[1], is_record=True)
        value = _first_object(head)
        names = value.keys()
        is_bad = path.name.endswith("bad.jsonl") and names - {"n_lines"} in _BAD_ROWS
        is_journal = path.suffix == JOURNAL and {"key", "answer"} <= names
        is_old = isinstance(value.get("command", {}), dict) and any(keys <= names for keys in _RECORDS)
        if is_bad or is_journal or is_old:
            return Written(PROGRAM, is_record=True)
        if str(value.get("signature")).startswith("rate_quality|"):
            return Written(f"{PROGRAM} rate-quality")
    return None


def first_value(path: Path) -> dict[str, Any]:
    """Read the object of a JSON file, or of its first line; empty if it has none."""
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        line = file.readline()
        return _first_object(line if line.strip() != "{" else line + file.read())
    return {}


def _first_object(text: str) -> dict[str, Any]:
    """Parse an object that is the whole text, or its first line; empty if neither is one."""
    line, _, _ = text.partition("\n")
    with suppress(ValueError, RecursionError):
        value = json.loads(text if line.strip() == "{" else line)
        return value if isinstance(value, dict) else {}
    return {}


def _beside(path: Path, end: str) -> Path:
    return path.with_name(f"{path.name}{end}")
