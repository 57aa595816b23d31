"""The command line of text-metrics score, parsed and checked once."""

import math
from collections.abc import Sequence

from text_metrics.commands.jobs.options import Command, add_arguments, as_usage
from text_metrics.commands.shared.columns import add_columns, parse_columns
from text_metrics.commands.shared.command import make_parser
from text_metrics.commands.shared.settings import CONFIDENCE, add_confidence, add_settings, parse_settings


def parse_command(words: Sequence[str] | None = None, description: str | None = None) -> Command:
    """Read the command line; exits with 2 where argparse cannot read it, and raises a UsageError as `Command` does."""
    parser = make_parser(description)
    add_arguments(parser, "set", "<metric>")
    parser.add_argument("--metric", required=True, help="name of a metric here, or a path that evaluate.load takes")
    parser.add_argument("--reference-key", help="column of people's answers, for probeval; one for each set")
    add_columns(parser)
    add_settings(parser)
    parser.add_argument(
        "--score-key",
        help="column of the scores, the metric's name by default; with it, the names of other results begin with it",
    )
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="this process, or a Ray cluster")
    parser.add_argument(
        "--address", help="host:port or auto: a Ray cluster with this machine in it; else one is started"
    )
    parser.add_argument("--workers", type=int, help="actors on Ray; by default one a GPU, or a core if there is no GPU")
    for option, direction in (("--fail-under", "below"), ("--fail-over", "above")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"end with exit code 5 if this number of the summary is {direction} the value",
        )
    add_confidence(parser, None, f"level of the interval in the summary; {CONFIDENCE} by default")
    options = vars(parser.parse_args(words))
    if options["confidence"] is None and not options["one_set"]:
        options["confidence"] = CONFIDENCE
    with as_usage():
        options |= {name: _parse_limits(options[name], name) for name in ("fail_under", "fail_over")}
        columns, settings = parse_columns(options.pop("column")), parse_settings(options.pop("setting"))
        return Command(settings=settings, columns=columns, **options)


def _parse_limits(pairs: Sequence[str], name: str) -> dict[str, float]:
    """Read the NAME=VALUE pairs of an option; raises a ValueError if one is invalid, or a name is given twice."""
    limits: dict[str, float] = {}
    option = f"--{name.replace('_', '-')}"
    for pair in pairs:
        number, _, text = pair.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or not number:
            raise ValueError(f"{option} must be NAME=VALUE, with a number. Got {pair!r}.")
        if number in limits:
            raise ValueError(f"{option} {number} is given twice: {limits[number]:g} and {value:g}.")
        limits[number] = value
    return limits
