"""Compression ratio, self-repetition and homogenization of sets of texts (Shaib et al. 2024, arXiv 2403.00553)."""

import itertools
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np

from .core import NgramTable, mean_by_set, split_list, warn

# The default of Python's gzip, which the package `diversity` calls.
_LEVEL = 9
# Adds the header and the checksum of gzip.
_GZIP_BITS = 31

_ROUGE = "rougeL"

COMPRESSION = f"gzip-{_LEVEL}-zlib{zlib.ZLIB_RUNTIME_VERSION}"


def compression_ratios(texts: Sequence[str], sizes: np.ndarray) -> np.ndarray:
    """Divide the size in UTF-8 of the texts of each set, joined by spaces in order, by their size compressed by gzip.

    Maps n texts, set after set, to (m,), above 0; higher is less diverse. The 18 bytes of gzip's header and checksum
    count, so that it is below 1 for a few short texts.
    """
    sets = [" ".join(members).encode() for members in split_list(list(texts), sizes)]
    return np.array([len(data) / len(zlib.compress(data, _LEVEL, _GZIP_BITS)) for data in sets], dtype=np.float64)


def self_repetition(table: NgramTable, sizes: np.ndarray) -> np.ndarray:
    """Self-repetition (Salkar et al. 2022): the mean over texts of log(1 + N), with the natural logarithm.

    N is the sum, over the different n-grams of a text, of the number of other texts that hold the n-gram. Maps the
    n-grams of one order and sizes (m,) to (m,), at least 0; higher is less diverse.
    """
    holders = np.diff(table.set_groups, append=len(table.counts))
    other_holders = np.repeat(holders - 1, holders)
    sums = np.bincount(table.texts, weights=other_holders, minlength=len(table.totals))
    return mean_by_set(np.log1p(sums), sizes)


def rouge_identity() -> str:
    """Name the measure and the version of the package for a signature."""
    return f"{_ROUGE}-rouge_score{version('rouge-score')}"


def rouge_sums(texts: Sequence[str], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add up the ROUGE-L of the pairs of texts of each set: F1 of their longest common subsequence of words.

    Its mean over pairs is the homogenization of a set (Padmakumar and He 2024). F1 is the same whichever text is the
    reference, by the package `rouge-score`. Raises an ImportError if it is not installed.
    Maps n texts, set after set, and sizes (m,), at least 2, to the sums, (m,), and the numbers of pairs, (m,).
    """
    try:
        from rouge_score import rouge_scorer, tokenizers
    except ImportError as error:
        raise ImportError("homogenization needs rouge-score: pip install rouge-score") from error
    split = tokenizers.DefaultTokenizer(use_stemmer=False).tokenize
    words = {text: split(text) for text in dict.fromkeys(texts)}
    n_lost = sum(not words[text] for text in texts if text.strip())
    if n_lost:
        warn(
            f"{n_lost} of {len(texts)} texts have no word for rouge-score, which reads the letters a to z and digits "
            "only: their ROUGE-L is 0."
        )
    # Each text is split once.
    scorer = rouge_scorer.RougeScorer([_ROUGE], tokenizer=SimpleNamespace(tokenize=words.__getitem__))
    sums = []
    for members in split_list(list(texts), sizes):
        pairs = itertools.combinations(members, 2)
        sums.append(sum(scorer.score(*pair)[_ROUGE].fmeasure for pair in pairs))
    return np.array(sums, dtype=np.float64), sizes * (sizes - 1) // 2
