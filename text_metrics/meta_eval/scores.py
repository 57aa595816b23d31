"""Scores of sets by metrics, by quality, and by trivial rules."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from text_metrics import load
from text_metrics.core_api import DEFAULT_MODEL, SemanticEntropySettings, find_encoder
from text_metrics.loading import load_metric

MIN_QUALITY = 0.5  # the middle of the range: not tuned


class Column(NamedTuple):
    """The scores of all sets by one metric.

    values : a number for each set
    sign : 1 if higher is more diverse, -1 if lower is
    group : "form", "content", "quality", "own", or "rule" for trivial baselines
    """

    name: str
    values: Sequence[float] | np.ndarray
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
    values = pd.DataFrame({column.name: column.values for column in columns}, dtype=float)
    sets, names = np.nonzero(~np.isfinite(values.to_numpy()))
    if len(sets):
        raise ValueError(f"{values.columns[names[0]]} has no number for set {sets[0]} of {len(values)}.")
    return Scores(values, metrics[["sign", "group", "signature"]])


def score_sets(
    sets: list[list[str]],
    model: str = DEFAULT_MODEL,
    cache_dir: Path | None = None,
    paths: Sequence[str] = (),
    gruen: bool = True,
) -> Scores:
    """Score all sets by all metrics; `paths` are the user's metrics."""
    # Errors of user-supplied metrics show before the slow part.
    own_columns = [own_column(path, sets) for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        # Each text is encoded once for all metrics.
        encoder = {"model": model, "cache_dir": cache_dir or folder, "progress": sys.stderr.isatty()}
        columns = list(form_columns(sets))
        columns += content_columns(sets, encoder)
        if gruen:
            columns += quality_columns(sets, encoder)
    columns += own_columns
    columns += rule_columns(sets)
    return join_columns(columns)


def form_columns(sets: list[list[str]]) -> Iterator[Column]:
    """Score n-gram overlap, Distinct, Entropy, and Vendi on n-grams."""
    result = load("self_bleu").compute(predictions=sets, max_order=4, details=True)
    signature = result["signature"]
    values = pd.DataFrame(result["details"])
    # The original adds 1e-10 to the number of n-grams: of two sets without a repeat, the longer one wins. Only the
    # accuracies with ties to set 1 see so small a difference.
    totals = np.zeros(len(sets), dtype=np.int64)
    for i, members in enumerate(sets):
        for text in members:
            totals[i] += max(len(text.split()) - 3, 0)
    yield Column("self-BLEU-3", values["self_bleu_3"], -1, "form", signature.replace("order:4", "order:3"))
    yield Column("self-BLEU-4", values["self_bleu_4"], -1, "form", signature)
    yield Column("Distinct-4", values["distinct_4"] * totals / (totals + 1e-10), 1, "form", signature)
    yield Column("Entropy-2", values["entropy_2"], 1, "form", signature)
    yield from _vendi_columns("VS-ngram", "form", predictions=sets, kernel="ngram")


def content_columns(sets: list[list[str]], encoder: dict[str, Any]) -> Iterator[Column]:
    """Score distances, Vendi and the number of meanings on embeddings."""
    result = load("chamfer_diversity").compute(predictions=sets, details=True, **encoder)
    distances = pd.DataFrame(result["details"])["mean_pairwise_distance"]
    yield Column("self-CosSim", 1 - distances, -1, "content", result["signature"])
    yield Column("Chamfer", result["scores"], 1, "content", result["signature"])
    yield from _vendi_columns("VS-Embed", "content", predictions=sets, **encoder)
    if find_encoder(encoder["model"]).identity != find_encoder(DEFAULT_MODEL).identity:
        return  # The threshold of the classes is for cosines of the default model.
    threshold = SemanticEntropySettings(contexts=encoder.get("contexts")).threshold
    result = load("semantic_entropy").compute(predictions=sets, same=threshold, **encoder)
    yield Column("VS-Classes-0", result["n_classes_scores"], 1, "content", result["signature"])
    yield Column("VS-Classes-1", np.exp(result["scores"]), 1, "content", result["signature"])


def _vendi_columns(name: str, group: str, **settings: Any) -> Iterator[Column]:
    result = load("vendi_embed").compute(**settings, q=[0.5, 1, "inf"], details=True)
    for order, shown in {"0.5": "0.5", "1": "1", "inf": "∞"}.items():
        values = [detail["by_order"][order] for detail in result["details"]]
        yield Column(f"{name}-{shown}", values, 1, group, result["signature"])


def quality_columns(sets: list[list[str]], encoder: dict[str, Any]) -> Iterator[Column]:
    """Score quality alone, by gruen, and diversity weighted by it."""
    texts = list(dict.fromkeys(chain.from_iterable(sets)))
    rated = load("gruen").compute(predictions=texts, cache_dir=encoder["cache_dir"])
    ratings = dict(zip(texts, rated["scores"], strict=True))
    quality = []
    # The texts of sufficient quality; a set scores 0 if there is none.
    good = []
    for members in sets:
        quality.append([ratings[text] for text in members])
        good.append([text for text in members if ratings[text] >= MIN_QUALITY])
    yield Column("GRUEN alone", list(map(np.mean, quality)), 1, "rule", rated["signature"])
    signed = f"quality:({rated['signature']})"
    chamfer = partial(load("chamfer_diversity").compute, **encoder)
    vendi = partial(load("vendi_embed").compute, q=0.5, **encoder)
    for name, compute in (("Chamfer", chamfer), ("VS-Embed-0.5", vendi)):
        result = compute(predictions=sets, quality=quality)
        yield Column(f"GRUEN × {name}", result["quality_scores"], 1, "quality", f"{result['signature']}|{signed}")
    scores = np.zeros(len(sets))
    if any(good):
        result = vendi(predictions=list(filter(None, good)))
        scores[list(map(bool, good))] = result["scores"]
        signed = f"{result['signature']}|min_quality:{MIN_QUALITY}|{signed}"
        yield Column(f"VS-Embed-0.5 of GRUEN ≥ {MIN_QUALITY}", scores, 1, "quality", signed)


def rule_columns(sets: list[list[str]]) -> Iterator[Column]:
    """Score sets by trivial rules."""
    words = [" ".join(members).split() for members in sets]
    counts = np.array(list(map(len, words)), dtype=float)
    yield Column("rule: longer set", counts, 1, "rule", "number of words")
    yield Column("rule: shorter set", -counts, 1, "rule", "minus number of words")
    different_words = [set(map(str.casefold, words_of_set)) for words_of_set in words]
    distinct = np.array(list(map(len, different_words)), dtype=float)
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
        metric = load_metric(path)
        values = []
        try:
            for members in sets:
                result = metric.compute(predictions=members)
                values.append(float(result[metric.name]))
        except Exception as error:  # a user-supplied metric may raise anything
            needed = f"must score all sets, or give the texts of one set a number named {metric.name!r}"
            raise ValueError(f"--metric {path} {needed}. Got {type(error).__name__}: {error}") from error
    sign = -1 if metric.name in getattr(metric, "decreasing", ()) else 1
    return Column(metric.name, values, sign, "own", str(result.get("signature", path)))
