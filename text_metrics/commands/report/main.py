"""Compare many systems in one report: how diverse, how good, how alike, how close to people, and where they collapse.

    text-metrics report gpt.jsonl llama.csv "Qwen 2=qwen.parquet" --text-key generations --id-key prompt --out report
    text-metrics report answers.parquet --text-key answer --id-key prompt --system-key model --people people.jsonl
    text-metrics report gpt.jsonl llama.jsonl --text-key texts --id-key prompt --column quality=reward
    text-metrics report gpt.jsonl --text-key texts --id-key prompt --quality none --no-texts

A system is a file of any format that `text-metrics score` reads, named by NAME=path or by the file name; or, with
--system-key, the rows of one file with the same value in this column. A row holds a set of texts, as a list, or one
text: all rows of a system with the same --id-key make the set of this prompt. Without --id-key, each row holds a set,
and the rows of all files are paired by their order. Only prompts for which every system has at least two texts are
compared. If sets differ in size, scores are expected scores of samples as large as the smallest set.

Quality is that of gruen, which takes several times as long as everything else, or a column of ratings, or none. The
file of --people has people's texts in the same columns, ideally those of several people for each prompt.

Writes a folder: index.html, report.json with every number of the page, table.md, table.tex and figures/*.svg.
docs/report.md explains the numbers. Each different text is embedded once; embeddings are saved in --cache-dir, or else
until the report is written, so that the same command continues after a kill. A row that cannot be read is named on
stderr, and set aside in <out>/bad.jsonl with all rows of its set.

Exit codes: 0 all rows are used; 3 some were set aside; 2 the command, its settings or a file are invalid, or the folder
is no earlier report; 130 interrupted; 1 an internal error.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from text_metrics.commands.jobs.options import UsageError, as_usage
from text_metrics.commands.jobs.work import EXIT_BAD_ROWS, end
from text_metrics.commands.report.command import ReportCommand, parse_command
from text_metrics.commands.report.systems import bad_lines, read_inputs
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.settings import paths_of

# What is written into the folder of the report.
FILES = ("report.json", "index.html", "table.md", "table.tex", "bad.jsonl")
UNFINISHED = Path("embeddings.tmp")


def run(command: ReportCommand) -> int:
    """Make the report; returns the exit code."""
    _check_outputs(command)
    inputs = read_inputs(command)
    for row in inputs.bad:
        print(f"{row.file}, row {row.number}: {row.error}", file=sys.stderr)
    for note in [*inputs.notes, *inputs.hints]:
        print(note, file=sys.stderr)
    # Imports torch.
    from text_metrics.commands.report.building import build
    from text_metrics.commands.report.page import write_pages

    with as_usage(TypeError):
        report = build(command, inputs)
    text = json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False)
    write_text(command.out / "report.json", text + "\n")
    write_pages(report, command.out, command.texts)
    if inputs.bad:
        write_jsonl(command.out / "bad.jsonl", bad_lines(inputs.bad, command.texts))
    else:
        # That of an earlier run.
        (command.out / "bad.jsonl").unlink(missing_ok=True)
    if command.cache_dir is None:
        shutil.rmtree(command.embeddings, ignore_errors=True)
    print(command.out / "index.html")
    return EXIT_BAD_ROWS if inputs.bad else 0


def _check_outputs(command: ReportCommand) -> None:
    """Raise an error if an output is what is read, or if the folder is a file."""
    reads: list[str | Path | None] = [file.path for file in command.files]
    reads += [command.people, *paths_of(command.settings)]
    writes: list[Path | None] = [command.out / name for name in FILES]
    writes += [command.out / "figures", command.cache_dir]
    folders = [command.embeddings] if command.cache_dir is None else []
    with as_usage():
        check_outputs(reads, [command.out, *writes], folders)
    if command.out.exists() and not command.out.is_dir():
        raise UsageError(f"--out must be a folder. Got {command.out}, which is a file.")
    names = {path.name for path in command.out.iterdir()} if command.out.exists() else set()
    # Embeddings are what a report that was killed leaves.
    if not names - {path.name for path in (command.embeddings, UNFINISHED)}:
        return
    if not _is_report(command.out / "report.json"):
        raise UsageError(f"--out must be a new or empty folder, or an earlier report. Got {command.out}.")
    print(f"{command.out} has an earlier report, which is overwritten.", file=sys.stderr)


def _is_report(path: Path) -> bool:
    """Whether a file is the JSON of a report."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and {"version", "command", "systems", "sentences"} <= report.keys()


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return end("text-metrics report", lambda: run(parse_command(words, __doc__)))
