"""The kernels of vendi_embed: each scores sets, sets without each of their texts, and subsets of their texts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from .core_class_scores import Relation, class_shares, classes_without, utility, vendi_from_classes
from .core_classes import Classes, number_classes
from .core_contributions import embedding_without, kernel_without, renormalized, text_shares
from .core_distances import BLOCK_ROWS, unit_rows
from .core_encoder import embed_sets
from .core_inputs import TextSets, batches_by_size, lists_by_set
from .core_models import matrix_device
from .core_ngrams import ngram_kernels, ngram_tables, number_tokens
from .core_results import format_callable
from .core_similarity import Kernels, Similarities
from .core_spectra import (
    Matrices,
    embedding_matrices,
    kernel_matrices,
    kernels_from_function,
    row_error,
    spectra,
    vendi_scores,
)
from .vendi_embed_classes import make_classes
from .vendi_embed_settings import VendiSettings
from .vendi_embed_weighting import Weighting

# The n-gram kernel of the Vendi Score paper (section 5.4, text) averages these orders.
_NGRAM_ORDERS = 4


class Kernel(ABC):
    """Similarity of the n texts of m sets.

    sizes : ndarray of shape (m,), the number of texts of each set
    device : where matrices are worked on
    """

    def __init__(self, sizes: np.ndarray, device: str) -> None:
        self.sizes, self.device = sizes, device

    @abstractmethod
    def score(
        self, orders: list[float], weights: np.ndarray | None, details: bool
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Score each set at each order: (m, len(orders)); with `details`, return the eigenvalues of each set, too."""

    @abstractmethod
    def score_without(self, order: float, weights: np.ndarray | None) -> np.ndarray:
        """Score the set of each text without it: (n,); NaN if no probability is left."""

    @abstractmethod
    def score_subsets(self, rows: np.ndarray, orders: list[float], weights: np.ndarray | None = None) -> np.ndarray:
        """Score subsets (b, k), each of texts of one set, with probabilities (b, k): (b, len(orders))."""

    def of_sets(self) -> "Kernel":
        """Return the kernel under which the similarity of two texts is the same in each subset of their set."""
        return self


class MatrixKernel(Kernel):
    """A kernel that is scored by the eigenvalues of matrices."""

    @abstractmethod
    def _matrices(self, weights: np.ndarray | None) -> Iterator[Matrices]:
        """Make the matrices of each set."""

    @abstractmethod
    def _subset_matrices(self, rows: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None) -> Iterator[Matrices]:
        """Make the matrices of subsets (b, k) of these sizes (b,), with the probabilities (b * k,) of their texts."""

    def score_subsets(self, rows: np.ndarray, orders: list[float], weights: np.ndarray | None = None) -> np.ndarray:
        """Score subsets from their eigenvalues."""
        sizes, flat = np.full(len(rows), rows.shape[1]), None if weights is None else weights.ravel()
        return vendi_scores(self._subset_matrices(rows, sizes, flat), len(rows), orders)

    def score(
        self, orders: list[float], weights: np.ndarray | None, details: bool
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Score each set from its eigenvalues."""
        batches: Iterable[Matrices] = self._matrices(weights)
        if details:
            batches = list(batches)
        return vendi_scores(batches, len(self.sizes), orders), spectra(batches, len(self.sizes)) if details else []


class EmbeddingKernel(MatrixKernel):
    """Cosine of embeddings (n, d), whose unit rows have an error."""

    def __init__(self, sizes: np.ndarray, device: str, vectors: np.ndarray, error: float) -> None:
        super().__init__(sizes, device)
        self._vectors, self._error = vectors, error

    def _matrices(self, weights: np.ndarray | None) -> Iterator[Matrices]:
        return embedding_matrices(self._vectors, self.sizes, weights, device=self.device, error=self._error)

    def score_without(self, order: float, weights: np.ndarray | None) -> np.ndarray:
        """Remove each text from the kernel, or from the second moments, of its set."""
        return embedding_without(self._vectors, self.sizes, order, weights, device=self.device, error=self._error)

    def _subset_matrices(self, rows: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None) -> Iterator[Matrices]:
        # The subsets of large sets are taken for sets.
        if self._cosines is None:
            vectors = self._vectors[rows.ravel()]
            return embedding_matrices(vectors, sizes, weights, device=self.device, error=self._error)
        batch = [(np.arange(len(rows)), self._cosines.between(rows, rows))]
        return kernel_matrices(batch, sizes, weights, device=self.device, error=self._error)

    @cached_property
    def _cosines(self) -> Similarities | None:
        """The cosines within each set; None if they are more numbers than the embeddings."""
        if (self.sizes**2).sum() > self._vectors.size:
            return None

        def kernels() -> Kernels:
            for members, rows in batches_by_size(self.sizes, BLOCK_ROWS):
                vectors = unit_rows(self._vectors, rows, self.device)
                yield members, (vectors @ vectors.mT).cpu().numpy()

        return Similarities(kernels(), self.sizes)


class FunctionKernel(MatrixKernel):
    """A caller's function of embeddings."""

    def __init__(self, sizes: np.ndarray, device: str, vectors: np.ndarray, function: Callable[..., Any]) -> None:
        super().__init__(sizes, device)
        self._vectors, self._function = vectors, function

    def _matrices(self, weights: np.ndarray | None) -> Iterator[Matrices]:
        kernels = kernels_from_function(self._function, self._vectors, self.sizes)
        return kernel_matrices(kernels, self.sizes, weights, device=self.device)

    def score_without(self, order: float, weights: np.ndarray | None) -> np.ndarray:
        """Call the function on each set without a text, since its similarities may depend on the whole set."""
        scores = np.full(len(self._vectors), np.nan)
        for _, rows in batches_by_size(self.sizes, BLOCK_ROWS):
            size = rows.shape[1]
            for i in range(size if size > 1 else 0):
                shares, total = renormalized(np.delete(text_shares(weights, rows), i, axis=1))
                without = self.score_subsets(np.delete(rows, i, axis=1), [order], shares)[:, 0]
                scores[rows[:, i]] = np.where(total > 0, without, np.nan)
        return scores

    def _subset_matrices(self, rows: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None) -> Iterator[Matrices]:
        kernels = kernels_from_function(self._function, self._vectors[rows.ravel()], sizes)
        return kernel_matrices(kernels, sizes, weights, device=self.device)

    def of_sets(self) -> Kernel:
        """Call the function on each set once."""
        kernels = kernels_from_function(self._function, self._vectors, self.sizes)
        return KnownKernel.of(Similarities(kernels, self.sizes), self.device)


class KnownKernel(MatrixKernel):
    """Matrices that are known, whatever is asked of them.

    kernels : makes them in batches of sets of equal size
    """

    def __init__(self, sizes: np.ndarray, device: str, kernels: Callable[[], Kernels]) -> None:
        super().__init__(sizes, device)
        self._kernels = kernels

    @classmethod
    def of(cls, similarities: Similarities, device: str) -> "KnownKernel":
        """Make the kernel of similarities that are in memory."""
        kernel = cls(similarities.sizes, device, similarities.kernels)
        kernel.similarities = similarities
        return kernel

    @cached_property
    def similarities(self) -> Similarities:
        """The matrices of all sets, kept once they are needed together."""
        return Similarities(self._kernels(), self.sizes)

    def _matrices(self, weights: np.ndarray | None) -> Iterator[Matrices]:
        return kernel_matrices(self._kernels(), self.sizes, weights, device=self.device)

    def score_without(self, order: float, weights: np.ndarray | None) -> np.ndarray:
        """Remove each text from the kernel of its set."""
        return kernel_without(self._kernels(), self.sizes, order, weights, device=self.device)

    def _subset_matrices(self, rows: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None) -> Iterator[Matrices]:
        batch = [(np.arange(len(rows)), self.similarities.between(rows, rows))]
        return kernel_matrices(batch, sizes, weights, device=self.device)


def word_kernels(sets: TextSets) -> Callable[[], Kernels]:
    """Return what makes the matrices of `kernel="ngram"`, the mean of the cosines of 1- to 4-gram counts."""
    from nltk.tokenize import NLTKWordTokenizer

    # NLTK's tokenizer takes most of the time, so each different text is tokenized once.
    words = {text: NLTKWordTokenizer().tokenize(text) for text in dict.fromkeys(sets.texts)}
    tokens = number_tokens([words[text] for text in sets.texts])
    tables = list(ngram_tables(tokens, sets.sizes, _NGRAM_ORDERS))
    return partial(ngram_kernels, tables, sets.sizes, BLOCK_ROWS)


class ClassKernel(Kernel):
    """Ones within a class and zeros elsewhere.

    Parameters
    ----------
    rows : ndarray of shape (k,), the texts that take part: the others are as if they were not there
    classes : of these texts, in the sets that have any
    relation : how the classes were made; None where they were given
    """

    def __init__(self, sizes: np.ndarray, rows: np.ndarray, classes: Classes, relation: Relation | None) -> None:
        super().__init__(sizes, "cpu")
        self._rows, self.classes, self._relation = rows, classes, relation
        counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[rows], minlength=len(sizes))
        self._present, self._present_sizes = counts > 0, counts[counts > 0]

    def score(
        self, orders: list[float], weights: np.ndarray | None, details: bool
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Score each set from the shares of its classes, which are the eigenvalues; 0 if no text takes part."""
        present_weights = None if weights is None else weights[self._rows]
        scores = np.zeros((len(self.sizes), len(orders)))
        scores[self._present] = vendi_from_classes(self.classes, self._present_sizes, orders, present_weights)
        if not details:
            return scores, []
        shares = class_shares(self.classes, self._present_sizes, present_weights)
        spread = np.zeros(len(self.sizes), dtype=np.int64)
        spread[self._present] = self.classes.counts
        return scores, [np.sort(part)[::-1] for part in np.split(shares, np.cumsum(spread)[:-1])]

    def score_without(self, order: float, weights: np.ndarray | None) -> np.ndarray:
        """Group the other texts again if the absence of a text may change their classes."""
        present_weights = None if weights is None else weights[self._rows]
        scores = np.repeat(self.score([order], weights, False)[0][:, 0], self.sizes)
        scores[self._rows] = classes_without(self.classes, self._present_sizes, order, present_weights, self._relation)
        return scores

    def score_subsets(self, rows: np.ndarray, orders: list[float], weights: np.ndarray | None = None) -> np.ndarray:
        """Score the classes of the whole set."""
        sizes, flat = np.full(len(rows), rows.shape[1]), None if weights is None else weights.ravel()
        return vendi_from_classes(number_classes(self.of_text[rows.ravel()], sizes), sizes, orders, flat)

    @cached_property
    def of_text(self) -> np.ndarray:
        """The class of each text, numbered within its set: (n,); 0 for a text that does not take part."""
        of_text = np.zeros(int(self.sizes.sum()), dtype=np.int64)
        of_text[self._rows] = self.classes.of_text
        return of_text

    def utility(self, quality: np.ndarray, patience: float) -> np.ndarray:
        """Compute the utility of each set to a reader of this patience: (m,); 0 if no text takes part."""
        utilities = np.zeros(len(self.sizes))
        utilities[self._present] = utility(self.classes, self._present_sizes, quality[self._rows], patience)
        return utilities

    def labels(self) -> list[list[int | None]]:
        """Return the class of each text, set by set; None for a text that does not take part."""
        return lists_by_set(self.classes.of_text, self.sizes, self._rows)


def make_kernel(
    sets: TextSets, weighting: Weighting, similarities: Similarities | None, settings: VendiSettings
) -> tuple[Kernel, dict[str, Any]]:
    """Make the kernel that the settings name; returns the entries of a signature, too."""
    device, kernel = matrix_device(settings.device), settings.kernel
    if callable(kernel):
        vectors, signed = embed_sets(sets, settings.embeddings, settings)
        return FunctionKernel(sets.sizes, device, vectors, kernel), {"kernel": format_callable(kernel), **signed}
    if kernel == "embedding":
        if similarities is not None:
            return KnownKernel.of(similarities.repaired(), device), similarities.signed()
        vectors, signed = embed_sets(sets, settings.embeddings, settings)
        error = row_error(signed.get("precision"))
        return EmbeddingKernel(sets.sizes, device, vectors, error), {"kernel": "embedding", **signed}
    if kernel == "classes":
        rows = weighting.present(sets.sizes)
        classes, relation, signed = make_classes(sets, rows, similarities, settings)
        return ClassKernel(sets.sizes, rows, classes, relation), {"kernel": "classes", **signed}
    import nltk

    signed = {"kernel": "ngram", "tokenizer": f"nltk{nltk.__version__}"}
    return KnownKernel(sets.sizes, device, word_kernels(sets)), signed
