"""Where a text leaves its subject: adjacent sentences that have too little to do with each other."""

import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import describe
from .core_models import model_registry
from .core_vectors import WordVectors, word_vector

# The least cosine of adjacent sentences, and how far a sentence may stand off the line between its neighbours.
COSINE_THRESHOLD = 0.07
DIGRESSION_THRESHOLD = -0.265
# Of 1 / (1 + Word Mover's distance): the paper's number. It depends on the vectors.
WMS_THRESHOLD = 0.05

# The original's logistic function of the distance.
_PARITY_SHIFT = 7.0


class FocusBreak(NamedTuple):
    """Two adjacent sentences, the first by its place in the text, that lost the focus, and their similarity."""

    place: int
    similarity: float


def embedding_breaks(
    embeddings: np.ndarray, threshold: float = COSINE_THRESHOLD, digression: float = DIGRESSION_THRESHOLD
) -> list[FocusBreak]:
    """Find the adjacent sentences of a text that lose focus.

    Two do if their cosine is below the threshold. And a sentence is a digression if its neighbours have more to do with
    each other than it has with them: if the mean of its two cosines, less the cosine of the neighbours, is below the
    other threshold. Then both of its pairs lost focus.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), a row for each sentence of the text

    Returns
    -------
    list of breaks, by place; similarities are cosines, in [-1, 1]
    """
    if len(embeddings) < 2:
        return []
    vectors = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    adjacent = (vectors[1:] * vectors[:-1]).sum(axis=1)
    outer = (vectors[2:] * vectors[:-2]).sum(axis=1)
    broken = adjacent < threshold
    astray = (adjacent[1:] + adjacent[:-1]) / 2 - outer < digression
    broken[:-1] |= astray
    broken[1:] |= astray
    return [FocusBreak(int(i), float(adjacent[i])) for i in np.flatnonzero(broken)]


class WordMover:
    """Word Mover's similarity of sentences, over word vectors that the user names.

    Parameters
    ----------
    vectors : folder of a spaCy pipeline with word vectors; or file of word vectors that gensim reads (fastText,
        word2vec, .kv); or a mapping from words to vectors
    read : reads the files and mappings

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or cannot be read.
    ImportError
        If POT is missing, or the library that reads the file.
    """

    def __init__(self, vectors: Any, read: Callable[[Any], WordVectors]) -> None:
        try:
            import ot
        except ImportError as error:
            raise ImportError("POT is needed for focus='wms': pip install POT") from error
        self._emd2 = ot.emd2
        spacy_folder = isinstance(vectors, (str, os.PathLike)) and Path(vectors).expanduser().is_dir()
        if spacy_folder:
            self._pipeline, self.identity = _read_spacy(Path(vectors).expanduser())
        else:
            from nltk.tokenize import NLTKWordTokenizer
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            self._table, self.identity = read(vectors)
            self._tokenizer, self._stop_words = NLTKWordTokenizer(), ENGLISH_STOP_WORDS
            self._pipeline = None

    def breaks(self, sentences: list[str], threshold: float, parity: bool) -> list[FocusBreak]:
        """Find the adjacent sentences of a text whose similarity is below the threshold.

        The similarity is 1 / (1 + distance). With `parity` it is the original's 1 / (1 + exp(7 - distance)), which
        takes the distance for a similarity: it is low for sentences that are near. A pair of which one has no known
        word is not judged.
        """
        documents = [self._weigh(sentence, parity) for sentence in sentences]
        found = []
        for place, (first, second) in enumerate(itertools.pairwise(documents)):
            if not first or not second:
                continue
            distance = self._distance(first, second)
            similarity = 1 / (1 + math.exp(_PARITY_SHIFT - distance)) if parity else 1 / (1 + distance)
            if similarity < threshold:
                found.append(FocusBreak(place, similarity))
        return found

    def _weigh(self, sentence: str, parity: bool) -> list[tuple[np.ndarray, float]]:
        """Give each word of a sentence that carries meaning: its vector, and the logarithm of 1 + its count."""
        if self._pipeline is not None:
            tokens = [token for token in self._pipeline.make_doc(sentence) if token.is_alpha and not token.is_stop]
            # The original keeps a word without a vector, at zero.
            words = Counter(token.orth for token in tokens if parity or token.has_vector)
            return [(self._pipeline.vocab[word].vector, math.log1p(n)) for word, n in words.items()]
        counted = Counter(
            word
            for word in self._tokenizer.tokenize(sentence)
            if word.isalpha() and word.lower() not in self._stop_words
        )
        found = ((word_vector(self._table, word), math.log1p(n)) for word, n in counted.items())
        return [(vector, weight) for vector, weight in found if vector is not None]

    def _distance(self, first: list[tuple[np.ndarray, float]], second: list[tuple[np.ndarray, float]]) -> float:
        """Word Mover's distance (Kusner et al. 2015): the least mean way from words to words."""
        sides = []
        for document in (first, second):
            vectors = np.stack([np.asarray(vector, dtype=np.float64) for vector, _ in document])
            weights = np.array([weight for _, weight in document])
            sides.append((vectors, weights / weights.sum()))
        (u, p), (v, q) = sides
        ways = np.sqrt(np.maximum(0.0, (u * u).sum(1)[:, None] - 2 * u @ v.T + (v * v).sum(1)[None]))
        return max(0.0, float(self._emd2(p, q, ways)))


def _read_spacy(folder: Path) -> tuple[Any, str]:
    """Load a spaCy pipeline's vocabulary and tokenizer, or take those that this process has loaded."""
    try:
        import spacy
    except ImportError as error:
        raise ImportError("spaCy is needed to read a folder of word vectors: pip install spacy") from error
    registry = model_registry()
    files = sorted(path for path in (folder / "vocab").rglob("*") if path.is_file())
    if not (folder / "meta.json").is_file() or not files:
        raise ValueError(
            f"vectors: {os.fspath(folder)!r} is not the folder of a spaCy pipeline: no meta.json, no vocab."
        )
    key = ("spacy", folder.resolve(), *((path.stat().st_mtime_ns, path.stat().st_size) for path in files))
    with registry.lock:
        if key not in registry.models:
            try:
                # What comes after the tokenizer costs time, and gives no vectors.
                pipeline = spacy.load(folder, exclude=_components(folder))
            except (OSError, ValueError, KeyError) as error:
                raise ValueError(f"vectors: {os.fspath(folder)!r} could not be read by spaCy: {error}") from error
            if not len(pipeline.vocab.vectors):
                raise ValueError(f"vectors: {os.fspath(folder)!r} is a spaCy pipeline without word vectors.")
            digest = hashlib.sha256()
            for path in files:
                digest.update(path.read_bytes())
            registry.models[key] = (pipeline, f"{folder.name}@{digest.hexdigest()[:12]}")
        return registry.models[key]


def _components(folder: Path) -> list[str]:
    import json

    return json.loads((folder / "meta.json").read_text(encoding="utf-8")).get("pipeline", [])


def refuse_vectors(vectors: Any, focus: str | None) -> None:
    """Make sure that word vectors are there where they are used, and only there."""
    if focus == "wms" and vectors is None:
        raise ValueError(
            "vectors is None, and focus='wms' needs word vectors: the folder of a spaCy pipeline, a fastText or "
            "word2vec file, or a mapping. With parity=True, leave 'focus' out of components to score without."
        )
    if focus != "wms" and vectors is not None:
        raise ValueError(f"vectors has no effect without focus='wms': leave it out. Got {describe(vectors)}.")
