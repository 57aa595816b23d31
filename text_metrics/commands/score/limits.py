"""Limits of the numbers in a summary, for checks in CI: --fail-under and --fail-over."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from text_metrics.commands.jobs.options import Command, UsageError

EXIT_LIMIT = 5


def parse_limits(pairs: Sequence[str], name: str) -> dict[str, float]:
    """Read the NAME=VALUE pairs of an option.

    Raises
    ------
    ValueError
        If a pair is not of this form, the value is not a number, or a name is given twice.
    """
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


def exit_code(command: Command, summary: Mapping[str, Any], code: int) -> int:
    """Return the exit code of a job that ended with a code: 5 if a number of its summary is beyond a limit, or null.

    Raises
    ------
    UsageError
        If the summary has no such number.
    """
    numbers = {name: value for name, value in summary.items() if value is None or isinstance(value, (int, float))}
    for option, limits in (("under", command.fail_under), ("over", command.fail_over)):
        for name, limit in limits.items():
            if name not in numbers:
                raise UsageError(
                    f"--fail-{option} {name}: the summary has no such number. It has {', '.join(numbers)}."
                )
            value = numbers[name]
            if value is None or (value < limit if option == "under" else value > limit):
                print(f"{name} is {'null' if value is None else value}: --fail-{option} {limit:g}.", file=sys.stderr)
                code = EXIT_LIMIT
    return code
