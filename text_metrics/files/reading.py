"""Report in one line which files of a folder or pattern a command read, and which it ignored."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from pathlib import Path

from text_metrics.reporting.formats import count, listed


class Reading:
    """The files that a command read, with their numbers of rows, and those that it ignored, by the reason.

    is_quiet : whether the command prints none of this
    """

    def __init__(self) -> None:
        self.is_quiet = False
        self._files: dict[str, list[Path]] = {}
        self._n_rows: dict[str, int] = {}
        self._ignored: dict[str, dict[str, None]] = {}
        self._own: dict[str, None] = {}

    def add(self, path: Path, files: Iterable[Path], n_rows: int) -> None:
        """Add the files that were read of a path; a path that is read again counts once."""
        self._files[str(path)] = list(files)
        self._n_rows[str(path)] = n_rows

    def ignore(self, ignored: Mapping[str, Iterable[str]]) -> None:
        """Add the names of files that are not read, by the reason."""
        for reason, names in ignored.items():
            self._ignored.setdefault(reason, {}).update(dict.fromkeys(names))

    def note_own(self, path: Path, command: str) -> None:
        """Note that a file which the user named was written by a command."""
        self._own[f"{path} was written by {command}"] = None

    def show(self) -> None:
        """Print to stderr what was read and ignored; nothing if nothing was read."""
        if self.is_quiet or not self._files:
            return
        files = dict.fromkeys(map(str, chain.from_iterable(self._files.values())))
        name = next(iter(files), "nothing") if len(files) < 2 else count(len(files), "file")
        parts = [f"Read {name}, {count(sum(self._n_rows.values()), 'row')}"]
        if self._ignored:
            reasons = (f"{listed(names)} ({reason})" for reason, names in self._ignored.items())
            parts.append(f"ignored: {', '.join(reasons)}")
        print(f"{'; '.join(parts + list(self._own))}.", file=sys.stderr)


_CURRENT: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading() -> Iterator[None]:
    """Note the files that are read; at the end, unless an error is raised, print them to stderr."""
    read = Reading()
    token = _CURRENT.set(read)
    try:
        yield
        read.show()
    finally:
        _CURRENT.reset(token)


def current() -> Reading:
    """Return the `Reading` of the command; outside of a command, a new one."""
    return _CURRENT.get() or Reading()
