"""What a command read, and which files of a folder or pattern it left, said in one line at its end."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from text_metrics.reporting.formats import count, listed


class Reading:
    """The files that a command read, with their numbers of rows, and those that it ignored, by the reason."""

    def __init__(self) -> None:
        self._files: dict[str, list[Path]] = {}
        self._n_rows: dict[str, int] = {}
        self._ignored: dict[str, dict[str, None]] = {}
        self._own: dict[str, None] = {}

    def add(self, path: Path, files: Iterable[Path], n_rows: int) -> None:
        """Add what was read of a path; a path that is read again counts once."""
        self._files[str(path)] = list(files)
        self._n_rows[str(path)] = n_rows

    def ignore(self, ignored: Mapping[str, Iterable[str]]) -> None:
        """Add the names of files that are not read, by the reason."""
        for reason, names in ignored.items():
            self._ignored.setdefault(reason, {}).update(dict.fromkeys(names))

    def note_own(self, path: Path, command: str) -> None:
        """Note that a file which the user named was written by a command."""
        self._own[f"{path} was written by {command}"] = None

    def line(self) -> str:
        """Say what was read and ignored; empty if nothing was read."""
        if not self._files:
            return ""
        files = dict.fromkeys(str(file) for of_path in self._files.values() for file in of_path)
        name = next(iter(files), "nothing") if len(files) < 2 else count(len(files), "file")
        parts = [f"Read {name}, {count(sum(self._n_rows.values()), 'row')}"]
        if self._ignored:
            reasons = (f"{listed(names)} ({reason})" for reason, names in self._ignored.items())
            parts.append(f"ignored: {', '.join(reasons)}")
        return f"{'; '.join([*parts, *self._own])}."


_CURRENT: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[None]:
    """Collect what is read; at the end, unless an error is raised, print it to stderr."""
    read = Reading()
    token = _CURRENT.set(read)
    try:
        yield
        if line := read.line():
            print(line, file=sys.stderr)
    finally:
        _CURRENT.reset(token)


def current() -> Reading:
    """Return what the command has read so far; outside of a command, of nobody."""
    return _CURRENT.get() or Reading()
