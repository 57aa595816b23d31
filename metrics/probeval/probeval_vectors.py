"""Embeddings of answers: by the encoder, or word vectors averaged over an answer."""

import hashlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from nltk.tokenize import NLTKWordTokenizer

from .core_encoder import model_registry
from .core_inputs import describe
from .core_signature import format_callable

_tokenizer = NLTKWordTokenizer()


class Embeddings:
    """Unit embeddings of texts, looked up by text.

    Parameters
    ----------
    texts : list of n different str
    matrix : ndarray of shape (n, d); a zero row stands for a text without any known word
    """

    def __init__(self, texts: list[str], matrix: np.ndarray) -> None:
        matrix = np.asarray(matrix, dtype=np.float64)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        self._rows = {text: i for i, text in enumerate(texts)}
        self._matrix = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
        self._known = norms[:, 0] > 0

    def look_up(self, *groups: list[str]) -> list[np.ndarray]:
        """Embed groups of texts in one space.

        A text without an embedding gets a dimension of its own: it is like itself, and like nothing else.

        Returns
        -------
        list of ndarray of shape (len(group), d'), unit rows
        """
        unknown = sorted({text for group in groups for text in group if not self._known[self._rows[text]]})
        places = {text: i for i, text in enumerate(unknown)}
        found = []
        for group in groups:
            matrix = self._matrix[[self._rows[text] for text in group]]
            if unknown:
                extra = np.zeros((len(group), len(unknown)))
                for i, text in enumerate(group):
                    if text in places:
                        extra[i, places[text]] = 1.0
                matrix = np.hstack([matrix, extra])
            found.append(matrix)
        return found


def average_word_vectors(texts: list[str], vectors: Any) -> tuple[np.ndarray, str]:
    """Average word vectors over the words of each text.

    Parameters
    ----------
    texts : list of n str
    vectors : path of a fastText (.bin) or word2vec (.bin, .vec, .txt, also .gz) file, or of a file that gensim saved
        (.kv, .model); or a mapping from words to vectors, such as gensim's KeyedVectors

    Returns
    -------
    matrix : ndarray of shape (n, d); a zero row for a text without a known word
    identity : the name and digest of the file

    Warns
    -----
    UserWarning
        With the count, if texts have no known word.

    Raises
    ------
    TypeError, ValueError
        If `vectors` is none of these, or the file cannot be read as such.
    ImportError
        If gensim is missing and a file is given.
    """
    table, identity = _load(vectors)
    averages: list[Any] = []
    for text in texts:
        found = [_vector(table, word) for word in _tokenizer.tokenize(text)]
        known = [vector for vector in found if vector is not None]
        averages.append(np.mean(known, axis=0, dtype=np.float64) if known else None)
    sizes = {len(average) for average in averages if average is not None}
    if len(sizes) > 1:
        raise ValueError(f"vectors must all have one length. Got lengths {sorted(sizes)}.")
    unknown = sum(average is None for average in averages)
    if unknown:
        warnings.warn(
            f"{unknown} of {len(texts)} different answers have no word in vectors: each matches only itself.",
            stacklevel=4,
        )
    nothing = np.zeros(sizes.pop() if sizes else 1)
    return np.array([nothing if average is None else average for average in averages]), identity


def _vector(table: Any, word: str) -> Any:
    # fastText's `in` is true for any word with a known n-gram, and its lookup builds the vector from these.
    for form in (word, word.lower()):
        if form in table:
            return np.asarray(table[form], dtype=np.float64)
    return None


def _load(vectors: Any) -> tuple[Any, str]:
    if not isinstance(vectors, (str, os.PathLike)):
        if isinstance(vectors, Mapping) or (hasattr(vectors, "__contains__") and hasattr(vectors, "key_to_index")):
            return vectors, format_callable(vectors)
        raise TypeError(
            f"vectors must be the path of a fastText or word2vec file, or a mapping from words to vectors. "
            f"Got {describe(vectors)}."
        )
    path = Path(vectors)
    if not path.is_file():
        raise ValueError(
            f"vectors must be the path of a fastText or word2vec file. Got {os.fspath(vectors)!r}: no file."
        )
    registry = model_registry()
    state = path.stat()
    key = ("vectors", path.resolve(), state.st_mtime_ns, state.st_size)
    with registry.lock:
        if key not in registry.models:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
            registry.models[key] = (_read(path), f"{path.name}@{digest}")
        return registry.models[key]


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
            # A fastText model begins with a magic number; word2vec's binary format with its size in digits.
            is_fasttext = int.from_bytes(file.read(4), "little") == 793712314
        return load_facebook_vectors(name) if is_fasttext else KeyedVectors.load_word2vec_format(name, binary=True)
    except (ValueError, OSError, EOFError, NotImplementedError, UnicodeDecodeError, AttributeError) as error:
        raise ValueError(f"vectors: {name!r} could not be read as fastText or word2vec: {error}") from error
