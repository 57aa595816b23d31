"""Word Mover's similarity of adjacent sentences, the original's measure of focus."""

import hashlib
import itertools
import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .core_models import load_once
from .core_vectors import load_vectors
from .gruen_focus import FocusBreak

# Of 1 / (1 + Word Mover's distance): the paper's number. It depends on the vectors.
WMS_THRESHOLD = 0.05
# The original's logistic function of the distance.
_PARITY_SHIFT = 7.0


class WordMover:
    """Word Mover's similarity of sentences, over word vectors that the user names.

    Parameters
    ----------
    vectors : folder of a spaCy pipeline with word vectors; or file of word vectors that gensim reads (fastText,
        word2vec, .kv); or a mapping from words to vectors
    parity : with the arithmetic of the original

    Raises
    ------
    TypeError, ValueError
        If `vectors` is none of these, or cannot be read.
    ImportError
        If POT is missing, or the library that reads the file.
    """

    def __init__(self, vectors: Any, parity: bool) -> None:
        try:
            import ot
        except ImportError as error:
            raise ImportError("POT is needed for focus='wms': pip install POT") from error
        self._emd2, self._parity, self._pipeline = ot.emd2, parity, None
        if isinstance(vectors, (str, os.PathLike)) and Path(vectors).expanduser().is_dir():
            self._pipeline, self.identity = _read_spacy(Path(vectors).expanduser())
        else:
            self._vectors = load_vectors(vectors)
            self.identity = self._vectors.identity

    def breaks(self, sentences: list[str], threshold: float) -> list[FocusBreak]:
        """Find the adjacent sentences of a text whose similarity is below the threshold.

        The similarity is 1 / (1 + distance). With `parity` it is the original's 1 / (1 + exp(7 - distance)), which
        takes the distance for a similarity: it is low for sentences that are near. A pair of which one has no known
        word is not judged.
        """
        documents = [self._weigh(sentence) for sentence in sentences]
        breaks = []
        for place, (first, second) in enumerate(itertools.pairwise(documents)):
            if first and second:
                distance = self._distance(first, second)
                raised = math.exp(_PARITY_SHIFT - distance) if self._parity else distance
                if 1 / (1 + raised) < threshold:
                    breaks.append(FocusBreak(place, 1 / (1 + raised)))
        return breaks

    def _weigh(self, sentence: str) -> list[tuple[np.ndarray, float]]:
        """Give each word of a sentence that carries meaning: its vector, and the logarithm of 1 + its count."""
        if self._pipeline is not None:
            tokens = [token for token in self._pipeline.make_doc(sentence) if token.is_alpha and not token.is_stop]
            # The original keeps a word without a vector, at zero.
            known = Counter(token.orth for token in tokens if self._parity or token.has_vector)
            return [(self._pipeline.vocab[word].vector, math.log1p(n)) for word, n in known.items()]
        from nltk.tokenize import NLTKWordTokenizer
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        words = (word for word in NLTKWordTokenizer().tokenize(sentence) if word.isalpha())
        counted = Counter(word for word in words if word.lower() not in ENGLISH_STOP_WORDS)
        weighted = ((self._vectors[word], math.log1p(n)) for word, n in counted.items())
        return [(vector, weight) for vector, weight in weighted if vector is not None]

    def _distance(self, first: list[tuple[np.ndarray, float]], second: list[tuple[np.ndarray, float]]) -> float:
        """Word Mover's distance (Kusner et al. 2015): the least mean way from words to words."""
        from scipy.spatial.distance import cdist

        (u, p), (v, q) = (map(np.array, zip(*document, strict=True)) for document in (first, second))
        return max(0.0, float(self._emd2(p / p.sum(), q / q.sum(), cdist(u, v))))


def _read_spacy(folder: Path) -> tuple[Any, str]:
    """Load a spaCy pipeline's vocabulary and tokenizer, or take those that this process has loaded."""
    try:
        import spacy
    except ImportError as error:
        raise ImportError("spaCy is needed to read a folder of word vectors: pip install spacy") from error
    files = sorted(path for path in (folder / "vocab").rglob("*") if path.is_file())
    key = ("spacy", folder.resolve(), *((path.stat().st_mtime_ns, path.stat().st_size) for path in files))

    def load() -> tuple[Any, str]:
        try:
            described = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            # What comes after the tokenizer costs time, and gives no vectors.
            pipeline = spacy.load(folder, exclude=described.get("pipeline", []))
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(
                f"vectors: {os.fspath(folder)!r} is not the folder of a spaCy pipeline: {error}"
            ) from error
        if not len(pipeline.vocab.vectors):
            raise ValueError(f"vectors: {os.fspath(folder)!r} is a spaCy pipeline without word vectors.")
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in files))
        return pipeline, f"{folder.name}@{digest.hexdigest()[:12]}"

    return load_once(key, load)
