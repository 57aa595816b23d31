"""An on-disk cache of embeddings, one SQLite file per model, that processes may share.

It uses a rollback journal, since write-ahead logs fail on network file systems.
"""

import hashlib
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .core_numbers import describe

# Seconds to wait for other writers.
LOCK_SECONDS = 60.0
# Part of the file name.
_VERSION = 5
_TABLE = "CREATE TABLE IF NOT EXISTS texts (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_CHECKSUM_BYTES = 4


class Cache:
    """Float32 rows of shape (d,), by text.

    `identity` names the model and all else, besides the text, that decides its row. The folder is created if it does
    not exist. Each method raises a ValueError if the file cannot be opened, read or written, or is damaged.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()
        readable = re.sub(r"[^\w.@+-]+", "--", identity, flags=re.ASCII)[:100]
        self._path = folder / f"{readable}-{digest}.v{_VERSION}.sqlite"

    def get(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Return the stored rows, by text."""
        rows = {}
        with self._open() as connection:
            for text in texts:
                key = _key(text)
                stored = connection.execute("SELECT value FROM texts WHERE key = ?", (key,)).fetchone()
                if stored is not None:
                    row = stored[0][:-_CHECKSUM_BYTES]
                    if _with_checksum(key, row) != stored[0]:
                        raise sqlite3.DatabaseError("a checksum does not fit")
                    rows[text] = np.frombuffer(row, "<f4")
        return rows

    def put(self, rows: dict[str, np.ndarray]) -> None:
        """Store all rows atomically; existing rows are not overwritten."""
        values = []
        for text, row in rows.items():
            key = _key(text)
            values.append((key, _with_checksum(key, row.astype("<f4").tobytes())))
        with self._open() as connection, connection:
            # In order of the pages of the table.
            connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", sorted(values))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=LOCK_SECONDS)) as connection:
                connection.execute(_TABLE)
                yield connection
        except (OSError, sqlite3.OperationalError) as error:
            raise ValueError(f"cache_dir: {self._path} could not be used ({error}).") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"cache_dir: {self._path} is damaged ({error}). Delete it: it is computed again."
            ) from error


def cache_folder(value: Any, name: str) -> Path:
    """Read the path of a cache folder, which need not exist."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} must be the path of a folder. Got {describe(value)}.")
    return Path(os.path.expanduser(os.fspath(value)))


def _key(text: str) -> bytes:
    """Return the key of a text, 16 bytes: the probability of a collision among 10^9 texts is about 10^-21."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _with_checksum(key: bytes, row: bytes) -> bytes:
    return row + zlib.crc32(row, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES, "little")
