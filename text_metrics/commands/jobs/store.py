"""How far a job is, kept on disk such that a kill at any moment loses nothing and repeats nothing."""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from text_metrics.commands.jobs.batches import Batch
from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.row_files import RowFiles
from text_metrics.commands.shared.files import written_whole


@dataclass(frozen=True)
class State:
    """How far a job is, as kept after each batch; all of it is JSON.

    command : what decides the numbers
    position : rows read so far; done : how far the file was read, in the units of `Source.total`
    n_texts, n_bad : texts scored, and rows set aside
    n_incomplete, n_dropped : sets that lack a row, and rows left out with them by --drop-incomplete
    n_bad_first : bad rows before the first good one, without those that are set aside with their set
    merged : the state of the merged results; None before any text was scored
    bad : what was set aside since the batch before: the number of the row, the error, and the line
    n_rows : rows of the batch that are kept
    types : of their columns, as `RowFiles.save` returns them
    sums : of each result whose mean has an interval, the sum and the number of the values of each row of the batch
    labels : with a column for confidence_by, the label of each row of the batch
    arrays : names of the arrays that are kept beside this batch
    """

    command: Mapping[str, Any]
    position: int = 0
    done: int = 0
    n_texts: int = 0
    n_bad: int = 0
    n_incomplete: int = 0
    n_dropped: int = 0
    n_bad_first: int = 0
    merged: dict[str, Any] | None = None
    bad: Sequence[Sequence[Any]] = ()
    n_rows: int = 0
    types: str = ""
    sums: Sequence[Sequence[Sequence[float]]] = ()
    labels: Sequence[Any] = ()
    arrays: Sequence[str] = ()

    def after(self, batch: Batch, merged: dict[str, Any] | None) -> "State":
        """Return the state after a further batch, without what is said of its rows."""
        return State(
            self.command,
            position=batch.end,
            done=batch.done,
            n_texts=self.n_texts + batch.n_texts,
            n_bad=self.n_bad + len(batch.bad),
            n_incomplete=self.n_incomplete + batch.n_incomplete,
            n_dropped=self.n_dropped + batch.n_dropped,
            n_bad_first=self.n_bad_first + (0 if self.merged else batch.n_bad_first),
            merged=merged,
            bad=batch.bad,
        )


class Store:
    """A folder with files for each batch that is done: its rows, and the state of the job after it, written last.

    Each file is written atomically, so that a batch is kept whole or not at all.
    """

    def __init__(self, folder: Path, schema: pa.Schema | None) -> None:
        self.folder, self.rows = folder, RowFiles(folder, schema)
        folder.mkdir(parents=True, exist_ok=True)
        self.lock_file = folder / "lock"
        self._lock = self.lock_file.open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise UsageError(f"{folder} is in use by another process.") from None
        for left in folder.glob("*.tmp"):
            left.unlink(missing_ok=True)
        self.parts = sorted(folder.glob("part-*"))

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        # On Python 3.13, a failed job's frames keep the file open until the next garbage collection.
        self._lock.close()

    def last_state(self) -> State | None:
        """Read the state after the last batch."""
        return self.state(-1) if self.parts else None

    def append(self, state: State) -> None:
        """Keep the state after a batch, whose rows are kept already."""
        path = self.folder / f"part-{len(self.parts):08d}"
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps(vars(state), ensure_ascii=False), encoding="utf-8")
        self.parts.append(path)

    def states(self) -> Iterator[State]:
        """Read the states after all batches, in order."""
        return map(self.state, range(len(self.parts)))

    def state(self, index: int) -> State:
        """Read the state after one batch."""
        path = self.parts[index]
        try:
            return State(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise UsageError(f"{path} was written by another version: pass --restart, or another --out.") from None

    def remove(self) -> None:
        """Remove the folder; it is renamed first, so that what a kill leaves of it is not taken for all of it."""
        self.sweep(self.folder)
        self.folder.rename(self.done(self.folder))
        self.sweep(self.folder)
        self._lock.close()

    @classmethod
    def sweep(cls, folder: Path) -> None:
        """Delete what a kill has left of a folder that was being removed."""
        shutil.rmtree(cls.done(folder), ignore_errors=True)

    @staticmethod
    def done(folder: Path) -> Path:
        """Return the name that a folder has while it is removed."""
        return folder.with_name(f"{folder.name}.done")
