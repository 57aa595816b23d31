"""Where the reports of `text-metrics probe` go: a page of Markdown, a file with all numbers, and a picture."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.command import drawn
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import put_between
from text_metrics.commands.shared.settings import cache_of, parse_settings, paths_of


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a report is written."""
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put it between its markers in a page of Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--plot", type=drawn, metavar="FILE", help="write the picture as SVG")


def check_report(arguments: argparse.Namespace, reads: Sequence[Path | None], *more: Path | None) -> None:
    """Check that what a report writes, `more` included, is none of what is read for it."""
    settings = parse_settings(arguments.setting)
    writes = [arguments.write, arguments.json, arguments.plot, cache_of(settings), *more]
    check_outputs([*reads, *paths_of(settings)], writes)


def write_outputs(
    arguments: argparse.Namespace, name: str, text: str, result: dict[str, Any], draw: Callable[[dict[str, Any]], str]
) -> None:
    """Print a report, and write it where the options say; `name` is that of its markers."""
    print(text)
    if arguments.write:
        put_between(arguments.write, name, text)
    if arguments.json:
        write_text(arguments.json, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if arguments.plot:
        write_text(arguments.plot, draw(result))
