"""Scores of sets by metrics, ratings of quality, and trivial rules."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from text_metrics import load
from text_metrics.commands.shared.rows import read_rows
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import DEFAULT_SAME

MIN_QUALITY = 0.5  # the middle of the range: not tuned


class Column(NamedTuple):
    """The scores of all sets by one metric, an ndarray of shape (number of sets,).

    sign : 1 if higher is more diverse, -1 if lower is
    group : "form", "content", "quality", "own", or "rule" for what is there to be beaten
    """

    name: str
    values: np.ndarray
    sign: int
    group: str
    signature: str


class Scores(NamedTuple):
    """The scores of sets by all metrics.

    values : data frame with a row for each set and a column for each metric
    metrics : data frame with a row for each metric: `sign`, `group` and `signature`, as in `Column`
    """

    values: pd.DataFrame
    metrics: pd.DataFrame


def join_columns(columns: Sequence[Column]) -> Scores:
    """Join columns; raises a ValueError if two have one name, or if a value is not finite."""
    metrics = pd.DataFrame(columns).set_index("name")
    if (twice := metrics.index[metrics.index.duplicated()]).size:
        raise ValueError(f"two metrics are named {twice[0]!r}: rename a file or a metric of your own.")
    for column in columns:
        if (bad := np.flatnonzero(~np.isfinite(column.values))).size:
            raise ValueError(f"{column.name} has no number for set {bad[0]} of {len(column.values)}.")
    values = pd.DataFrame({column.name: column.values for column in columns})
    return Scores(values, metrics[["sign", "group", "signature"]])


class Rater(NamedTuple):
    """Ratings of texts in [0, 1], by text."""

    name: str
    ratings: dict[str, float]
    signature: str


def score_sets(
    sets: list[list[str]],
    model: str = DEFAULT_MODEL,
    cache_dir: Path | None = None,
    own: Sequence[str] = (),
    ratings: Sequence[Path] = (),
    gruen: bool = True,
) -> Scores:
    """Score all sets by all metrics; `own` are paths of metrics."""
    texts = list(dict.fromkeys(text for members in sets for text in members))
    # What may fail comes before what takes long.
    raters = [read_rater(path, texts) for path in ratings]
    own_columns = [own_column(path, sets) for path in own]
    with tempfile.TemporaryDirectory() as folder:
        # Each text is encoded once for all metrics.
        encoder = {"model": model, "cache_dir": cache_dir or folder, "progress": sys.stderr.isatty() or None}
        columns = [*form_columns(sets), *content_columns(sets, encoder)]
        if gruen:
            rated = load("gruen").compute(predictions=texts, cache_dir=encoder["cache_dir"])
            raters.insert(0, Rater("GRUEN", dict(zip(texts, rated["scores"], strict=True)), rated["signature"]))
        for rater in raters:
            columns += quality_columns(sets, rater, encoder)
    return join_columns([*columns, *own_columns, *rule_columns(sets)])


def read_rater(path: Path, texts: Sequence[str]) -> Rater:
    """Read ratings from JSON lines of `text` and `quality`; the file names the rater."""
    rated: dict[str, float] = {}
    signature = path.name
    for where, record in read_rows(path):
        text: Any = record.get("text")
        quality: Any = record.get("quality")
        is_number = isinstance(quality, (int, float)) and not isinstance(quality, bool)
        if not isinstance(text, str) or not is_number or not 0 <= quality <= 1:
            got = f"Got {text!r:.80} and {quality!r:.80}."
            raise ValueError(f"{where}: 'text' must be a string, and 'quality' a number in [0, 1]. {got}")
        rated[text] = float(quality)
        signature = str(record.get("signature", signature))
    if missing := set(texts) - rated.keys():
        raise ValueError(
            f"{path} must rate every text of the sets. It lacks {len(missing)}, such as {min(missing)!r:.80}."
        )
    return Rater(path.stem, rated, signature)


def form_columns(sets: list[list[str]]) -> Iterator[Column]:
    """Score n-gram overlap, Distinct, Entropy, and Vendi on n-grams."""
    result = load("self_bleu").compute(predictions=sets, max_order=4, details=True)
    signature = result["signature"]
    values = {key: np.array([detail[key] for detail in result["details"]]) for key in result["details"][0]}
    # The original adds 1e-10 to the number of n-grams: of two sets without a repeat, the longer one wins. Only the
    # accuracies with ties to set 1 see so small a difference.
    totals = np.array([sum(max(len(text.split()) - 3, 0) for text in members) for members in sets])
    yield Column("self-BLEU-3", values["self_bleu_3"], -1, "form", signature.replace("order:4", "order:3"))
    yield Column("self-BLEU-4", values["self_bleu_4"], -1, "form", signature)
    yield Column("Distinct-4", values["distinct_4"] * totals / (totals + 1e-10), 1, "form", signature)
    yield Column("Entropy-2", values["entropy_2"], 1, "form", signature)
    yield from _vendi_columns("VS-ngram", "form", predictions=sets, kernel="ngram")


def _vendi_columns(name: str, group: str, **settings: Any) -> Iterator[Column]:
    """Score Vendi of each order."""
    result = load("vendi_embed").compute(**settings, q=[0.5, 1, "inf"], details=True)
    for order, shown in {"0.5": "0.5", "1": "1", "inf": "∞"}.items():
        values = np.array([detail["by_order"][order] for detail in result["details"]])
        yield Column(f"{name}-{shown}", values, 1, group, result["signature"])


def content_columns(sets: list[list[str]], encoder: dict[str, Any]) -> Iterator[Column]:
    """Score distances, Vendi and the number of meanings on embeddings."""
    result = load("chamfer_diversity").compute(predictions=sets, details=True, **encoder)
    similarity = np.array([1 - detail["mean_pairwise_distance"] for detail in result["details"]])
    yield Column("self-CosSim", similarity, -1, "content", result["signature"])
    yield Column("Chamfer", np.array(result["scores"]), 1, "content", result["signature"])
    yield from _vendi_columns("VS-Embed", "content", predictions=sets, **encoder)
    if find_model(encoder["model"]).identity != find_model(DEFAULT_MODEL).identity:
        return  # The threshold of the classes is for cosines of the default model.
    result = load("semantic_entropy").compute(predictions=sets, same=DEFAULT_SAME, **encoder)
    yield Column("VS-Classes-0", np.array(result["n_classes_scores"]), 1, "content", result["signature"])
    yield Column("VS-Classes-1", np.exp(result["scores"]), 1, "content", result["signature"])


def quality_columns(sets: list[list[str]], rater: Rater, encoder: dict[str, Any]) -> Iterator[Column]:
    """Score quality alone, and diversity weighted by it."""
    quality = [[rater.ratings[text] for text in members] for members in sets]
    yield Column(f"{rater.name} alone", np.array([np.mean(row) for row in quality]), 1, "rule", rater.signature)
    signed = f"quality:({rater.signature})"
    settings: dict[str, Any]
    for name, metric, settings in (("Chamfer", "chamfer_diversity", {}), ("VS-Embed-0.5", "vendi_embed", {"q": 0.5})):
        result = load(metric).compute(predictions=sets, quality=quality, **settings, **encoder)
        values = np.array(result["quality_scores"])
        yield Column(f"{rater.name} × {name}", values, 1, "quality", f"{result['signature']}|{signed}")
    # The texts of sufficient quality; a set scores 0 if there is none.
    good = [[text for text in members if rater.ratings[text] >= MIN_QUALITY] for members in sets]
    scores = np.zeros(len(sets))
    if any(good):
        result = load("vendi_embed").compute(predictions=list(filter(None, good)), q=0.5, **encoder)
        scores[list(map(bool, good))] = result["scores"]
        signed = f"{result['signature']}|min_quality:{MIN_QUALITY}|{signed}"
        yield Column(f"VS-Embed-0.5 of {rater.name} ≥ {MIN_QUALITY}", scores, 1, "quality", signed)


def rule_columns(sets: list[list[str]]) -> Iterator[Column]:
    """Score sets by trivial rules."""
    words = [" ".join(members).split() for members in sets]
    counts = np.array(list(map(len, words)), dtype=float)
    yield Column("rule: longer set", counts, 1, "rule", "number of words")
    yield Column("rule: shorter set", -counts, 1, "rule", "minus number of words")
    distinct = np.array([len({word.casefold() for word in words_of_set}) for words_of_set in words], dtype=float)
    yield Column("rule: more distinct words", distinct, 1, "rule", "number of different words")


def own_column(path: str, sets: list[list[str]]) -> Column:
    """Score sets by a module of `evaluate`: in one call if it returns `scores`, else one by one."""
    metric = load_metric(path)
    values: list[float] = []
    with suppress(Exception):  # the metric may not take sets
        result = metric.compute(predictions=sets)
        values = list(result["scores"])
    if len(values) != len(sets):
        # A call that failed may have left the metric in an inconsistent state.
        metric, values = load_metric(path), []
        try:
            for members in sets:
                result = metric.compute(predictions=members)
                values.append(float(result[metric.name]))
        except Exception as error:  # a metric of the caller may raise anything
            needed = f"must score all sets, or give the texts of one set a number named {metric.name!r}"
            raise ValueError(f"--metric {path} {needed}. Got {type(error).__name__}: {error}") from error
    sign = -1 if metric.name in getattr(metric, "decreasing", ()) else 1
    return Column(metric.name, np.array(values, dtype=np.float64), sign, "own", str(result.get("signature", path)))
