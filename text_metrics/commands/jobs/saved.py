"""What is saved of a job, piece by piece, such that a kill at any moment loses no piece."""

import fcntl
import json
import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from text_metrics.commands.jobs.options import Command
from text_metrics.commands.shared.files import write_text, written_whole
from text_metrics.commands.shared.outputs import check_outputs


class SavedJob:
    """The output of a job, its summary, and until the end a folder with a file for each piece that is done.

    Parameters
    ----------
    out : the output; with --one-set, it is also the summary

    Raises a ValueError if one of them is read.
    """

    def __init__(self, out: Path, command: Command) -> None:
        self.out, self._command, self.decisive = out, command, command.decisive()
        self._summary = out if out.suffix == ".json" else out.with_name(f"{out.name}.summary.json")
        self.bad, self.folder = (out.with_name(f"{out.name}.{end}") for end in ("bad.jsonl", "parts"))
        writes = [*dict.fromkeys((out, self._summary)), self.bad]
        check_outputs([str(command.data)], writes, {**command.settings, "metric": command.metric}, self.folder)

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
        if self.out.exists() and not self.numbers():
            raise ValueError(
                f"{self.out} already exists, written by another command: pass --restart, or another --out."
            )
        return None

    @contextmanager
    def opened(self) -> Iterator[bool]:
        """Lock the folder; yields whether the job is new: no piece is done.

        Raises a ValueError if another command or process works on it. The folder of a new job is removed after an
        error, so that it is not in the way of other commands.
        """
        with self._locked():
            numbers = self.numbers()
            if numbers and self.record(numbers[0])["command"] != self.decisive:
                raise ValueError(f"{self.folder} is of another command or file: pass --restart, or another --out.")
            try:
                yield not numbers
            except ValueError:
                if not self.numbers():
                    self.remove()
                raise
            except KeyboardInterrupt:
                raise KeyboardInterrupt("Run the same command to continue.") from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"{self.folder} is in use by another process.") from None
            yield

    def numbers(self) -> list[int]:
        """Return the numbers of the pieces that are done."""
        return sorted(int(path.stem.removeprefix("part-")) for path in self.folder.glob("part-????????.json"))

    def write(self, number: int, record: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Save a piece: its rows to part-N, and then its record to part-N.json."""
        text = json.dumps({**record, "command": self.decisive}, default=np.ndarray.tolist)
        for path, data in ((self._part(number), pickle.dumps(rows)), (self._record(number), text.encode())):
            # A worker that was taken for dead may write the same piece.
            with written_whole(path, path.with_name(f"{path.name}.{uuid4().hex}")) as temporary:
                temporary.write_bytes(data)

    def record(self, number: int) -> dict[str, Any]:
        """Read the record of a piece."""
        return json.loads(self._record(number).read_text(encoding="utf-8"))

    def records(self, n: int) -> Iterator[dict[str, Any]]:
        """Read the records of all n pieces, in order."""
        return map(self.record, range(n))

    def rows(self, n: int) -> Iterator[list[dict[str, Any]]]:
        """Read the rows of all n pieces, in order."""
        return (pickle.loads(self._part(number).read_bytes()) for number in range(n))

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:08d}"

    def _record(self, number: int) -> Path:
        return self.folder / f"part-{number:08d}.json"

    def write_bad(self, bad: Iterator[Sequence[Any]]) -> None:
        """Write what was set aside, with the reasons; without any, remove the file of an earlier run."""
        with written_whole(self.bad) as temporary, temporary.open("w", encoding="utf-8") as file:
            for number, error, text in bad:
                file.write(json.dumps({"row": number, "error": error, "text": text}) + "\n")
        if not self.bad.stat().st_size:
            self.bad.unlink()

    def remove(self) -> None:
        """Remove the pieces."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary, and remove the pieces: the job is done."""
        write_text(self._summary, json.dumps(summary, indent=2) + "\n")
        self.remove()
