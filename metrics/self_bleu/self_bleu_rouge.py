"""Homogenization of sets of texts: the mean ROUGE-L of their pairs (Padmakumar and He 2024, Shaib et al. 2024)."""

import itertools
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np

_MEASURE = "rougeL"


def rouge_identity() -> str:
    """Name the measure and the version of the package for a signature."""
    return f"{_MEASURE}-rouge_score{version('rouge-score')}"


def rouge_sums(texts: Sequence[str], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add up the ROUGE-L of the pairs of texts of each set: F1 of their longest common subsequence of words.

    F1 is the same whichever text is the reference. Words and scores are those of the package `rouge-score`.

    Parameters
    ----------
    texts : list of n strings, set after set
    sizes : ndarray of shape (m,), the number of texts of each set, at least 2

    Returns
    -------
    sums : ndarray of shape (m,)
    n_pairs : ndarray of shape (m,)

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    try:
        from rouge_score import rouge_scorer, tokenizers
    except ImportError as error:
        raise ImportError("homogenization needs rouge-score: pip install rouge-score") from error
    split = tokenizers.DefaultTokenizer(use_stemmer=False).tokenize
    words = {text: split(text) for text in dict.fromkeys(texts)}
    n_lost = sum(not words[text] for text in texts if text.strip())
    if n_lost:
        warnings.warn(
            f"{n_lost} of {len(texts)} texts have no word for rouge-score, which reads the letters a to z and digits "
            "only: their ROUGE-L is 0.",
            stacklevel=6,
        )
    # Each text is split once.
    scorer = rouge_scorer.RougeScorer([_MEASURE], tokenizer=SimpleNamespace(tokenize=words.__getitem__))
    sums = []
    for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True):
        pairs = itertools.combinations(texts[end - size : end], 2)
        sums.append(sum(scorer.score(*pair)[_MEASURE].fmeasure for pair in pairs))
    return np.array(sums, dtype=np.float64), sizes * (sizes - 1) // 2
