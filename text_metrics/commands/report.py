"""Compare many systems in one report: how diverse, how good, how alike, how close to people, and where they collapse.

    text-metrics report answers.parquet --text-key answer --id-key prompt --system-key model --out report
    text-metrics report T=0.3=a.jsonl T=0.7=b.jsonl "T=1=c.parquet" --text-key answers --id-key prompt --order

A system is the rows of one file with one value in the column of --system-key; or, without it, a file or folder that
`text-metrics score` reads, named by NAME=path or by its name. A row holds a list of texts, or one text: all rows of a
system with the same --id-key make the set of this prompt. With --by-line, rows hold lists, and equal rows are of one
prompt.

Writes a folder: index.html, report.json with every number of the page, and for a paper table.tex, figures,
methods.tex, refs.bib, and for its appendix tables.tex and signatures.tex. docs/report.md says what to paste, and what
it means.
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
from text_metrics.files.columns import without_value
from text_metrics.files.listing import named_files
from text_metrics.files.storage import check_outputs, parse_json, parse_path, write_jsonl
from text_metrics.options import (
    add_confidence,
    add_keys,
    add_one_system,
    add_quiet,
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
# Files in the folder of the report.
_FILES: tuple[str, ...] = ("report.json", "index.html", "table.md", "bad.jsonl", "figures")
_FILES += ("table.tex", "tables.tex", "methods.tex", "signatures.tex", "refs.bib")


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, with `files` by name; raises a ValueError if it is invalid."""
    parser = Parser(__doc__)
    add = parser.add_argument
    help = "a system: a file or folder that `text-metrics score` reads, or after NAME= several, as in NAME=runs/*.jsonl"
    add("files", nargs="+", metavar="[NAME=]FILE", help=help)
    add_keys(parser, clusters=False)
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", metavar="KEY", help="which prompt a row belongs to")
    pairing.add_argument("--by-line", action="store_true", help="equal rows of all files are of one prompt")
    add_one_system(parser)
    add("--people", type=parse_path, metavar="FILE", help="texts of people, with the same columns")
    add("--quality", choices=("gruen", "none"), default="gruen", help="how texts are rated; gruen is slow")
    add("--quality-key", metavar="KEY", help="the quality of each text, instead of --quality")
    add("--quality-scale", type=float, default=1, metavar="N", help="divide it by this, such as 10")
    help = (
        "classes=KEY: the class of each text among those of its prompt, as a judge gave it, for the number of meanings"
    )
    add("--column", action="append", default=[], metavar="ARGUMENT=KEY", help=help)
    help = "score also the texts cut to the words of the shortest of their prompt, beside the whole ones"
    add("--same-length", action="store_true", help=help)
    add("--out", type=Path, default=Path("report"), help="folder of the report; `report` by default")
    add("--cache-dir", type=Path, help="folder in which embeddings are kept after the report")
    add_settings(parser, f"a setting of the encoder, semantic_entropy or self_bleu: {', '.join(SETTINGS)}")
    add_confidence(parser, "level of the intervals; a difference is significant if p is below 1 minus the level")
    help = (
        "keep systems in the order given, or by the number in their names, as in T=0.3 and T=1, with a line in figures"
    )
    add("--order", action="store_true", help=help)
    help = "say how many prompts find a system first whose mean Vendi score leads by X"
    add("--difference", type=float, metavar="X", help=help)
    add("--columns", help="metrics of table.tex by their names in report.json, separated by commas")
    add("--no-texts", action="store_true", help="show no text; values of --id-key are still shown")
    add_quiet(parser)
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
    if options.difference is not None and not options.difference > 0:
        raise ValueError(f"--difference must be positive. Got {options.difference}.")
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


@command
def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = parse_options(words)
    _check_outputs(options)
    inputs = read_inputs(options)
    notices = Notices()
    for row in inputs.bad:
        if options.no_texts:
            row["error"] = without_value(row["error"])
        notices.add(f"{row['file']}, row {row['row']}: {row['error']}")
    notices.end("rows were skipped: see bad.jsonl")
    for sentence in inputs.repeats:
        print(f"Warning: {sentence}", file=sys.stderr)
    for name, marks in inputs.marks.items():
        warn_of_marks(marks, what=f"texts of {name}")
    # It imports torch.
    from text_metrics.reporting.build import Choices, build

    choices = Choices(
        by_gruen=options.quality_key is None and options.quality == "gruen",
        level=options.confidence,
        shows_texts=not options.no_texts,
        same_length=options.same_length,
        keeps_order=options.order,
        difference=options.difference,
    )
    report = build(inputs, choices, options.setting | {"cache_dir": options.cache_dir, "progress": not options.quiet})
    record = {name: value for name, value in vars(options).items() if name not in _WITHOUT_EFFECT}
    # What was used, such as no quality where no text could be rated.
    record |= report.options
    if (options.out / "report.json").exists():
        print(f"{options.out} has an earlier report, which is overwritten.", file=sys.stderr)
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
