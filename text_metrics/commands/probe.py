"""Ask a model questions that have many right answers, and report how its answers compare with people's.

Each command has its own --help.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from text_metrics import load
from text_metrics.console import Parser, command, input_checked
from text_metrics.files.listing import named_files
from text_metrics.files.storage import check_outputs, write_text
from text_metrics.files.written import mark
from text_metrics.options import add_settings, parse_settings
from text_metrics.probe import annotators, ask, frames, report, sensitivity
from text_metrics.probe.files import read_references


def write_report(module: Any, arguments: argparse.Namespace) -> int:
    """Print a report on people's answers as Markdown, and write its numbers if --out is given; return 0."""
    settings = parse_settings(arguments.setting, "probeval")
    arguments.answers = named_files(getattr(arguments, "answers", ()), takes_answers=True)
    check_outputs([arguments.targets, *arguments.answers.values()], [arguments.out], settings)
    references = read_references(arguments.targets)
    with input_checked():
        load("probeval").settings.read(settings, "probeval")
    result, sections = module.report(arguments, references, settings)
    # Its import takes a second.
    from pandas import DataFrame

    from text_metrics.reporting.markup import markdown

    for title, text, table in sections:
        print(f"### {title}\n\n{text}\n\n{markdown(DataFrame(table))}")
    for signature in dict.fromkeys(result["signatures"]):
        print(f"`{signature}`")
    if arguments.out:
        name = module.__name__.rpartition(".")[2]
        result = mark(f"probe {name}") | result
        write_text(arguments.out, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return 0


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    help = "a setting of probeval: clustering, matcher, threshold, ..., model, device, cache_dir; `help` lists them"
    modules: tuple[Any, ...] = (frames, ask, report, annotators, sensitivity)
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        part = commands.add_parser(name, help=module.__doc__.partition("\n")[0], description=module.__doc__)
        if hasattr(module, "run"):
            part.set_defaults(run=module.run)
        else:
            part.add_argument("targets", type=Path, help="questions with people's answers")
            add_settings(part, help)
            part.add_argument("--out", type=Path, metavar="FILE", help="write all numbers as JSON")
            part.set_defaults(run=partial(write_report, module))
        if hasattr(module, "add_options"):
            module.add_options(part)
    arguments = parser.parse_args()
    return arguments.run(arguments)
