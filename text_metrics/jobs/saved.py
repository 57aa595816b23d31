"""Save the results of a job piece by piece, such that a kill at any moment loses no finished piece."""

import json
import pickle
import platform
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from text_metrics.console import EXIT_BAD_ROWS
from text_metrics.files import listing
from text_metrics.files import storage as files
from text_metrics.files.reading import current
from text_metrics.files.systems import warn_of_repeats
from text_metrics.files.written import BAD, JOB, PARTS, SUMMARY, find_writer, first_value, mark
from text_metrics.jobs.locks import locked
from text_metrics.options import Options
from text_metrics.reporting.formats import count

# The files in the folder of pieces: those of pieces, the lock, and a file that is being written.
_PIECE = "part-????????"
_LOCK = "lock"
_WRITTEN = "written"
# The share of the lines of a file that may be lost in others.
_MOST_LOST = 0.01
_FORMATS = (".jsonl", ".parquet", ".csv")
# Options without effect on results: a job continues with other values of these.
_WITHOUT_EFFECT = (
    "out",
    "engine",
    "address",
    "workers",
    "restart",
    "quiet",
    "fail_under",
    "fail_over",
    "confidence",
    "history",
    "against",
    "last",
    "name",
    # It only decides whether the file is accepted.
    "one_system",
)


def _decisive(options: Options) -> dict[str, Any]:
    """Return the options that decide the numbers, as JSON: a job continues only if they are equal.

    Raises a ValueError for a pipe or another special file: a job reads its file more than once.
    """
    data = options.data
    if isinstance(data, Path) and data.exists() and not (data.is_file() or data.is_dir()):
        raise ValueError(f"{data} is a pipe, which cannot be read twice: write its content to a file first.")
    stats = [path.stat() for path in listing.data_files(data)]
    decisive = {name: value for name, value in vars(options).items() if name not in _WITHOUT_EFFECT}
    decisive["data"] = files.without_secrets(str(data))
    decisive["size"] = sum(stat.st_size for stat in stats)
    decisive["modified"] = max(stat.st_mtime_ns for stat in stats)
    return decisive


def lacks_lines(counts: Mapping[str, int]) -> bool:
    """Tell whether invalid rows took too many lines for the others to represent their file."""
    n_lost = counts.get("n_bad_lines", 0) - counts["n_bad"]
    return n_lost > _MOST_LOST * (counts.get("n_rows", 0) + n_lost)


class SavedJob:
    """The output of a job, its summary, and until the end a folder with a file for each piece that is done.

    The output is by default beside the data, in their format. One that ends in .json is also the summary.

    result : the end of the default name of the output, before its suffix
    formats : the suffixes that the output may have

    Raises a ValueError if one of them is read, or if a file or folder beside the output was not written by a job.
    """

    def __init__(self, options: Options, result: str, formats: Sequence[str] = _FORMATS) -> None:
        data = options.data
        if options.out is None and not isinstance(data, Path):
            raise ValueError(f"--out is needed: {data} is not in a folder of this machine.")
        ending = ".parquet" if data.is_dir() else files.file_format(data)
        ending = ending if ending in formats else formats[0]
        beside = listing.output_beside(data)
        out = options.out or beside.with_name(f"{beside.name}.{result}{ending}")
        if out.suffix not in formats or out.is_dir():
            raise ValueError(f"--out must be a file that ends in {', '.join(formats)}. Got {out}.")
        self.out = out
        self.options = options
        self.decisive = _decisive(options)
        is_summary = out.suffix == ".json"
        self._summary = out if is_summary else out.with_name(f"{out.name}{SUMMARY}")
        self.bad = out.with_name(f"{out.name}{BAD}")
        self.folder = out.with_name(f"{out.name}{PARTS}")
        reads = listing.data_files(data) if listing.is_pattern(data) else [data]
        writes = [out] if is_summary else [out, self._summary]
        writes.append(self.bad)
        history = getattr(options, "history", None)
        if history is not None:
            writes.append(history)
            if options.against != history:
                reads.append(options.against)
        settings = options.settings | {"metric": options.metric}
        files.check_outputs([str(path) for path in reads if path is not None], writes, settings, self.folder)
        # A job may have been killed after it had made the folder.
        is_just_made = self.folder.is_dir() and {path.name for path in self.folder.iterdir()} <= {_LOCK, _WRITTEN}
        is_written_by_job = {
            # Where it is the output, `finished` checks it.
            self._summary: is_summary or "command" in first_value(self._summary),
            self.bad: is_bad_file(self.bad),
            self.folder: is_just_made or "command" in first_value(self.folder / JOB),
        }
        for path, is_known in is_written_by_job.items():
            if path.exists() and not is_known:
                raise _stranger(path)

    def finished(self) -> dict[str, Any] | None:
        """Read the summary of a job that is done; None if there is work to do."""
        if self.options.restart:
            with locked(self.folder / _LOCK, self.folder):
                self.remove()
            self._summary.unlink(missing_ok=True)
            return None
        summary = first_value(self._summary)
        if self.out.exists() and summary.get("command") == self.decisive:
            return summary
        if self.out.exists() and not (self.folder / JOB).exists():
            raise _stranger(self.out) if find_writer(self.out) is None else _of_another(self.out)
        return None

    @contextmanager
    def opened(self) -> Iterator[list[int]]:
        """Lock the folder; yields the numbers of the pieces that are done, and whole.

        Raises a ValueError if another process or command works on it. After an error, a new folder is removed.
        """
        with locked(self.folder / _LOCK, self.folder):
            record = self.folder / JOB
            if not record.exists():
                with self.written(record) as temporary:
                    temporary.write_text(json.dumps({"command": self.decisive}) + "\n", encoding="utf-8")
            elif first_value(record).get("command") != self.decisive:
                raise _of_another(self.folder)
            numbers = sorted(int(path.name.removeprefix("part-")) for path in self.folder.glob(_PIECE))
            numbers = [number for number in numbers if self._is_whole(number)]
            try:
                yield numbers
            except ValueError:
                if not any(self.folder.glob(_PIECE)):
                    self.remove()
                raise
            except KeyboardInterrupt:
                raise KeyboardInterrupt("Run the same command to continue.") from None

    def check_machine(self) -> None:
        """Raise a ValueError if this machine does not see the data and the pieces that the command sees."""
        machine = platform.node()
        try:
            if not self.folder.is_dir():
                raise ValueError(f"{self.folder} does not exist.")
            decisive = _decisive(self.options)
        except ValueError as error:
            raise ValueError(f"{machine}: {error} All machines must see the data and --out.") from None
        if decisive != self.decisive:
            raise ValueError(f"{self.options.data} has changed, or is another file on {machine}: start again.")

    def write(self, number: int, record: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Save a piece in a file: its record, its rows, and their checksum."""
        data = pickle.dumps(record) + pickle.dumps(rows)
        with files.written_whole(self._part(number)) as temporary:
            temporary.write_bytes(data + zlib.crc32(data).to_bytes(4, "big"))

    def _is_whole(self, number: int) -> bool:
        data = self._part(number).read_bytes()
        return data[-4:] == zlib.crc32(data[:-4]).to_bytes(4, "big")

    def record(self, number: int) -> dict[str, Any]:
        """Read the record of a piece."""
        with self._part(number).open("rb") as file:
            return pickle.load(file)

    def rows(self, n: int) -> Iterator[list[dict[str, Any]]]:
        """Read the rows of all n pieces, in order."""
        for number in range(n):
            with self._part(number).open("rb") as file:
                # The record, which is before the rows.
                pickle.load(file)
                rows = pickle.load(file)
            yield rows

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:08d}"

    def written(self, path: Path) -> Any:
        """Write a file as `written_whole` does, with the temporary file in the folder of the pieces."""
        return files.written_whole(path, self.folder / _WRITTEN if self.folder.is_dir() else None)

    def write_bad(self, n: int) -> None:
        """Write the rows of all n pieces that were skipped; without any, remove the file of an earlier run."""
        with self.written(self.bad) as temporary, temporary.open("w", encoding="utf-8") as file:
            for number, error, text in chain.from_iterable(self.record(i)["bad"] for i in range(n)):
                file.write(json.dumps({"row": number, "error": error, "text": text}) + "\n")
        if not self.bad.stat().st_size:
            self.bad.unlink()

    def remove(self) -> None:
        """Remove the pieces, their record last, and the folder if it is empty then."""
        for pattern in ("*part-*", _WRITTEN, _LOCK, JOB):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def finish(self, summary: Mapping[str, Any]) -> int:
        """Write and print the summary, and remove the pieces; returns the exit code."""
        name = "choose" if self.options.metric == "choose" else "score"
        shown = json.dumps(mark(name) | dict(summary), indent=2)
        with self.written(self._summary) as temporary:
            temporary.write_text(f"{shown}\n", encoding="utf-8")
        self.remove()
        print(shown)
        # The command may have read no row itself: the job was done, or others did it.
        current().add(self.options.data, listing.data_files(self.options.data), summary.get("n_rows", 0))
        if self.options.id_key is not None:
            warn_of_repeats(self.options.data, summary, self.options.id_key)
        if lacks_lines(summary):
            lines = f"{summary['n_bad_lines']:,} lines are in {count(summary['n_bad'], 'row')} that cannot be read"
            print(f"No mean is given, because {lines}: correct them, such as an open quote.", file=sys.stderr)
        if not self.options.quiet:
            print(f"The {'summary is' if self._summary == self.out else 'rows are'} in {self.out}.", file=sys.stderr)
        if summary["n_bad"]:
            print(f"The rows that were skipped are in {self.bad}.", file=sys.stderr)
        return EXIT_BAD_ROWS if summary["n_bad"] or summary["n_incomplete"] else 0


def is_bad_file(path: Path) -> bool:
    """Tell whether a file is one of bad rows."""
    return first_value(path).keys() >= {"row", "error", "text"}


def _stranger(path: Path) -> ValueError:
    return ValueError(f"{path} was not written by this command: rename it, or choose another --out.")


def _of_another(path: Path) -> ValueError:
    return ValueError(f"{path} is of another command or file: pass --restart, or another --out.")
