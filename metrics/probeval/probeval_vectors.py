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
        self._known = norms[:, 0] > 0

    def look_up(self, *groups: list[str]) -> list[np.ndarray]:
        """Embed groups of texts in one space: for each group an ndarray of shape (len(group), d'), unit rows.

        A text without an embedding gets a dimension of its own: it is like itself, and like nothing else.
        """
        unknown = sorted({text for group in groups for text in group if not self._known[self._rows[text]]})
        places = {text: i for i, text in enumerate(unknown)}
        matrices = []
        for group in groups:
            matrix = self._matrix[[self._rows[text] for text in group]]
            if unknown:
                extra = np.zeros((len(group), len(unknown)))
                for i, text in enumerate(group):
                    if text in places:
                        extra[i, places[text]] = 1.0
                matrix = np.hstack([matrix, extra])
            matrices.append(matrix)
        return matrices


def average_word_vectors(texts: list[str], vectors: WordVectors) -> tuple[np.ndarray, str]:
    """Average word vectors over the words of each of n texts.

    Returns an ndarray of shape (n, d), a zero row for a text without a known word, and the name of the vectors for the
    signature. Warns with the count if texts have no known word. Raises a ValueError if the vectors are not all of one
    length, or hold anything but finite numbers.
    """
    averages: list[Any] = []
    for text in texts:
        known = [vector for word in word_tokenizer().tokenize(text) if (vector := vectors[word]) is not None]
        averages.append(np.mean(known, axis=0, dtype=np.float64) if known else None)
    sizes = {len(average) for average in averages if average is not None}
    unknown = sum(average is None for average in averages)
    if unknown:
        warnings.warn(
            f"{unknown} of {len(texts)} different answers have no word in vectors: each matches only itself.",
            stacklevel=4,
        )
    nothing = np.zeros(sizes.pop() if sizes else 1)
    return np.array([nothing if average is None else average for average in averages]), vectors.identity
