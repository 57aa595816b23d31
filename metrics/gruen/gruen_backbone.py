"""What a backbone gives, whichever models it runs, and how its sentences are batched."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

# Tokens in a batch: enough to keep a processor busy, few enough to stay in its cache.
_TOKENS = {"cpu": 1024, "cuda": 32_768, "mps": 8192}


class SentenceScores(NamedTuple):
    """How good sentences are, one by one.

    likelihood : ndarray of shape (n,), in [0, 1]; higher is likelier
    acceptability : ndarray of shape (n,), on the backbone's own scale; higher is more acceptable
    loss : ndarray of shape (n,), mean negative log-likelihood of a token in nats; lower is likelier
    """

    likelihood: np.ndarray
    acceptability: np.ndarray
    loss: np.ndarray


class Backbone(Protocol):
    """Models that judge sentences.

    components : which of "grammaticality" and "coherence" it can give
    identity : the exact weights, and what else of it can change a score, for the signature
    """

    @property
    def components(self) -> tuple[str, ...]:
        """Name what it can give."""

    @property
    def identity(self) -> dict[str, str]:
        """Name what decides its scores."""

    def score_sentences(
        self, sentences: list[str], batch_size: int | None = None, progress: bool | None = None
    ) -> SentenceScores:
        """Score n different sentences."""

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Bring mean likelihood and acceptability of texts, (m,), to one scale: (m,), in [0, 1]."""


@runtime_checkable
class OrderBackbone(Backbone, Protocol):
    """Models that also judge the order of sentences: a backbone with the component "coherence"."""

    def score_order(
        self, pairs: list[tuple[str, str]], batch_size: int | None = None, progress: bool | None = None
    ) -> np.ndarray:
        """Give the probability that each pair of sentences stands in its right order: (n,), in [0, 1]."""


@runtime_checkable
class SuspectBackbone(Backbone, Protocol):
    """Models that also point at words."""

    def find_suspects(self, sentences: list[str], batch_size: int | None = None) -> list[list[str]]:
        """Find the words of each sentence that are more likely wrong than not."""


def token_batches(lengths: np.ndarray, device: str, batch_size: int | None = None) -> Iterator[np.ndarray]:
    """Batch sequences of like length, the longest first: if memory does not do, it shows at once.

    Parameters
    ----------
    lengths : ndarray of shape (n,), tokens of each sequence
    batch_size : sequences in a batch; as many as make a fixed number of tokens, padding included, if None

    Yields
    ------
    ndarray of shape (b,), indices of sequences
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        step = batch_size or max(1, _TOKENS[device.split(":")[0]] // max(1, int(lengths[order[start]])))
        yield order[start : start + step]
        start += step


def windows(ids: Sequence[int], limit: int, is_continued: Sequence[bool] | None = None) -> list[Sequence[int]]:
    """Cut the tokens of a long sentence into as few windows as the limit allows, of nearly equal length.

    Parameters
    ----------
    limit : tokens that a window holds at most
    is_continued : for each token whether it continues a word; then a window begins with a word where it can

    Returns
    -------
    list of windows, one at least: together all tokens, in order
    """
    n = len(ids)
    pieces, start = [], 0
    while n - start > limit:
        remaining = -(-(n - start) // limit)
        end = start + -(-(n - start) // remaining)
        cut = end
        # A word is longer than a quarter of a window only in text that is no language.
        while is_continued is not None and cut > end - limit // 4 and cut > start + 1 and is_continued[cut]:
            cut -= 1
        if is_continued is not None and is_continued[cut]:
            cut = end
        pieces.append(ids[start:cut])
        start = cut
    return [*pieces, ids[start:]]


def combine_windows(values: np.ndarray, weights: np.ndarray, owners: np.ndarray, n: int) -> np.ndarray:
    """Average the values of windows over the sentences that they are of, weighted by their tokens.

    Parameters
    ----------
    values, weights, owners : ndarrays of shape (w,): of each window its value, its tokens and its sentence
    n : number of sentences, each with one window at least

    Returns
    -------
    ndarray of shape (n,)
    """
    weights = np.maximum(weights, 1).astype(np.float64)
    return np.bincount(owners, values * weights, n) / np.bincount(owners, weights, n)


def pad(sequences: Sequence[Sequence[int]], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Make a rectangle of sequences; returns it, and which places are not padding: both (n, longest), int64."""
    width = max(map(len, sequences))
    ids = np.full((len(sequences), width), padding, dtype=np.int64)
    mask = np.zeros((len(sequences), width), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask


def progress_bar(total: int, title: str, unit: str, show: bool | None) -> Any:
    """Make a bar; where `show` is None, one that shows where logging is at INFO or below."""
    import logging

    from tqdm.auto import tqdm

    if show is None:
        show = logging.getLogger(__name__).getEffectiveLevel() <= logging.INFO
    return tqdm(total=total, desc=title, unit=unit, disable=not show)
