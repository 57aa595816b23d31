"""A job done piece by piece, here or on a cluster, and how its command ends."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tqdm import tqdm

from text_metrics.commands.jobs.job import Job, score_piece
from text_metrics.commands.jobs.on_ray import do_on_ray
from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.parts import JobFiles
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.tables import join
from text_metrics.commands.shared.command import EXIT_INTERRUPTED, EXIT_USAGE, describe_os_error

EXIT_BAD_ROWS, EXIT_STRICT = 3, 4
# A job ends if this many rows are bad and none is good.
HOPELESS_ROWS = 1000

Records = Callable[[], Iterator[dict[str, Any]]]


class BadRowError(Exception):
    """A row that cannot be scored, with --strict."""


class NothingGoodError(UsageError):
    """No row can be scored, or none of many."""


def run_job(
    job: Job,
    name: str,
    source: Source,
    files: JobFiles,
    n_rows: int | None,
    summarize: Callable[[Records, dict[str, int]], dict[str, Any]],
) -> dict[str, Any]:
    """Do the pieces of a job that are not done, write its output, and return its summary.

    Parameters
    ----------
    n_rows : of a piece; None if the file is one piece
    summarize : from a function that reads the records of all pieces, in order, and their counts
    """
    with files.opened(source, n_rows) as (lines, pieces):
        job = job._replace(file=lines.file, pieces=pieces, folder=files.folder)

        def records() -> Iterator[dict[str, Any]]:
            return map(job.parts.record, range(len(pieces)))

        try:
            _do_all(job, name)
        except NothingGoodError:
            # The next command may have other settings.
            files.remove()
            raise
        counts = Counter[str]()
        for record in records():
            counts.update(n_texts=record["n_texts"], n_bad=len(record["bad"]), n_incomplete=record["n_incomplete"])
        summary = {**summarize(records, dict(counts)), **counts, "command": files.decisive}
        if files.out.suffix != ".json":
            join(job.parts, len(pieces), files.out)
        files.write_bad(row for record in records() for row in record["bad"])
    return summary


def do_here(job: Job, numbers: Sequence[int]) -> Iterator[int]:
    """Process pieces in this process; yields the number of each that is done."""
    step = job.open_step() if numbers else None
    for number in numbers:
        assert step is not None
        score_piece(job, step, number)
        yield number


def _do_all(job: Job, name: str) -> None:
    """Process the pieces that are not done, with a progress bar, and a line for each bad row.

    Raises a BadRowError if a row is bad, with --strict; and a NothingGoodError if no row can be scored, or none of many
    in the first pieces: then the settings may be wrong.
    """
    command, numbers = job.command, range(len(job.pieces))
    engine = do_on_ray if command.engine == "ray" else do_here
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
        why = f"none of {len(held):,} rows can be scored. The first is {held[0]}" if held else "it has no rows."
        raise NothingGoodError(f"{command.data}: {why}")


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
