"""Semantic entropy: into how many meanings the answers to a question fall."""

import math
from typing import Any

import evaluate
import numpy as np

from .core import (
    TIE,
    Bounds,
    ItemResult,
    ScoreSummary,
    SetMetric,
    Settings,
    TextSets,
    describe_results,
    describe_settings,
    lists_by_set,
    parse_probabilities,
    parse_values,
    rows_of,
    sum_by_set,
)
from .semantic_entropy_classes import find_classes
from .semantic_entropy_grouping import group as group
from .semantic_entropy_scores import (
    class_entropies,
    count_good_classes,
    coverage_adjusted_entropies,
    likelihood_weights,
    utilities,
)
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

_KWARGS_DESCRIPTION = (
    describe_settings(
        SemanticEntropySettings,
        "set",
        quality="Return the utility of each set to a reader, as in NoveltyBench.",
        batch_size="Of pairs: 32.",
    )
    + """
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
    n_good_classes (`float`), n_good_classes_scores (`list[float]`): only with
        `min_quality`. Number of classes with at least one text of that quality,
        in [0, size of the set]. Over the number of texts, it is the effective
        diversity of Shypula et al. 2025 (arXiv 2504.12522).
    details (`list[dict]`): only with `details=True`. For each set `size` and
        `classes`: the class of each text, numbered in order of first
        appearance. None for a text of weight 0, which is ignored.
"""
    + describe_results(
        "set", {"": "semantic_entropy", **{f"{name}_": name for name in ("n_classes", "utility", "n_good_classes")}}
    )
    + """
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
)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SemanticEntropy(SetMetric, evaluate.Metric):
    """Entropy of the classes of texts that say the same."""

    bounds = (0.0, math.log)
    settings = SemanticEntropySettings
    item_results = (
        ItemResult("n_classes_scores", bounds=(1.0, float)),
        ItemResult("utility_scores", ("quality",), bounds=(0.0, 1.0)),
        ItemResult("n_good_classes_scores", ("min_quality",), bounds=(0.0, float)),
    )

    def entropies(self, scores: np.ndarray) -> np.ndarray:
        """Return scores, which are entropies in nats: that of a mixture is at least the mean of its parts'."""
        return scores

    def found(self, result: dict[str, Any]) -> dict[str, list[Any]]:
        """Return the classes of all texts in the details of a result, by the setting that takes them."""
        classes: list[Any] = []
        for row in result["details"]:
            classes += row["classes"]
        return {"classes": classes}

    def bounds_under(self, settings: Settings) -> Bounds:
        """Range of the score: the estimate may exceed the log of the number of texts."""
        return (0.0, math.inf) if "estimator" in settings.passed() else self.bounds

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://doi.org/10.1038/s41586-024-07421-0", "https://arxiv.org/abs/2504.05228"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def _score(
        self, sets: TextSets, settings: SemanticEntropySettings, summary: ScoreSummary
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        sizes = sets.sizes
        weights, weighting = None, "uniform"
        eligible = np.ones(len(sets.texts), dtype=bool)
        if settings.weights is not None:
            weights = parse_probabilities(settings.weights, sets, "weights")
            weighting = "given"
            eligible = weights > 0
        elif settings.log_probs is not None:
            weights, weighting = likelihood_weights(settings.log_probs, sets)
        quality = None if settings.quality is None else parse_values(settings.quality, sets, "quality")

        present = np.flatnonzero(eligible)
        counted = sum_by_set(eligible.astype(np.int64), sizes)
        classes, signed = find_classes(sets, present, counted, settings)

        shares = None if weights is None else weights[present]
        if settings.estimator == "plugin":
            entropies = class_entropies(classes, shares)
        else:
            entropies = coverage_adjusted_entropies(classes)
            signed["estimator"] = settings.estimator
        result = summary.of("semantic_entropy", entropies)
        result |= summary.of("n_classes", classes.counts.astype(np.float64), "n_classes_", bounds=(1.0, float))
        if quality is not None:
            values = utilities(classes, quality[present], settings.patience)
            result |= summary.of("utility", values, "utility_", bounds=(0.0, 1.0))
        if quality is not None and settings.min_quality is not None:
            good = count_good_classes(classes, quality[present] >= settings.min_quality - TIE)
            result |= summary.of("n_good_classes", good, "n_good_classes_", bounds=(0.0, float))
        if settings.details:
            labels = lists_by_set(classes.within_sets, sizes, eligible)
            result["details"] = rows_of({"size": sizes.tolist(), "classes": labels})
        entries = {**signed, "weights": weighting}
        if quality is not None:
            entries["patience"] = settings.patience
        return result, entries | settings.signed("min_quality")
