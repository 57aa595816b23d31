"""A gate: limits on the numbers of a command, and the history of summaries that a new one is compared with."""

import fcntl
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from text_metrics.core_api import TIE, Bounds, Estimate
from text_metrics.files.storage import named_writing, open_file, parse_json, to_json
from text_metrics.files.written import mark
from text_metrics.options import Options

# The numbers of --against, as limits name them.
DRIFT = ("difference", "difference_low", "difference_high")
# The entry of a line of a history: the names of the limits that its numbers missed.
_MISSED = "missed"
# The entry of a summary with its --name: what it is of, in a history of several models or sets of prompts.
NAME = "name"


def check_limits(options: Options, names: Iterable[str]) -> None:
    """Raise a ValueError for a limit on a number that is not among `names`, or that is never beyond it."""
    known = dict.fromkeys(names)
    for name, _ in chain(options.fail_under, options.fail_over):
        if name not in known:
            raise ValueError(f"--fail-under or --fail-over {name}: the summary has {', '.join(known)}.")
    for name, limit in options.fail_under:
        if name.startswith("n_") and limit <= 0:
            raise ValueError(f"--fail-under {name}={limit:g}: a count is never below. --fail-over {name}={limit:g}?")


def missed_limits(options: Options, values: Mapping[str, float | None]) -> list[str]:
    """Name on stderr the numbers that are beyond their limits, or null; returns their names.

    A number that is not among the values has no earlier summaries, and is not missed.
    """
    missed = []
    for option, sign in (("under", 1), ("over", -1)):
        for name, limit in getattr(options, f"fail_{option}"):
            if name not in values:
                print(f"{name} is not judged yet: it needs more summaries in {options.against}.", file=sys.stderr)
                continue
            value = values[name]
            # Rounding must not decide.
            tolerance = TIE * (abs(limit) or 1)
            # NaN is beyond any limit.
            if value is None or not sign * (value - limit) >= -tolerance:
                print(f"{name} is {json.dumps(value)}: --fail-{option} {limit:g}.", file=sys.stderr)
                missed.append(name)
    return missed


def ends(mean: float | None, interval: list[float] | None, n_units: float, prefix: str = "") -> dict[str, float | None]:
    """Return the ends of the interval of a mean by their names in limits, `low` and `high`, which may have a prefix.

    Two units or more that do not differ have no interval: their mean is both ends.
    """
    point = mean if n_units > 1 else None
    low, high = interval or (point, point)
    return {f"{prefix}low": low, f"{prefix}high": high}


def drift_values(compared: Mapping[str, Any], options: Options) -> dict[str, float | None]:
    """Return the numbers of a comparison by `compare_with_history`, by their names in limits: those of DRIFT.

    Those that are null until the history, to which the command appends, is longer are left out.
    """
    n_nights = compared["n_nights"]
    difference = compared.get("difference", {"mean": None, "interval": None})
    low, high = difference["interval"] or (None, None)
    values = dict(zip(DRIFT, (difference["mean"], low, high), strict=True))
    is_short = n_nights == 0 or ("difference" in compared and n_nights < min(2, options.last))
    if is_short and options.against == options.history:
        return {name: value for name, value in values.items() if value is not None}
    return values


def read_history(path: Path) -> list[dict[str, Any]]:
    """Read the summary of a file, or the summaries of a history, a line each: of one job, the last one.

    They are in the order of the first summary of each job. Raises a ValueError that names a line that is not a summary.
    """
    with open_file(path) as file:
        data = file.read()
    lines = [data] if _is_json(data) else _whole_lines(data).splitlines()
    by_job: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        try:
            summary = parse_json(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not valid JSON: {error}.") from None
        if not isinstance(summary, dict) or not {"command", "signature"} <= summary.keys():
            raise ValueError(f"{path}, line {number} is not a summary of text-metrics score.")
        by_job[_job(summary)] = summary
    return list(by_job.values())


def append(path: Path, summary: Mapping[str, Any], missed: list[str]) -> None:
    """Append a summary to a history, as one line, with the names of the limits that it missed; a retry adds no line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = to_json(mark("score") | dict(summary) | {_MISSED: missed}).encode()
    with named_writing(path), path.open("a+b") as file:
        # Metrics that run at the same time may have one history.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        data = file.read()
        if line in data.splitlines():
            return
        whole = _whole_lines(data)
        file.truncate(len(whole))
        separator = b"" if whole.endswith(b"\n") or not whole else b"\n"
        file.write(separator + line + b"\n")


def _whole_lines(data: bytes) -> bytes:
    """Return lines of JSON without the last one if it is cut off: its process was killed, or is writing it."""
    end = data.rfind(b"\n") + 1
    return data if _is_json(data[end:]) else data[:end]


def _is_json(data: bytes) -> bool:
    try:
        parse_json(data)
    except ValueError:
        return False
    return True


def history_of(options: Options, name: str) -> list[dict[str, Any]]:
    """Read those summaries of the history of --against that have a score of this name, and the --name of this one.

    Raises a ValueError if there is none, unless the command appends to the history, and if that is of other data.
    """
    has_history = options.history is not None and options.history.exists()
    history = read_history(options.history) if has_history else []
    if options.against is None:
        return []
    grows = options.against == options.history
    if not grows:
        history = read_history(options.against)
    history = [summary for summary in history if summary.get(name) is not None]
    named = [summary for summary in history if summary.get(NAME) == options.name]
    if not named and not grows:
        which = ""
        if options.name is not None:
            which = f" of --name {options.name}"
        elif history:
            which = " without a --name"
        raise ValueError(f"{options.against} has no {name}{which}, with which this one could be compared.")
    return named


def compare_with_history(
    summary: Mapping[str, Any], name: str, history: Sequence[Mapping[str, Any]], options: Options, bounds: Bounds
) -> dict[str, Any]:
    """Compare the score of a summary, which has this name and range, with the last ones of a history.

    Summaries that missed a limit are left out, and for a retry, those from that of the same job on.

    Returns the entries `n_nights`, `mean` of their scores, `difference` from it and its interval; only the first one
    without any score. Raises a ValueError if a summary has other settings.
    """
    from text_metrics.jobs.summary import merge_signatures
    from text_metrics.statistics import difference_bounds, drift

    nights = []
    for night in history:
        if _job(night) == _job(summary):
            break
        if not night.get(_MISSED):
            nights.append(night)
    nights = nights[-options.last :]
    result: dict[str, Any] = {"n_nights": len(nights)}
    try:
        for night in nights:
            merge_signatures(night["signature"], summary["signature"])
    except ValueError as error:
        raise ValueError(f"{options.against}: {error} Begin another history.") from None
    if not nights or summary[name] is None:
        return result
    earlier = [_estimate(night, name) for night in nights]
    possible = difference_bounds(bounds, [_size(summary), sum(map(_size, nights)) / len(nights)])
    return result | drift(_estimate(summary, name), earlier, options.confidence, possible)


def _size(summary: Mapping[str, Any]) -> float:
    """Return the mean number of texts of a set, by which its score may be bounded."""
    return summary["n_texts"] / summary["n_scores"] if summary.get("n_scores") else math.inf


def _estimate(summary: Mapping[str, Any], name: str) -> Estimate:
    """Return the estimate of the score of a summary; one set has no error."""
    numbers = summary.get("estimates", {}).get("scores")
    return Estimate(*numbers) if numbers else Estimate(1, summary[name], float("nan"), float("nan"))


def _job(summary: Mapping[str, Any]) -> str:
    return json.dumps([summary.get(NAME), summary["command"]], sort_keys=True)
