"""A cache on disk of what a model computed for each text.

It holds one SQLite file per model, which processes may share: each batch is one transaction, so that a killed process
leaves a batch complete or absent. It uses a rollback journal, since write-ahead logs fail on network file systems.
"""

import hashlib
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .core_numbers import describe

try:
    import sqlite3
except ImportError:
    # Some builds of Python lack it; only the cache needs it.
    sqlite3 = None  # type: ignore[assignment]

# Texts that are looked up, computed and stored together: a killed process loses at most these.
TEXTS_AT_ONCE = 10_000
_KEYS_IN_QUERY = 500
_LOCK_SECONDS = 60
# Version of the file format; part of the file name.
_VERSION = 1
# Several embeddings fit a page; with SQLite's default of 4096 bytes, a quarter of the file would be empty.
_PAGE_BYTES = 16_384
_MEMORY_KIB = 65_536
_TABLES = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE texts (key BLOB NOT NULL UNIQUE, value BLOB NOT NULL, note INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL)",
)


class TextCache:
    """What one model computed for texts: for each a vector and an integer, the note.

    Parameters
    ----------
    folder : folder of the cache, created if missing
    identity : name of the model and of everything else that decides its vectors
    dtype : type of the vectors

    Raises
    ------
    ValueError
        If the folder cannot be created or written to, or its file is damaged; here and at use.
    ImportError
        If this Python was built without SQLite.

    Warns
    -----
    UserWarning
        Once, if the file cannot be written to, for lack of space or because others lock it.
    """

    def __init__(self, folder: Path, identity: str, dtype: Any = np.float32) -> None:
        self._folder, self._dtype, self._is_full = folder, np.dtype(dtype).newbyteorder("<"), False
        if sqlite3 is None:
            raise ImportError("cache_dir needs sqlite3, which this Python was built without: leave it out.")
        digest = hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()
        readable = re.sub(r"[^\w.@+-]+", "--", identity, flags=re.ASCII)[:100]
        self._path = self._folder / f"{readable}-{digest}.v{_VERSION}.sqlite"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"cache_dir {str(self._folder)!r} cannot be created: {error.strerror}.") from None
        if not self._path.exists():
            self.check_writable()
        with self._errors():
            self._connection = sqlite3.connect(self._path, timeout=_LOCK_SECONDS, isolation_level=None)
            # Large enough for a batch, so that readers wait only while it is committed.
            self._connection.execute(f"PRAGMA cache_size = -{_MEMORY_KIB}")
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "TextCache":
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    def setting(self, name: str) -> str | None:
        """Return the string stored under a name; None if there is none."""
        with self._errors():
            row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def keep_setting(self, name: str, value: str) -> None:
        """Store a string under a name."""
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", [(name, value)])

    def get(self, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Look up texts by their keys.

        Returns
        -------
        stored : ndarray of shape (m,), int64: the indices in `keys` of those that are stored
        values : ndarray of shape (m, d)
        notes : ndarray of shape (m,), int64
        """
        place_of = {key: place for place, key in enumerate(keys)}
        rows: list[tuple[bytes, bytes, int, int]] = []
        with self._errors():
            for start in range(0, len(keys), _KEYS_IN_QUERY):
                part = keys[start : start + _KEYS_IN_QUERY]
                marks = ",".join("?" * len(part))
                rows += self._connection.execute(
                    f"SELECT key, value, note, checksum FROM texts WHERE key IN ({marks})", part
                ).fetchall()
        for key, value, note, checksum in rows:
            if _checksum(key, value, note) != checksum or len(value) != len(rows[0][1]):
                raise self._damaged("a checksum does not fit")
        if not rows:
            return np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=self._dtype), np.empty(0, dtype=np.int64)
        values = np.frombuffer(b"".join(row[1] for row in rows), dtype=self._dtype).reshape(len(rows), -1)
        return np.array([place_of[row[0]] for row in rows]), values, np.array([row[2] for row in rows], dtype=np.int64)

    def put(self, keys: Sequence[bytes], values: np.ndarray, notes: np.ndarray) -> None:
        """Store the values (m, d) and the notes (m,) of texts; texts that are stored already keep theirs."""
        rows = [
            (key, value.tobytes(), note)
            for key, value, note in zip(keys, values.astype(self._dtype, copy=False), notes.tolist(), strict=True)
        ]
        # In order of the pages of the index.
        rows.sort()
        self._write("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?)", ((*row, _checksum(*row)) for row in rows))

    def check_writable(self) -> None:
        """Raise a ValueError, before anything is computed, if the file is not writable."""
        for path in (self._folder, self._path):
            if path.exists() and not os.access(path, os.W_OK):
                raise ValueError(f"cache_dir cannot be written to: no permission for {str(path)!r}.")

    def _prepare(self) -> None:
        with self._errors():
            version = self._version()
            if version == 0:
                self._connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                self._connection.execute("BEGIN IMMEDIATE")
                # Another process may have created them.
                version = self._version()
                if version == 0:
                    for statement in _TABLES:
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA user_version = {_VERSION}")
                    version = _VERSION
                self._connection.execute("COMMIT")
            if version != _VERSION:
                raise self._damaged(f"its version is {version}")

    def _version(self) -> int:
        return self._connection.execute("PRAGMA user_version").fetchone()[0]

    def _write(self, statement: str, rows: Iterable[tuple]) -> None:
        """Write all rows or none; if that fails, warn once and write nothing from then on."""
        if self._is_full:
            return
        try:
            with self._errors(sqlite3.OperationalError):
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    self._connection.executemany(statement, rows)
                    self._connection.execute("COMMIT")
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            self._is_full = True
            warnings.warn(
                f"cache_dir: {self._path} could not be written to ({error}). The results are correct, but "
                "not cached from here on.",
                stacklevel=5,
            )

    @contextmanager
    def _errors(self, *passed: type[Exception]) -> Iterator[None]:
        """Name the parameter and the file in errors of SQLite, except those that are passed on."""
        try:
            yield
        except passed:
            raise
        except sqlite3.OperationalError as error:
            raise ValueError(f"cache_dir: {self._path} could not be used ({error}).") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> ValueError:
        return ValueError(
            f"cache_dir: {self._path} is damaged, or not a cache of this version ({reason}). Delete it: its "
            "content is computed again."
        )


def through_cache(
    cache: TextCache,
    texts: Sequence[str],
    settings: str,
    compute: Callable[[list[str]], tuple[np.ndarray, np.ndarray]],
    tell: Callable[[int], Any],
) -> tuple[np.ndarray, np.ndarray]:
    """Look up different texts in a cache, and compute and store the missing ones, part by part.

    Parameters
    ----------
    settings : what decides a value, besides the text and the identity of the cache
    compute : from b texts to their values (b, d) and their notes (b,), int64
    tell : called with the number of texts that were stored

    Returns
    -------
    values : ndarray of shape (n, d)
    notes : ndarray of shape (n,), int64
    """
    values, notes = np.empty((len(texts), 0)), np.zeros(len(texts), dtype=np.int64)
    missing: list[int] = []
    keys: dict[int, bytes] = {}

    def place(rows: Any, vectors: np.ndarray, vector_notes: np.ndarray) -> None:
        nonlocal values
        if not values.shape[1]:
            values = np.empty((len(texts), vectors.shape[1]), dtype=vectors.dtype)
        values[rows], notes[rows] = vectors, vector_notes

    for start in range(0, len(texts), TEXTS_AT_ONCE):
        stop = min(start + TEXTS_AT_ONCE, len(texts))
        batch_keys = [text_key(texts[i], settings) for i in range(start, stop)]
        stored, *contents = cache.get(batch_keys)
        if len(stored):
            place(start + stored, *contents)
            tell(len(stored))
        for i in np.setdiff1d(np.arange(stop - start), stored).tolist():
            missing.append(start + i)
            keys[start + i] = batch_keys[i]
        # Missing texts are collected over lookups, so that the model gets full batches.
        while missing and (len(missing) >= TEXTS_AT_ONCE or stop == len(texts)):
            part, missing = missing[:TEXTS_AT_ONCE], missing[TEXTS_AT_ONCE:]
            cache.check_writable()
            computed, computed_notes = compute([texts[i] for i in part])
            place(part, computed, computed_notes)
            cache.put([keys.pop(i) for i in part], computed, computed_notes)
    return values, notes


def cache_folder(value: Any, name: str = "cache_dir") -> Path:
    """Read the path of the folder of a cache, which need not exist."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} must be the path of a folder. Got {describe(value)}.")
    path = Path(os.path.expanduser(os.fspath(value)))
    if path.exists() and not path.is_dir():
        raise ValueError(f"{name} must be the path of a folder. Got {str(path)!r}, which is a file.")
    return path


def text_key(text: str, settings: str) -> bytes:
    """Return the key of a text, 16 bytes: the probability of a collision among 10^9 texts is about 10^-21."""
    return hashlib.blake2b(f"{settings}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _checksum(key: bytes, value: bytes, note: int) -> int:
    return zlib.crc32(b"%d" % note, zlib.crc32(value, zlib.crc32(key)))
