"""Compression ratio and self-repetition of sets of texts (Shaib et al. 2024, arXiv 2403.00553)."""

import zlib
from collections.abc import Sequence

import numpy as np

from .core_inputs import mean_by_set
from .core_ngrams import NgramTable

_LEVEL = 9
# Adds the header and the checksum of gzip.
_GZIP_BITS = 31

COMPRESSION = f"gzip-{_LEVEL}-zlib{zlib.ZLIB_RUNTIME_VERSION}"


def compression_ratio(texts: Sequence[str]) -> float:
    """Divide the size in UTF-8 of texts, joined by spaces in the order given, by their size compressed by gzip.

    Returns
    -------
    float, above 0; higher is less diverse. The 18 bytes of gzip's header and checksum count, so that it is below 1 for
        a few short texts.
    """
    data = " ".join(texts).encode()
    return len(data) / len(zlib.compress(data, _LEVEL, _GZIP_BITS))


def compression_ratios(texts: Sequence[str], sizes: np.ndarray) -> np.ndarray:
    """Compute the compression ratio of each set: (m,).

    Parameters
    ----------
    texts : list of n strings, set after set
    sizes : ndarray of shape (m,), the number of texts of each set
    """
    ends = np.cumsum(sizes)
    spans = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    return np.array([compression_ratio(texts[start:end]) for start, end in spans], dtype=np.float64)


def self_repetition(table: NgramTable, sizes: np.ndarray, pooled: bool = False) -> np.ndarray:
    """Self-repetition (Salkar et al. 2022): the mean over texts of log(1 + N), with the natural logarithm.

    N is the sum, over the different n-grams of a text, of the number of other texts that hold the n-gram.

    Parameters
    ----------
    table : of the n-grams of one order
    sizes : ndarray of shape (m,), the number of texts of each set
    pooled : bool
        Take all sets together for one set.

    Returns
    -------
    ndarray of shape (m,), or (1,) when pooled, at least 0; higher is less diverse
    """
    groups = table.corpus_groups if pooled else table.set_groups
    holders = np.diff(groups, append=len(table.counts))
    other_holders = np.repeat(holders - 1, holders)
    sums = np.bincount(table.texts, weights=other_holders, minlength=len(table.totals))
    return mean_by_set(np.log1p(sums), sizes.sum(keepdims=True) if pooled else sizes)
