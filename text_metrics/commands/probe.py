"""Ask a model questions that have many right answers, and report how its answers compare with people's.

Each command has its own --help.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from text_metrics import load
from text_metrics.console import Parser, command, input_checked
from text_metrics.files.listing import named_files
from text_metrics.files.storage import check_outputs, write_text
from text_metrics.files.written import mark
from text_metrics.options import add_chat, add_confidence, add_settings, add_strip, parse_settings
from text_metrics.probe import annotators, ask, frames, report, sensitivity
from text_metrics.probe.clauses import CIRCUMSTANCES
from text_metrics.probe.files import read_references


def _add_frames(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sentences", type=Path, help="PENMAN file or, with --parse, CommonGen's JSON lines")
    parser.add_argument("--rolesets", type=Path, required=True, metavar="FOLDER", help="PropBank's XML files")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the questions")
    parser.add_argument("--people", type=Path, metavar="FILE", help="write a sheet for people, too, as CSV")
    kinds = list(chain(frames.ROLES, CIRCUMSTANCES))
    parser.add_argument("--keep", action="append", choices=kinds, help="a kind of slot to ask about; default: all")
    parser.add_argument("--per-context", type=int, metavar="N", help="draw at most N questions for each sentence")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--parse", metavar="FOLDER", help="model of amrlib, which parses the sentences to <out>.amr")


def _add_ask(parser: argparse.ArgumentParser) -> None:
    add_chat(parser, "questions", "questions, as JSON lines")
    parser.add_argument("--samples", type=int, default=100, help="answers to each question")


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("answers", nargs="+", metavar="[NAME=]FILE", help="a model's answers")
    parser.add_argument("--rounds", type=int, default=20, help="random draws, averaged")
    add_strip(parser)
    add_confidence(parser)


def _add_annotators(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", nargs="+", type=int, default=annotators.SIZES, metavar="M", help="numbers of people")


def write_report(
    module: Any, targets: Path, setting: Sequence[str], out: Path | None, answers: Sequence[str] = (), **options: Any
) -> int:
    """Print a report on people's answers as Markdown, and write its numbers if --out is given; return 0."""
    settings = parse_settings(setting, "probeval")
    files = named_files(answers, takes_answers=True)
    check_outputs([targets, *files.values()], [out], settings)
    references = read_references(targets)
    with input_checked():
        load("probeval").settings.read(settings, "probeval")
    if files:
        options["answers"] = files
    result, sections = module.report(references, settings, **options)
    # Its import takes a second.
    from pandas import DataFrame

    from text_metrics.reporting.markup import markdown

    for title, text, table in sections:
        print(f"### {title}\n\n{text}\n\n{markdown(DataFrame(table))}")
    for signature in dict.fromkeys(result["signatures"]):
        print(f"`{signature}`")
    if out:
        name = module.__name__.rpartition(".")[2]
        result = mark(f"probe {name}") | result
        write_text(out, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return 0


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    help = "a setting of probeval: clustering, matcher, threshold, ..., model, device, cache_dir; `help` lists them"
    modules: dict[Any, Any] = {
        frames: _add_frames,
        ask: _add_ask,
        report: _add_report,
        annotators: _add_annotators,
        sensitivity: None,
    }
    for module, add_options in modules.items():
        name = module.__name__.rpartition(".")[2]
        part = commands.add_parser(name, help=module.__doc__.partition("\n")[0], description=module.__doc__)
        if hasattr(module, "run"):
            part.set_defaults(run=module.run)
        else:
            part.add_argument("targets", type=Path, help="questions with people's answers")
            add_settings(part, help)
            part.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
            part.set_defaults(run=partial(write_report, module))
        if add_options is not None:
            add_options(part)
    options = vars(parser.parse_args())
    return options.pop("run")(**options)
