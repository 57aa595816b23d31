"""Compare many systems in one report: how diverse, how good, how alike, how close to people, and where they collapse.

    text-metrics report gpt.jsonl llama.csv "Qwen 2=qwen.parquet" --text-key generations --id-key prompt --out report
    text-metrics report answers.parquet --text-key answer --id-key prompt --system-key model --people people.jsonl

A system is a file or folder that `text-metrics score` reads, named by NAME=path or by its name; or, with --system-key,
the rows of one file with one value in this column. A row holds a list of texts, or one text: all rows of a system with
the same --id-key make the set of this prompt. With --by-line, rows hold lists, and equal rows are of one prompt.

Writes a folder: index.html, report.json with every number of the page, and for a paper tables, figures, methods.tex
and refs.bib. docs/report.md explains the numbers.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from text_metrics.console import EXIT_BAD_ROWS, Notices, Parser, command
from text_metrics.core_api import parse_choice, parse_level
from text_metrics.files.listing import named_files
from text_metrics.files.storage import check_outputs, parse_json, parse_path, write_jsonl
from text_metrics.options import (
    add_confidence,
    add_keys,
    add_one_system,
    add_settings,
    check_strip,
    parse_pairs,
    parse_settings,
    warn_of_marks,
)
from text_metrics.reporting.inputs import SETTINGS, read_inputs
from text_metrics.reporting.results import MEASURES

# Options that decide no number.
_WITHOUT_EFFECT = ("out", "cache_dir", "quiet", "by_line", "columns", "column")
# What is written into the folder of the report.
_FILES = ("report.json", "index.html", "table.md", "table.tex", "methods.tex", "refs.bib", "bad.jsonl", "figures")


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, with `files` by name; raises a ValueError if it is invalid."""
    parser = Parser(__doc__)
    help = "a system: a file or folder that `text-metrics score` reads, or after NAME= several, as in NAME=runs/*.jsonl"
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE", help=help)
    add_keys(parser, clusters=False)
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", metavar="KEY", help="which prompt a row belongs to")
    pairing.add_argument("--by-line", action="store_true", help="equal rows of all files are of one prompt")
    add_one_system(parser)
    parser.add_argument("--people", type=parse_path, metavar="FILE", help="texts of people, with the same columns")
    parser.add_argument(
        "--quality", choices=("gruen", "none"), default="gruen", help="how texts are rated; gruen is slow"
    )
    parser.add_argument("--quality-key", metavar="KEY", help="the quality of each text, instead of --quality")
    parser.add_argument("--quality-scale", type=float, default=1, metavar="N", help="divide it by this, such as 10")
    help = (
        "classes=KEY: the class of each text among those of its prompt, as a judge gave it, for the number of meanings"
    )
    parser.add_argument("--column", action="append", default=[], metavar="ARGUMENT=KEY", help=help)
    help = "score also the texts cut to the words of the shortest of their prompt, beside the whole ones"
    parser.add_argument("--same-length", action="store_true", help=help)
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report; `report` by default")
    parser.add_argument("--cache-dir", type=Path, help="folder in which embeddings are kept after the report")
    add_settings(parser, f"a setting of the encoder, semantic_entropy or self_bleu: {', '.join(SETTINGS)}")
    add_confidence(parser, "level of the intervals; a difference is significant if p is below 1 minus the level")
    parser.add_argument("--columns", help="metrics of table.tex by their names in report.json, separated by commas")
    parser.add_argument("--no-texts", action="store_true", help="show no text; values of --id-key are still shown")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = parser.parse_args(words)
    options.files = named_files(options.files)
    if options.system_key is not None and len(options.files) > 1:
        raise ValueError(f"--system-key is for one file. Got {len(options.files)} files.")
    check_strip(options.strip, options.context_key is not None)
    if options.by_line and (options.system_key or options.people):
        raise ValueError("--system-key and --people require --id-key.")
    columns = parse_pairs(options.column, "--column")
    for argument in columns:
        if argument != "classes":
            raise ValueError(f"--column {argument}: a column may give classes only. Ratings are --quality-key.")
    options.classes_key = columns.get("classes")
    options.setting = parse_settings(options.setting)
    for name in options.setting:
        parse_choice(name, "--setting", SETTINGS)
    parse_level(options.confidence, "--confidence")
    if not options.quality_scale > 0:
        raise ValueError(f"--quality-scale must be positive. Got {options.quality_scale}.")
    options.columns = options.columns.split(",") if options.columns else []
    for name in options.columns:
        parse_choice(name, "--columns", tuple(MEASURES))
    return options


def _check_outputs(options: argparse.Namespace) -> None:
    """Raise an error if what is written would replace anything but an earlier report."""
    out = options.out
    writes = [out, *(out / name for name in _FILES), options.cache_dir]
    check_outputs([*options.files.values(), options.people], writes, options.setting)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder. Got {out}, which is a file.")
    if out.is_dir() and any(out.iterdir()):
        earlier = None
        with suppress(OSError, ValueError):
            earlier = parse_json((out / "report.json").read_bytes())
        if not isinstance(earlier, dict) or not {"version", "rarefied_to", "sentences"} <= earlier.keys():
            raise ValueError(f"--out must be a new or empty folder, or an earlier report. Got {out}.")
        print(f"{out} has an earlier report, which is overwritten.", file=sys.stderr)


@command
def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = parse_options(words)
    _check_outputs(options)
    inputs = read_inputs(options)
    notices = Notices()
    for row in inputs.bad:
        notices.add(f"{row['file']}, row {row['row']}: {row['error']}")
    notices.end("rows were skipped: see bad.jsonl")
    for name, marks in inputs.marks.items():
        warn_of_marks(marks, what=f"texts of {name}")
    # It imports torch.
    from text_metrics.reporting.scores import build

    report = build(
        inputs,
        by_gruen=options.quality_key is None and options.quality == "gruen",
        level=options.confidence,
        settings=options.setting | {"cache_dir": options.cache_dir, "progress": not options.quiet},
        shows_texts=not options.no_texts,
        same_length=options.same_length,
    )
    record = {name: value for name, value in vars(options).items() if name not in _WITHOUT_EFFECT}
    # While matplotlib is imported and draws, collections need not walk all that torch has loaded.
    gc.freeze()
    replace(report, options=record).save(options.out, options.columns)
    gc.unfreeze()
    # Remove bad.jsonl of an earlier run.
    (options.out / "bad.jsonl").unlink(missing_ok=True)
    if inputs.bad:
        write_jsonl(options.out / "bad.jsonl", inputs.bad)
    print(options.out / "index.html")
    return EXIT_BAD_ROWS if inputs.bad else 0
