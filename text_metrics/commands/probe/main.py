"""Ask a model questions that have many right answers, and report how its answers compare with people's.

    text-metrics probe ask questions.jsonl answers.jsonl --model gpt-4o --samples 100
    text-metrics probe report targets.jsonl answers.jsonl --html report.html
    text-metrics probe annotators targets.jsonl
    text-metrics probe sensitivity targets.jsonl

Each command has its own --help.
"""

from text_metrics.commands.probe import annotators, ask, report, sensitivity
from text_metrics.commands.shared.command import command, make_parser


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for part in (ask, report, annotators, sensitivity):
        part.add_parser(commands)
    arguments = parser.parse_args()
    try:
        return arguments.run(arguments)
    except TypeError as error:  # of a file with values of another kind
        raise ValueError(str(error)) from error
