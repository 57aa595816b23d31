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

from .core_numbers import describe

# Texts that are looked up, computed and stored together: a killed process loses at most these.
TEXTS_AT_ONCE = 10_000
_LOCK_SECONDS = 60
# Part of the file name.
_VERSION = 2
# Several embeddings fit a page; with SQLite's default of 4096 bytes, a quarter of the file would be empty.
_PAGE_BYTES = 16_384
_TABLE = (
    "CREATE TABLE IF NOT EXISTS texts "
    "(key BLOB PRIMARY KEY, value BLOB NOT NULL, note INTEGER NOT NULL, checksum INTEGER NOT NULL)"
)


def through_cache(
    folder: Path,
    identity: str,
    texts: list[str],
    compute: Callable[[list[str]], tuple[np.ndarray, np.ndarray]],
    tell: Callable[[int], Any],
    dtype: Any = np.float32,
) -> tuple[np.ndarray, np.ndarray]:
    """Look up different texts in a cache, and compute and store the missing ones, part by part.

    Parameters
    ----------
    identity : name of the model and of all else, besides the text, that decides its values
    compute : from b texts to their values (b, d) and their notes (b,), int64
    tell : called with the number of texts that were stored
    dtype : type in which values are kept

    Returns
    -------
    values : ndarray of shape (n, d)
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
    values: list[np.ndarray] = []
    notes: list[int] = []
    is_full = False
    kind, path = np.dtype(dtype).newbyteorder("<"), _file(folder, identity)
    with _errors(path), closing(sqlite3.connect(path, timeout=_LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute(_TABLE)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            part = {text_key(text): text for text in texts[start : start + TEXTS_AT_ONCE]}
            found = _look_up(connection, list(part))
            tell(len(found))
            missing = [key for key in part if key not in found]
            if missing:
                computed, computed_notes = compute([part[key] for key in missing])
                stored = [value.tobytes() for value in computed.astype(kind, copy=False)]
                rows = dict(zip(missing, zip(stored, computed_notes.tolist(), strict=True), strict=True))
                found |= rows
                if not is_full:
                    is_full = not _store(connection, rows, path)
            part_values, part_notes = zip(*map(found.__getitem__, part), strict=True)
            values.append(np.frombuffer(b"".join(part_values), kind).reshape(len(part), -1))
            notes += part_notes
    return np.concatenate(values), np.array(notes, dtype=np.int64)


def _look_up(connection: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, tuple[bytes, int]]:
    marks = ",".join("?" * len(keys))
    query = f"SELECT key, value, note, checksum FROM texts WHERE key IN ({marks})"
    rows = connection.execute(query, keys).fetchall()
    if any(_checksum(key, value, note) != checksum for key, value, note, checksum in rows):
        raise sqlite3.DatabaseError("a checksum does not fit")
    return {key: (value, note) for key, value, note, _ in rows}


def _store(connection: sqlite3.Connection, rows: dict[bytes, tuple[bytes, int]], path: Path) -> bool:
    """Store all rows or none, but those that are there; returns whether that was possible, with a warning if not."""
    # In order of the pages of the table.
    complete = ((key, *row, _checksum(key, *row)) for key, row in sorted(rows.items()))
    try:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?)", complete)
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
        raise ValueError(
            f"cache_dir: {path} is damaged ({error}). Delete it: its content is computed again."
        ) from error


def _file(folder: Path, identity: str) -> Path:
    digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()
    readable = re.sub(r"[^\w.@+-]+", "--", identity, flags=re.ASCII)[:100]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"cache_dir {str(folder)!r} cannot be created: {error.strerror}.") from None
    return folder / f"{readable}-{digest}.v{_VERSION}.sqlite"


def cache_folder(value: Any, name: str = "cache_dir") -> Path:
    """Read the path of the folder of a cache, which need not exist."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} must be the path of a folder. Got {describe(value)}.")
    path = Path(os.path.expanduser(os.fspath(value)))
    if path.exists() and not path.is_dir():
        raise ValueError(f"{name} must be the path of a folder. Got {str(path)!r}, which is a file.")
    return path


def text_key(text: str) -> bytes:
    """Return the key of a text, 16 bytes: the probability of a collision among 10^9 texts is about 10^-21."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checksum(key: bytes, value: bytes, note: int) -> int:
    return zlib.crc32(b"%d" % note, zlib.crc32(value, zlib.crc32(key)))
