"""Vendi score of texts: the effective number of different meanings in a set."""

from collections.abc import Callable
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_cache import TextCache as TextCache
from .core_class_scores import Relation as Relation
from .core_classes import Classes as Classes
from .core_contributions import embedding_without as embedding_without
from .core_distances import unit_rows as unit_rows
from .core_encoder import EncoderSettings, embed_sets
from .core_inputs import NO_TEXTS, TextSets, parse_min_quality, parse_sets
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL, matrix_device
from .core_ngrams import Tokens as Tokens
from .core_numbers import describe
from .core_parts import SetParts as SetParts
from .core_rarefaction import check_rarefy, parse_rarefy, rarefaction_settings
from .core_regrouping import group_without as group_without
from .core_results import (
    SETS,
    confidence_interval,
    confidence_settings,
    format_callable,
    format_order,
    format_sizes,
    mean_over_sets,
    parse_confidence,
    rows_of,
    signature,
    spread,
)
from .core_rewards import RewardFunction as RewardFunction
from .core_secular import eigenvalues_without as eigenvalues_without
from .core_similarity import Similarities, Source, check_source, parse_source
from .core_spectra import parse_orders
from .core_tokens import token_batches as token_batches
from .core_trainer import TrainerMetric as TrainerMetric
from .core_windows import Windows as Windows
from .vendi_embed_classes import ClassSettings, make_classes
from .vendi_embed_kernels import ClassKernel, EmbeddingKernel, FunctionKernel, GivenKernel, Kernel, NgramKernel
from .vendi_embed_kernels import word_kernels as word_kernels
from .vendi_embed_nli import LoadedNli as LoadedNli
from .vendi_embed_parts import VendiParts
from .vendi_embed_scores import Weighting, by_set, mean_quality, parse_weighting, rarefied, text_contributions

_DESCRIPTION = """\
How many different things does a set of texts say? The Vendi score is the effective number of different texts in a
set: the exponential of the entropy of the eigenvalues of their similarity matrix. It is 1 if all texts mean the same,
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

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[list[str]]` or `list[str]`): sets of texts. A flat list is one set or, with `set_size`,
        consecutive sets. Lists, tuples and numpy arrays are accepted.
    q (`float`, `"inf"` or a list of them, default 1): order of the Rényi entropy, from 0 to infinity. 1 is Shannon
        entropy. Lower orders give more weight to rare texts: order 0 is the rank of the similarity matrix. Higher
        orders give more weight to common texts: order infinity depends on the largest eigenvalue only. The first
        order of a list is the main one.
    kernel (`"embedding"`, `"ngram"`, `"classes"` or a callable, default `"embedding"`): similarity of two texts.
        `"embedding"` is the cosine of their embeddings. `"ngram"` is the mean of the cosines of their 1- to 4-gram
        counts: it compares form only and loads no model. `"classes"` is 1 for two texts of one class, which say the
        same, and 0 for others: order 0 is then the number of distinct texts, and order 1 the exponential of the
        discrete semantic entropy. A callable maps the (n, d) embeddings of one set to an (n, n) positive
        semi-definite matrix with unit diagonal, which is checked.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    embeddings (array of shape (n, d)): embeddings of all texts, in the order of the concatenated sets. No encoder
        runs. Their norms do not matter.
    similarity (`list` of (k, k) matrices): in place of an encoder, similarities computed elsewhere: a matrix for each
        set, for its k texts in order, or one matrix if `predictions` is one flat set. The texts may then be mere names,
        such as those of molecules or images. Each matrix must be symmetric, with unit diagonal, to within 1e-4, and
        positive semi-definite, to within 1e-4 of its largest eigenvalue. With `kernel="classes"`, `same` is the
        similarity from which on two texts are the same, and has no default. Cannot be combined with `embeddings` or
        with other kernels.
    weights (shaped like `predictions`): probability of each text within its set. Each set sums to 1. Default:
        uniform.
    quality (shaped like `predictions`): quality of each text, in [0, 1], such as the `scores` of `gruen`.
    min_quality (`float` in [0, 1]): requires `quality`. Texts of lower quality are left out of all results, as in
        effective semantic diversity (arXiv 2504.12522), and `weights` are renormalized. A set scores 1 if one text is
        left and 0 if none is.
    classes (shaped like `predictions`): for `kernel="classes"`, the class of each text, a string or an integer, such
        as people or a judge assigned it. Texts of one set with equal labels say the same. No model is loaded.
    same (`float`, callable or `str`, default 0.83): for `kernel="classes"`, which texts say the same. A number: those
        with a cosine of at least this. A callable: those for which it returns True; it maps two lists of texts to a
        list of booleans, and each pair of different texts is asked about once. `"nli:<model>"`: those that entail
        each other, by a sequence-classification model with a class `entailment`, as an id of the Hugging Face Hub or
        a folder. The default is calibrated for the default model.
    grouping (`"complete"` or `"greedy"`, default `"complete"`): for `kernel="classes"`, how pairs make classes.
        `"complete"`: all texts of a class are the same as each other; texts are grouped in order of content, so the
        order of a set does not matter. `"greedy"`: a text joins the first class whose first member is the same, in the
        order given, as in NoveltyBench (arXiv 2504.05228).
    contexts (`list[str]`): with `same="nli:<model>"`, a text for each set, such as the question that its texts answer.
        It is put before both texts of a pair.
    patience (`float` in [0, 1]): with `kernel="classes"` and `quality`, return the utility of each set to a reader who
        goes on to the next text with this probability, as in NoveltyBench, where it is 0.8.
    contributions (`bool`, default `False`): also return the contribution of each text: the score of its set minus the
        score of the set without it, at the main order.
    rarefy (`int`): return expected scores of this many texts, drawn from each set without replacement, so that sets of
        different sizes can be compared. A smaller set has no score. At order 0 of `kernel="classes"` the expectation is
        exact. Otherwise it is the mean over all subsets if there are at most 200, and over 200 seeded draws if there
        are more. Cannot be combined with `weights`, `patience` or `contributions`.
    confidence (`float`): level of a confidence interval, such as 0.95, from a bootstrap over sets: 1000 resamples
        with a fixed seed.
    model (`str`, path or encoder, default `"all-MiniLM-L6-v2"`): a sentence-transformers model, as a name, a folder
        or an id of the Hugging Face Hub; the default needs no network. Or an encoder: any object with a method
        `encode` that takes a list of n strings and returns an array of shape (n, d), such as a `SentenceTransformer`.
        The signature reports an encoder as `given(<class>)`.
    precision (`str`): floating-point type of the encoder: `"float32"`, `"bfloat16"` or `"float16"`. By default the
        type in which the weights are stored. In float32, an embedding does not depend on the other texts of the call,
        to within 1e-6. Cannot be combined with an encoder object.
    long_texts (`"windows"` or `"cut"`, default `"windows"`): what is done with a text that is longer than the model
        reads, which is 256 tokens for the default. `"windows"`: the mean, weighted by tokens, of the embeddings of
        consecutive windows, which end where a sentence does. `"cut"`: the rest is cut off, with a warning. Cannot be
        combined with an encoder object.
    batch_size (`int`), device (`str`): number of texts in a batch (by default a budget of tokens) and torch device of
        the encoder. They change scores by rounding only.
    cache_dir (`str` or path): folder in which embeddings are cached, keyed by the model's weights, the precision,
        `long_texts` and the text. Processes can share it. It does not change scores or signatures. If all embeddings
        are cached, the model is not loaded. Cannot be combined with an encoder object. Not to be confused with the
        `cache_dir` of `evaluate.load`, which holds the code of the module.
    details (`bool`, default `False`): also return the size, the score at each order and the eigenvalues of each set,
        and with `kernel="classes"` the class of each text.
    progress (`bool`): show a progress bar. By default only if the logging level is INFO or lower.

Returns:
    vendi_embed (`float`): mean Vendi score of the sets, in [1, size of the set]. Higher is more diverse.
    scores (`list[float]`): Vendi score of each set. 0 if no text reaches `min_quality`. None for a set smaller than
        `rarefy`.
    confidence_interval (`list[float]`): only with `confidence`. `[low, high]` of `vendi_embed`. None for fewer than
        two sets.
    by_order (`dict[str, float]`): only if `q` is a list. The mean over sets at each order. It never increases with
        the order.
    quality_vendi_embed (`float`), quality_scores (`list[float]`): only with `quality`. Mean quality of a set,
        weighted by `weights`, times its Vendi score, in [0, size of the set]. Higher is better and more diverse.
    quality_confidence_interval (`list[float]`): only with `quality` and `confidence`. `[low, high]` of
        `quality_vendi_embed`.
    utility (`float`), utility_scores (`list[float]`): only with `patience` p. Mean, and value for each set, of
        (1 - p) / (1 - p^k) times the sum over its k texts, in the order given, of p^(i - 1) times the quality of text i
        if no earlier text is of its class, in [0, 1]. Higher is better and more diverse.
    utility_confidence_interval (`list[float]`): only with `patience` and `confidence`. `[low, high]` of `utility`.
    contributions (`list[list[float]]`): only with `contributions=True`. For each text, how much it adds to the score of
        its set. It may be negative. None for a text alone in its set, or with all the weight of its set.
    quality_contributions (`list[list[float]]`): only with `quality` and `contributions=True`. The same for
        `quality_scores`.
    n_counted (`list[int]`): only with `min_quality`. Number of texts in each set that reach it.
    n_too_small (`int`): only with `rarefy`. Number of sets with fewer texts, which have no score.
    details (`list[dict]`): only with `details=True`. For each set `size`, `by_order` and `eigenvalues`, which are
        non-negative, sum to 1 and are sorted in descending order. With `rarefy`, `standard_errors` at each order in
        place of the eigenvalues. With `kernel="classes"`, `classes`: the class of each text, numbered in order of first
        appearance.
    signature (`str`): all settings that determine the score. Scores are comparable if their signatures are equal.

Raises:
    TypeError, ValueError: for invalid input. The message names the parameter, the item and what was got.

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
    >>> result = vendi_embed.compute(predictions=["yes", "aye", "no"], kernel="classes", classes=["+", "+", "-"], q=0)
    >>> result["vendi_embed"]
    2.0
"""


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
        similarity: Any = None,
        weights: Any = None,
        quality: Any = None,
        min_quality: float | None = None,
        classes: Any = None,
        same: Any = None,
        grouping: str | None = None,
        contexts: Any = None,
        patience: float | None = None,
        contributions: bool = False,
        rarefy: int | None = None,
        confidence: float | None = None,
        model: Any = DEFAULT_MODEL,
        precision: str | None = None,
        long_texts: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: Any = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        encoder = EncoderSettings(model, precision, batch_size, device, cache_dir, progress, long_texts)
        orders = parse_orders(q)
        if not callable(kernel) and not (isinstance(kernel, str) and kernel in ("embedding", "ngram", "classes")):
            raise ValueError(f"kernel must be 'embedding', 'ngram', 'classes' or a callable. Got {describe(kernel)}.")
        check_source(embeddings, similarity, encoder)
        if similarity is not None and kernel not in ("embedding", "classes"):
            raise ValueError(
                f"similarity is given, but kernel={describe(kernel)} makes similarities of its own: pass one or the "
                "other."
            )
        class_settings = ClassSettings(classes, same, grouping, contexts, patience)
        class_settings.check(kernel, quality)
        level = parse_confidence(confidence)
        check_rarefy(rarefy, weights=weights, contributions=contributions, patience=patience)
        if predictions is NO_TEXTS:
            encoder.check_found()
            parse_min_quality(min_quality, None if quality is None else np.empty(0))
        sets = parse_sets(predictions, set_size)
        weighting = parse_weighting(sets, weights, quality, min_quality)
        k = parse_rarefy(rarefy, weighting.sizes(sets.sizes))
        source = parse_source(sets, embeddings, similarity, encoder)
        compared, settings = _make_kernel(kernel, sets, weighting, class_settings, source)

        eigenvalues: list[np.ndarray] = []
        if k is None:
            by_order, eigenvalues = compared.score(orders, weighting.probabilities, details)
            by_order[weighting.empty] = 0.0
            errors = np.zeros_like(by_order)
            quality_scores = None if quality is None else mean_quality(weighting, sets.sizes) * by_order[:, 0]
        else:
            by_order, errors = rarefied(compared, orders, k, source.ranks(sets), weighting)
            quality_scores = None if quality is None else by_order[:, -1]
        scores, scored = by_order[:, 0], ~np.isnan(by_order[:, 0])

        names = [format_order(order) for order in orders]

        def named(values: np.ndarray) -> list[dict[str, float]]:
            return [dict(zip(names, row, strict=False)) for row in values.tolist()]

        def of_sets(name: str, values: np.ndarray, prefix: str = "") -> dict[str, Any]:
            found = {name: mean_over_sets(values[scored]), f"{prefix}scores": spread(values[scored].tolist(), scored)}
            if level is not None:
                found[f"{prefix}confidence_interval"] = confidence_interval(level, values[scored])
            return found

        result = of_sets("vendi_embed", scores)
        if isinstance(q, (list, tuple, np.ndarray)):
            result["by_order"] = {
                name: mean_over_sets(column) for name, column in zip(names, by_order[scored].T, strict=False)
            }
        if quality_scores is not None:
            result |= of_sets("quality_vendi_embed", quality_scores, "quality_")
        if patience is not None:
            assert isinstance(compared, ClassKernel)
            assert weighting.qualities is not None
            result |= of_sets("utility", compared.utility(weighting.qualities, patience), "utility_")
        if contributions:
            added, quality_added = text_contributions(compared, orders[0], scores, weighting)
            result["contributions"] = by_set(added, sets.sizes)
            if quality_added is not None:
                result["quality_contributions"] = by_set(quality_added, sets.sizes)
        if weighting.counted is not None:
            result["n_counted"] = weighting.sizes(sets.sizes).tolist()
        if k is not None:
            result["n_too_small"] = int((~scored).sum())
        if details:
            columns: dict[str, list] = {"size": sets.sizes.tolist(), "by_order": named(by_order)}
            if k is None:
                pairs = zip(eigenvalues, weighting.empty, strict=True)
                columns["eigenvalues"] = [[] if is_empty else own.tolist() for own, is_empty in pairs]
            else:
                columns["standard_errors"] = named(errors)
            if isinstance(compared, ClassKernel):
                columns["classes"] = compared.labels()
            rows_of_sets = zip(rows_of(columns), scored.tolist(), strict=True)
            result["details"] = [own if has_score else None for own, has_score in rows_of_sets]
        result["signature"] = signature(
            "vendi_embed",
            q=",".join(names),
            **settings,
            weights="uniform" if weights is None else "given",
            set_size=format_sizes(sets.sizes),
            **({} if min_quality is None else {"min_quality": float(min_quality)}),
            **({} if patience is None else {"patience": float(patience)}),
            **rarefaction_settings(k),
            **confidence_settings(level),
        )
        return result


def _make_kernel(
    kernel: Any, sets: TextSets, weighting: Weighting, classes: ClassSettings, source: Source
) -> tuple[Kernel, dict[str, Any]]:
    """Compare the texts as the caller asks; returns the entries of a signature, too."""
    where = matrix_device(source.encoder.device)
    if callable(kernel):
        vectors, signed = embed_sets(sets, source.embeddings, source.encoder)
        return FunctionKernel(sets.sizes, where, vectors, kernel), {"kernel": format_callable(kernel), **signed}
    if kernel == "embedding":
        compared, signed = source.compared(sets)
        if isinstance(compared, Similarities):
            return GivenKernel(where, compared), signed
        return EmbeddingKernel(sets.sizes, where, compared), {"kernel": "embedding", **signed}
    if kernel == "classes":
        rows = weighting.present(sets.sizes)
        found, relation, signed = make_classes(sets, rows, classes, source)
        return ClassKernel(sets.sizes, rows, found, relation), {"kernel": "classes", **signed}
    source.encoder.check_unused("kernel='ngram' compares words")
    if source.embeddings is not None:
        raise ValueError("embeddings are given, but kernel='ngram' compares words: pass one or the other.")
    import nltk

    return NgramKernel(sets, where), {"kernel": "ngram", "tokenizer": f"nltk{nltk.__version__}"}
