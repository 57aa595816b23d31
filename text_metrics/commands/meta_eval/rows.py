"""Score all sets by all metrics: one call of a metric for all rows that it returns."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics import load
from text_metrics.commands.meta_eval.agreement import Row
from text_metrics.commands.shared.files import read_objects
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model

MIN_QUALITY = 0.5  # the middle of the range: not tuned


class Scoring(NamedTuple):
    """What to score by.

    model, cache_dir : of the sentence encoder
    metrics : paths of metrics to score by besides ours, and 1 if higher is more diverse, -1 if lower is
    ratings : files with ratings of quality
    gruen : whether to rate by `gruen` too
    """

    model: Any = DEFAULT_MODEL
    cache_dir: Path | None = None
    metrics: Sequence[tuple[str, int]] = ()
    ratings: Sequence[Path] = ()
    gruen: bool = True


class Encoded(NamedTuple):
    """The embeddings of all texts, set after set, and the entries of a signature that name their model."""

    embeddings: np.ndarray
    signed: Mapping[str, Any]


class Rater(NamedTuple):
    """Ratings of the texts of all sets: for each set, a list of numbers in [0, 1]."""

    name: str
    ratings: list[list[float]]
    signature: str


def all_rows(sets: list[list[str]], scoring: Scoring) -> tuple[list[Row], list[str]]:
    """Score all sets by all metrics, each text encoded once; returns also which metrics are left out, and why."""
    settings = EncoderSettings(model=scoring.model, cache_dir=scoring.cache_dir, progress=sys.stderr.isatty() or None)
    encoded = Encoded(*encode([text for members in sets for text in members], settings)[:2])
    raters = [read_rater(path, sets) for path in scoring.ratings]
    groups: list[tuple[str, Callable[[], Iterable[Row]]]] = [
        ("self_bleu", lambda: form_rows(sets)),
        ("vendi_embed (n-grams)", lambda: ngram_rows(sets)),
        ("metrics of embeddings", lambda: embedding_rows(sets, encoded)),
        *([("gruen", lambda: quality_rows(sets, encoded, gruen_rater(sets, scoring)))] if scoring.gruen else []),
        *((rater.name, partial(quality_rows, sets, encoded, rater)) for rater in raters),
        *((path, partial(own_rows, path, direction, sets)) for path, direction in scoring.metrics),
        ("rules", lambda: rule_rows(sets)),
    ]
    rows: list[Row] = []
    failures = []
    for name, score in groups:
        try:
            for row in score():
                taken = row.name in {earlier.name for earlier in rows}
                rows.append(row._replace(name=f"{row.name} ({name})") if taken else row)
        except Exception as error:  # a metric of the caller may raise anything
            failures.append(f"{name}: {error}")
            print(f"{name} is left out: {error}", file=sys.stderr)
    return rows, failures


def gruen_rater(sets: list[list[str]], scoring: Scoring) -> Rater:
    """Rate texts by `gruen` at its defaults."""
    texts = list(dict.fromkeys(text for members in sets for text in members))
    result = load("gruen").compute(predictions=texts, cache_dir=scoring.cache_dir)
    rated = dict(zip(texts, result["scores"], strict=True))
    return Rater("GRUEN", [[rated[text] for text in members] for members in sets], result["signature"])


def read_rater(path: Path, sets: list[list[str]]) -> Rater:
    """Read ratings from JSON lines of `text` and `quality`, in [0, 1]; the file's name is that of the rater."""
    rated: dict[str, float] = {}
    signature = path.name
    for where, record in read_objects(path):
        text, quality = record.get("text"), record.get("quality")
        if not isinstance(text, str):
            raise ValueError(f"{where}: 'text' must be a string. Got {text!r:.80}.")
        if isinstance(quality, bool) or not isinstance(quality, (int, float)) or not 0 <= quality <= 1:
            raise ValueError(f"{where}: 'quality' must be a number in [0, 1]. Got {quality!r:.80}.")
        rated[text] = float(quality)
        signature = str(record.get("signature", signature))
    missing = [text for members in sets for text in members if text not in rated]
    if missing:
        raise ValueError(
            f"{path} does not rate {len(set(missing))} of the texts, such as {missing[0]!r:.80}. List them all by "
            "--list-texts FILE, and rate those."
        )
    return Rater(path.stem, [[rated[text] for text in members] for members in sets], signature)


def form_rows(sets: list[list[str]]) -> Iterator[Row]:
    """Score n-gram overlap, Distinct and Entropy."""
    result = load("self_bleu").compute(predictions=sets, max_order=4, details=True)
    for name, key, sign in (
        ("self-BLEU-3", "self_bleu_3", -1),
        ("self-BLEU-4", "self_bleu_4", -1),
        ("Distinct-4", "distinct_4", 1),
        ("Entropy-2", "entropy_2", 1),
    ):
        scores = column([detail[key] for detail in result["details"]])
        original = None
        if name == "Distinct-4":
            # The original adds 1e-10 to the number of n-grams: of two sets without a repeat, the longer one wins.
            totals = np.array([sum(max(len(text.split()) - 3, 0) for text in members) for members in sets])
            original = scores * totals / (totals + 1e-10)
        signature = result["signature"].replace("order:4", "order:3") if key.endswith("_3") else result["signature"]
        yield Row(name, scores, sign, signature, "form", original)


def _rows_by_order(name: str, result: dict[str, Any], signature: str, group: str) -> Iterator[Row]:
    """Make a row for each order of Vendi scores."""
    for order in result["details"][0]["by_order"]:
        scores = column([detail["by_order"][order] for detail in result["details"]])
        yield Row(f"{name}-{'∞' if order == 'inf' else order}", scores, 1, signature, group)


def ngram_rows(sets: list[list[str]]) -> Iterator[Row]:
    """Score Vendi on n-grams."""
    result = load("vendi_embed").compute(predictions=sets, q=[0.5, 1, "inf"], kernel="ngram", details=True)
    return _rows_by_order("VS-ngram", result, result["signature"], "form")


def embedding_rows(sets: list[list[str]], encoded: Encoded) -> Iterator[Row]:
    """Score distances, Vendi and the number of meanings on embeddings."""
    given = {"predictions": sets, "embeddings": encoded.embeddings, "details": True}
    result = load("chamfer_diversity").compute(**given)
    signature = with_model(result, encoded)
    similarity = column([1 - detail["mean_pairwise_distance"] for detail in result["details"]])
    yield Row("self-CosSim", similarity, -1, signature, "content")
    yield Row("Chamfer", column(result["scores"]), 1, signature, "content")
    result = load("vendi_embed").compute(**given, q=[0.5, 1, "inf"])
    yield from _rows_by_order("VS-Embed", result, with_model(result, encoded), "content")
    if encoded.signed["model"] != find_model(DEFAULT_MODEL).identity:
        return  # The threshold of the classes is for cosines of the default model.
    from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import DEFAULT_SAME

    result = load("semantic_entropy").compute(**given, same=DEFAULT_SAME)
    signature = with_model(result, encoded)
    yield Row("VS-Classes-0", column(result["n_classes_scores"]), 1, signature, "content")
    yield Row("VS-Classes-1", np.exp(column(result["scores"])), 1, signature, "content")


def quality_rows(sets: list[list[str]], encoded: Encoded, rater: Rater) -> Iterator[Row]:
    """Score quality alone, and diversity weighted by it."""
    quality = rater.ratings
    yield Row(f"{rater.name} alone", np.array([np.mean(row) for row in quality]), 1, rater.signature, "rule")
    calls: list[tuple[str, str, dict[str, float]]] = [
        ("Chamfer", "chamfer_diversity", {}),
        ("VS-Embed-0.5", "vendi_embed", {"q": 0.5}),
    ]
    for name, metric, settings in calls:
        result = load(metric).compute(predictions=sets, embeddings=encoded.embeddings, quality=quality, **settings)
        signature = f"{with_model(result, encoded)}|quality:({rater.signature})"
        yield Row(f"{rater.name} × {name}", column(result["quality_scores"]), 1, signature, "quality")
    # The texts of sufficient quality; a set scores 0 if there is none.
    good = [rating >= MIN_QUALITY for row in quality for rating in row]
    kept = [
        [text for text, rating in zip(*each, strict=True) if rating >= MIN_QUALITY]
        for each in zip(sets, quality, strict=True)
    ]
    scores = np.zeros(len(sets))
    if any(good):
        result = load("vendi_embed").compute(
            predictions=[texts for texts in kept if texts], embeddings=encoded.embeddings[good], q=0.5
        )
        scores[[bool(texts) for texts in kept]] = result["scores"]
        signature = f"{with_model(result, encoded)}|min_quality:{MIN_QUALITY}|quality:({rater.signature})"
        yield Row(f"VS-Embed-0.5 of {rater.name} ≥ {MIN_QUALITY}", scores, 1, signature, "quality")


def rule_rows(sets: list[list[str]]) -> Iterator[Row]:
    """Score sets by trivial rules."""
    words = [[word for text in members for word in text.split()] for members in sets]
    counts = np.array([float(len(words_of_set)) for words_of_set in words])
    yield Row("rule: longer set", counts, 1, "number of words", "rule")
    yield Row("rule: shorter set", -counts, 1, "minus number of words", "rule")
    distinct = [float(len({word.casefold() for word in words_of_set})) for words_of_set in words]
    yield Row("rule: more distinct words", np.array(distinct), 1, "number of different words", "rule")


def with_model(result: dict[str, Any], encoded: Encoded) -> str:
    """Put the model into a signature that reports given embeddings."""
    model = "|".join(f"{name}:{value}" for name, value in encoded.signed.items())
    return result["signature"].replace("embeddings:given", model)


def own_rows(path: str, direction: int, sets: list[list[str]]) -> list[Row]:
    """Score sets by any module of `evaluate`: in one call if it takes sets and returns `scores`, else one by one."""
    loaded = load_metric(path)
    name = loaded.name
    with contextlib.suppress(Exception):  # the metric may not take sets
        result = loaded.compute(predictions=sets)
        if isinstance(result.get("scores"), list) and len(result["scores"]) == len(sets):
            return [Row(name, column(result["scores"]), direction, str(result.get("signature", path)))]
    # A call that failed may have left the metric in an inconsistent state.
    loaded = load_metric(path)
    scores = []
    for members in sets:
        result = loaded.compute(predictions=members)
        numbers = {key: value for key, value in result.items() if isinstance(value, (int, float))}
        if name not in numbers and len(numbers) != 1:
            raise ValueError(f"it must return one number, or one named {name!r}. Got {', '.join(result) or 'nothing'}.")
        scores.append(numbers[name] if name in numbers else next(iter(numbers.values())))
    return [Row(name, column(scores), direction, str(result.get("signature", path)))]


def column(values: Sequence[float | None]) -> np.ndarray:
    """Convert the scores of all sets, and check that each is a finite number."""
    numbers = np.array(values, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"it returns no number for set {bad[0]} of {len(values)}. Got {values[bad[0]]!r}.")
    return numbers
