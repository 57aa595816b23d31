"""User-supplied word vectors, read once in a process, with a name for the signature."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .core_models import file_digest, load_once
from .core_numbers import describe, to_array
from .core_results import caller_name

# Larger numbers have no square in float64.
_LARGEST_ENTRY = 1e100


class WordVectors:
    """Vectors of one length by word, and their name: the name of the file, with its digest."""

    def __init__(self, table: Any, identity: str) -> None:
        self._table = table
        self.identity = identity
        self._shape: tuple[int, ...] | None = None

    def __getitem__(self, word: str) -> np.ndarray | None:
        """Look up the vector of a word, as written or in lower case; None if there is none.

        Raises a ValueError if it is not a vector of finite numbers, or not as long as the first one that was looked up.
        """
        # fastText's `in` is true for any word with a known n-gram, from which its lookup builds the vector.
        for form in (word, word.lower()):
            if form in self._table:
                return self._check(form, self._table[form])
        return None

    def _check(self, word: str, value: Any) -> np.ndarray:
        try:
            vector = to_array(value).astype(np.float64)
        except (TypeError, ValueError):
            vector = np.empty(0)
        self._shape = self._shape or vector.shape
        # NaN is not below the bound either.
        is_sound = vector.ndim == 1 and vector.size and (np.abs(vector) <= _LARGEST_ENTRY).all()
        if not is_sound or vector.shape != self._shape:
            raise ValueError(
                f"vectors must hold an array of one shape (d,) for each word, of finite numbers up to "
                f"{_LARGEST_ENTRY:g}. Got {describe(value)} for {word!r}; the first one has shape {self._shape}."
            )
        return vector


def load_vectors(vectors: Any) -> WordVectors:
    """Load word vectors, once in a process.

    They are the path of a fastText (.bin) or word2vec (.bin, .vec, .txt, also .gz) file, or of a file that gensim saved
    (.kv, .model); or a mapping from words to vectors, such as gensim's KeyedVectors. Raises a TypeError or ValueError
    if they are none of these, or the file cannot be read, and an ImportError if a file needs gensim.
    """
    if not isinstance(vectors, (str, os.PathLike)):
        if isinstance(vectors, Mapping) or (hasattr(vectors, "__contains__") and hasattr(vectors, "key_to_index")):
            return WordVectors(vectors, f"custom({caller_name(vectors)})")
        raise TypeError(
            f"vectors must be the path of a fastText or word2vec file, or a mapping from words to vectors. "
            f"Got {describe(vectors)}."
        )
    path = Path(vectors)
    # Path.is_file raises an error for a name that is too long.
    if not os.path.isfile(path):
        raise ValueError(
            "vectors must be the path of a fastText or word2vec file. "
            f"Got {os.fspath(vectors)!r:.1000}, which is not a file."
        )
    identity = f"{path.name}@{file_digest(path)[:12]}"
    return load_once(("vectors", path.resolve(), identity), lambda: WordVectors(_read(path), identity))


def _read(path: Path) -> Any:
    try:
        from gensim.models import KeyedVectors
        from gensim.models.fasttext import load_facebook_vectors
    except ImportError as error:
        raise ImportError("gensim is needed to read word vectors: pip install gensim") from error
    suffixes = set(path.suffixes)
    name = os.fspath(path)
    try:
        if suffixes & {".kv", ".model"}:
            saved = KeyedVectors.load(name)
            return getattr(saved, "wv", saved)
        if ".bin" not in suffixes:
            return KeyedVectors.load_word2vec_format(name, binary=False)
        with path.open("rb") as file:
            # A fastText model begins with a magic number; word2vec's binary format begins with its size in digits.
            is_fasttext = int.from_bytes(file.read(4), "little") == 793712314
        return load_facebook_vectors(name) if is_fasttext else KeyedVectors.load_word2vec_format(name, binary=True)
    except (ValueError, OSError, EOFError, NotImplementedError, UnicodeDecodeError, AttributeError) as error:
        raise ValueError(f"vectors: {name!r} could not be read as fastText or word2vec: {error}") from error
