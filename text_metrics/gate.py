"""A gate: limits on the numbers of a command, and the history of summaries that a new one is compared with."""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from text_metrics.core_api import Estimate
from text_metrics.files.storage import named_writing, open_file, parse_json, to_json
from text_metrics.files.written import mark
from text_metrics.options import Options

# The numbers of --against, as limits name them.
DRIFT = ("difference", "difference_low", "difference_high")
# The entry of a line of a history: the names of the limits that its numbers missed.
_MISSED = "missed"


def check_limits(options: Options, names: Iterable[str]) -> None:
    """Raise a ValueError for a limit on a number that is not among `names`."""
    known = dict.fromkeys(names)
    for name, _ in chain(options.fail_under, options.fail_over):
        if name not in known:
            raise ValueError(f"--fail-under or --fail-over {name}: the summary has {', '.join(known)}.")


def missed_limits(options: Options, values: Mapping[str, float | None], unjudged: Collection[str] = ()) -> list[str]:
    """Name on stderr the numbers that are beyond their limits, or null; returns their names.

    `unjudged` are those that are null for lack of earlier summaries, which is no miss.
    """
    missed = []
    for option, sign in (("under", 1), ("over", -1)):
        for name, limit in getattr(options, f"fail_{option}"):
            if name in unjudged:
                print(f"{name} is not judged yet: it needs more summaries in {options.against}.", file=sys.stderr)
                continue
            value = values[name]
            # NaN is beyond any limit.
            if value is None or not sign * value >= sign * limit:
                print(f"{name} is {json.dumps(value)}: --fail-{option} {limit:g}.", file=sys.stderr)
                missed.append(name)
    return missed


def ends(interval: list[float] | None, prefix: str = "") -> dict[str, float | None]:
    """Return the ends of an interval by their names in limits, `low` and `high`, which may have a prefix."""
    low, high = interval or (None, None)
    return {f"{prefix}low": low, f"{prefix}high": high}


def drift_values(compared: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the numbers of a comparison by `compare_with_history`, by their names in limits: those of DRIFT."""
    difference = compared.get("difference", {"mean": None, "interval": None})
    return {"difference": difference["mean"], **ends(difference["interval"], "difference_")}


def read_history(path: Path) -> list[dict[str, Any]]:
    """Read the summary of a file, or the summaries of a history, a line each: of one job, the last one.

    Raises a ValueError that names a line which is no summary.
    """
    with open_file(path) as file:
        data = file.read()
    lines = data.splitlines() if data.count(b'"written_by"') != 1 else [data]
    by_job: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        try:
            summary = parse_json(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not valid JSON: {error}.") from None
        if not isinstance(summary, dict) or not {"command", "signature"} <= summary.keys():
            raise ValueError(f"{path}, line {number} is not a summary of text-metrics score.")
        job = _job(summary)
        by_job.pop(job, None)
        by_job[job] = summary
    return list(by_job.values())


def append(path: Path, summary: Mapping[str, Any], missed: list[str]) -> None:
    """Append a summary to a history, as one line, with the names of the limits that it missed; a retry adds no line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = to_json(mark("score") | dict(summary) | {_MISSED: missed})
    with named_writing(path), path.open("a+b") as file:
        file.seek(0)
        lines = file.read().splitlines(keepends=True)
        if f"{line}\n".encode() in lines:
            return
        # A process that was killed may have left a part of a line.
        is_open = bool(lines) and not lines[-1].endswith(b"\n")
        file.write(("\n" if is_open else "").encode() + f"{line}\n".encode())


def history_of(options: Options) -> list[dict[str, Any]]:
    """Read the history of --against; without it, and for the first night of a history, it is empty."""
    is_first = options.against == options.history and options.history is not None and not options.history.exists()
    return [] if options.against is None or is_first else read_history(options.against)


def compare_with_history(
    summary: Mapping[str, Any], name: str, history: Sequence[Mapping[str, Any]], options: Options
) -> dict[str, Any]:
    """Compare the score of a summary, which has this name, with the last ones of a history.

    Summaries of the same job, of other metrics, without a score, or that missed a limit are left out.

    Returns the entries `n_nights`, `mean` of their scores, `difference` from it and its interval; only the first one
    without any score. Raises a ValueError if a summary has other settings.
    """
    from text_metrics.jobs.summary import merge_signatures
    from text_metrics.statistics import drift

    nights = []
    for night in history:
        if night.get(name) is not None and not night.get(_MISSED) and _job(night) != _job(summary):
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
    return result | drift(_estimate(summary, name), [_estimate(night, name) for night in nights], options.confidence)


def _estimate(summary: Mapping[str, Any], name: str) -> Estimate:
    """Return the estimate of the score of a summary; one set has no error."""
    numbers = summary.get("estimates", {}).get("scores")
    return Estimate(*numbers) if numbers else Estimate(1, summary[name], float("nan"), float("nan"))


def _job(summary: Mapping[str, Any]) -> str:
    return json.dumps(summary["command"], sort_keys=True)
