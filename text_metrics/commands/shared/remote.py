"""Files that `fsspec` opens by a URL, such as s3://bucket/data.jsonl."""

import errno
import os
import stat
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Remote(type(Path())):  # type: ignore[misc]
    """A file or folder of a file system of `fsspec`, to be read; names are joined and changed as those of a `Path`."""

    def __str__(self) -> str:
        # A path has no double slash.
        return str(super().__str__()).replace(":/", "://", 1)

    @contextmanager
    def _found(self) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the name there; errors of the file system name the URL."""
        import fsspec

        try:
            yield fsspec.core.url_to_fs(str(self))
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except Exception as error:  # Each file system has its own, such as those of missing credentials.
            raise OSError(errno.EIO, f"{type(error).__name__}: {error}", str(self)) from None

    def stat(self, **_: Any) -> Any:
        """Return the type, size and time of change; the time is 0 if the file system has none."""
        with self._found() as (system, name):
            information = system.info(name)
            try:
                modified = system.modified(name).timestamp()
            except (NotImplementedError, OSError):
                modified = 0.0
        kind = stat.S_IFDIR if information["type"] == "directory" else stat.S_IFREG
        return SimpleNamespace(st_mode=kind, st_size=information["size"] or 0, st_mtime_ns=int(modified * 1e9))

    def exists(self, **_: Any) -> bool:
        """Whether there is such a file or folder."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, **_: Any) -> bool:
        """Whether it is a folder."""
        return self.exists() and stat.S_ISDIR(self.stat().st_mode)

    def open(self, *_: Any, **__: Any) -> Any:
        """Open the file to read bytes."""
        with self._found() as (system, name):
            return system.open(name, "rb")


def parse_path(text: str) -> Path:
    """Read a path or a URL, as a type of argparse."""
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    if "://" not in text:
        return Path(text)
    import fsspec

    try:
        fsspec.get_filesystem_class(text.partition("://")[0])
    except (ValueError, ImportError) as error:
        raise ArgumentTypeError(f"{text} cannot be opened: {error}") from None
    return Remote(text)


def parquet_files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder in order of their names; none for one that `datasets` saved, or a URL."""
    return [] if isinstance(folder, Remote) else sorted(folder.glob("*.parquet"))
