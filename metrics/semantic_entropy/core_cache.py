"""A cache on disk of what a model computed for each text, in one SQLite file per model that processes may share.

It uses a rollback journal, since write-ahead logs fail on network file systems.
"""

import hashlib
import os
import re
import sqlite3
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .core_inputs import LIMITS
from .core_numbers import describe

# Part of the file name.
_VERSION = 3
_TABLE = "CREATE TABLE IF NOT EXISTS texts (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_NOTE_BYTES, _CHECKSUM_BYTES = 8, 4


def through_cache(
    folder: Path,
    identity: str,
    texts: list[str],
    compute: Callable[[list[str]], tuple[np.ndarray, np.ndarray]],
    tell: Callable[[int], Any],
    lock_seconds: float = 60,
) -> tuple[np.ndarray, np.ndarray]:
    """Look up different texts in a cache, and compute and store the missing ones, part by part.

    Parameters
    ----------
    identity : name of the model and of all else, besides the text, that decides its values
    compute : from b texts to their values (b, d), float32, and their notes (b,), int64 >= 0
    tell : called with the number of texts that were stored
    lock_seconds : how long to wait for others that write

    Returns
    -------
    values : ndarray of shape (n, d), float32
    notes : ndarray of shape (n,), int64

    Raises
    ------
    ValueError
        If the folder cannot be created, or its file cannot be opened or is damaged.

    Warns
    -----
    UserWarning
        Once, if nothing can be written for lack of space or of permission, or because others lock the file.
    """
    rows: list[bytes] = []
    is_full = False
    path = _file(folder, identity)
    with _errors(path), closing(sqlite3.connect(path, timeout=lock_seconds, isolation_level=None)) as connection:
        connection.execute(_TABLE)
        for start in range(0, len(texts), LIMITS.cached_texts):
            part = {_key(text): text for text in texts[start : start + LIMITS.cached_texts]}
            stored = _look_up(connection, list(part))
            tell(len(stored))
            missing = [key for key in part if key not in stored]
            if missing:
                values, notes = compute([part[key] for key in missing])
                pairs = zip(values.astype("<f4", copy=False), notes.astype("<i8"), strict=True)
                new = {key: note.tobytes() + value.tobytes() for key, (value, note) in zip(missing, pairs, strict=True)}
                stored |= new
                is_full = is_full or not _store(connection, new, path)
            rows += map(stored.__getitem__, part)
    values = np.frombuffer(b"".join(row[_NOTE_BYTES:] for row in rows), "<f4").reshape(len(rows), -1)
    return values, np.frombuffer(b"".join(row[:_NOTE_BYTES] for row in rows), "<i8")


def _look_up(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
    marks = ",".join("?" * len(keys))
    rows = connection.execute(f"SELECT key, value FROM texts WHERE key IN ({marks})", keys).fetchall()
    if any(_checksum(key, value[:-_CHECKSUM_BYTES]) != value[-_CHECKSUM_BYTES:] for key, value in rows):
        raise sqlite3.DatabaseError("a checksum does not fit")
    return {key: value[:-_CHECKSUM_BYTES] for key, value in rows}


def _store(connection: sqlite3.Connection, rows: dict[bytes, bytes], path: Path) -> bool:
    """Store all rows or none, but those that are there; returns whether that was possible, with a warning if not."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            # In order of the pages of the table.
            complete = ((key, value + _checksum(key, value)) for key, value in sorted(rows.items()))
            connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", complete)
    except sqlite3.OperationalError as error:
        message = f"cache_dir: {path} could not be written to ({error}). The results are correct, but no longer cached."
        warnings.warn(message, stacklevel=5)
        return False
    return True


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Name the parameter and the file in errors of SQLite."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise ValueError(f"cache_dir: {path} could not be used ({error}).") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"cache_dir: {path} is damaged ({error}). Delete it: it is computed again.") from error


def _file(folder: Path, identity: str) -> Path:
    digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()
    readable = re.sub(r"[^\w.@+-]+", "--", identity, flags=re.ASCII)[:100]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cache_dir {str(folder)!r} cannot be created: {error.strerror}.") from None
    return folder / f"{readable}-{digest}.v{_VERSION}.sqlite"


def cache_folder(value: Any, name: str) -> Path:
    """Read the path of the folder of a cache, which need not exist."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} must be the path of a folder. Got {describe(value)}.")
    path = Path(os.path.expanduser(os.fspath(value)))
    if path.exists() and not path.is_dir():
        raise ValueError(f"{name} must be the path of a folder. Got {str(path)!r}, which is a file.")
    return path


def _key(text: str) -> bytes:
    """Return the key of a text, 16 bytes: the probability of a collision among 10^9 texts is about 10^-21."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checksum(key: bytes, value: bytes) -> bytes:
    return zlib.crc32(value, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES, "little")
