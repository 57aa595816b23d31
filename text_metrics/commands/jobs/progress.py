"""Progress of a job on stderr, which rows cannot be scored, and how a command on the rows of a file ends."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tqdm import tqdm

from text_metrics.commands.jobs.batches import Batch, cause_of
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State
from text_metrics.commands.shared.command import EXIT_INTERRUPTED, EXIT_USAGE, describe_os_error

EXIT_BAD_ROWS, EXIT_STRICT = 3, 4
# A job ends if this many rows are bad before the first good one, however they fall into batches.
_HOPELESS_ROWS = 1000


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


class NothingGoodError(UsageError):
    """No row can be scored, or too many before the first that can."""


def watch(command: Command, source: Source, batches: Iterator[Batch], name: str, state: State) -> Iterator[Batch]:
    """Pass batches on as they come, with a progress bar and a line for each bad row.

    As long as no row is good, these lines are held back: if all have one error, it is said once, as that of the job.
    Raises a BadRowError at the first bad row, with --strict; and a NothingGoodError if no row can be scored, or none of
    many at the beginning: then the settings may be wrong.
    """
    began, n_texts = time.monotonic(), 0
    n_bad, held = state.n_bad_first, list[tuple[int, str]]()

    def report() -> None:
        for number, error in held:
            tqdm.write(f"{command.data}, row {number}: {error}", file=sys.stderr)
        held.clear()

    with tqdm(
        total=source.total, initial=state.done, unit=source.unit, unit_scale=True, disable=command.quiet, desc=name
    ) as bar:
        nothing_good = not state.merged
        for batch in batches:
            held += [(number, error) for number, error, _ in batch.bad]
            if command.strict and held:
                del held[1:]
                report()
                raise BadRowError
            if nothing_good and batch.bad:
                n_bad += batch.n_bad_first
                if n_bad >= _HOPELESS_ROWS:
                    raise _nothing_good(f"{command.data}: none of the first {_HOPELESS_ROWS:,} rows", held, report)
            nothing_good = nothing_good and batch.result is None
            if not nothing_good:
                report()
            yield batch
            n_texts += batch.n_texts
            bar.set_postfix_str(f"{n_texts / (time.monotonic() - began):.0f} texts/s")
            bar.update(batch.done - bar.n)
    if nothing_good:
        if not held:
            raise NothingGoodError(f"{command.data} has no row that can be scored.")
        raise _nothing_good(f"{command.data}: no row", held, report)


def _nothing_good(rows: str, held: list[tuple[int, str]], report: Callable[[], None]) -> NothingGoodError:
    """Make the error of a file without a good row; the errors of its rows are reported first if they differ."""
    causes = list(dict.fromkeys(cause_of(error) for _, error in held))
    if len(causes) > 1:
        report()
    return NothingGoodError(f"{rows} can be scored: {causes[0]}")


def show(summary: Mapping[str, Any]) -> int:
    """Print the summary of a job that is done; returns the exit code."""
    print(json.dumps(summary, indent=2))
    # Only text-metrics choose goes on with the rest of a set that lacks a row.
    is_short = summary.get("n_incomplete", 0) and not summary["command"]["drop_incomplete"]
    return EXIT_BAD_ROWS if summary["n_bad"] or is_short else 0


def end(name: str, run: Callable[[], int]) -> int:
    """Run the command of this name, and return its exit code; what is wrong goes to stderr."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BadRowError:
        print("Stopped at this row. Finished batches are saved.", file=sys.stderr)
        return EXIT_STRICT
    except (UsageError, OSError) as error:
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        print(f"{name}: {message}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("Interrupted. Run the same command to continue.", file=sys.stderr)
        return EXIT_INTERRUPTED
