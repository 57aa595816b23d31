"""Progress of a job on stderr: how far the file is, how fast it goes, and which rows cannot be scored."""

import sys
import time
from collections.abc import Iterator

from tqdm import tqdm

from scripts._score.command import Command, UsageError
from scripts._score.rows import Source
from scripts._score.store import State
from scripts._score.work import Batch


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


def watch(command: Command, source: Source, found: Iterator[Batch], name: str, state: State) -> Iterator[Batch]:
    """Pass batches on as they come, with a progress bar and a line for each bad row.

    Raises
    ------
    BadRowError
        At the first bad row, with --strict.
    UsageError
        If no row of the first batch can be scored: then the settings may be wrong.
    """
    began, n_texts = time.monotonic(), 0
    with tqdm(
        total=source.total, initial=state.done, unit=source.unit, unit_scale=True, disable=command.quiet, desc=name
    ) as bar:
        is_first = not state.merged
        for batch in found:
            for number, error, _ in batch.bad:
                tqdm.write(f"{command.data}, row {number}: {error}", file=sys.stderr)
                if command.strict:
                    raise BadRowError
            if batch.bad and batch.result is None and is_first:
                raise UsageError(f"{command.data}: no row of the first batch can be scored: {batch.bad[0][1]}")
            is_first = is_first and batch.result is None
            yield batch
            n_texts += batch.n_texts
            bar.set_postfix_str(f"{n_texts / (time.monotonic() - began):.0f} texts/s")
            bar.update(batch.done - bar.n)
