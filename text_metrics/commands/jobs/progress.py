"""Progress of a job on stderr: how far the file is, how fast it goes, and which rows cannot be scored."""

import sys
import time
from collections.abc import Iterator

from tqdm import tqdm

from text_metrics.commands.jobs.batches import Batch
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

    Raises
    ------
    BadRowError
        At the first bad row, with --strict.
    NothingGoodError
        If no row can be scored, or none of many at the beginning: then the settings may be wrong.
    """
    began, n_texts = time.monotonic(), 0
    n_bad, first_error = state.n_bad_first, ""
    with tqdm(
        total=source.total, initial=state.done, unit=source.unit, unit_scale=True, disable=command.quiet, desc=name
    ) as bar:
        nothing_good = not state.merged
        for batch in batches:
            for number, error, _ in batch.bad:
                tqdm.write(f"{command.data}, row {number}: {error}", file=sys.stderr)
                if command.strict:
                    raise BadRowError
            if nothing_good and batch.bad:
                n_bad += batch.n_bad_first
                first_error = first_error or batch.bad[0][1]
                if n_bad >= _HOPELESS_ROWS:
                    raise NothingGoodError(
                        f"{command.data}: none of the first {_HOPELESS_ROWS:,} rows can be scored: {first_error}"
                    )
            nothing_good = nothing_good and batch.result is None
            yield batch
            n_texts += batch.n_texts
            bar.set_postfix_str(f"{n_texts / (time.monotonic() - began):.0f} texts/s")
            bar.update(batch.done - bar.n)
    if nothing_good:
        reason = f"no row can be scored: {first_error}" if first_error else "has no row that can be scored."
        raise NothingGoodError(f"{command.data}{':' * bool(first_error)} {reason}")
