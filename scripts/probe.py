"""Probe a model with questions that have many right answers: ask it, and report how its answers compare with people's.

    python scripts/probe.py ask questions.jsonl answers.jsonl --model gpt-4o --samples 100
    python scripts/probe.py report targets.jsonl answers.jsonl --html report.html
    python scripts/probe.py annotators targets.jsonl
    python scripts/probe.py sensitivity targets.jsonl

Each command has its own --help.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts._probe import annotators, asking, report, sensitivity  # noqa: E402


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for part in (asking, report, annotators, sensitivity):
        part.add_parser(commands)
    arguments = parser.parse_args(words)
    try:
        return arguments.run(arguments)
    except (TypeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
