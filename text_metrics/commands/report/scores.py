"""The scores of the sets of all systems by each metric, and paired tests between systems."""

import math
import re
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.embedding import Encoder
from text_metrics.commands.report.systems import Prompts
from text_metrics.commands.shared.settings import load_metric
from text_metrics.commands.shared.statistics import TIE, holm, mean_test, smallest_difference
from text_metrics.metrics._core.core_inputs import mean_by_set
from text_metrics.metrics._core.core_results import UNBOUNDED, Bounds, mean_estimate, signature
from text_metrics.questions.rarefied import rarefied

# What spaces separate; each character of Chinese and Japanese, which are written without spaces.
_WORDS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
# Texts by which the time of gruen is estimated, and texts that are rated at a time.
_TIMED, _RATED_AT_ONCE = 64, 512
# Settings of the encoder that concern gruen, whose models are its own.
_OF_GRUEN = ("device", "batch_size", "cache_dir")
_POSITIVE = (0.0, math.inf)


class Metric(NamedTuple):
    """A number of each set, and how it is shown.

    better : "higher" or "lower"; None where neither is
    section : "diversity" or "quality"
    bounds : range of the number, of which the upper end may be a function of the number of texts
    """

    name: str
    title: str
    unit: str
    better: str | None
    section: str
    help: str
    bounds: Bounds


VENDI = Metric(
    *("vendi_embed", "Vendi score", "different texts in a set", "higher", "diversity"),
    "The effective number of texts of a set that mean different things: 1 if all mean the same.",
    (1.0, float),
)
MEANINGS = Metric(
    *("n_classes", "Meanings", "meanings in a set", "higher", "diversity"),
    "The number of groups of texts of a set that say the same, by a threshold on their similarity.",
    (1.0, float),
)
CHAMFER = Metric(
    *("chamfer_diversity", "Chamfer diversity", "cosine distance", "higher", "diversity"),
    "The mean distance of a text to the nearest other text of its set.",
    (0.0, 2.0),
)
SELF_BLEU = Metric(
    *("self_bleu", "Self-BLEU", "BLEU", "lower", "diversity"),
    "How much the texts of a set repeat each other's words: 1 if all are the same.",
    (0.0, 1.0),
)
DISTINCT = Metric(
    *("distinct", "Distinct-2", "share of pairs of words", "higher", "diversity"),
    "The share of different pairs of adjacent words among those of a set; it falls with the length of the texts.",
    (0.0, 1.0),
)
COMPRESSION = Metric(
    *("compression_ratio", "Compression ratio", "bytes for each compressed byte", "lower", "diversity"),
    "How many times smaller gzip makes the texts of a set; it rises with their length.",
    _POSITIVE,
)
LENGTH = Metric(
    *("length", "Length", "words", None, "diversity"),
    "The mean number of words of a text: no measure of diversity, but others depend on it.",
    _POSITIVE,
)
QUALITY_VENDI = Metric(
    *("quality_vendi_embed", "Quality × Vendi", "good different texts in a set", "higher", "quality"),
    "The mean quality of the texts of a set times its Vendi score.",
    _POSITIVE,
)


class Quality(NamedTuple):
    """The quality of each text, set after set, ndarray of shape (n,), and what rated it."""

    metric: Metric
    values: np.ndarray
    signature: str


def count_words(text: str) -> int:
    """Count the words of a text: what spaces separate, and each Chinese character and kana."""
    return len(_WORDS.findall(text))


class Scorer:
    """Scores the sets of all systems by one call of each metric."""

    def __init__(self, prompts: Prompts, encoder: Encoder, command: ReportCommand) -> None:
        self._prompts, self._encoder, self._command = prompts, encoder, command
        self._sets = [texts for sets in prompts.texts() for texts in sets]
        self._sizes = prompts.sizes.ravel()

    def quality(self) -> Quality | None:
        """Rate the texts, or read their ratings; None without quality."""
        name = self._command.quality_key
        if name is not None:
            members = [members for sets in self._prompts.sets for members in sets]
            values = np.array([value for texts in members for value in texts.quality or []])
            metric = Metric(
                "quality", name, "quality of a text", "higher", "quality", f"The column {name!r}.", UNBOUNDED
            )
            return Quality(metric, values, signature("quality", column=name))
        if self._command.quality != GRUEN:
            return None
        help = "The linguistic quality of a text: grammar, redundancy and focus; whether it makes sense is not rated."
        metric = Metric("quality", "GRUEN", "quality of a text", "higher", "quality", help, (0.0, 1.0))
        texts = [text for members in self._sets for text in members]
        ratings, signed = _rate(texts, self._encoder)
        return Quality(metric, np.array([ratings[text] for text in texts]), signed)

    def metrics(self, quality: Quality | None) -> list[dict[str, Any]]:
        """Score diversity and quality, in order of display; of quality in [0, 1], also its product with diversity."""
        weighted = quality is not None and bool(((quality.values >= 0) & (quality.values <= 1)).all())
        by_set = {}
        if quality is not None and weighted:
            parts = np.split(quality.values, np.cumsum(self._sizes)[:-1])
            by_set = {"quality": [part.tolist() for part in parts]}
        vendi = self._compute("vendi_embed", **self._encoder.settings, **by_set)
        meanings = self._compute("semantic_entropy", **self._encoder.meaning, **self._encoder.settings)
        chamfer = self._compute("chamfer_diversity", **self._encoder.settings)
        bleu = self._compute("self_bleu", repetition=True, details=True)
        columns = {name: [row[name] for row in bleu["details"]] for name in ("distinct_2", "compression_ratio")}
        lengths = np.array([count_words(text) for texts in self._sets for text in texts], dtype=np.float64)
        rows = [
            self.describe(VENDI, vendi["scores"], vendi["signature"]),
            self.describe(MEANINGS, meanings["n_classes_scores"], meanings["signature"]),
            self.describe(CHAMFER, chamfer["scores"], chamfer["signature"]),
            self.describe(SELF_BLEU, bleu["scores"], bleu["signature"]),
            self.describe(DISTINCT, columns["distinct_2"], bleu["signature"]),
            self.describe(COMPRESSION, columns["compression_ratio"], bleu["signature"]),
            self.describe(LENGTH, mean_by_set(lengths, self._sizes), signature("length", unit="words")),
        ]
        if quality is not None:
            rows.append(self.describe(quality.metric, mean_by_set(quality.values, self._sizes), quality.signature))
        if weighted:
            rows.append(self.describe(QUALITY_VENDI, vendi["quality_scores"], vendi["signature"]))
        return rows

    def describe(self, metric: Metric, scores: Sequence[float] | np.ndarray, signed: str) -> dict[str, Any]:
        """Return the entry of `metrics` for the scores of all sets, system after system: values, and tests of pairs."""
        by_system = np.asarray(scores, dtype=np.float64).reshape(len(self._prompts.sets), -1)
        level = self._command.confidence
        size = self._prompts.smallest or float(self._sizes[0])
        values = []
        for row in by_system:
            estimate = mean_estimate(row)
            interval = estimate.interval(level, metric.bounds, size)
            values.append({"mean": estimate.value, "interval": interval, "n": estimate.n, "scores": row.tolist()})
        tests = compare_all(by_system, level)
        order = np.argsort([value["mean"] * (1 if metric.better == "lower" else -1) for value in values], kind="stable")
        return {
            **{name: getattr(metric, name) for name in ("name", "title", "unit", "better", "section")},
            "signature": signed,
            "help": metric.help,
            "values": values,
            "tests": tests,
            "order": order.tolist(),
            "best": None if metric.better is None else _best(order.tolist(), tests, level),
        }

    def _compute(self, name: str, **settings: Any) -> dict[str, Any]:
        # Compression depends on the order of texts, which differs between a list and rows of one text.
        sets = [sorted(texts) for texts in self._sets] if name == "self_bleu" else self._sets
        metric, k = load_metric(name), self._prompts.smallest
        return metric.compute(predictions=sets, **settings) if k is None else rarefied(metric, sets, k, **settings)


def compare_all(scores: np.ndarray, level: float) -> list[dict[str, Any]]:
    """Test the mean paired difference of scores (systems, prompts) of all pairs of systems, with Holm's adjustment."""
    pairs = list(combinations(range(len(scores)), 2))
    tests = [mean_test(mean_estimate(paired_differences(scores[i], scores[j])), level) for i, j in pairs]
    for test in tests:
        # So are means.
        test["p"] = 1.0 if test["p"] is not None and abs(test["mean"]) < TIE else test["p"]
    adjusted = holm([test["p"] for test in tests])
    return [
        {"a": i, "b": j, "difference": test["mean"], "interval": test["interval"], "p": test["p"], "p_holm": p}
        for (i, j), test, p in zip(pairs, tests, adjusted, strict=True)
    ]


def paired_differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Subtract scores; those that differ by less than `TIE` are equal."""
    differences = first - second
    return np.where(np.abs(differences) < TIE, 0.0, differences)


def _best(order: list[int], tests: list[dict[str, Any]], level: float) -> int | None:
    """Return the first system if its tests against all others hold."""
    p_values = [test["p_holm"] for test in tests if order[0] in (test["a"], test["b"])]
    holds = bool(p_values) and all(p is not None and p < 1 - level for p in p_values)
    return order[0] if holds else None


def power(metrics: Sequence[dict[str, Any]], level: float) -> list[dict[str, Any]]:
    """Return for each metric the smallest mean difference that its tests show at 80 % power.

    It is that of the pair of systems whose differences vary most, without Holm's adjustment.
    """
    rows = []
    for metric in metrics:
        scores = np.array([value["scores"] for value in metric["values"]])
        errors = [mean_estimate(paired_differences(scores[test["a"]], scores[test["b"]])) for test in metric["tests"]]
        known = [smallest_difference(estimate, level) for estimate in errors if estimate.error > 0]
        if known:
            rows.append({"metric": metric["name"], "difference": max(known)})
    return rows


def _rate(texts: Sequence[str], encoder: Encoder) -> tuple[dict[str, float], str]:
    """Rate each different text once by gruen; how long that takes is said before."""
    unique = sorted(set(texts), key=lambda text: (len(text), text))
    gruen = load_metric("gruen")
    settings = {name: encoder.settings[name] for name in _OF_GRUEN if name in encoder.settings}
    # Texts of all lengths first, by which the time of the others is known.
    sample = unique[:: max(1, len(unique) // _TIMED)]
    rest = sorted(set(unique) - set(sample), key=lambda text: (len(text), text))
    # The first text loads the models.
    results = [gruen.compute(predictions=sample[:1], **settings)]
    began = time.monotonic()
    if sample[1:]:
        results.append(gruen.compute(predictions=sample[1:], **settings))
    if rest and not encoder.quiet:
        seconds = (time.monotonic() - began) / max(1, len(sample) - 1) * len(rest)
        duration = f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} minutes"
        print(
            f"Rating {len(rest):,} texts by gruen takes about {duration}; --quality none leaves it out.",
            file=sys.stderr,
        )
    with tqdm(total=len(rest), desc="Rating", unit="text", disable=encoder.quiet or not rest) as bar:
        for start in range(0, len(rest), _RATED_AT_ONCE):
            part = rest[start : start + _RATED_AT_ONCE]
            results.append(gruen.compute(predictions=part, **settings))
            bar.update(len(part))
    scores = [score for result in results for score in result["scores"]]
    return dict(zip([*sample, *rest], scores, strict=True)), results[-1]["signature"]
