"""Rows of a file that keep their columns and their order, and get further columns, such as ratings of their texts."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from text_metrics import options as cli
from text_metrics.console import Notices
from text_metrics.files import listing
from text_metrics.files import storage as files
from text_metrics.files.columns import Column
from text_metrics.files.rows import Row, Source
from text_metrics.files.sets import Keys, Reader, Unit, total_marks
from text_metrics.files.writer import write_rows
from text_metrics.files.written import BAD
from text_metrics.jobs.chat import journal_of
from text_metrics.jobs.saved import is_bad_file
from text_metrics.texts import Marks

_FORMATS = (".jsonl", ".csv", ".parquet")


class KeptRows(NamedTuple):
    """The rows of a file, and its sets or rows with their texts; those that are bad have no texts."""

    source: Source
    units: list[Unit]

    def answers(self) -> dict[int, list[str]]:
        """Return the texts of each row without what was stripped, by the number of the row."""
        answers = {}
        for unit in self.units:
            start = 0
            for row in unit.rows:
                end = start + len(row.texts)
                answers[row.number] = list(unit.texts[start:end])
                start = end
        return answers

    @property
    def marks(self) -> Marks:
        """Counts of the texts that hold more than the answer."""
        return total_marks(self.units)

    @property
    def good(self) -> list[Row]:
        """The rows with texts, in the order of the file."""
        return sorted(chain.from_iterable(unit.rows for unit in self.units), key=attrgetter("number"))

    @property
    def bad(self) -> list[Row]:
        """The rows that are skipped, in the order of the file."""
        return sorted(chain.from_iterable(unit.bad for unit in self.units), key=attrgetter("number"))


class _ObjectSource(Source):
    """A file whose rows are objects: a text, or a list of texts, is an object with `text`."""

    def rows(self, *columns: str) -> Iterator[Row]:
        for row in super().rows(*columns):
            if not row.error:
                row.values = row.as_object()
            yield row


def check_outputs(options: cli.Options, *reads: str | Path) -> None:
    """Raise a ValueError if an output is a file that is read, was not written by a command, or has no known format."""
    out = options.out
    bad = _bad_path(out)
    inputs: list[str | Path] = [options.reads]
    inputs += listing.data_files(options.reads)
    inputs += reads
    files.check_outputs(inputs, [out, bad, journal_of(out)])
    if out.suffix not in _FORMATS:
        raise ValueError(f"--out must be a file that ends in {', '.join(_FORMATS)}. Got {out}.")
    if bad.exists() and not is_bad_file(bad):
        raise ValueError(f"{bad} was not written by this command: rename it, or choose another --out.")


def read(options: cli.Options, added: Sequence[str], reads_sets: bool = False) -> KeptRows:
    """Read a file by the options of `add_rows`, to which the columns `added` will be added; names what is skipped.

    `reads_sets` says that a row without --id-key must be a set, and not one text.

    Raises a ValueError if no row can be used, or if the file has such a column.
    """
    if options.system_key is not None and options.id_key is None:
        raise ValueError("--system-key requires --id-key.")
    path = options.reads
    has_key = options.text_key is not None
    source = (Source if has_key else _ObjectSource)(path, **cli.form_of(options))
    keys = Keys(options.text_key if has_key else "text", options.id_key, options.system_key)
    context = getattr(options, "context_key", None)
    cli.check_strip(options.strip, context is not None)
    columns = [] if context is None else [Column("contexts", context, is_optional=True)]
    reader = Reader(keys, reads_sets, columns=columns, is_scattered=path.is_fifo(), strip=options.strip)
    reader.prepare(source)
    kept = KeptRows(source, list(reader.units(source)))
    if not kept.good:
        first = f" The first is {source.where(kept.bad[0])} {kept.bad[0].error}." if kept.bad else ""
        raise ValueError(f"{path}: none of {len(kept.bad):,} rows can be used.{first}")
    for row in kept.good:
        if taken := row.as_object().keys() & set(added):
            raise ValueError(f"{source.where(row)} has a column {min(taken)!r} already: rename it.")
    notices = Notices()
    for row in kept.bad:
        notices.add(f"{source.where(row)} {row.error}.")
    notices.end("rows were skipped")
    cli.warn_of_marks(kept.marks)
    return kept


def write(options: cli.Options, kept: KeptRows, added: Mapping[int, dict[str, Any]]) -> None:
    """Write the rows with their further columns, by the number of the row, and those that are skipped."""
    lines = [row.as_object() | added[row.number] for row in kept.good]
    out = options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    with files.written_whole(out) as temporary:
        write_rows(lambda: iter([lines]), kept.source.schema, temporary, out.suffix)
    path = _bad_path(out)
    if not kept.bad:
        path.unlink(missing_ok=True)
        return
    files.write_jsonl(path, ({"row": row.number, "error": row.error, "text": row.show()} for row in kept.bad))
    print(f"The rows that were skipped are in {path}.", file=sys.stderr)


def _bad_path(out: Path) -> Path:
    return out.with_name(f"{out.name}{BAD}")
