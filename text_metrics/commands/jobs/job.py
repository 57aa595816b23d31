"""A job, and the one function that does a piece of it, wherever it runs."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command
from text_metrics.commands.jobs.parts import Parts
from text_metrics.commands.jobs.rows import Piece, Source, show_values


class Done(NamedTuple):
    """What was made of units.

    facts : numbers for the summary, as JSON; None if no unit is good
    rows : to write
    failed : the units that cannot be scored, and why
    """

    facts: dict[str, Any] | None
    rows: list[dict[str, Any]]
    failed: Sequence[tuple[Unit, str]] = ()


Step = Callable[[list[Unit]], Done]


class Job(NamedTuple):
    """What a process needs to take part in a job, as plain data that can be sent.

    open_step : loads what processes units
    schema : of the rows to write; None if the columns have no types
    n_texts : texts processed at a time
    file : lines of the rows, of which `pieces` are read
    """

    command: Command
    reader: Reader
    open_step: Callable[[], Step]
    schema: pa.Schema | None
    n_texts: int
    file: Path = Path()
    pieces: Sequence[Piece] = ()
    folder: Path = Path()

    @property
    def parts(self) -> Parts:
        """The files of the pieces that are done."""
        return Parts(self.folder, self.schema)


def score_piece(job: Job, step: Step, number: int) -> None:
    """Process a piece of the file: write its rows to part-N, then its counts and bad rows, and what the summary needs.

    The files follow from the piece alone, so that it does not matter which process writes them, or how often.
    """
    rows = Source(job.command.data, job.command.split, file=job.file).rows(job.pieces[number])
    bad: list[tuple[int, str, str]] = []
    facts: list[Any] = []
    n_texts = n_incomplete = 0
    with job.parts.write(number) as write:
        for units in _batches(job.reader.units(rows), job.n_texts):
            good = [unit for unit in units if unit.rows]
            done = step(good) if good else Done(None, [])
            write(done.rows)
            facts += [] if done.facts is None else [done.facts]
            bad += [(row.number, row.error, row.raw) for unit in units for row in unit.bad]
            bad += [row for unit, error in done.failed for row in _fail(unit, error)]
            n_texts += sum(len(unit.texts) for unit in good) - sum(len(unit.texts) for unit, _ in done.failed)
            n_incomplete += sum(unit.is_incomplete for unit in units)
    job.parts.write_record(
        number, {"n_texts": n_texts, "n_incomplete": n_incomplete, "bad": sorted(bad), "batches": facts}
    )


def _batches(units: Iterator[Unit], n_texts: int) -> Iterator[list[Unit]]:
    """Batch units; a batch is complete once it holds `n_texts` texts."""
    size, batch = 0, list[Unit]()
    for unit in units:
        batch.append(unit)
        # A unit of bad rows counts too, because these are kept in memory.
        size += len(unit.texts) or 1
        if size >= n_texts:
            yield batch
            size, batch = 0, []
    if batch:
        yield batch


def _fail(unit: Unit, error: str) -> list[tuple[int, str, str]]:
    """Name all rows of a unit that cannot be scored."""
    numbers = unit.numbers
    rows = f"its set, rows {numbers[0]} to {numbers[-1]}, cannot be scored: " if len(numbers) > 1 else ""
    return [(number, f"{rows}{error}", show_values(row)) for number, row in zip(numbers, unit.rows, strict=True)]
