"""Progress of a job on stderr: how far the file is, how fast it goes, and which rows cannot be scored."""

import sys
import time
from collections.abc import Callable, Iterator

from tqdm import tqdm

from text_metrics.commands.jobs.batches import Batch, cause_of
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State

# A job ends if this many rows are bad before the first good one, however they fall into batches.
_HOPELESS_ROWS = 1000


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


class NothingGoodError(UsageError):
    """No row can be scored, or too many before the first that can."""


def watch(command: Command, source: Source, batches: Iterator[Batch], name: str, state: State) -> Iterator[Batch]:
    """Pass batches on as they come, with a progress bar and a line for each bad row.

    As long as no row is good, these lines are held back: if all have one error, it is said once, as that of the job.

    Raises
    ------
    BadRowError
        At the first bad row, with --strict.
    NothingGoodError
        If no row can be scored, or none of many at the beginning: then the settings may be wrong.
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
