"""The scores of the sets of all systems by each metric, and paired tests between systems."""

import math
import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.settings import load_metric
from text_metrics.commands.shared.statistics import holm, paired_test
from text_metrics.metrics._core.core_inputs import mean_by_set
from text_metrics.metrics._core.core_results import UNBOUNDED, Bounds, mean_estimate, signature
from text_metrics.questions.rarefied import rarefied

# What spaces separate; each character of Chinese and Japanese, which are written without spaces.
_WORDS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_POSITIVE = (0.0, math.inf)


class Metric(NamedTuple):
    """A number of each set, and how it is shown.

    better : "higher" or "lower"; None where neither is
    bounds : range of the number, of which the upper end may be a function of the number of texts
    """

    name: str
    title: str
    unit: str
    better: str | None
    bounds: Bounds
    help: str


# In order of display.
DIVERSITY = [
    Metric(
        *("vendi_embed", "Vendi score", "different texts in a set", "higher", (1.0, float)),
        help="The effective number of texts of a set that mean different things: 1 if all mean the same.",
    ),
    Metric(
        *("n_classes", "Meanings", "meanings in a set", "higher", (1.0, float)),
        help="The number of groups of texts of a set that say the same, by a threshold on their similarity.",
    ),
    Metric(
        *("chamfer_diversity", "Chamfer diversity", "cosine distance", "higher", (0.0, 2.0)),
        help="The mean distance of a text to the nearest other text of its set.",
    ),
    Metric(
        *("self_bleu", "Self-BLEU", "BLEU", "lower", (0.0, 1.0)),
        help="How much the texts of a set repeat each other's words: 1 if all are the same.",
    ),
    Metric(
        *("distinct", "Distinct-2", "share of pairs of words", "higher", (0.0, 1.0)),
        help="The share of different pairs of adjacent words among those of a set; it falls with the length of texts.",
    ),
    Metric(
        *("compression_ratio", "Compression ratio", "bytes for each compressed byte", "lower", _POSITIVE),
        help="How many times smaller gzip makes the texts of a set; it rises with their length.",
    ),
    Metric(
        *("length", "Length", "words", None, _POSITIVE),
        help="The mean number of words of a text: no measure of diversity, but others depend on it.",
    ),
]
GRUEN_QUALITY = Metric(
    *("quality", "GRUEN", "quality of a text", "higher", (0.0, 1.0)),
    help="The linguistic quality of a text: grammar, redundancy and focus; whether it makes sense is not rated.",
)
_QUALITY_VENDI = Metric(
    *("quality_vendi_embed", "Quality × Vendi", "good different texts in a set", "higher", _POSITIVE),
    help="The mean quality of the texts of a set times its Vendi score.",
)


# A metric of texts, its ratings (n,), and their signature.
Rated = tuple[Metric, np.ndarray, str]


def word_counts(sets: Sequence[list[str]]) -> np.ndarray:
    """Count the words of each text, what spaces separate and each Chinese character and kana: (n,), float64."""
    return np.array([len(_WORDS.findall(text)) for texts in sets for text in texts], dtype=np.float64)


def rate(inputs: Inputs, command: ReportCommand) -> Rated | None:
    """Rate all texts by gruen, or take their ratings; None without quality."""
    if inputs.quality is not None:
        name = command.quality_key or ""
        metric = GRUEN_QUALITY._replace(title=name, bounds=UNBOUNDED, help=f"The column {name!r}.")
        return metric, inputs.quality, signature("quality", column=name)
    if command.quality != GRUEN:
        return None
    texts = [text for of_system in inputs.by_system() for text in of_system]
    unique = sorted(set(texts))
    # Its models are its own.
    settings = {name: value for name, value in command.encoder.items() if name not in ("model", "long_texts")}
    result = load_metric("gruen").compute(predictions=unique, progress=not command.quiet, **settings)
    ratings = dict(zip(unique, result["scores"], strict=True))
    return GRUEN_QUALITY, np.array([ratings[text] for text in texts]), result["signature"]


def score(inputs: Inputs, quality: Rated | None, command: ReportCommand) -> list[dict[str, Any]]:
    """Score the sets of all systems by one call of each metric; of quality in [0, 1], also its product with diversity.

    Returns the entries of `metrics`, in order of display.
    """
    sets = [texts for of_system in inputs.texts for texts in of_system]
    sizes, k = inputs.sizes.ravel(), inputs.smallest

    def compute(name: str, **settings: Any) -> dict[str, Any]:
        metric = load_metric(name)
        return metric.compute(predictions=sets, **settings) if k is None else rarefied(metric, sets, k, **settings)

    by_set = {}
    if quality is not None and quality[1].min() >= 0 and quality[1].max() <= 1:
        by_set["quality"] = [part.tolist() for part in np.split(quality[1], np.cumsum(sizes)[:-1])]
    vendi = compute("vendi_embed", **command.encoder, progress=not command.quiet, **by_set)
    meanings = compute("semantic_entropy", **{**command.settings, **command.encoder})
    chamfer = compute("chamfer_diversity", **command.encoder)
    bleu = compute("self_bleu", repetition=True, details=True)
    distinct, compression = ([row[name] for row in bleu["details"]] for name in ("distinct_2", "compression_ratio"))
    by_signature: list[tuple[Any, str]] = [
        (vendi["scores"], vendi["signature"]),
        (meanings["n_classes_scores"], meanings["signature"]),
        (chamfer["scores"], chamfer["signature"]),
        *((scores, bleu["signature"]) for scores in (bleu["scores"], distinct, compression)),
        (mean_by_set(word_counts(sets), sizes), signature("length", unit="words")),
    ]
    scored = [(metric, *row) for metric, row in zip(DIVERSITY, by_signature, strict=True)]
    if quality is not None:
        scored.append((quality[0], mean_by_set(quality[1], sizes), quality[2]))
    if by_set:
        scored.append((_QUALITY_VENDI, vendi["quality_scores"], vendi["signature"]))
    shape, size = (len(inputs.systems), -1), k or float(sizes[0])
    return [
        describe(metric, np.reshape(scores, shape), signed, size, command.confidence)
        for metric, scores, signed in scored
    ]


def describe(metric: Metric, scores: np.ndarray, signed: str, size: float, level: float) -> dict[str, Any]:
    """Return the entry of `metrics` for scores (systems, p) of sets of this size: means, and tests of all pairs."""
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
        **{name: getattr(metric, name) for name in ("name", "title", "unit", "better", "help")},
        "section": "quality" if metric.name.startswith("quality") else "diversity",
        "signature": signed,
        "values": values,
        "tests": tests,
        "order": order,
        "best": order[0] if is_first and metric.better is not None else None,
    }
