"""Where a text leaves its subject: one decision a text, whose thresholds depend on how many sentences it has."""

import hashlib
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core_models import load_once
from .core_numbers import describe
from .core_vectors import WordVectors

# The least tie that keeps the focus of a text of two sentences: a cosine there, but for the bonus of short sentences.
FOCUS_THRESHOLD = 0.108
# Of 1 / (1 + Word Mover's distance): the paper's number. It depends on the vectors.
WMS_THRESHOLD = 0.05

# The original's logistic function of the distance.
_PARITY_SHIFT = 7.0


class FocusBreak(NamedTuple):
    """Two adjacent sentences, the first by its place in the text, that lost the focus, and their similarity."""

    place: int
    similarity: float


class FocusRule(NamedTuple):
    """How cosines become evidence, and from where on it counts; chosen by scripts/training/calibrate_gruen.py.

    near, best : weights, in a tie, of a sentence's mean cosine with its neighbors, and with its three nearest others
    off_line : weight of its mean cosine with its neighbors, less the cosine of these with each other
    brevity : bonus for the logarithm of its words, below 20: short sentences say little of the subject
    within : weight, in a bond, of the mean cosine inside both parts, against that across
    side : loss for the logarithm of the sentences of the shorter part
    digression, bond : thresholds in a text of two sentences, less that of the tie
    tie_slope, digression_slope, bond_slope : loss of the thresholds with the logarithm of the number of sentences
    """

    near: float = 0.6
    best: float = 0.4
    off_line: float = 0.15
    brevity: float = 0.05
    within: float = 0.25
    side: float = 0.045
    digression: float = -0.363
    bond: float = -0.098
    tie_slope: float = 0.0135
    digression_slope: float = 0.26
    bond_slope: float = 0.0225

    @property
    def identity(self) -> str:
        """The weights, thresholds and slopes in their order, for the signature."""
        return "/".join(f"{value:g}" for value in self)

    def thresholds(self, n_sentences: int, threshold: float) -> tuple[float, float, float]:
        """Return the least tie, digression and bond that keep the focus of a text."""
        length = math.log(n_sentences / 2)
        return (
            threshold - self.tie_slope * length,
            threshold + self.digression - self.digression_slope * length,
            threshold + self.bond - self.bond_slope * length,
        )


FOCUS_RULE = FocusRule()
_LONG_SENTENCE = 20
_NEAREST = 3
_LEAST_PART = 2
# Rows of the matrix of all cosines that are held at a time.
_BLOCK_ROWS = 512


def embedding_breaks(
    embeddings: np.ndarray, n_words: np.ndarray, threshold: float = FOCUS_THRESHOLD
) -> list[FocusBreak]:
    """Find where a text loses focus.

    A sentence is off topic if its similarity to the others is too low (its tie), or much lower to its neighbors than
    that of these to each other (a digression): both of its pairs lose focus. Two parts of at least two sentences each
    are two texts if their similarity is too low (their bond): the pair at the boundary of the worst loses focus. All
    thresholds decrease with the number of sentences, because a longer text has more places that can fail; the share of
    edited texts that lose focus stays the same.

    Parameters
    ----------
    embeddings : ndarray of shape (n, d), a row for each sentence of the text
    n_words : ndarray of shape (n,), the number of words of each

    Returns
    -------
    list of breaks, by place; similarities are cosines, in [-1, 1]
    """
    if len(embeddings) < 2:
        return []
    adjacent, of_sentences, of_parts = _margins(embeddings, n_words, threshold)
    broken = np.zeros(len(adjacent), dtype=bool)
    off_topic = np.flatnonzero(of_sentences < 0)
    broken[off_topic[off_topic > 0] - 1] = True
    broken[off_topic[off_topic < len(adjacent)]] = True
    if len(of_parts) and of_parts.min() < 0:
        broken[int(of_parts.argmin()) + _LEAST_PART - 1] = True
    return [FocusBreak(int(i), float(adjacent[i])) for i in np.flatnonzero(broken)]


def focus_margin(embeddings: np.ndarray, n_words: np.ndarray, threshold: float = FOCUS_THRESHOLD) -> float:
    """Return how far `threshold` could rise before a text of two or more sentences loses focus; below 0 if it has."""
    _, of_sentences, of_parts = _margins(embeddings, n_words, threshold)
    return float(min(of_sentences.min(), of_parts.min(initial=np.inf)))


def _margins(
    embeddings: np.ndarray, n_words: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cosines of adjacent sentences, and the margins of sentences, (n,), and of parts, (n - 3,)."""
    vectors = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    adjacent, off_line = _neighbors(vectors)
    least_tie, least_digression, least_bond = FOCUS_RULE.thresholds(len(vectors), threshold)
    of_sentences = np.minimum(ties(vectors, n_words) - least_tie, off_line - least_digression)
    if len(vectors) == 2:
        # Of two sentences, neither is off topic alone: both must be.
        of_sentences[:] = of_sentences.max()
    return adjacent, of_sentences, bonds(vectors) - least_bond


def ties(vectors: np.ndarray, n_words: np.ndarray) -> np.ndarray:
    """How much each of two sentences or more has to do with the others: (n,), higher is more, near to a cosine.

    Parameters
    ----------
    vectors : ndarray of shape (n, d), of length 1 or 0
    """
    n, rule = len(vectors), FOCUS_RULE
    adjacent, off_line = _neighbors(vectors)
    near = np.concatenate([adjacent[:1], (adjacent[1:] + adjacent[:-1]) / 2, adjacent[-1:]])
    best = np.empty(n)
    nearest = min(_NEAREST, n - 1)
    for start in range(0, n, _BLOCK_ROWS):
        cosines = vectors[start : start + _BLOCK_ROWS] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        best[start : start + _BLOCK_ROWS] = np.partition(cosines, n - nearest, axis=1)[:, n - nearest :].mean(axis=1)
    bonus = np.log(_LONG_SENTENCE / np.clip(n_words, 1, _LONG_SENTENCE))
    return rule.near * near + rule.best * best + rule.off_line * off_line + rule.brevity * bonus


def _neighbors(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines of adjacent sentences, (n - 1,), and how far each is off the line of its neighbors, (n,).

    That is its mean cosine with them less their cosine with each other; the first and the last are off no line.
    """
    adjacent = (vectors[1:] * vectors[:-1]).sum(axis=1)
    off_line = np.zeros(len(vectors))
    off_line[1:-1] = (adjacent[1:] + adjacent[:-1]) / 2 - (vectors[2:] * vectors[:-2]).sum(axis=1)
    return adjacent, off_line


def bonds(vectors: np.ndarray) -> np.ndarray:
    """How much two parts of a text have to do with each other, for each way to part it into two sentences or more each.

    Parameters
    ----------
    vectors : ndarray of shape (n, d), of length 1 or 0

    Returns
    -------
    ndarray of shape (n - 3,), empty for n < 4: the mean cosine across, less what both parts have within; higher is more
    """
    n = len(vectors)
    if n < 2 * _LEAST_PART:
        return np.empty(0)
    # Sums of cosines come from sums of vectors: no matrix of all pairs is needed.
    sums = vectors.cumsum(axis=0)
    squares = (vectors * vectors).sum(axis=1).cumsum()
    sizes = np.arange(_LEAST_PART, n - _LEAST_PART + 1)
    before, after = sums[sizes - 1], sums[-1] - sums[sizes - 1]
    across = (before * after).sum(axis=1) / (sizes * (n - sizes))
    within = np.zeros(len(sizes))
    for part, squared, m in ((before, squares[sizes - 1], sizes), (after, squares[-1] - squares[sizes - 1], n - sizes)):
        within += ((part * part).sum(axis=1) - squared) / (m * (m - 1)) / 2
    return across - FOCUS_RULE.within * within - FOCUS_RULE.side * np.log(np.minimum(sizes, n - sizes))


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

            self._vectors = read(vectors)
            self.identity = self._vectors.identity
            self._tokenizer, self._stop_words = NLTKWordTokenizer(), ENGLISH_STOP_WORDS
            self._pipeline = None

    def breaks(self, sentences: list[str], threshold: float, parity: bool) -> list[FocusBreak]:
        """Find the adjacent sentences of a text whose similarity is below the threshold.

        The similarity is 1 / (1 + distance). With `parity` it is the original's 1 / (1 + exp(7 - distance)), which
        takes the distance for a similarity: it is low for sentences that are near. A pair of which one has no known
        word is not judged.
        """
        documents = [self._weigh(sentence, parity) for sentence in sentences]
        breaks = []
        for place, (first, second) in enumerate(itertools.pairwise(documents)):
            if not first or not second:
                continue
            distance = self._distance(first, second)
            similarity = 1 / (1 + math.exp(_PARITY_SHIFT - distance)) if parity else 1 / (1 + distance)
            if similarity < threshold:
                breaks.append(FocusBreak(place, similarity))
        return breaks

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
        weighted = ((self._vectors[word], math.log1p(n)) for word, n in counted.items())
        return [(vector, weight) for vector, weight in weighted if vector is not None]

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
    files = sorted(path for path in (folder / "vocab").rglob("*") if path.is_file())
    if not (folder / "meta.json").is_file() or not files:
        raise ValueError(
            f"vectors: {os.fspath(folder)!r} is not the folder of a spaCy pipeline: no meta.json, no vocab."
        )
    key = ("spacy", folder.resolve(), *((path.stat().st_mtime_ns, path.stat().st_size) for path in files))

    def load() -> tuple[Any, str]:
        try:
            described = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
            # What comes after the tokenizer costs time, and gives no vectors.
            pipeline = spacy.load(folder, exclude=described.get("pipeline", []))
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"vectors: {os.fspath(folder)!r} could not be read by spaCy: {error}") from error
        if not len(pipeline.vocab.vectors):
            raise ValueError(f"vectors: {os.fspath(folder)!r} is a spaCy pipeline without word vectors.")
        digest = hashlib.sha256()
        for path in files:
            digest.update(path.read_bytes())
        return pipeline, f"{folder.name}@{digest.hexdigest()[:12]}"

    return load_once(key, load)


def refuse_vectors(vectors: Any, focus: str | None) -> None:
    """Make sure that word vectors are there where they are used, and only there."""
    if focus == "wms" and vectors is None:
        raise ValueError(
            "vectors is None, and focus='wms' needs word vectors: the folder of a spaCy pipeline, a fastText or "
            "word2vec file, or a mapping. With parity=True, leave 'focus' out of components to score without."
        )
    if focus != "wms" and vectors is not None:
        raise ValueError(f"vectors has no effect without focus='wms': leave it out. Got {describe(vectors)}.")
