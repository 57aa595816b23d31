# PYTHON_ARGCOMPLETE_OK
"""The command line, `text-metrics COMMAND ...`."""

import importlib
import os
import sys
from collections.abc import Sequence

import text_metrics
from text_metrics import FOLDER, METRICS
from text_metrics.console import EXIT_CODES, Parser

# The modules in `text_metrics.commands` whose `main` runs them, and their purposes.
COMMANDS = {
    "demo": ("demo", "score two sets of sentences by the metrics of diversity"),
    "score": ("score", "score a file of texts, of any size"),
    "report": ("report", "compare many systems in one report: diversity, quality, likeness, collapse"),
    "compare": ("compare", "compare two systems"),
    "choose": ("choose", "choose a diverse subset of texts"),
    "probe": ("probe", "ask a model questions, and compare its answers with people's"),
    "cluster-answers": ("cluster_answers", "cluster people's answers, or a model's texts, by a chat model"),
    "meta-eval": ("meta_eval", "evaluate metrics of diversity on pairs of sets"),
    "rate-quality": ("rate_quality", "rate texts by a language model: which make sense"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    name, *options = (sys.argv[1:] if words is None else words) or ["--help"]
    if "_ARGCOMPLETE" in os.environ:
        _, name, *options = [*os.environ["COMP_LINE"].split(), ""]
        if any(options):
            # The command's own options, as if it were the program.
            os.environ["_ARGCOMPLETE"] = "2"
        else:
            name = ""
    if name in COMMANDS:
        sys.argv = [f"text-metrics {name}", *options]
        return importlib.import_module(f"text_metrics.commands.{COMMANDS[name][0]}").main()
    codes = "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    about = f"Metrics: {', '.join(METRICS)}\nCard of a metric: {FOLDER / 'METRIC' / 'README.md'}\nExit codes: {codes}"
    parser = Parser(about, prog="text-metrics")
    parser.add_argument("--version", action="version", version=f"text-metrics {text_metrics.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name_of_command, (_, purpose) in COMMANDS.items():
        commands.add_parser(name_of_command, help=purpose)
    parser.parse_args([name])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
