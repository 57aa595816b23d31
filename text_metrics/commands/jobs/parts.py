"""The files of a job: what is done of it, piece by piece, such that a kill at any moment loses no piece."""

import fcntl
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.pieces import cut
from text_metrics.commands.jobs.rows import Piece, Source
from text_metrics.commands.shared.files import write_text, written_whole
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.settings import cache_of, paths_of

# Writes rows.
Write = Callable[[list[dict[str, Any]]], object]


class Parts(NamedTuple):
    """A folder with two files for each piece that is done: its rows, part-N, and written last its record, part-N.json.

    schema : of the rows, which are then kept as Parquet; None keeps them as JSON lines
    """

    folder: Path
    schema: pa.Schema | None

    def path(self, number: int) -> Path:
        """Return the file with the rows of a piece."""
        return self.folder / f"part-{number:08d}"

    def is_done(self, number: int) -> bool:
        """Whether a piece is done."""
        return self._record(number).exists()

    @contextmanager
    def write(self, number: int) -> Iterator[Write]:
        """Yield a function that writes rows of a piece; other processes may write the same piece."""
        with written_whole(self.path(number), self._temporary()) as temporary:
            if self.schema is None:
                with temporary.open("w", encoding="utf-8") as lines:
                    yield lambda rows: lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            else:
                with pq.ParquetWriter(temporary, self.schema) as table:
                    yield lambda rows: table.write_table(pa.Table.from_pylist(rows, schema=self.schema))

    def write_record(self, number: int, record: Mapping[str, Any]) -> None:
        """Write the record of a piece, whose rows are written: it is done."""
        write_text(self._record(number), json.dumps(record, ensure_ascii=False), self._temporary())

    def record(self, number: int) -> dict[str, Any]:
        """Read the record of a piece."""
        return json.loads(self._record(number).read_text(encoding="utf-8"))

    def _record(self, number: int) -> Path:
        return self.folder / f"part-{number:08d}.json"

    def _temporary(self) -> Path:
        return self.folder / f"{uuid.uuid4().hex}.tmp"


class JobFiles:
    """The output of a job, its summary, and the folder of its parts until the end.

    Parameters
    ----------
    out : the output; it is also the summary if `summary` is
    decisive : what decides the numbers, as JSON: a job continues only under an equal command

    Raises a UsageError if one of them is read.
    """

    def __init__(self, out: Path, summary: Path | None, command: Command) -> None:
        self.out, self._command, self.decisive = out, command, command.decisive()
        self._summary = summary or out.with_name(f"{out.name}.summary.json")
        self.bad, self.folder = (out.with_name(f"{out.name}.{end}") for end in ("bad.jsonl", "parts"))
        reads: list[str | Path] = [command.data, *paths_of({**command.settings, "metric": command.metric})]
        with as_usage():
            writes = [*dict.fromkeys((out, self._summary)), self.bad, cache_of(command.settings)]
            check_outputs(reads, writes, [self.folder])

    def finished(self) -> dict[str, Any] | None:
        """Read the summary of a job that is done; None if there is work to do."""
        if self._command.restart:
            with self._locked():
                shutil.rmtree(self.folder)
            self._summary.unlink(missing_ok=True)
            return None
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            summary = json.loads(self._summary.read_text(encoding="utf-8"))
            if self.out.exists() and summary["command"] == self.decisive:
                return summary
        if self.out.exists() and not self._is_begun():
            raise UsageError(
                f"{self.out} already exists, written by another command: pass --restart, or another --out."
            )
        return None

    @contextmanager
    def opened(self, source: Source, n_rows: int | None) -> Iterator[tuple[Source, list[Piece]]]:
        """Lock the folder, and yield the file and its pieces, of `n_rows` rows or one only, as they were cut at first.

        Raises a UsageError if another command or process works on it, or the file cannot be cut.
        """
        plan = self.folder / "job.json"
        with self._locked(), self._removed_if_new():
            for left in self.folder.glob("*.tmp" if self._is_begun() else "[!l]*"):
                left.unlink(missing_ok=True)
            if not plan.exists():
                source = source.unpack(self.folder)
                command = self._command
                pieces = [Piece()] if n_rows is None else cut(source, n_rows, command.set_size or 1, command.group_key)
                write_text(plan, json.dumps({"command": self.decisive, "pieces": pieces}))
            job = json.loads(plan.read_text(encoding="utf-8"))
            if job["command"] != self.decisive:
                raise UsageError(f"{self.folder} belongs to another command or file: pass --restart, or another --out.")
            yield source.unpack(self.folder), [Piece(*piece) for piece in job["pieces"]]

    @contextmanager
    def _removed_if_new(self) -> Iterator[None]:
        """Remove the folder after an error before the first piece, so that it is not in the way of other commands."""
        try:
            yield
        except UsageError:
            if not self._is_begun():
                self.remove()
            raise

    def _is_begun(self) -> bool:
        return any(self.folder.glob("part-*.json"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.folder} is in use by another process.") from None
            yield

    def write_bad(self, bad: Iterator[Sequence[Any]]) -> None:
        """Write what was set aside, with the reasons; without any, remove the file of an earlier run."""
        with written_whole(self.bad) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(dict(zip(("row", "error", "text"), row, strict=True))) + "\n" for row in bad)
        if not self.bad.stat().st_size:
            self.bad.unlink()

    def remove(self) -> None:
        """Remove what was kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, and remove what was kept: the job is done."""
        write_text(self._summary, json.dumps(summary, indent=2) + "\n")
        self.remove()
