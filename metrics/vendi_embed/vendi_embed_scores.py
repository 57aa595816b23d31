"""The similarities of the texts of each set, as matrices with the eigenvalues that are scored; details."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .core_device import matrix_device
from .core_encoder import embed_sets
from .core_inputs import LIMITS, TextSets, batches_by_size
from .core_ngrams import ngram_kernels, ngram_tables, number_tokens
from .core_results import format_order, rows_of
from .core_similarity import parse_similarity
from .core_spectra import Matrices, embedding_matrices, kernel_matrices, row_error, spectra
from .vendi_embed_settings import VendiSettings

# The n-gram kernel of the Vendi Score paper (section 5.4, text) averages these orders.
_NGRAM_ORDERS = 4

Kernels = Iterator[tuple[np.ndarray, np.ndarray]]


def make_matrices(
    sets: TextSets, weights: np.ndarray | None, settings: VendiSettings
) -> tuple[Iterable[Matrices], dict[str, Any]]:
    """Compare the texts of each set.

    Parameters
    ----------
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None

    Returns
    -------
    matrices : of sets of equal size, with the eigenvalues of their weighted kernels
    signed : the entries of a signature
    """
    matrices, signed = _matrices(sets, weights, settings)
    # Details read them a second time.
    return list(matrices) if settings.details else matrices, signed


def _matrices(
    sets: TextSets, weights: np.ndarray | None, settings: VendiSettings
) -> tuple[Iterator[Matrices], dict[str, Any]]:
    device = matrix_device(settings.device)
    if settings.kernel == "ngram":
        kernels, signed = word_kernels(sets)
        return kernel_matrices(kernels, sets.sizes, weights, device=device), signed
    if settings.similarity is not None:
        squares = parse_similarity(settings.similarity, sets, repair=True)
        batches = batches_by_size(sets.sizes, LIMITS.block_rows)
        kernels = ((members, np.stack([squares[i] for i in members])) for members, _ in batches)
        return kernel_matrices(kernels, sets.sizes, weights, device=device), {"similarity": "given"}
    vectors, signed = embed_sets(sets, settings.embeddings, settings)
    error = row_error(signed.get("precision"))
    matrices = embedding_matrices(vectors, sets.sizes, weights, device=device, error=error)
    return matrices, {"kernel": "embedding", **signed}


def word_kernels(sets: TextSets) -> tuple[Kernels, dict[str, str]]:
    """Make the matrices of `kernel="ngram"`, the mean of the cosines of 1- to 4-gram counts of words."""
    import nltk
    from nltk.tokenize import NLTKWordTokenizer

    # NLTK's tokenizer takes most of the time, so each different text is tokenized once.
    words = {text: NLTKWordTokenizer().tokenize(text) for text in dict.fromkeys(sets.texts)}
    tokens = number_tokens([words[text] for text in sets.texts])
    tables = list(ngram_tables(tokens, sets.sizes, _NGRAM_ORDERS))
    signed = {"kernel": "ngram", "tokenizer": f"nltk{nltk.__version__}"}
    return ngram_kernels(tables, sets.sizes, LIMITS.block_rows), signed


def describe_sets(
    sizes: np.ndarray, scores: np.ndarray, orders: list[float], matrices: Iterable[Matrices]
) -> list[dict[str, Any]]:
    """List for each of m sets what `details` shows, from the scores at each order, (m, len(orders))."""
    names = [format_order(order) for order in orders]
    columns = {
        "size": sizes.tolist(),
        "by_order": [dict(zip(names, row, strict=True)) for row in scores.tolist()],
        "eigenvalues": [values.tolist() for values in spectra(matrices, len(sizes))],
    }
    return rows_of(columns)
