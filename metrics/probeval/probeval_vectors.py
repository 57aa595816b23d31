"""Embeddings of answers: by the encoder, or word vectors averaged over an answer."""

import numpy as np

from .core import WordVectors, unit_vectors, warn


def tokenize(text: str) -> list[str]:
    """Tokenize as NLTK's `word_tokenize` does, without its sentence splitter."""
    from nltk.tokenize import NLTKWordTokenizer  # NLTK takes seconds to import

    return NLTKWordTokenizer().tokenize(text)


class Embeddings:
    """Unit embeddings of n different texts, looked up by text, from rows (n, d); a row is zero without a known word."""

    def __init__(self, texts: list[str], matrix: np.ndarray) -> None:
        self._matrix = unit_vectors(matrix)
        self._rows = {text: i for i, text in enumerate(texts)}
        self._unknown = {texts[i] for i in np.flatnonzero(~self._matrix.any(axis=1))}

    def look_up(self, *groups: list[str]) -> list[np.ndarray]:
        """Embed groups of texts in one space: for each group an ndarray of shape (len(group), d'), unit rows.

        A text without an embedding gets a dimension of its own: it is like itself, and like nothing else.
        """
        unknown = sorted(self._unknown & set().union(*groups))
        embedded = []
        for group in groups:
            rows = self._matrix[[self._rows[text] for text in group]]
            if unknown:
                is_own = []
                for text in group:
                    is_own.append([text == other for other in unknown])
                rows = np.hstack([rows, is_own])
            embedded.append(rows)
        return embedded


def average_word_vectors(texts: list[str], vectors: WordVectors) -> tuple[np.ndarray, str]:
    """Average word vectors over the words of each of n texts.

    Returns an ndarray of shape (n, d), and the name of the vectors for the signature. A text without a known word
    has a zero row, with a warning. Raises a ValueError if the vectors differ in length, or are not finite.
    """
    known = []
    for text in texts:
        looked_up = [vectors[word] for word in tokenize(text)]
        known.append([vector for vector in looked_up if vector is not None])
    unknown = known.count([])
    if unknown:
        warn(f"{unknown} of {len(texts)} different answers have no word in vectors: each matches only itself.")
    length = next((len(row[0]) for row in known if row), 1)
    return np.array([np.mean(row, axis=0) if row else np.zeros(length) for row in known]), vectors.identity
