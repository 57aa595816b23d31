"""Vendi score of texts: the effective number of different meanings in a set."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_cache import TextCache as TextCache
from .core_encoder import EncoderSettings, embed_sets
from .core_inputs import (
    TextSets,
    describe,
    parse_min_quality,
    parse_probabilities,
    parse_sets,
    parse_values,
    sum_by_set,
)
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL, matrix_device
from .core_ngrams import ngram_kernels, ngram_tables, number_tokens
from .core_parts import SetParts as SetParts
from .core_results import (
    SETS,
    confidence_interval,
    confidence_settings,
    format_callable,
    format_order,
    format_sizes,
    parse_confidence,
    signature,
)
from .core_spectra import (
    BLOCK_ROWS,
    Matrices,
    embedding_matrices,
    kernel_matrices,
    kernels_from_function,
    parse_orders,
    spectra,
    vendi_scores,
)
from .core_trainer import TrainerMetric as TrainerMetric
from .vendi_embed_parts import VendiParts

_DESCRIPTION = """\
How many different things does a set of texts say? The Vendi score is the effective number of different texts in a
set: the exponential of the entropy of the eigenvalues of their similarity matrix. Texts that all mean the same score
1, n texts that have nothing in common score n. It needs no reference.
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

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[list[str]]` or `list[str]`): sets of texts; or texts that make one set or, with `set_size`,
        consecutive sets.
    q (`float`, `"inf"`, or a list of them): order of the Rényi entropy, in [0, inf]; 1 is Shannon's. Small orders
        give more weight to rare texts. With a list, the first is the main one. Default 1.
    kernel (`"embedding"`, `"ngram"` or a callable): similarity of texts: cosine of embeddings; mean of the cosines of
        1- to 4-gram counts; or a function from an (n, d) array of embeddings to an (n, n) positive semi-definite
        matrix with unit diagonal.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    embeddings (array of shape (n, d)): embeddings of all texts, all sets in turn, in place of the encoder's.
    weights (like `predictions`): probability of each text in its set; each set sums to 1. Default uniform.
    quality (like `predictions`): quality of each text, in [0, 1].
    min_quality (`float`): with `quality`, only texts of at least this quality count, as if the others were not there.
    confidence (`float`): level of a confidence interval, such as 0.95: a seeded bootstrap over sets.
    model (`str` or path): a sentence-transformers model. Default `"all-MiniLM-L6-v2"`, which needs no network.
    precision (`str`): `"float32"`, `"bfloat16"`, `"float16"` or, on the CPU, `"int8"` for the encoder. Default
        as stored, or what is as good (cosines above 0.999999) and faster.
    batch_size (`int`), device (`str`): of the encoder; they do not change the score.
    cache_dir (`str` or path): a folder that keeps embeddings, so that a text is encoded once, in whichever run. Not the
        `cache_dir` of `evaluate.load`, which is where the module's code goes.
    details (`bool`): add, for each set, its size, its score at each order and its eigenvalues.
    progress (`bool`): show a bar; by default where logging is at INFO.

Returns:
    vendi_embed (`float`): mean over sets of the Vendi score, in [1, size of the set]; higher is more diverse. With
        `min_quality`, 0 for a set of which no text counts.
    scores (`list[float]`): the score of each set.
    confidence_interval (`list[float]`): with `confidence`, `[low, high]` of the main score; None for fewer than two.
    by_order (`dict[str, float]`): with a list of orders, the mean over sets at each.
    quality_vendi_embed (`float`), quality_scores (`list[float]`): with `quality`, mean quality times Vendi score.
    quality_confidence_interval (`list[float]`): with `quality` and `confidence`, that of `quality_vendi_embed`.
    n_counted (`list[int]`): with `min_quality`, how many texts of each set count.
    details (`list[dict]`): with `details=True`.
    signature (`str`): the settings that decide the score.

Raises:
    TypeError, ValueError: for input that cannot be scored; the message names the parameter and the item.

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

# The n-gram kernel of the Vendi Score paper (section 5.4, text) averages these orders.
_NGRAM_ORDERS = 4


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class VendiEmbed(TextMetric, evaluate.Metric):
    """Vendi score of sets of texts, from sentence embeddings, n-grams, or a kernel of the caller's."""

    _items = SETS
    _parts = VendiParts

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": datasets.Sequence(datasets.Value("string"))}),
                datasets.Features({"predictions": datasets.Value("string")}),
            ],
            reference_urls=["https://arxiv.org/abs/2210.02410", "https://arxiv.org/abs/2506.00514"],
        )

    def _compute(
        self,
        *,
        predictions: Any,
        q: Any = 1.0,
        kernel: str | Callable[[np.ndarray], Any] = "embedding",
        set_size: int | None = None,
        embeddings: Any = None,
        weights: Any = None,
        quality: Any = None,
        min_quality: float | None = None,
        confidence: float | None = None,
        model: Any = DEFAULT_MODEL,
        precision: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: Any = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        sets = parse_sets(predictions, set_size)
        encoder = EncoderSettings(model, precision, batch_size, device, cache_dir, progress)
        orders = parse_orders(q)
        if not callable(kernel) and not (isinstance(kernel, str) and kernel in ("embedding", "ngram")):
            raise ValueError(f"kernel must be 'embedding', 'ngram' or a callable. Got {describe(kernel)}.")
        if kernel == "ngram":
            encoder.check_unused("kernel='ngram' compares words")
            if embeddings is not None:
                raise ValueError("embeddings are given, but kernel='ngram' compares words: pass one or the other.")
        probabilities = None if weights is None else parse_probabilities(weights, sets, "weights")
        qualities = None if quality is None else parse_values(quality, sets, "quality")
        counted = parse_min_quality(min_quality, qualities)
        level = parse_confidence(confidence)
        shares = 1 / np.repeat(sets.sizes, sets.sizes) if probabilities is None else probabilities
        empty = np.zeros(len(sets.sizes), dtype=bool)
        if counted is not None:
            shares, empty = _shares_of_counted(shares, counted, sets.sizes)
            probabilities = shares

        where = matrix_device(device)
        batches: Iterable[Matrices]
        if kernel == "ngram":
            import nltk

            batches = kernel_matrices(word_kernels(sets), sets.sizes, probabilities, device=where)
            settings = {"kernel": "ngram", "tokenizer": f"nltk{nltk.__version__}"}
        else:
            vectors, settings = embed_sets(sets, embeddings, encoder)
            if callable(kernel):
                kernels = kernels_from_function(kernel, vectors, sets.sizes)
                batches = kernel_matrices(kernels, sets.sizes, probabilities, device=where)
                settings = {"kernel": format_callable(kernel), **settings}
            else:
                batches = embedding_matrices(vectors, sets.sizes, probabilities, device=where)
                settings = {"kernel": "embedding", **settings}
        if details:
            batches = list(batches)
        by_order = vendi_scores(batches, len(sets.sizes), orders)
        by_order[empty] = 0.0
        scores = by_order[:, 0]

        names = [format_order(order) for order in orders]
        result: dict[str, Any] = {"vendi_embed": float(scores.mean()), "scores": scores.tolist()}
        if level is not None:
            result["confidence_interval"] = confidence_interval(level, scores)
        if isinstance(q, (list, tuple, np.ndarray)):
            result["by_order"] = dict(zip(names, by_order.mean(axis=0).tolist(), strict=True))
        if qualities is not None:
            quality_scores = sum_by_set(qualities * shares, sets.sizes) * scores
            result["quality_vendi_embed"] = float(quality_scores.mean())
            result["quality_scores"] = quality_scores.tolist()
            if level is not None:
                result["quality_confidence_interval"] = confidence_interval(level, quality_scores)
        if counted is not None:
            result["n_counted"] = sum_by_set(counted.astype(np.int64), sets.sizes).tolist()
        if details:
            result["details"] = [
                {
                    "size": size,
                    "by_order": dict(zip(names, row, strict=True)),
                    "eigenvalues": [] if without else values.tolist(),
                }
                for size, row, without, values in zip(
                    sets.sizes.tolist(), by_order.tolist(), empty.tolist(), spectra(batches, len(empty)), strict=True
                )
            ]
        result["signature"] = signature(
            "vendi_embed",
            q=",".join(names),
            **settings,
            weights="uniform" if weights is None else "given",
            set_size=format_sizes(sets.sizes),
            **({} if min_quality is None else {"min_quality": float(min_quality)}),
            **confidence_settings(level),
        )
        return result


def _shares_of_counted(shares: np.ndarray, counted: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share the probability of each set out among the texts that count.

    A text of probability 0 adds an eigenvalue of 0: the score is that of the set without it.

    Returns
    -------
    shares : ndarray of shape (n,); as they were in a set of which no text counts
    empty : ndarray of shape (m,), bool: which sets are such
    """
    left = sum_by_set(shares * counted, sizes)
    empty = left == 0
    scale = np.repeat(np.where(empty, 1.0, left), sizes)
    return np.where(np.repeat(empty, sizes), shares, shares * counted / scale), empty


def word_kernels(sets: TextSets) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the n-gram kernel matrices of sets, in batches of equal size: the kernel of `kernel="ngram"`."""
    from nltk.tokenize import NLTKWordTokenizer

    # NLTK's tokenizer takes most of the time: each different text once.
    words = {text: NLTKWordTokenizer().tokenize(text) for text in dict.fromkeys(sets.texts)}
    tokens = number_tokens([words[text] for text in sets.texts])
    return ngram_kernels(list(ngram_tables(tokens, sets.sizes, _NGRAM_ORDERS)), sets.sizes, BLOCK_ROWS)
