"""Vendi score of texts: the effective number of different meanings in a set."""

from collections.abc import Iterator
from typing import Any

import evaluate
import numpy as np

from .core import (
    LIMITS,
    ROW_ERRORS,
    ItemResult,
    ScoreSummary,
    SetMetric,
    Spectra,
    TextSets,
    batches_by_size,
    describe_results,
    describe_settings,
    embed_sets,
    embedding_spectra,
    encode,
    gram_sums,
    kernel_spectra,
    matrix_device,
    one_thread,
    parse_probabilities,
    parse_values,
    spectra_from_sums,
)
from .vendi_embed_definite import definite_similarities
from .vendi_embed_leave_one_out import vendi_without_each
from .vendi_embed_ngrams import word_kernels
from .vendi_embed_results import name_results
from .vendi_embed_settings import VendiSettings

_DESCRIPTION = """\
How many different things does a set of texts say? The Vendi score is the
effective number of different texts in a set: the exponential of the entropy of
the eigenvalues of their similarity matrix. It is 1 if all texts mean the same,
and n if n texts have nothing in common. It needs no reference texts.
"""

_CITATION = """\
@article{friedman2023vendi,
  title = {The {Vendi} Score: A Diversity Evaluation Metric for Machine Learning},
  author = {Friedman, Dan and Dieng, Adji Bousso},
  journal = {Transactions on Machine Learning Research},
  year = {2023},
  url = {https://arxiv.org/abs/2210.02410}
}
"""

_KWARGS_DESCRIPTION = (
    describe_settings(
        VendiSettings,
        "set",
        similarity="Given matrices must also be positive semi-definite, to within 1e-4 of the largest eigenvalue and "
        "what rounding to three digits or to 16 bits can cause; those of a model are replaced by the nearest that are.",
    )
    + """
Returns:
    vendi_embed (`float`): mean Vendi score of the sets, in [1, size of the
        set]. Higher is more diverse.
    scores (`list[float]`): Vendi score of each set.
    by_order (`dict[str, float]`): only if `q` is a list. The mean over sets at
        each order. It never increases with the order.
    quality_vendi_embed (`float`), quality_scores (`list[float]`): only with
        `quality`. Mean quality of a set, weighted by `weights`, times its Vendi
        score, in [0, size of the set]. Higher is better and more diverse.
    pairs (`float`), pairs_scores (`list[float]`): only with `pairs`. 1 over the
        mean squared similarity of two different texts of a set, pooled over
        sets, and for each set; at least 1, higher is more diverse. Sets of any
        number of texts from one source have the same `pairs` on average, while
        Vendi scores grow with it. None for a set of one text, and where nothing
        is similar. It is pooled, not the mean of `pairs_scores`.
    similarity_change (`float`): only if a model gives `similarity`. The largest
        change of a similarity that made the matrices positive semi-definite.
    details (`list[dict]`): only with `details=True`. For each set `size`,
        `by_order` and `eigenvalues`, which are non-negative, sum to 1 and are
        sorted in descending order.
"""
    + describe_results("set", {"": "vendi_embed", "quality_": "quality_vendi_embed", "pairs_": "pairs"})
    + """
Examples:

    >>> import evaluate
    >>> vendi_embed = evaluate.load("metrics/vendi_embed")
    >>> result = vendi_embed.compute(predictions=[
    ...     ["A man walks his dog in the park.", "The couple take a train to the sea."],
    ...     ["A man walks his dog in the park.", "In the park, a man is walking his dog."],
    ... ])
    >>> [round(score, 2) for score in result["scores"]]
    [2.0, 1.09]
    >>> result = vendi_embed.compute(predictions=["yes", "yes", "no"], embeddings=[[1, 0], [1, 0], [0, 1]], q=[0, 2])
    >>> {order: round(mean, 2) for order, mean in result["by_order"].items()}
    {'0': 2.0, '2': 1.8}
"""
)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class VendiEmbed(SetMetric, evaluate.Metric):
    """Vendi score of sets of texts, from sentence embeddings, n-grams, or given similarities."""

    bounds = (1.0, float)
    settings = VendiSettings
    item_results = (
        ItemResult("quality_scores", ("quality",), bounds=(0.0, float)),
        ItemResult("pairs_scores", ("pairs",), is_reciprocal=True),
    )
    maxima = ("similarity_change",)

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://arxiv.org/abs/2210.02410", "https://arxiv.org/abs/2506.00514"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def _score(
        self, sets: TextSets, settings: VendiSettings, summary: ScoreSummary
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        weights = quality = None
        if settings.weights is not None:
            weights = parse_probabilities(settings.weights, sets, "weights")
        if settings.quality is not None:
            quality = parse_values(settings.quality, sets, "quality")
        spectra, signed, change = find_spectra(sets, weights, settings)
        result = name_results(spectra, sets.sizes, settings, summary, weights, quality)
        if change is not None:
            result["similarity_change"] = change
        return result, settings.signed_score(signed)

    # What the package asks further of the score, where calls of `compute` would take too long, or too much memory.

    def entropies(self, scores: np.ndarray) -> np.ndarray:
        """Return the entropies of scores at order 1, in nats: that of a mixture is at least the mean of its parts'."""
        return np.log(scores)

    def embed(self, sets: TextSets, settings: Any) -> tuple[np.ndarray, dict[str, str]]:
        """Return the embeddings that the score compares by their cosines, and their entries of a signature.

        Rows (n, d) are finite, non-zero, of any length, and without their context if there is one. Settings may be
        those of any metric with an encoder.
        """
        rows, signed, _ = embed_sets(sets, settings)
        return rows, signed

    def has_sums(self, settings: VendiSettings) -> bool:
        """Tell whether the score of a set follows from sums over its texts, as that of embeddings does."""
        declared = settings.declared()
        is_given = any(declared[name].is_given(value) for name, value in settings.passed().items())
        return settings.kernel == "embedding" and settings.similarity is None and not is_given

    def sum_up(self, texts: list[str], settings: VendiSettings) -> np.ndarray:
        """Encode texts, and sum up the outer products of their unit embeddings: (d, d), the lower half.

        The sums of the parts of a set add up, so that a set of any size fits in memory.
        """
        return gram_sums(encode(texts, settings).rows, device=matrix_device(settings.device))

    def score_sums(self, sums: np.ndarray, n: int, settings: VendiSettings) -> dict[str, Any]:
        """Return the result of `compute` for one set of n texts from their sums."""
        sizes = np.array([n])
        summary = ScoreSummary(np.arange(1), None, self.bounds, sizes)
        result = name_results(spectra_from_sums(sums, n), sizes, settings, summary)
        return self._signed(result, settings.signed_score(settings.signed_encoder()), sizes, settings)

    def score_without_each(self, sets: TextSets, settings: VendiSettings) -> np.ndarray | None:
        """Score the set of each text without this text: (n,), NaN for a text alone; None where `compute` must do it."""
        is_plain = settings.kernel == "embedding" and settings.similarity is None and settings.weights is None
        if not is_plain or settings.orders[0] not in (1, 2):
            return None
        with one_thread():
            rows, _, precision = embed_sets(sets, settings)
            device = matrix_device(settings.device)
            return vendi_without_each(rows, sets.sizes, settings.orders[0], device=device, error=ROW_ERRORS[precision])


def find_spectra(
    sets: TextSets, weights: np.ndarray | None, settings: VendiSettings
) -> tuple[list[Spectra], dict[str, Any], float | None]:
    """Compare the texts of each set, whose weights, (n,), sum to 1 within it; they are uniform if None.

    Returns the spectra of sets of equal size, the entries of a signature, and the change of `definite_similarities`.
    """
    device = matrix_device(settings.device)
    change = None
    if settings.kernel == "ngram":
        kernels, signed = word_kernels(sets)
        spectra = kernel_spectra(kernels, sets.sizes, weights, device=device)
    elif settings.similarity is not None:
        matrices, signed, change = definite_similarities(sets, settings)
        spectra = kernel_spectra(_stack_by_size(matrices, sets.sizes), sets.sizes, weights, device=device)
    else:
        vectors, signed, precision = embed_sets(sets, settings)
        spectra = embedding_spectra(vectors, sets.sizes, weights, device=device, error=ROW_ERRORS[precision])
    return list(spectra), signed, change


def _stack_by_size(matrices: list[np.ndarray], sizes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the indices (b,) of sets of equal size k with their matrices (b, k, k), a batch at a time."""
    for members, _ in batches_by_size(sizes, LIMITS.block_rows):
        yield members, np.stack([matrices[i] for i in members])
