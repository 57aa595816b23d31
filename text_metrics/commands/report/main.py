"""Compare many systems in one report: how diverse, how good, how alike, how close to people, and where they collapse.

    text-metrics report gpt.jsonl llama.csv "Qwen 2=qwen.parquet" --text-key generations --id-key prompt --out report
    text-metrics report answers.parquet --text-key answer --id-key prompt --system-key model --people people.jsonl

A system is a file that `text-metrics score` reads, named by NAME=path or by the file name; or, with --system-key, the
rows of one file with one value in this column. A row holds a list of texts, or one text: all rows of a system with the
same --id-key make the set of this prompt. With --by-line, rows hold lists, and equal rows are of one prompt.

Writes a folder: index.html, report.json with every number of the page, table.md, table.tex and figures/*.svg.
docs/report.md explains the numbers.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from text_metrics.commands.report.command import ReportCommand, parse_command
from text_metrics.commands.report.systems import read_inputs
from text_metrics.commands.shared.command import command
from text_metrics.commands.shared.files import read_json, write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.settings import paths_of

_EXIT_BAD_ROWS = 3
# What is written into the folder of the report.
_FILES = ("report.json", "index.html", "table.md", "table.tex", "bad.jsonl", "figures")


def _run(command: ReportCommand) -> int:
    """Make the report; returns the exit code."""
    _check_outputs(command)
    inputs = read_inputs(command)
    for part in inputs.bad:
        print(f"{part.file}, row {part.row.number}: {part.error}", file=sys.stderr)
    for hint in inputs.hints:
        print(hint, file=sys.stderr)
    # They import torch and matplotlib.
    from text_metrics.commands.report.building import build
    from text_metrics.commands.report.page import write_pages

    with tempfile.TemporaryDirectory() as folder:
        report = build(replace(command, cache_dir=command.cache_dir or Path(folder)), inputs)
    text = json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False, default=str)
    write_text(command.out / "report.json", f"{text}\n")
    write_pages(report, command.out)
    bad = [{"file": str(part.file), "row": part.row.number, "error": part.error} for part in inputs.bad]
    # Where there are none, that of an earlier run goes.
    (command.out / "bad.jsonl").unlink(missing_ok=True)
    if bad:
        write_jsonl(command.out / "bad.jsonl", bad)
    print(command.out / "index.html")
    return _EXIT_BAD_ROWS if bad else 0


def _check_outputs(command: ReportCommand) -> None:
    """Raise an error if an output is what is read, or if the folder is not new, empty or an earlier report."""
    out = command.out
    reads: list[str | Path | None] = list(command.files.values())
    reads += [command.people, *paths_of(command.settings)]
    check_outputs(reads, [out, *(out / name for name in _FILES), command.cache_dir])
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder. Got {out}, which is a file.")
    if out.is_dir() and any(out.iterdir()):
        if not _is_report(out / "report.json"):
            raise ValueError(f"--out must be a new or empty folder, or an earlier report. Got {out}.")
        print(f"{out} has an earlier report, which is overwritten.", file=sys.stderr)


def _is_report(path: Path) -> bool:
    """Whether a file is the JSON of a report."""
    with suppress(ValueError, TypeError):
        return {"version", "rarefied_to", "sentences"} <= set(read_json(path))
    return False


@command
def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return _run(parse_command(words, __doc__))
