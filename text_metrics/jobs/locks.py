"""Lock a file for one process, such as the pieces of a job, or the answers that a command pays for."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from text_metrics.console import InUseError
from text_metrics.files.storage import named_writing


@contextmanager
def locked(path: Path, name: Path | None = None) -> Iterator[None]:
    """Lock a file, which is made if it is missing; a process that is killed releases it.

    Raises an InUseError, which calls it by `name`, if another process or command has locked it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with named_writing(path):
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(f"{name or path} is in use by another process.") from None
        yield
