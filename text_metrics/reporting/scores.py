"""The scores of the systems of a report by every metric, their means, and their tests."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from text_metrics.core_api import (
    UNBOUNDED,
    WHITESPACE,
    Signature,
    mean_by_set,
    mean_estimate,
    signature,
    split_list,
    tied_ranks,
)
from text_metrics.loading import load_metric
from text_metrics.questions.sets import score_sets
from text_metrics.reporting.caveats import find_short_texts
from text_metrics.reporting.inputs import Inputs
from text_metrics.reporting.lengths import cut_to_shortest, word_counts
from text_metrics.reporting.results import MEASURES, Caveat, Measure, Metric, SameLength, Test, Value
from text_metrics.statistics import difference_bounds, holm, paired_test

GRUEN, NO_MEANINGS = "gruen", "none"
# A score for each set, and the signature, by the names of `MEASURES`.
Scores = dict[str, tuple[Any, str]]


def rate(inputs: Inputs, by_gruen: bool, encoder: dict[str, Any]) -> tuple[np.ndarray, str] | None:
    """Return ratings of all texts, those of the inputs or of gruen, with their signature; None without them."""
    if inputs.rated_by is not None:
        return inputs.quality, signature("quality", column=inputs.rated_by)
    if not by_gruen:
        return None
    # GRUEN has models of its own.
    settings = {name: value for name, value in encoder.items() if name not in ("model", "long_texts")}
    texts = list(chain.from_iterable(inputs.by_system().values()))
    result = load_metric(GRUEN).compute(predictions=texts, **settings)
    return np.array(result["scores"]), result["signature"]


def score(
    inputs: Inputs, ratings: tuple[np.ndarray, str] | None, encoder: dict[str, Any], settings: Mapping[str, Any]
) -> dict[str, tuple[Any, str]]:
    """Score the sets of all systems, one system after the other, by one call of each metric.

    Returns a score for each set, and the signature, by the names of `MEASURES`.
    """
    sets = list(chain.from_iterable(inputs.texts))
    sizes = inputs.sizes.ravel()
    k = inputs.smallest
    contexts = None if inputs.contexts is None else inputs.contexts * len(inputs.systems)
    embedding_settings = {**encoder, "contexts": contexts}

    def compute(name: str, **settings: Any) -> dict[str, Any]:
        return score_sets(load_metric(name), sets, settings, k)

    scores: dict[str, tuple[Any, str]] = {}
    by_set = None
    if ratings is not None:
        values, signed = ratings
        scores["quality"] = (mean_by_set(values, sizes), signed)
        if values.min() >= 0 and values.max() <= 1:
            by_set = split_list(values.tolist(), sizes)
    vendi = compute("vendi_embed", **embedding_settings, quality=by_set)
    scores["vendi_embed"] = (vendi["scores"], vendi["signature"])
    chamfer = compute("chamfer_diversity", **embedding_settings)
    scores["chamfer_diversity"] = (chamfer["scores"], chamfer["signature"])
    bleu = compute("self_bleu", repetition=True, details=True, tokenizer=settings.get("tokenizer", WHITESPACE))
    scores["self_bleu"] = (bleu["scores"], bleu["signature"])
    scores["distinct"] = ([row["distinct_2"] for row in bleu["details"]], bleu["signature"])
    scores["compression_ratio"] = ([row["compression_ratio"] for row in bleu["details"]], bleu["signature"])
    lengths = mean_by_set(word_counts(chain.from_iterable(sets)), sizes)
    scores["length"] = (lengths, signature("length", unit="words"))
    if settings.get("same") != NO_MEANINGS:
        if inputs.classes is None:
            meanings = compute("semantic_entropy", **embedding_settings, same=settings.get("same"))
        else:
            meanings = compute("semantic_entropy", classes=list(chain.from_iterable(inputs.classes)))
        scores["n_classes"] = (meanings["n_classes_scores"], meanings["signature"])
    if by_set is not None:
        scores["quality_vendi_embed"] = (vendi["quality_scores"], vendi["signature"])
    return scores


def score_same_length(
    inputs: Inputs, level: float, encoder: dict[str, Any], settings: Mapping[str, Any], caveats: Sequence[Caveat]
) -> SameLength:
    """Score the diversity of texts cut to the words of the shortest of their prompt.

    Quality is measured on whole texts. `caveats` are about whole texts, and hold for their cut texts, too.
    """
    cut, n_words = cut_to_shortest(inputs)
    scores = score(cut, None, encoder, settings)
    for name, (values, signed) in scores.items():
        scores[name] = (values, str(Signature.parse(signed).merge(texts="cut-to-shortest")))
    short = find_short_texts(cut, settings.get("tokenizer", WHITESPACE))
    return SameLength(n_words, summarize_all(cut, scores, level, [*caveats, *short]))


def find_unread(caveats: Sequence[Caveat]) -> dict[str, set[int]]:
    """Return the systems about which each metric says nothing."""
    unread: dict[str, set[int]] = {name: set() for name in MEASURES}
    for caveat in caveats:
        for name in () if caveat.is_doubt else caveat.metrics:
            unread[name].update(caveat.systems)
    return unread


def summarize_all(inputs: Inputs, scores: Scores, level: float, caveats: Sequence[Caveat]) -> list[Metric]:
    """Return the means and tests of the scores by every metric, in order of display."""
    unread = find_unread(caveats)
    metrics = []
    for name, measure in MEASURES.items():
        if name in scores:
            values, signed = scores[name]
            if name == "quality" and inputs.rated_by is not None:
                measure = measure._replace(title=inputs.rated_by, bounds=UNBOUNDED)
            system_scores = np.reshape(values, (len(inputs.systems), -1))
            metrics.append(summarize(measure, system_scores, signed, inputs.set_size, level, unread[name]))
    return metrics


def summarize(
    measure: Measure, scores: np.ndarray, signed: str, size: float, level: float, unreliable: Collection[int] = ()
) -> Metric:
    """Return the means of scores (systems, p), and tests of all pairs; `unreliable` are systems without meaning.

    size : the number of texts of a set
    """
    values = [
        Value(mean.value, mean.interval(level, measure.bounds, size), row.tolist(), i not in unreliable)
        for i, (row, mean) in enumerate(zip(scores, map(mean_estimate, scores), strict=True))
    ]
    pairs = list(combinations(range(len(scores)), 2))
    possible = difference_bounds(measure.bounds, [size, size])
    unadjusted = [paired_test(scores[i], scores[j], level, None, len(pairs), possible) for i, j in pairs]
    adjusted = holm([test["p"] for test in unadjusted])
    tests = [Test(i, j, **test, p_holm=p) for (i, j), test, p in zip(pairs, unadjusted, adjusted, strict=True)]
    sign = 1 if measure.better == "lower" else -1
    order = np.argsort(tied_ranks([sign * value.mean for value in values]), kind="stable").tolist()
    # First is the system whose tests against all others hold.
    p_values = [test.p_holm for test in tests if order[0] in (test.a, test.b)]
    is_first = bool(p_values) and all(p is not None and p < 1 - level for p in p_values) and not unreliable
    best = order[0] if is_first and measure.better is not None else None
    name, title, better, _, section = measure
    return Metric(name, title, better, section, signed, values, tests, order, best)
