# PYTHON_ARGCOMPLETE_OK
"""The command line, `text-metrics COMMAND ...`."""

import importlib
import os
import sys
from collections.abc import Sequence

import text_metrics
from text_metrics import FOLDER, METRICS
from text_metrics.commands.shared.command import Parser

# The modules in `text_metrics.commands` whose `main` runs them, and their purposes.
COMMANDS = {
    "demo": ("demo", "score two sets of sentences by the metrics of diversity"),
    "score": ("score.main", "score a file of texts, of any size"),
    "report": ("report.main", "compare many systems in one report: diversity, quality, likeness, collapse"),
    "compare": ("compare", "compare two systems"),
    "choose": ("choose.main", "choose a diverse subset of texts"),
    "probe": ("probe.main", "ask a model questions, and compare its answers with people's"),
    "cluster-answers": ("cluster_answers", "cluster answers to questions by a chat model, for probeval"),
    "meta-eval": ("meta_eval.main", "evaluate metrics of diversity on pairs of sets"),
    "rate-quality": ("rate_quality", "rate texts by a language model: which make sense"),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code, or 2 if it is unknown."""
    if "_ARGCOMPLETE" in os.environ:
        _, name, *rest = [*os.environ["COMP_LINE"].split(), "", ""]
        if name not in COMMANDS or not any(rest):
            return _complete()
        # The options are those of the command, as if it were the program.
        os.environ["_ARGCOMPLETE"], words = "2", [name]
    name, *options = (sys.argv[1:] if words is None else words) or ["--help"]
    if name in ("-h", "--help"):
        print(f"usage: text-metrics COMMAND ...\n\n{_listed()}\n\nOptions: text-metrics COMMAND --help, --version")
        print(f"Metrics: {', '.join(METRICS)}\nCard of a metric: {FOLDER / 'METRIC' / 'README.md'}")
        return 0
    if name == "--version":
        print(f"text-metrics {text_metrics.__version__}")
        return 0
    if name not in COMMANDS:
        print(f"text-metrics: there is no command {name!r}. The commands are:\n{_listed()}", file=sys.stderr)
        return 2
    sys.argv = [f"text-metrics {name}", *options]
    return importlib.import_module(f"text_metrics.commands.{COMMANDS[name][0]}").main()


def _complete() -> int:
    """Print the commands that complete a line, to the shell that asks for it."""
    parser = Parser(None)
    parser.add_argument("command", choices=COMMANDS)
    parser.parse_args([])
    return 0


def _listed() -> str:
    return "\n".join(f"  {name:<16} {purpose}" for name, (_, purpose) in COMMANDS.items())


if __name__ == "__main__":
    raise SystemExit(main())
