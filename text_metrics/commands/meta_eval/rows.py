"""Score all sets by all metrics: one call of a metric for all rows that it returns."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from text_metrics import load
from text_metrics.commands.meta_eval.agreement import Row
from text_metrics.commands.meta_eval.raters import Rater, gruen_rater, read_rater
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_encoder import Encoded, EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_device, find_model, find_transformer
from text_metrics.metrics._core.core_tokens import token_batches

if TYPE_CHECKING:
    import torch

MIN_QUALITY = 0.5  # the middle of the range: not tuned
POOLINGS = ("mean", "cls", "pooler")


class Scoring(NamedTuple):
    """What to score by.

    model, precision, pooling : of the sentence encoder; pooling for a bare transformer
    cache_dir : cache of embeddings
    metrics : paths of metrics to score by besides ours, and 1 if higher is more diverse, -1 if lower is
    ratings : files with ratings of quality
    gruen : whether to rate by `gruen` too
    """

    model: str = DEFAULT_MODEL
    precision: str | None = None
    pooling: str | None = None
    cache_dir: Path | None = None
    metrics: Sequence[tuple[str, int]] = ()
    ratings: Sequence[Path] = ()
    gruen: bool = True


def all_rows(sets: list[list[str]], scoring: Scoring) -> tuple[list[Row], list[Rater], list[str]]:
    """Score all sets by all metrics, each text encoded once; returns also which metrics are left out, and why."""
    encoded = encode_texts([text for members in sets for text in members], scoring)
    raters = [read_rater(path, sets) for path in scoring.ratings]
    groups: list[tuple[str, Callable[[], Iterable[Row]]]] = [
        ("self_bleu", lambda: form_rows(sets)),
        ("vendi_embed (n-grams)", lambda: ngram_rows(sets)),
        ("vendi_embed and chamfer_diversity", lambda: embedding_rows(sets, encoded)),
        ("gruen", lambda: _gruen_rows(sets, encoded, scoring, raters)),
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
    return rows, raters, failures


def encode_texts(texts: list[str], scoring: Scoring) -> Encoded:
    """Embed texts, each different one once."""
    if scoring.pooling is not None:
        encoder = PooledTransformer(scoring.model, scoring.pooling, scoring.precision)
        encoded = encode(texts, EncoderSettings(model=encoder))
        return encoded._replace(signed=encoder.signed)
    settings = EncoderSettings(
        model=scoring.model,
        precision=scoring.precision,
        cache_dir=scoring.cache_dir,
        progress=sys.stderr.isatty() or None,
    )
    return encode(texts, settings)


class PooledTransformer:
    """Embed texts by a bare transformer, by the pooling that its authors used: SimCSE's is the pooler's output.

    Parameters
    ----------
    model : a folder, or an id on the Hugging Face Hub
    pooling : "mean" over a text's tokens, "cls" for the first token, or "pooler" for the model's own pooled output
    precision : torch dtype; as the model is stored if None
    """

    def __init__(self, model: str | os.PathLike[str], pooling: str, precision: str | None = None) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}. Got {pooling!r}.")
        files = find_transformer(model, "model")
        self.pooling = pooling
        self.device = find_device(None)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(files.path, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(
            files.path, local_files_only=True, dtype="auto" if precision is None else getattr(torch, precision)
        )
        if pooling == "pooler" and getattr(self._model, "pooler", None) is None:
            raise ValueError(f"pooling 'pooler' needs a model with a pooler. {files.identity} has none.")
        self._model.to(self.device).eval()
        stored = str(self._model.dtype).removeprefix("torch.")
        self.signed = {"model": files.identity, "pooling": pooling, "precision": stored}

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embed n texts; ndarray of shape (n, d), float32."""
        import torch

        # A RoBERTa's positions start after its padding index, so that it reads fewer tokens than it has positions.
        limit = min(self._tokenizer.model_max_length, self._model.config.max_position_embeddings - 2)
        ids = self._tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
        embeddings = np.empty((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for batch in token_batches(np.array([len(tokens) for tokens in ids]), self.device):
            padded = self._tokenizer.pad({"input_ids": [ids[i] for i in batch]}, return_tensors="pt").to(self.device)
            with torch.inference_mode():
                output = self._model(**padded)
            embeddings[batch] = self._pool(output, padded["attention_mask"]).float().cpu().numpy()
        return embeddings

    def _pool(self, output: Any, mask: "torch.Tensor") -> "torch.Tensor":
        if self.pooling == "pooler":
            return output.pooler_output
        if self.pooling == "cls":
            return output.last_hidden_state[:, 0]
        weights = mask.unsqueeze(-1).to(output.last_hidden_state.dtype)
        return (output.last_hidden_state * weights).sum(dim=1) / weights.sum(dim=1)


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
        yield Row(name, scores, sign, result["signature"], "form", original)


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
    """Score distances and Vendi on embeddings."""
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
    from text_metrics.metrics.vendi_embed.vendi_embed_settings import DEFAULT_SAME

    result = load("vendi_embed").compute(**given, kernel="classes", same=DEFAULT_SAME, q=[0, 1])
    yield from _rows_by_order("VS-Classes", result, with_model(result, encoded), "content")


def _gruen_rows(sets: list[list[str]], encoded: Encoded, scoring: Scoring, raters: list[Rater]) -> Iterator[Row]:
    if scoring.gruen:
        raters.insert(0, gruen_rater(sets, load("gruen"), scoring.cache_dir))
        yield from quality_rows(sets, encoded, raters[0])


def quality_rows(sets: list[list[str]], encoded: Encoded, rater: Rater) -> Iterator[Row]:
    """Score quality alone, and diversity weighted by it."""
    yield Row(
        f"{rater.name} alone", np.array([ratings.mean() for ratings in rater.ratings]), 1, rater.signature, "rule"
    )
    quality = [ratings.tolist() for ratings in rater.ratings]
    above = f"VS-Embed-0.5 of {rater.name} ≥ {MIN_QUALITY}"
    calls: list[tuple[str, str, str, dict[str, float]]] = [
        (f"{rater.name} × Chamfer", "chamfer_diversity", "quality_scores", {}),
        (f"{rater.name} × VS-Embed-0.5", "vendi_embed", "quality_scores", {"q": 0.5}),
        (above, "vendi_embed", "scores", {"q": 0.5, "min_quality": MIN_QUALITY}),
    ]
    for name, metric, key, settings in calls:
        result = load(metric).compute(predictions=sets, embeddings=encoded.embeddings, quality=quality, **settings)
        signature = f"{with_model(result, encoded)}|quality:({rater.signature})"
        yield Row(name, column(result[key]), 1, signature, "quality")


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
    return re.sub(r"embeddings:given\(\w+\)", lambda _: model, result["signature"])


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
