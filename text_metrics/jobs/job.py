"""A job: rows of a file joined to units, processed in pieces, here or on a cluster, and written to one file."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, filterfalse, islice, takewhile
from operator import attrgetter
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from text_metrics.console import Notices
from text_metrics.core_api import Signature
from text_metrics.files.columns import without_value
from text_metrics.files.rows import Row, Source
from text_metrics.files.sets import Reader, Unit, total_marks
from text_metrics.files.systems import count_repeats
from text_metrics.files.writer import write_rows
from text_metrics.jobs.on_ray import score_on_ray
from text_metrics.jobs.saved import SavedJob, lacks_lines
from text_metrics.options import warn_of_marks
from text_metrics.texts import Marks, to_signature

# A job ends if this many rows are bad and none is good.
HOPELESS_ROWS = 1000
# Errors of the values of a row, in any code.
BAD_VALUES = (TypeError, ValueError, ArithmeticError, RecursionError)

Rows = list[dict[str, Any]]
Facts = Iterator[dict[str, Any]]


@dataclass
class Job:
    """A file whose rows are scored in numbered pieces of whole units; another process has a copy.

    saved : the output, and the pieces that are done
    score : scores units together; a unit that cannot be scored has errors in its rows
    finish : returns, for units and their scores, the facts that the summary needs, and the rows to write
    n_texts : the least number of texts of a piece, which are processed together
    schema : returns the output column types, where known, once the reader is prepared
    """

    saved: SavedJob
    source: Source
    reader: Reader
    score: Callable[[list[Unit]], Any]
    finish: Callable[[list[Unit], Any], tuple[dict[str, Any], Rows]]
    n_texts: int
    schema: Callable[[Reader], pa.Schema | None] | None = None

    def __post_init__(self) -> None:
        # The pieces to read next, and the number of the first: the file is read once if the numbers grow.
        self._pieces: Iterator[list[Unit]] = iter(())
        self._number = sys.maxsize

    def run(self, summarize: Callable[[Facts], dict[str, Any]]) -> dict[str, Any]:
        """Score the pieces that are not done, write the output, and return the summary.

        `summarize` makes the rest of the summary, besides counts, from the facts of all pieces, in order.
        """
        saved = self.saved
        with saved.opened() as done:
            self.reader.prepare(self.source)
            n_pieces, counts, marks = self._score_all(done)
            summary = summarize(chain.from_iterable(saved.record(number)["facts"] for number in range(n_pieces)))
            if lacks_lines(counts):
                summary = _without_means(summary)
            summary = self._signed(summary, marks) | counts | {"command": saved.decisive}
            if saved.out.suffix != ".json":
                schema = None if self.schema is None else self.schema(self.reader)
                with saved.written(saved.out) as temporary:
                    write_rows(partial(saved.rows, n_pieces), schema, temporary, saved.out.suffix)
            saved.write_bad(n_pieces)
        return summary

    def _signed(self, summary: dict[str, Any], marks: Marks) -> dict[str, Any]:
        """Add the kinds that were stripped from texts to a summary and its signature, and the numbers of texts."""
        kinds = self.reader.strip
        if not kinds:
            return summary
        signed = to_signature(kinds)
        if "signature" in summary:
            signed = {"signature": str(Signature.parse(summary["signature"]).merge(**signed))}
        return summary | signed | {"stripped": marks.counts(kinds)}

    def _score_all(self, done: list[int]) -> tuple[int, Counter[str], Marks]:
        """Score the pieces that are not done, and name bad rows; returns the number of pieces, counts and marks.

        Raises a ValueError if no row can be scored, or none of the first ones of the file: the settings may be wrong.
        """
        saved = self.saved
        options = saved.options
        numbers = filterfalse(set(done).__contains__, count())
        if options.engine == "ray":
            scored = score_on_ray(options, self, numbers)
        else:
            scored = takewhile(self.score_piece, numbers)
        held: list[str] = []
        notices = Notices()
        counts = Counter[str]()
        marks = Marks()
        is_any_good = False
        n_pieces = 0
        with tqdm(unit=" texts", unit_scale=True, disable=options.quiet) as bar:
            for number in _in_order(chain(done, scored)):
                record = saved.record(number)
                n_pieces = number + 1
                held += [f"{saved.decisive['data']}, row {row}: {error}" for row, error, _ in record["bad"]]
                is_any_good = is_any_good or bool(record["facts"])
                if is_any_good:
                    for line in held:
                        notices.add(line)
                    held.clear()
                elif len(held) >= HOPELESS_ROWS:
                    break
                counts.update(record["counts"])
                marks += record["marks"]
                bar.update(record["counts"]["n_texts"])
        if not is_any_good:
            # The next command may have other settings.
            saved.remove()
            why = f"none of {len(held):,} rows can be scored. The first is {held[0]}" if held else "it has no rows."
            raise ValueError(f"{saved.decisive['data']}: {why}")
        notices.end("rows were skipped")
        warn_of_marks(marks)
        return n_pieces, counts, marks

    def score_piece(self, number: int) -> bool:
        """Score a piece, and save its record and its rows; returns False if the file has fewer pieces."""
        if number < self._number:
            self.saved.check_machine()
            self._pieces = self._read()
            self._number = 0
        units = next(islice(self._pieces, number - self._number, None), None)
        self._number = number + 1
        if units is None:
            return False
        good = [unit for unit in units if unit.rows]
        facts: list[dict[str, Any]] = []
        output: Rows = []
        for valid, scores in self._score_valid(good):
            part_facts, part_rows = self.finish(valid, scores)
            facts.append(part_facts)
            output += part_rows
        # A unit that cannot be scored has errors in all its rows.
        scored = [unit for unit in good if not unit.rows[0].error]
        rows: list[Row] = []
        for unit in units:
            rows += unit.rows
            rows += unit.bad
        bad = [row for row in rows if row.error]
        counts = {
            "n_texts": sum(len(unit.texts) for unit in scored),
            "n_incomplete": sum(unit.is_incomplete for unit in units),
            "n_bad": len(bad),
            "n_bad_lines": sum(row.n_lines for row in bad),
            "n_rows": len(rows),
        }
        if self.reader.keys.id is not None and not self.reader.chooses:
            counts |= count_repeats(units)
        shown: list[tuple[int, str, str | None]] = []
        for row in sorted(bad, key=attrgetter("number")):
            if self.saved.options.no_texts:
                shown.append((row.number, without_value(row.error), None))
            else:
                shown.append((row.number, row.error, row.show()))
        record = {"counts": counts, "marks": total_marks(scored), "bad": shown, "facts": facts}
        self.saved.write(number, record, output)
        return True

    def _score_valid(self, units: list[Unit]) -> list[tuple[list[Unit], Any]]:
        """Score units together, or if that fails, in halves; returns those that were scored, with their scores."""
        try:
            return [(units, self.score(units))] if units else []
        except BAD_VALUES as error:
            if len(units) > 1:
                half = len(units) // 2
                return self._score_valid(units[:half]) + self._score_valid(units[half:])
            (unit,) = units
            first = unit.rows[0].number
            last = unit.rows[-1].number
            place = f"its set, rows {first} to {last}, cannot be scored: " if first < last else ""
            for row in unit.rows:
                row.error = f"{place}{str(error) or type(error).__name__}"
            return []

    def _read(self) -> Iterator[list[Unit]]:
        """Read the file in pieces, which are the same at each reading."""
        piece: list[Unit] = []
        size = 0
        for unit in self.reader.units(self.source):
            piece.append(unit)
            # A unit of bad rows counts too, because these are kept in memory.
            size += len(unit.texts) or 1
            if size >= self.n_texts:
                yield piece
                piece = []
                size = 0
        if piece:
            yield piece


def _without_means(summary: dict[str, Any]) -> dict[str, Any]:
    """Replace the means of a summary by None, because they do not describe the whole file; counts stay."""
    counted: dict[str, Any] = {}
    for name, value in summary.items():
        counted[name] = None if isinstance(value, float) else value
    if "estimates" in counted:
        counted["estimates"] = dict.fromkeys(counted["estimates"])
    return counted


def _in_order(numbers: Iterator[int]) -> Iterator[int]:
    """Yield the numbers of pieces in the order of the file; a cluster has any order."""
    ready: set[int] = set()
    following = 0
    for number in numbers:
        ready.add(number)
        while following in ready:
            yield following
            following += 1
