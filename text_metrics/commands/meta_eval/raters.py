"""Raters of the quality of texts: `gruen`, ratings from a file, and how well they tell good texts from bad ones."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.meta_eval.agreement import LEVEL
from text_metrics.commands.meta_eval.generated_sets import Kinds, auc_by_kind
from text_metrics.commands.meta_eval.pairs import Pairs
from text_metrics.commands.shared.files import read_objects
from text_metrics.metrics._core.core_results import jackknife_estimate


class Rater(NamedTuple):
    """Ratings of the texts of all sets.

    ratings : for each set, an ndarray of shape (number of texts,), in [0, 1]
    """

    name: str
    ratings: list[np.ndarray]
    signature: str


def gruen_rater(sets: list[list[str]], gruen: Any, cache_dir: Path | None) -> Rater:
    """Rate texts by `gruen` at its defaults."""
    texts = list(dict.fromkeys(text for members in sets for text in members))
    result = gruen.compute(predictions=texts, cache_dir=cache_dir)
    return _rater("GRUEN", dict(zip(texts, result["scores"], strict=True)), sets, result["signature"])


def shortness_rater(sets: list[list[str]]) -> Rater:
    """Rate texts by how short they are: a trivial rule for the others to beat."""
    rated = {text: 1 / (1 + len(text.split())) for members in sets for text in members}
    return _rater("rule: shorter text", rated, sets, "1/(1+words)")


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
    return _rater(path.stem, rated, sets, signature)


def _rater(name: str, rated: dict[str, float], sets: list[list[str]], signature: str) -> Rater:
    return Rater(name, [np.array([rated[text] for text in members], dtype=float) for members in sets], signature)


def rate_raters(raters: list[Rater], pairs: Pairs | None, kinds: list[Kinds]) -> list[dict[str, Any]]:
    """Say how well raters tell good texts from bad ones, and how they agree with the judge's ratings of quality.

    `auc` is that of each generator and bad kind, and `judge` the correlation of a set's mean rating with the judge's.
    """
    judged = {} if pairs is None else judged_sets(pairs)
    results = []
    for rater in raters:
        means = np.array([ratings.mean() for ratings in rater.ratings])
        results.append(
            {
                "name": rater.name,
                "signature": rater.signature,
                "auc": {generator.name: auc_by_kind(generator, rater.ratings) for generator in kinds},
                "judge": {name: correlation(means[numbers], quality) for name, (numbers, quality) in judged.items()},
            }
        )
    return results


def judged_sets(pairs: Pairs) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """List the distinct sets whose quality the judge rated, with the mean of its ratings, by data set and part."""
    sets = {}
    for data in dict.fromkeys(pairs.data.tolist()):
        for part in ("", "high", "low"):
            where = (pairs.data == data) & ((pairs.parts == part) if part else True)
            if part and where.all():
                continue
            numbers = np.concatenate([pairs.first[where], pairs.second[where]])
            quality = pairs.quality[where].T.ravel()
            known = np.isfinite(quality)
            if known.sum() < 2:
                continue
            distinct, index = np.unique(numbers[known], return_inverse=True)
            means = np.bincount(index, weights=quality[known]) / np.bincount(index)
            sets[f"{data}, {part or 'all'}"] = (distinct, means)
    return sets


def correlation(first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """Return Spearman's correlation of two ndarrays of shape (n,), n >= 2, and its interval."""
    value = float(spearman(first, second))
    left_out = [float(spearman(np.delete(first, i), np.delete(second, i))) for i in range(len(first))]
    estimate = jackknife_estimate(value, np.array(left_out))
    return {"spearman": value, "interval": estimate.interval(LEVEL, (-1.0, 1.0)), "sets": len(first)}


def spearman(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
    """Spearman's rank correlation along an axis; 0 where one side is constant."""
    from scipy.stats import rankdata

    ranks = [rankdata(values, axis=axis) for values in (first, second)]
    centred = [ranked - ranked.mean(axis=axis, keepdims=True) for ranked in ranks]
    product = (centred[0] * centred[1]).sum(axis=axis)
    scale = np.sqrt((centred[0] ** 2).sum(axis=axis) * (centred[1] ** 2).sum(axis=axis))
    return np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
