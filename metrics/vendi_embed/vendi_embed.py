"""Vendi score of texts: the effective number of different meanings in a set."""

import math
from typing import Any

import evaluate

from .core_cache import TextCache as TextCache
from .core_class_scores import Relation as Relation
from .core_classes import Classes as Classes
from .core_contributions import embedding_without as embedding_without
from .core_distances import unit_rows as unit_rows
from .core_encoder import EncoderSettings as EncoderSettings
from .core_forks import one_thread as one_thread
from .core_inputs import parse_sets
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL as DEFAULT_MODEL
from .core_ngrams import Tokens as Tokens
from .core_numbers import describe as describe
from .core_rarefaction import DRAWN
from .core_regrouping import group_without as group_without
from .core_results import (
    SETS,
    ItemResult,
    ScoreSummary,
    confidence_settings,
    format_order,
    format_sizes,
    mean_over_sets,
    parse_confidence_by,
    signature,
)
from .core_rewards import RewardFunction as RewardFunction
from .core_secular import eigenvalues_without as eigenvalues_without
from .core_settings import Settings
from .core_similarity import parse_similarity
from .core_spectra import parse_orders as parse_orders
from .core_statistics import SetParts as SetParts
from .core_tokens import token_batches as token_batches
from .core_trainer import TrainerMetric as TrainerMetric
from .vendi_embed_classes import make_classes as make_classes
from .vendi_embed_groups import group_results, group_settings, score_groups
from .vendi_embed_kernels import make_kernel
from .vendi_embed_pairs import PairRule as PairRule
from .vendi_embed_parts import VendiParts
from .vendi_embed_rarefied import rarefied as rarefied
from .vendi_embed_scores import contributions, describe_sets, score_sets, semantic_entropies, utility
from .vendi_embed_settings import VendiSettings
from .vendi_embed_weighting import read_weighting

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
        orders give more weight to common texts: order infinity depends on the largest eigenvalue only. Eigenvalues
        that rounding can cause count as 0 at every order. The first order of a list is the main one.
    kernel (`"embedding"`, `"ngram"`, `"classes"` or a callable, default `"embedding"`): similarity of two texts.
        `"embedding"` is the cosine of their embeddings. `"ngram"` is the mean of the cosines of their 1- to 4-gram
        counts: it compares form only and loads no model. `"classes"` is 1 for two texts of one class, which say the
        same, and 0 for others: order 0 is then the number of distinct texts, and order 1 the exponential of the
        discrete semantic entropy. A callable maps the (n, d) embeddings of one set to an (n, n) positive
        semi-definite matrix with unit diagonal, which is checked as `similarity` is. The signature reports a callable
        as `custom(<name>)`, or by its attribute `signature_name`.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    weights (shaped like `predictions`): probability of each text within its set. Each set sums to 1. Default:
        uniform.
    log_probs (shaped like `predictions`): for `kernel="classes"`, in place of `weights`: for each text the natural
        log-probabilities of its tokens, a list, or one number. The weight of a text is exp of the mean over its tokens,
        or of the number, over the sum of those of its set, as in semantic entropy (Farquhar et al. 2024). A text that
        was sampled several times counts each time.
    quality (shaped like `predictions`): quality of each text, in [0, 1], such as the `scores` of `gruen`.
    min_quality (`float` in [0, 1]): requires `quality`. Texts of lower quality are left out of all results, as in
        effective semantic diversity (arXiv 2504.12522), and `weights` are renormalized. A set scores 1 if one text is
        left and 0 if no text is.
    classes (shaped like `predictions`): for `kernel="classes"`, the class of each text, a string or an integer, such
        as people or a judge assigned it. Texts of one set with equal labels say the same. No model is loaded.
    same (`float`, callable or `str`, default 0.83): for `kernel="classes"`, which texts say the same. A number: those
        with a cosine of at least this. A callable: those for which it returns True; it maps two lists of texts to a
        list of booleans, and each pair of different texts is asked about once. `"nli:<model>"`: those that entail
        each other, by a sequence-classification model with a class `entailment`, as an id of the Hugging Face Hub or
        a folder. `"pairs:<model>"`: those for which a model with two classes gives the second a probability above
        `same_threshold`. A callable and such a model see pairs in order of content, and with `grouping="greedy"` in
        the order given. The default is calibrated for the default model, and raises an error with another `model`,
        `embeddings` or `similarity`.
    same_threshold (`float` in [0, 1], default 0.5): for `same="pairs:<model>"`.
    same_rule (`"noveltybench-2025"` or `"noveltybench-2026"`): for `same="pairs:<model>"`, compare as the code of
        NoveltyBench does (arXiv 2504.05228): the probability must be above 0.102, and the first 128 tokens of each
        text are read. `"noveltybench-2025"`: two texts of at most five words are the same if they share at least half
        as many different words as the longer has words, regardless of case.
    grouping (`"complete"` or `"greedy"`, default `"complete"`): for `kernel="classes"`, how pairs make classes.
        `"complete"`: all texts of a class are the same as each other; texts are grouped in order of content, so the
        order of a set does not matter. `"greedy"`: a text joins the first class whose first member is the same, in the
        order given, as in NoveltyBench (arXiv 2504.05228).
    contexts (`list[str]`): with `same="nli:<model>"` or `"pairs:<model>"`, a text for each set, such as the question
        that its texts answer. It is put before both texts of a pair.
    patience (`float` in [0, 1]): with `kernel="classes"` and `quality`, return the utility of each set to a reader who
        goes on to the next text with this probability, as in NoveltyBench, where it is 0.8.
    semantic_entropy (`bool`, default `False`): with `kernel="classes"`, also return the entropy of the classes of each
        set in nats: the discrete semantic entropy, or with `log_probs` that with likelihoods.
    groups (shaped like `predictions`): the group of each text, a string or an integer, such as the system that wrote
        it. Also return the diversity within and between the groups of each set. Needs `q=1`, and a set with two groups.
        Cannot be combined with `quality`.
    permutations (`int`, default 200): with `groups`, how many random permutations of the labels within each set show
        what is chance, with a seed made from the texts of the set and what is given with them. Each group keeps its
        number of texts and its share of `weights`.
    contributions (`bool`, default `False`): also return the contribution of each text: the score of its set minus the
        score of the set without it, at the main order.
    rarefy (`int`): return expected scores of this many texts, drawn from each set without replacement, so that sets of
        different sizes can be compared. A smaller set has no score. For `kernel="classes"` the expectation is exact, up
        to 20 texts at any order and for any number at order 0. Otherwise it is the mean over all different subsets if
        there are at most 200, and over 200 random ones if there are more, with a seed made from the texts of the set
        and what is given with them. Cannot be combined with `weights`, `log_probs`, `patience`, `semantic_entropy`,
        `groups` or `contributions`.
    confidence (`float`): level of a confidence interval, such as 0.95, of the mean over sets: Student's interval,
        corrected for skewness.
    confidence_by (`list[str]` or `list[int]`): with `confidence`, a label for each set. Sets with equal labels, such as
        several for one prompt, are not independent: the interval is over labels. Default: each set is independent.
    details (`bool`, default `False`): also return the size, the score at each order and the eigenvalues of each set,
        and with `kernel="classes"` the class of each text.
    embeddings (array of shape (n, d)): embeddings of all texts, in the order of the concatenated sets. No encoder
        runs. Their norms do not matter. The signature has a digest of them.
    similarity (`list` of (k, k) matrices): in place of an encoder, similarities computed elsewhere: a matrix for each
        set, for its k texts in order, or one matrix if `predictions` is one flat set. The texts may then be mere names,
        such as those of molecules or images. Each matrix must be symmetric, with unit diagonal, to within 1e-4, and
        positive semi-definite, to within 1e-4 of its largest eigenvalue. The signature has a digest of them. With
        `kernel="classes"`, `same` is the similarity from which on two texts are the same. Cannot be combined with
        `embeddings` or with other kernels.
    model (`str`, path or encoder, default `"all-MiniLM-L6-v2"`): a sentence-transformers model, as a name, a folder
        or an id of the Hugging Face Hub; the default needs no network. Or an encoder: any object with a method
        `encode` that takes a list of n strings and returns an array of shape (n, d), such as a `SentenceTransformer`.
        The signature reports an encoder as `given(<class>)`, or by its attribute `signature_name`.
    precision (`str`): floating-point type of the encoder: `"float32"`, `"bfloat16"` or `"float16"`. By default the
        type in which the weights are stored. In float32, an embedding does not depend on the other texts of the call,
        to within 1e-6. Cannot be combined with an encoder object.
    batch_size (`int`), device (`str`): number of texts in a batch (by default a budget of tokens) and torch device of
        the encoder. They change scores by rounding only.
    cache_dir (`str` or path): folder in which embeddings are cached, keyed by the model's weights, the precision,
        `long_texts` and the text. Processes can share it. It does not change scores or signatures. If all embeddings
        are cached, the model is not loaded. Cannot be combined with an encoder object. Not to be confused with the
        `cache_dir` of `evaluate.load`, which holds the code of the module.
    progress (`bool`): show a progress bar. By default only if the logging level is INFO or lower.
    long_texts (`"windows"` or `"cut"`, default `"windows"`): what is done with a text that is longer than the model
        reads, which is 256 tokens for the default. `"windows"`: the mean, weighted by tokens, of the embeddings of
        consecutive windows, which end where a sentence does. `"cut"`: the rest is cut off, with a warning. Cannot be
        combined with an encoder object.

Returns:
    vendi_embed (`float`): mean Vendi score of the sets, in [1, size of the set]. Higher is more diverse.
    scores (`list[float]`): Vendi score of each set. 0 if no text reaches `min_quality`. None for a set smaller than
        `rarefy`.
    confidence_interval (`list[float]`): only with `confidence`. `[low, high]` of `vendi_embed`. None for fewer than
        two sets, or labels of `confidence_by`, and if all score the same.
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
    semantic_entropy (`float`), semantic_entropy_scores (`list[float]`): only with `semantic_entropy=True`. Entropy of
        the classes in nats, the log of the Vendi score at order 1, in [0, log n] for n texts: mean over sets, and value
        for each set; None for a set of which no text reaches `min_quality`. Higher is less certain.
    normalized_semantic_entropy (`float`), normalized_semantic_entropy_scores (`list[float]`): only with
        `semantic_entropy=True`. The same divided by log n, in [0, 1]. None for a set of one text.
    semantic_entropy_confidence_interval, normalized_semantic_entropy_confidence_interval (`list[float]`): only with
        `semantic_entropy=True` and `confidence`. `[low, high]` of each.
    within (`float`), within_scores (`list[float]`): only with `groups`. Effective number of different texts within a
        group (alpha diversity), in [1, `pooled`]: mean over sets, and value for each set, of exp(sum of w_g S_g), where
        w_g is the share of group g of the texts, or of their `weights`, and exp(S_g) its Vendi score.
    pooled (`float`), pooled_scores (`list[float]`): only with `groups`. Vendi score of all groups together (gamma).
    between (`float`), between_scores (`list[float]`): only with `groups`. `pooled` over `within` in each set: effective
        number of different groups (beta), in [1, exp(H(w))], which is the number of groups at equal shares. 1 if the
        groups do not differ or a set has one only; the upper bound if they have nothing in common.
    within_confidence_interval, pooled_confidence_interval, between_confidence_interval (`list[float]`): only with
        `groups` and `confidence`. `[low, high]` of each.
    between_expected (`float`), between_expected_scores (`list[float]`): only with `groups`. What `between` is if the
        labels are permuted within each set: few texts of each group differ by chance. Geometric mean for each set.
    between_p (`float`): only with `groups`. p-value of the permutation test that labels do not matter, of the mean over
        sets of the log of `between`, in [1 / (1 + `permutations`), 1].
    between_share (`float`): only with `groups`. How far the mean log of `between` is from its expectation, over how far
        it can be, as in the adjusted Rand index. 0 by chance, 1 if groups have nothing in common; it may be negative.
        None if no permutation is less than the upper bound.
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
    signature (`str`): all settings that determine the score. Scores are comparable if their signatures are equal. Of
        an encoder object or a function, the signature has only the name: use the same one.

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

    items = SETS
    bounds = (1.0, math.inf)
    settings = VendiSettings
    item_results = (
        ItemResult("quality_scores", ("quality",), bounds=(0.0, math.inf)),
        ItemResult("utility_scores", ("patience",), bounds=(0.0, 1.0)),
        ItemResult("semantic_entropy_scores", ("semantic_entropy",), bounds=(0.0, math.inf)),
        ItemResult("normalized_semantic_entropy_scores", ("semantic_entropy",), bounds=(0.0, 1.0)),
        ItemResult("within_scores", ("groups",), bounds=bounds),
        ItemResult("pooled_scores", ("groups",), bounds=bounds),
        ItemResult("between_scores", ("groups",), bounds=bounds),
        ItemResult("between_expected_scores", ("groups",)),
        ItemResult("contributions", ("contributions",), of_texts=True),
        ItemResult("quality_contributions", ("quality", "contributions"), of_texts=True),
        ItemResult("n_counted", ("min_quality",), is_count=True),
    )
    parts = VendiParts

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://arxiv.org/abs/2210.02410", "https://arxiv.org/abs/2506.00514"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def bounds_under(self, settings: Settings) -> tuple[float, float]:
        """Return the range of the score: from 0 with `min_quality`, under which a set may be empty."""
        return (0.0, math.inf) if "min_quality" in settings.passed() else self.bounds

    def _compute(self, *, predictions: Any, **given: Any) -> dict[str, Any]:
        settings = VendiSettings.read(given, "vendi_embed")
        sets = parse_sets(predictions, settings.set_size)
        weighting = read_weighting(sets, settings)
        units = parse_confidence_by(settings.confidence_by, len(sets.sizes), "set")

        similarities = None if settings.similarity is None else parse_similarity(settings.similarity, sets)
        kernel, signed = make_kernel(sets, weighting, similarities, settings)
        scored = score_sets(kernel, sets, weighting, similarities, settings)

        from_zero = ScoreSummary(scored.has_score, units, settings.confidence, (0.0, math.inf))
        result = from_zero._replace(bounds=self.bounds_under(settings)).of("vendi_embed", scored.main)
        if settings.has_orders:
            columns = zip(settings.orders, scored.by_order[scored.has_score].T, strict=True)
            result["by_order"] = {format_order(order): mean_over_sets(column) for order, column in columns}
        if scored.with_quality is not None:
            result |= from_zero.of("quality_vendi_embed", scored.with_quality, "quality_")
        if settings.patience is not None:
            utilities = utility(kernel, weighting, settings.patience)
            result |= from_zero._replace(bounds=(0.0, 1.0)).of("utility", utilities, "utility_")
        if settings.semantic_entropy:
            result |= semantic_entropies(kernel, weighting, from_zero)
        if settings.groups is not None:
            parts = score_groups(kernel, sets, weighting, similarities, settings)
            result |= group_results(parts, from_zero._replace(bounds=self.bounds))
        if settings.contributions:
            result |= contributions(kernel, scored, weighting, settings.orders[0])
        if settings.min_quality is not None:
            result["n_counted"] = weighting.sizes(sets.sizes).tolist()
        if settings.rarefy is not None:
            result["n_too_small"] = int((~scored.has_score).sum())
        if settings.details:
            result["details"] = describe_sets(scored, kernel, weighting, settings.orders)
        result["signature"] = signature(
            "vendi_embed",
            q=",".join(map(format_order, settings.orders)),
            **signed,
            **weighting.signed,
            set_size=format_sizes(sets.sizes),
            **settings.signed("min_quality", "patience", "rarefy"),
            **group_settings(settings),
            **({} if scored.is_exact else DRAWN),
            **confidence_settings(settings.confidence, settings.confidence_by),
        )
        return result
