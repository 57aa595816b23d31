"""Detect topic shifts: by the embeddings of sentences, or by Word Mover's similarity, the paper's measure."""

import hashlib
import itertools
import json
import math
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core import TIE, first_maximum, load_once, load_vectors, unit_vectors

# The least tie that keeps the focus of a text of two sentences; higher: more untouched texts lose it (see below).
FOCUS_THRESHOLD = 0.108

# Chosen at commit 82367c8f on documents of Brown, ABC news, State of the Union and film reviews, so that 8 to 10 % of
# untouched texts lose focus. Removing any constant lowers recall at the same false positive rate.
_OFFSET = 0.25  # weight of the offset of a sentence from its neighbors
_BREVITY = 0.05  # weight of the bonus of a short sentence
_WITHIN = 0.25  # weight of the mean cosine inside the two parts
_SIDE = 0.045  # weight of the sentences of the shorter part
_BOND = -0.105  # difference between the thresholds of a bond and a tie
_SLOPE = 0.02  # lower: longer texts lose focus more often
# The name of the rule in signatures: a change of a constant, or of what is a dialogue, needs a new one.
FOCUS_RULE = "v3"

_LONG_SENTENCE = 20
_NEAREST = 3
_LEAST_PART = 2
_BLOCK_ROWS = 512  # of the matrix of all cosines, held at a time
# Least 1 / (1 + Word Mover's distance): the paper's number, whose meaning depends on the vectors.
WMS_THRESHOLD = 0.05


class FocusBreak(NamedTuple):
    """Two adjacent sentences, the first by its place in the text, that lost the focus, and their similarity."""

    place: int
    similarity: float


def embedding_breaks(
    embeddings: np.ndarray, n_words: np.ndarray, threshold: float = FOCUS_THRESHOLD
) -> list[FocusBreak]:
    """Find where a text loses focus.

    A sentence is off topic if its tie to the others is too weak: both of its pairs lose focus. Two parts of at least
    two sentences each are two texts if their bond is too weak: the pair at the boundary of the worst loses focus. Both
    thresholds decrease with the number of sentences, because a longer text has more places that can fail; the share of
    edited texts that lose focus stays the same. Maps a row for each sentence, (n, d), and their numbers of words, (n,),
    to breaks by place; similarities are cosines, in [-1, 1].
    """
    n = len(embeddings)
    if n < 2:
        return []
    vectors = unit_vectors(embeddings)
    # A tie or bond that equals its threshold keeps the focus.
    least = threshold - _SLOPE * math.log(n / 2) - TIE
    is_off_topic = ties(vectors, n_words) < least
    if n == 2:
        # Of two sentences, neither is off topic alone: both must be.
        is_off_topic[:] = is_off_topic.all()
    is_broken = is_off_topic[1:] | is_off_topic[:-1]
    part_bonds = bonds(vectors)
    if len(part_bonds) and part_bonds.min() < least + _BOND:
        is_broken[first_maximum(-part_bonds) + _LEAST_PART - 1] = True
    adjacent = (vectors[1:] * vectors[:-1]).sum(axis=1)
    return [FocusBreak(int(i), float(adjacent[i])) for i in np.flatnonzero(is_broken)]


def ties(vectors: np.ndarray, n_words: np.ndarray) -> np.ndarray:
    """Compute the relatedness of each of two or more sentences to the rest: (n,), on the scale of a cosine.

    The mean of a sentence's mean cosine with its neighbors and with its three nearest others; plus a quarter of its
    offset, which is the former less the cosine of its neighbors with each other; plus a bonus if it is short. The
    vectors, (n, d), are of length 1 or 0.
    """
    n = len(vectors)
    adjacent = (vectors[1:] * vectors[:-1]).sum(axis=1)
    near = np.concatenate([adjacent[:1], (adjacent[1:] + adjacent[:-1]) / 2, adjacent[-1:]])
    offset = np.zeros(n)
    offset[1:-1] = near[1:-1] - (vectors[2:] * vectors[:-2]).sum(axis=1)
    best = np.empty(n)
    nearest = min(_NEAREST, n - 1)
    for start in range(0, n, _BLOCK_ROWS):
        cosines = vectors[start : start + _BLOCK_ROWS] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        best[start : start + _BLOCK_ROWS] = np.partition(cosines, n - nearest, axis=1)[:, n - nearest :].mean(axis=1)
    bonus = np.log(_LONG_SENTENCE / np.clip(n_words, 1, _LONG_SENTENCE))
    return (near + best) / 2 + _OFFSET * offset + _BREVITY * bonus


def bonds(vectors: np.ndarray) -> np.ndarray:
    """Compute the relatedness of two parts of a text, for each split into parts of two or more sentences.

    Maps vectors (n, d), of length 1 or 0, to (n - 3,), empty for n < 4: the mean cosine across, less what both parts
    have within; higher is more.
    """
    n = len(vectors)
    if n < 2 * _LEAST_PART:
        return np.empty(0)
    # Sums of cosines come from sums of vectors: no matrix of all pairs is needed.
    sums = vectors.cumsum(axis=0)
    squares = (vectors * vectors).sum(axis=1).cumsum()
    sizes = np.arange(_LEAST_PART, n - _LEAST_PART + 1)
    before = sums[sizes - 1]
    after = sums[-1] - sums[sizes - 1]
    across = (before * after).sum(axis=1) / (sizes * (n - sizes))
    within = np.zeros(len(sizes))
    for part, squared, m in ((before, squares[sizes - 1], sizes), (after, squares[-1] - squares[sizes - 1], n - sizes)):
        within += ((part * part).sum(axis=1) - squared) / (m * (m - 1)) / 2
    return across - _WITHIN * within - _SIDE * np.log(np.minimum(sizes, n - sizes))


class WordMover:
    """Word Mover's similarity of sentences, over word vectors that the user names.

    They are the folder of a spaCy pipeline with word vectors, or what `load_vectors` takes. Raises a TypeError or
    ValueError if they are none of these, or cannot be read, and an ImportError if POT is missing, or the library that
    reads the file.
    """

    def __init__(self, vectors: Any) -> None:
        try:
            import ot
        except ImportError as error:
            raise ImportError("POT is needed for vectors: pip install POT") from error
        self._emd2 = ot.emd2
        self._pipeline = None
        if isinstance(vectors, (str, os.PathLike)) and Path(vectors).expanduser().is_dir():
            self._pipeline, self.identity = _read_spacy(Path(vectors).expanduser())
        else:
            self._vectors = load_vectors(vectors)
            self.identity = self._vectors.identity

    def breaks(self, sentences: list[str], threshold: float) -> list[FocusBreak]:
        """Find the adjacent sentences of a text whose similarity is below the threshold.

        The similarity is 1 / (1 + distance). A pair with a sentence without known words is not judged.
        """
        documents = [self._weigh(sentence) for sentence in sentences]
        breaks = []
        for place, (first, second) in enumerate(itertools.pairwise(documents)):
            if first and second:
                similarity = self._similarity(self._distance(first, second))
                if similarity < threshold - TIE:
                    breaks.append(FocusBreak(place, similarity))
        return breaks

    def _similarity(self, distance: float) -> float:
        return 1 / (1 + distance)

    def _count(self, tokens: list[Any]) -> Counter[Any]:
        return Counter(token.orth for token in tokens if token.has_vector)

    def _weigh(self, sentence: str) -> list[tuple[np.ndarray, float]]:
        """Return, for each content word of a sentence, its vector and the logarithm of 1 + its count."""
        if self._pipeline is not None:
            tokens = [token for token in self._pipeline.make_doc(sentence) if token.is_alpha and not token.is_stop]
            known = self._count(tokens)
            return [(self._pipeline.vocab[word].vector, math.log1p(n)) for word, n in known.items()]
        from nltk.tokenize import NLTKWordTokenizer
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        words = (word for word in NLTKWordTokenizer().tokenize(sentence) if word.isalpha())
        counted = Counter(word for word in words if word.lower() not in ENGLISH_STOP_WORDS)
        weighted = ((self._vectors[word], math.log1p(n)) for word, n in counted.items())
        return [(vector, weight) for vector, weight in weighted if vector is not None]

    def _distance(self, first: list[tuple[np.ndarray, float]], second: list[tuple[np.ndarray, float]]) -> float:
        """Word Mover's distance (Kusner et al. 2015): the minimum mean cost of moving words to words."""
        from scipy.spatial.distance import cdist

        u, p = map(np.array, zip(*first, strict=True))
        v, q = map(np.array, zip(*second, strict=True))
        return max(0.0, float(self._emd2(p / p.sum(), q / q.sum(), cdist(u, v))))


def _read_spacy(folder: Path) -> tuple[Any, str]:
    """Load a spaCy pipeline's vocabulary and tokenizer, once in a process."""
    try:
        import spacy
    except ImportError as error:
        raise ImportError("spaCy is needed to read a folder of word vectors: pip install spacy") from error
    files = sorted(path for path in (folder / "vocab").rglob("*") if path.is_file())
    key = ("spacy", folder.resolve(), *((path.stat().st_mtime_ns, path.stat().st_size) for path in files))

    def load() -> tuple[Any, str]:
        try:
            described = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            # Later components of the pipeline cost time and add no vectors.
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
