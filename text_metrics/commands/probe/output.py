"""What the reports of `text-metrics probe` have in common: their options, and where they go."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.command import add_command, drawn
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import put_between
from text_metrics.commands.shared.settings import (
    ENCODER,
    add_settings,
    cache_of,
    check_names,
    parse_settings,
    paths_of,
)
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

# The settings of the pipeline; the commands draw answers down themselves.
PIPELINE = (
    "clustering",
    "matcher",
    "threshold",
    "linkage",
    "distance",
    "seed",
    "smoothing",
    "debias",
    "parity",
)


def add_report(
    commands: Any, name: str, help: str, description: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command that reports on people's answers: its targets, the settings of probeval, and the outputs."""
    parser = add_command(commands, name, help, description)
    parser.add_argument("targets", type=Path, help="questions with people's answers")
    add_settings(
        parser,
        "a setting of probeval: clustering, matcher, threshold, smoothing, debias, ..., model, device, cache_dir",
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put it between its markers in a page of Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--plot", type=drawn, metavar="FILE", help="write the picture as SVG")
    parser.set_defaults(run=run)
    return parser


def check_report(arguments: argparse.Namespace, reads: Sequence[Path | None], *more: Path | None) -> ProbevalSettings:
    """Read the settings of probeval, and check that what a report writes, `more` included, is not read for it."""
    settings = parse_settings(arguments.setting)
    writes = [arguments.write, arguments.json, arguments.plot, cache_of(settings), *more]
    check_outputs([*reads, *paths_of(settings)], writes)
    check_names(settings, [*PIPELINE, *ENCODER], "this command")
    if settings.get("matcher") == "human":
        raise ValueError("matcher='human' needs people's labels of each answer, which the report does not take.")
    return ProbevalSettings(**settings)


def write_outputs(arguments: argparse.Namespace, name: str, text: str, result: dict[str, Any]) -> None:
    """Print a report, and write it where the options say."""
    print(text)
    if arguments.write:
        put_between(arguments.write, f"probe {name}", text)
    if arguments.json:
        write_text(arguments.json, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if arguments.plot:
        # matplotlib is an extra.
        from text_metrics.commands.probe.pictures import DRAWINGS

        write_text(arguments.plot, DRAWINGS[name](result))
