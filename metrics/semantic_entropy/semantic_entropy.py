"""Semantic entropy: into how many meanings the answers to a question fall."""

import math
from typing import Any

import evaluate
import numpy as np

from .core import (
    SETS,
    Bounds,
    ItemResult,
    ScoreSummary,
    Settings,
    TextMetric,
    format_sizes,
    lists_by_set,
    parse_confidence_by,
    parse_probabilities,
    parse_sets,
    parse_values,
    rows_of,
    signature,
    sum_by_set,
)
from .semantic_entropy_classes import find_classes
from .semantic_entropy_grouping import group as group
from .semantic_entropy_pairs import mutual_entailment as mutual_entailment
from .semantic_entropy_scores import class_entropies, coverage_adjusted_entropies, likelihood_weights, utilities
from .semantic_entropy_settings import SemanticEntropySettings

_DESCRIPTION = """\
Into how many meanings do the answers to a question fall? Texts that say the
same make a class, and the semantic entropy is the entropy of the classes: 0 if
all texts say the same, and the log of their number if no two do. A model that
is sure of its answer has a low one. It needs no reference texts.
"""

_CITATION = """\
@article{farquhar2024semantic,
  title = {Detecting hallucinations in large language models using semantic entropy},
  author = {Farquhar, Sebastian and Kossen, Jannik and Kuhn, Lorenz and Gal, Yarin},
  journal = {Nature},
  volume = {630},
  pages = {625--630},
  year = {2024},
  url = {https://doi.org/10.1038/s41586-024-07421-0}
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[list[str]]` or `list[str]`): sets of texts, such as the
        answers to each question. A flat list is one set or, with `set_size`,
        consecutive sets.
    set_size (`int`): number of texts in each set of a flat list, such as
        `num_return_sequences`.
    same (`float`, callable or `str`, default 0.83): which texts say the same. A
        number: those with a cosine of at least this. A callable: those for
        which it returns True; it maps two lists of texts to a list of booleans,
        and each pair of different texts of a set is asked about once, in order
        of content, or with `grouping="greedy"` in the order given.
        `"nli:<model>"`: those that entail each other, by a
        sequence-classification model with a class `entailment`, as an id of the
        Hugging Face Hub or a folder. `"pairs:<model>"`: those for which a model
        with two classes gives the second a probability above 0.5. The default
        is calibrated for the default model, and raises an error with another
        `model` or with `embeddings`.
    classes (shaped like `predictions`): in place of `same`, the class of each
        text, a string or an integer, such as people or a judge assigned it. No
        model is loaded.
    grouping (`"complete"` or `"greedy"`, default `"complete"`): how pairs make
        classes. `"complete"`: all texts of a class say the same as each other;
        texts are grouped in order of content, so the order of a set does not
        matter. `"greedy"`: a text joins the first class whose first member says
        the same, in the order given, as in NoveltyBench (arXiv 2504.05228).
    contexts (`list[str]`): with `"nli:<model>"` or `"pairs:<model>"`, a text
        for each set, such as the question that its texts answer. It is put
        before both texts of a pair.
    weights (shaped like `predictions`): probability of each text within its
        set. Each set sums to 1. Default: uniform, the discrete semantic
        entropy.
    log_probs (shaped like `predictions`): in place of `weights`: for each text
        the natural log-probabilities of its tokens, a list, or one number. The
        weight of a text is exp of the mean over its tokens, or of the number,
        over the sum of those of its set, as in Farquhar et al. (2024). A text
        that was sampled several times counts each time.
    estimator (`"plugin"` or `"chao_shen"`, default `"plugin"`): `"plugin"`:
        entropy of the shares of the classes among the texts. `"chao_shen"`: the
        coverage-adjusted estimate of Chao and Shen (2003) of the entropy of all
        answers that the model could give, which few texts underestimate. It can
        exceed the log of the number of texts.
    quality (shaped like `predictions`): quality of each text, in [0, 1]: return
        the utility of each set to a reader, as in NoveltyBench.
    patience (`float` in [0, 1], default 0.8): with `quality`, the probability
        with which the reader goes on to the next text.
    embeddings (array of shape (n, d), or a list of arrays, one for each set):
        embeddings of all texts. No encoder runs.
    model (`str`, path or encoder, default `"all-MiniLM-L6-v2"`): a
        sentence-transformers model, as a name, a folder or an id of the Hugging
        Face Hub; the default needs no network. Or an encoder: any object with a
        method `encode` that takes a list of n strings and returns an array of
        shape (n, d).
    batch_size (`int`), device (`str`): number of texts or pairs in a batch (by
        default a budget of tokens, and 32 pairs) and torch device of the
        models. They change embeddings by rounding only.
    cache_dir (`str` or path): folder in which embeddings are cached. It does
        not change scores or signatures.
    long_texts (`"windows"` or `"cut"`, default `"windows"`): what is done with
        a text that is longer than the encoder reads.
    confidence (`float`): level of a confidence interval, such as 0.95, of the
        mean over sets.
    confidence_by (`list[str]` or `list[int]`): with `confidence`, a label for
        each set. Sets with equal labels are not independent: the interval is
        over labels.
    details (`bool`, default `False`): also return the size and the class of
        each text of each set.
    progress (`bool`): show a progress bar. Default: `False`.

Returns:
    semantic_entropy (`float`): mean entropy of the classes of the sets, in
        nats, in [0, log of the size of the set]. Higher: more meanings, less
        certain.
    scores (`list[float]`): the entropy of each set.
    n_classes (`float`), n_classes_scores (`list[float]`): number of classes, in
        [1, size of the set]; what NoveltyBench calls distinct.
    utility (`float`), utility_scores (`list[float]`): only with
        `quality`. Mean, and value for each set, of (1 - p) / (1 - p^k) times
        the sum over its k texts, in the order given, of p^(i - 1) times the
        quality of text i if no earlier text is of its class, for a `patience`
        of p, in [0, 1]. Higher is better and more diverse.
    confidence_interval, n_classes_confidence_interval,
        utility_confidence_interval (`list[float]`): only with `confidence`.
        `[low, high]` of the means. None for fewer than two sets, or labels of
        `confidence_by`, and if all score the same.
    details (`list[dict]`): only with `details=True`. For each set `size` and
        `classes`: the class of each text, numbered in order of first
        appearance. None for a text of weight 0, which takes no part.
    signature (`str`): all settings that determine the score. What is given for
        texts is signed as `given`.

Raises:
    TypeError, ValueError: for invalid input. The message names the parameter,
        the item and what was got.

Examples:

    >>> import evaluate
    >>> semantic_entropy = evaluate.load("metrics/semantic_entropy")
    >>> result = semantic_entropy.compute(predictions=[
    ...     ["Paris.", "It is Paris.", "paris", "Lyon."],
    ...     ["A dog.", "A cat.", "A horse.", "A cow."],
    ... ], same=lambda left, right: [a.strip(".").split()[-1].lower() == b.strip(".").split()[-1].lower()
    ...                              for a, b in zip(left, right)])
    >>> result["n_classes_scores"], [round(score, 2) for score in result["scores"]]
    ([2.0, 4.0], [0.56, 1.39])
    >>> result = semantic_entropy.compute(predictions=["yes", "aye", "no"], classes=["+", "+", "-"])
    >>> result["n_classes"], round(result["semantic_entropy"], 2)
    (2.0, 0.64)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SemanticEntropy(TextMetric, evaluate.Metric):
    """Entropy of the classes of texts that say the same."""

    items = SETS
    bounds = (0.0, math.log)
    settings = SemanticEntropySettings
    item_results = (
        ItemResult("n_classes_scores", bounds=(1.0, float)),
        ItemResult("utility_scores", ("quality",), bounds=(0.0, 1.0)),
    )

    def bounds_under(self, settings: Settings) -> Bounds:
        """Range of the score: the estimate may exceed the log of the number of texts."""
        return (0.0, math.inf) if "estimator" in settings.passed() else self.bounds

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://doi.org/10.1038/s41586-024-07421-0", "https://arxiv.org/abs/2504.05228"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def _compute(self, *, predictions: Any, **given: Any) -> dict[str, Any]:
        settings = SemanticEntropySettings.read(given, "semantic_entropy")
        sets = parse_sets(predictions, settings.set_size)
        m, sizes = len(sets.sizes), sets.sizes
        weights, weighting = None, "uniform"
        takes_part = np.ones(len(sets.texts), dtype=bool)
        if settings.weights is not None:
            weights, weighting = parse_probabilities(settings.weights, sets, "weights"), "given"
            takes_part = weights > 0
        elif settings.log_probs is not None:
            weights, weighting = likelihood_weights(settings.log_probs, sets)
        quality = None if settings.quality is None else parse_values(settings.quality, sets, "quality")
        units = parse_confidence_by(settings.confidence_by, m, "set")
        summary = ScoreSummary(units, settings.confidence, self.bounds_under(settings), sizes)

        present, counted = np.flatnonzero(takes_part), sum_by_set(takes_part.astype(np.int64), sizes)
        classes, counts, signed = find_classes(sets, present, counted, settings)

        shares = None if weights is None else weights[present]
        if settings.estimator == "plugin":
            entropies = class_entropies(classes, counts, counted, shares)
        else:
            entropies = coverage_adjusted_entropies(classes, counts, counted)
            signed["estimator"] = settings.estimator
        result = summary.of("semantic_entropy", entropies)
        result |= summary.of("n_classes", counts.astype(np.float64), "n_classes_", bounds=(1.0, float))
        if quality is not None:
            values = utilities(classes, counts, counted, quality[present], settings.patience)
            result |= summary.of("utility", values, "utility_", bounds=(0.0, 1.0))
        if settings.details:
            labels = lists_by_set(classes, sizes, takes_part)
            result["details"] = rows_of({"size": sizes.tolist(), "classes": labels})
        result["signature"] = signature(
            "semantic_entropy",
            **signed,
            weights=weighting,
            **({} if quality is None else {"patience": settings.patience}),
            set_size=format_sizes(sizes),
            **settings.signed_interval(),
        )
        return result
