"""Batches of units, read from a file and with their scores, and the engine that does the work on them.

Nothing in this folder imports torch, so that the process that reads for a cluster starts fast.
"""

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command
from text_metrics.commands.jobs.pieces import WHOLE, Piece
from text_metrics.commands.jobs.row_files import RowFiles
from text_metrics.commands.jobs.rows import Row, Source, show_values
from text_metrics.commands.shared.columns import Column

_OF_SET = re.compile(r"^its set, rows \d+ to \d+, cannot be scored: ")


def batches(units: Iterator[Unit], n_texts: int) -> Iterator[list[Unit]]:
    """Batch units; a batch is complete once it holds `n_texts` texts."""
    while True:
        batch: list[Unit] = []
        size = 0
        # Units have no cycles; the garbage collector would visit all units of a batch again and again.
        with _collecting_nothing():
            for unit in units:
                batch.append(unit)
                # A unit of bad rows counts too, because these are kept in memory.
                size += len(unit.texts) or 1
                if size >= n_texts:
                    break
        if not batch:
            return
        yield batch


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# A batch of units, and how far the file was read, in the units of `Source.total`.
Reading = tuple[list[Unit], int]


class Job(NamedTuple):
    """What a process needs to take part in a job, as plain data that can be sent.

    items : what a row holds: SETS, TEXTS or QUESTIONS
    columns : with the values of arguments
    reference : with --one-set, people's answers
    start : how many rows of the file were read before
    in_pieces : whether each process reads pieces of the file; otherwise, one process reads for all
    rows : where each process writes rows; None if they are sent to the command
    """

    command: Command
    items: str
    columns: tuple[Column, ...] = ()
    reference: Any = None
    start: int = 0
    in_pieces: bool = False
    rows: RowFiles | None = None


def read_items(job: Job) -> Iterator[Piece | Reading]:
    """Yield what is sent to processes, in order: pieces of the file, or batches. No batch has rows of two pieces."""
    command = job.command
    source = Source(command.data, command.split)
    # The rows of a key may be in two pieces.
    is_whole = command.group_key is not None
    pieces = source.pieces(job.start, command.batch_size, command.set_size or 1)
    read = _reader(job, source)
    for piece in [WHOLE] if is_whole else pieces:
        if job.in_pieces:
            yield piece
        else:
            yield from read(piece)


def open_reader(job: Job) -> Callable[[Any], Iterable[Reading]]:
    """Return the function that makes batches of what `read_items` yields."""
    if not job.in_pieces:
        return lambda reading: [reading]
    return _reader(job, Source(job.command.data, job.command.split))


def _reader(job: Job, source: Source) -> Callable[[Piece], Iterator[Reading]]:
    reader = Reader(job.command, job.items, job.columns)

    def read(piece: Piece) -> Iterator[Reading]:
        start = max(job.start, piece.first)
        for units in batches(reader.units(source.rows(start, piece=piece), start), job.command.batch_size):
            yield units, source.done

    return read


class Batch(NamedTuple):
    """Units that were scored together.

    result : of all units, or what the command needs of it; None where there is no unit that can be scored
    bad : what was set aside: the number of the row, the error, and the line
    end : how many rows of the file were read up to here
    n_texts : texts of the units
    done : how far the file was read, in the units of `Source.total`
    n_bad_first : how many rows are bad before the first good one, without those set aside with their set
    n_incomplete, n_dropped : sets that lack a row, and rows left out with them by --drop-incomplete
    """

    units: list[Unit]
    scores: list[Any]
    result: Any
    bad: list[tuple[int, str, str]]
    end: int
    n_texts: int
    done: int = 0
    n_bad_first: int = 0
    n_incomplete: int = 0
    n_dropped: int = 0


def make_batch(
    units: Sequence[Unit],
    good: list[Unit],
    scores: list[Any],
    result: dict[str, Any] | None,
    failed: Sequence[tuple[int, str, str]] = (),
) -> Batch:
    """Make a batch of units, of which the good ones are scored, and the rows of others failed."""
    bad = [*failed, *(_as_bad(row) for unit in units for row in unit.bad)]
    return Batch(
        good,
        scores,
        result,
        sorted([*bad, *(_as_bad(row) for unit in units for row in unit.excluded)]),
        units[-1].end,
        n_texts=sum(len(unit.texts) for unit in good),
        n_bad_first=sum(not good or number < good[0].numbers[0] for number, _, _ in bad),
        n_incomplete=sum(unit.is_incomplete for unit in units),
        n_dropped=sum(unit.n_dropped for unit in units),
    )


def _as_bad(row: Row) -> tuple[int, str, str]:
    return row.number, row.error, row.raw


def cause_of(error: str) -> str:
    """Return why a row cannot be scored, without the rows of its set."""
    return _OF_SET.sub("", error)


def fail_unit(unit: Unit, error: Exception) -> list[tuple[int, str, str]]:
    """Name all rows of a unit that cannot be scored."""
    numbers = unit.numbers
    rows = f"its set, rows {numbers[0]} to {numbers[-1]}, cannot be scored: " if len(numbers) > 1 else ""
    return [(number, f"{rows}{error}", show_values(row)) for number, row in zip(numbers, unit.rows, strict=True)]


# What each process calls once: it returns the function of an item, which returns its results.
OpenWork = Callable[[], Callable[[Any], Iterable[Any]]]


class Engine:
    """Where work is done: in this process alone, unless a subclass has others."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: OpenWork) -> Iterator[Any]:
        """Map over the items the function that `open_work` returns; yields all results in the order of the items."""
        yield from chain.from_iterable(map(open_work(), items()))

    def reads(self, path: Path) -> bool:
        """Say whether each process can read a file."""
        return True

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays in a form that can be sent to any process."""
        return blocks
