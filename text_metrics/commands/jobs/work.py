"""A job done piece by piece: each is read, processed and written by one function, wherever it runs."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from text_metrics.commands.jobs.grouping import Reader, Unit
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.parts import JobFiles, Parts
from text_metrics.commands.jobs.rows import Piece, Source, show_values
from text_metrics.commands.shared.command import EXIT_INTERRUPTED, EXIT_USAGE, describe_os_error

EXIT_BAD_ROWS, EXIT_STRICT = 3, 4
# A job ends if this many rows are bad and none is good.
HOPELESS_ROWS = 1000


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


class NothingGoodError(UsageError):
    """No row can be scored, or none of many."""


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

    source : the path, the split and the file of lines of a `Source`
    pieces : of the file
    n_texts : texts processed at a time
    open_step : loads what processes units
    """

    source: tuple[Path, str | None, Path]
    pieces: Sequence[Piece]
    reader: Reader
    parts: Parts
    n_texts: int
    open_step: Callable[[], Step]


def score_piece(job: Job, step: Step, number: int) -> None:
    """Process a piece of the file: write its rows to part-N, then its counts and bad rows, and what the summary needs.

    The files follow from the piece alone, so that it does not matter which process writes them, or how often.
    """
    path, split, file = job.source
    rows = Source(path, split, file=file).rows(job.pieces[number])
    bad: list[tuple[int, str, str]] = []
    batches: list[Any] = []
    n_texts = n_incomplete = 0
    with job.parts.write(number) as write:
        for units in _batches(job.reader.units(rows), job.n_texts):
            good = [unit for unit in units if unit.rows]
            done = step(good) if good else Done(None, [])
            write(done.rows)
            batches += [] if done.facts is None else [done.facts]
            bad += [(row.number, row.error, row.raw) for unit in units for row in unit.bad]
            bad += [row for unit, error in done.failed for row in _fail(unit, error)]
            n_texts += sum(len(unit.texts) for unit in good) - sum(len(unit.texts) for unit, _ in done.failed)
            n_incomplete += sum(unit.is_incomplete for unit in units)
    record = {"n_texts": n_texts, "n_incomplete": n_incomplete, "bad": sorted(bad), "batches": batches}
    job.parts.write_record(number, record)


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


# Processes pieces of a job by their numbers; yields the number of each that is done.
Engine = Callable[[Job, Sequence[int]], Iterator[int]]


def do_here(job: Job, numbers: Sequence[int]) -> Iterator[int]:
    """Process pieces in this process."""
    step = job.open_step() if numbers else None
    for number in numbers:
        assert step is not None
        score_piece(job, step, number)
        yield number


def do_all(job: Job, command: Command, name: str, engine: Engine = do_here) -> None:
    """Process the pieces that are not done, with a progress bar, and a line for each bad row.

    Raises a BadRowError if a row is bad, with --strict; and a NothingGoodError if no row can be scored, or none of many
    in the first pieces: then the settings may be wrong.
    """
    numbers = range(len(job.pieces))
    done = [number for number in numbers if job.parts.is_done(number)]
    left = [number for number in numbers if not job.parts.is_done(number)]
    began, n_texts, is_any_good = time.monotonic(), 0, False
    held: list[str] = []
    size = sum((piece.end or 0) - piece.begin for piece in job.pieces)
    with tqdm(total=size or None, unit_scale=True, disable=command.quiet, desc=name) as bar:
        for number in chain(done, engine(job, left)):
            piece, record = job.pieces[number], job.parts.record(number)
            held += [f"{command.data}, row {row}: {error}" for row, error, _ in record["bad"]]
            if command.strict and held:
                print(held[0], file=sys.stderr)
                raise BadRowError
            is_any_good = is_any_good or bool(record["batches"])
            if is_any_good:
                for line in held:
                    tqdm.write(line, file=sys.stderr)
                held.clear()
            elif len(held) >= HOPELESS_ROWS:
                break
            n_texts += record["n_texts"]
            bar.set_postfix_str(f"{n_texts / (time.monotonic() - began):.0f} texts/s")
            bar.update((piece.end or 0) - piece.begin)
    if not is_any_good:
        rows = f", of which the first is {held[0]}" if held else ""
        raise NothingGoodError(f"{command.data}: none of {len(held):,} rows can be scored{rows}")


def records(job: Job) -> Iterator[dict[str, Any]]:
    """Read the records of all pieces, in order."""
    return map(job.parts.record, range(len(job.pieces)))


def count(of_pieces: Iterator[dict[str, Any]]) -> dict[str, int]:
    """Add up the counts of all pieces."""
    total = Counter[str]()
    for record in of_pieces:
        total.update(n_texts=record["n_texts"], n_bad=len(record["bad"]), n_incomplete=record["n_incomplete"])
    return dict(total)


def show(summary: Mapping[str, Any], files: JobFiles) -> int:
    """Print the summary of a job that is done, and where its files are; returns the exit code."""
    print(json.dumps(summary, indent=2))
    print(f"The rows are in {files.out}.", file=sys.stderr)
    if summary["n_bad"]:
        print(f"The rows that were set aside are in {files.bad}.", file=sys.stderr)
    return EXIT_BAD_ROWS if summary["n_bad"] or summary["n_incomplete"] else 0


def end(name: str, run: Callable[[], int]) -> int:
    """Run the command of this name, and return its exit code; what is wrong goes to stderr."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BadRowError:
        print("Stopped at this row. Finished pieces are saved.", file=sys.stderr)
        return EXIT_STRICT
    except (UsageError, OSError) as error:
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        print(f"{name}: {message}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("Interrupted. Run the same command to continue.", file=sys.stderr)
        return EXIT_INTERRUPTED
