"""The numbers of a report, from the sets of its systems."""

import argparse
import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.caveats import find_caveats, word_counts
from text_metrics.commands.report.likeness import (
    compare_systems,
    compare_with_people,
    equal_numbers,
    shuffled,
    split_people,
)
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.settings import load_metric, settings_checked
from text_metrics.commands.shared.statistics import holm, paired_test
from text_metrics.metrics._core.core_inputs import mean_by_set
from text_metrics.metrics._core.core_results import UNBOUNDED, VERSION, Bounds, mean_estimate, signature
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings
from text_metrics.questions.rarefied import rarefied

# Options that decide no number.
_WITHOUT_EFFECT = ("out", "cache_dir", "quiet", "by_line")
# Prompts of least diversity that are shown of each system.
_SHOWN = 5
_POSITIVE = (0.0, math.inf)


class Metric(NamedTuple):
    """A number of each set, and how it is shown.

    better : "higher" or "lower"; None where neither is
    bounds : range of the number, of which the upper end may be a function of the number of texts
    """

    name: str
    title: str
    better: str | None
    bounds: Bounds


# In order of display.
DIVERSITY = [
    Metric("vendi_embed", "Vendi score", "higher", (1.0, float)),
    Metric("n_classes", "Meanings", "higher", (1.0, float)),
    Metric("chamfer_diversity", "Chamfer diversity", "higher", (0.0, 2.0)),
    Metric("self_bleu", "Self-BLEU", "lower", (0.0, 1.0)),
    Metric("distinct", "Distinct-2", "higher", (0.0, 1.0)),
    Metric("compression_ratio", "Compression ratio", "lower", _POSITIVE),
    Metric("length", "Length", None, _POSITIVE),
]
_GRUEN = Metric("quality", "GRUEN", "higher", (0.0, 1.0))
_QUALITY_VENDI = Metric("quality_vendi_embed", "Quality × Vendi", "higher", _POSITIVE)
# A metric of texts, its ratings (n,), and their signature.
Rated = tuple[Metric, np.ndarray, str]


def build(options: argparse.Namespace, inputs: Inputs, cache: Path) -> dict[str, Any]:
    """Compute what `report.json` holds; raises a ValueError for an invalid setting."""
    encoder = {name: value for name, value in options.setting.items() if name != "same"} | {"cache_dir": str(cache)}
    with settings_checked():
        SemanticEntropySettings(**{**options.setting, **encoder}).check_found()
    ids, level = inputs.ids, options.confidence
    metrics = score(inputs, options, encoder)
    drawn = [list(map(shuffled, sets, ids)) for sets in inputs.texts]
    people = None
    if inputs.people is not None:
        halves = split_people([shuffled(inputs.people.get(prompt, ()), prompt) for prompt in ids])
        people = compare_with_people(equal_numbers([halves[0], *drawn, *halves[1:]]), level, encoder)
    report = {
        "version": VERSION,
        "options": {name: value for name, value in vars(options).items() if name not in _WITHOUT_EFFECT},
        "confidence": level,
        "systems": inputs.systems,
        "sources": inputs.sources,
        "prompts": ids,
        "rarefied_to": inputs.smallest,
        "metrics": metrics,
        "pairs": pairs_of_all_texts(inputs, level, encoder),
        "likeness": compare_systems(equal_numbers(drawn), level, encoder),
        "people": people,
        "collapse": [
            _least_diverse(ids, value["scores"], sets, not options.no_texts)
            for value, sets in zip(metrics[0]["values"], inputs.texts, strict=True)
        ],
        "caveats": find_caveats(inputs, options),
    }
    return {**report, "sentences": sentences(report)}


def _least_diverse(
    ids: list[str], scores: list[float], sets: list[list[str]], with_texts: bool
) -> list[dict[str, Any]]:
    """Find the prompts of least diversity."""
    entries = []
    for p in np.argsort(scores, kind="stable")[:_SHOWN].tolist():
        equal = sum(n for n in Counter(sets[p]).values() if n > 1)
        entry = {"prompt": ids[p], "score": scores[p], "equal_share": equal / len(sets[p])}
        entries.append({**entry, "texts": sets[p]} if with_texts else entry)
    return entries


def rate(inputs: Inputs, options: argparse.Namespace, encoder: dict[str, Any]) -> Rated | None:
    """Rate all n texts by gruen, or take their ratings; None without quality."""
    if options.quality_key is not None:
        metric = _GRUEN._replace(title=options.quality_key, bounds=UNBOUNDED)
        return metric, inputs.quality, signature("quality", column=options.quality_key)
    if options.quality == "none":
        return None
    texts = [text for of_system in inputs.by_system().values() for text in of_system]
    unique = sorted(set(texts))
    # Its models are its own.
    settings = {name: value for name, value in encoder.items() if name not in ("model", "long_texts")}
    result = load_metric("gruen").compute(predictions=unique, progress=not options.quiet, **settings)
    ratings = dict(zip(unique, result["scores"], strict=True))
    return _GRUEN, np.array([ratings[text] for text in texts]), result["signature"]


def score(inputs: Inputs, options: argparse.Namespace, encoder: dict[str, Any]) -> list[dict[str, Any]]:
    """Score the sets of all systems by one call of each metric.

    Returns the entries of `metrics`, in order of display.
    """
    quality = rate(inputs, options, encoder)
    sets = [texts for of_system in inputs.texts for texts in of_system]
    sizes, k = inputs.sizes.ravel(), inputs.smallest

    def compute(name: str, **settings: Any) -> dict[str, Any]:
        metric = load_metric(name)
        return metric.compute(predictions=sets, **settings) if k is None else rarefied(metric, sets, k, **settings)

    by_set = {}
    if quality is not None and quality[1].min() >= 0 and quality[1].max() <= 1:
        by_set["quality"] = [part.tolist() for part in np.split(quality[1], np.cumsum(sizes)[:-1])]
    vendi = compute("vendi_embed", **encoder, progress=not options.quiet, **by_set)
    meanings = compute("semantic_entropy", **{**options.setting, **encoder})
    chamfer = compute("chamfer_diversity", **encoder)
    bleu = compute("self_bleu", repetition=True, details=True)
    words = word_counts(text for texts in sets for text in texts)
    by_signature: list[tuple[Any, str]] = [
        (vendi["scores"], vendi["signature"]),
        (meanings["n_classes_scores"], meanings["signature"]),
        (chamfer["scores"], chamfer["signature"]),
        (bleu["scores"], bleu["signature"]),
        ([row["distinct_2"] for row in bleu["details"]], bleu["signature"]),
        ([row["compression_ratio"] for row in bleu["details"]], bleu["signature"]),
        (mean_by_set(words, sizes), signature("length", unit="words")),
    ]
    scored = [(metric, *row) for metric, row in zip(DIVERSITY, by_signature, strict=True)]
    if quality is not None:
        scored.append((quality[0], mean_by_set(quality[1], sizes), quality[2]))
    if by_set:
        scored.append((_QUALITY_VENDI, vendi["quality_scores"], vendi["signature"]))
    shape, size = (len(inputs.systems), -1), k or float(sizes[0])
    return [
        describe(metric, np.reshape(scores, shape), signed, size, options.confidence)
        for metric, scores, signed in scored
    ]


def pairs_of_all_texts(inputs: Inputs, level: float, encoder: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Score pairs of all texts, where sizes differ; None for sets of one size."""
    if inputs.smallest is None:
        return None
    vendi = load_metric("vendi_embed")
    results = [
        vendi.compute(predictions=sets, **encoder, pairs=True, confidence=level, progress=False)
        for sets in inputs.texts
    ]
    return [{"mean": result["pairs"], "interval": result["pairs_confidence_interval"]} for result in results]


def describe(metric: Metric, scores: np.ndarray, signed: str, size: float, level: float) -> dict[str, Any]:
    """Return the entry of `metrics` for scores (systems, p): means, and tests of all pairs."""
    values = []
    for row in scores:
        estimate = mean_estimate(row)
        interval = estimate.interval(level, metric.bounds, size)
        values.append({"mean": estimate.value, "interval": interval, "scores": row.tolist()})
    pairs = combinations(range(len(scores)), 2)
    tests = [{"a": i, "b": j, **paired_test(scores[i], scores[j], level)} for i, j in pairs]
    for test, p in zip(tests, holm([test["p"] for test in tests]), strict=True):
        test["p_holm"] = p
    sign = 1 if metric.better == "lower" else -1
    order = np.argsort([sign * value["mean"] for value in values], kind="stable").tolist()
    # First is the system whose tests against all others hold.
    p_values = [test["p_holm"] for test in tests if order[0] in (test["a"], test["b"])]
    is_first = bool(p_values) and all(p is not None and p < 1 - level for p in p_values)
    return {
        "name": metric.name,
        "title": metric.title,
        "better": metric.better,
        "section": "quality" if metric.name.startswith("quality") else "diversity",
        "signature": signed,
        "values": values,
        "tests": tests,
        "order": order,
        "best": order[0] if is_first and metric.better is not None else None,
    }
