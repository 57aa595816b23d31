"""Embeddings of answers: by the encoder, or word vectors averaged over an answer."""

import warnings
from functools import cache
from typing import Any

import numpy as np

from .core_vectors import WordVectors


@cache
def word_tokenizer() -> Any:
    """Return NLTK's tokenizer of words; NLTK takes seconds to import."""
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


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
        self._unknown = {text for text, norm in zip(texts, norms, strict=True) if norm == 0}

    def look_up(self, *groups: list[str]) -> list[np.ndarray]:
        """Embed groups of texts in one space: for each group an ndarray of shape (len(group), d'), unit rows.

        A text without an embedding gets a dimension of its own: it is like itself, and like nothing else.
        """
        unknown = sorted(self._unknown & set().union(*groups))
        matrices = [self._matrix[[self._rows[text] for text in group]] for group in groups]
        if not unknown:
            return matrices
        own = [np.array([[text == other for other in unknown] for text in group], dtype=float) for group in groups]
        return [np.hstack(pair) for pair in zip(matrices, own, strict=True)]


def average_word_vectors(texts: list[str], vectors: WordVectors) -> tuple[np.ndarray, str]:
    """Average word vectors over the words of each of n texts.

    Returns an ndarray of shape (n, d), a zero row for a text without a known word, and the name of the vectors for the
    signature. Warns with the count if texts have no known word. Raises a ValueError if the vectors are not all of one
    length, or hold anything but finite numbers.
    """
    known = [
        [vector for word in word_tokenizer().tokenize(text) if (vector := vectors[word]) is not None] for text in texts
    ]
    unknown = known.count([])
    if unknown:
        warnings.warn(
            f"{unknown} of {len(texts)} different answers have no word in vectors: each matches only itself.",
            stacklevel=4,
        )
    length = next((len(own[0]) for own in known if own), 1)
    return np.array([np.mean(own, axis=0) if own else np.zeros(length) for own in known]), vectors.identity
