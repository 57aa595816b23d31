"""Chamfer diversity of texts: how far each text of a set is from its nearest neighbour in meaning."""

from typing import Any

import datasets
import evaluate
import numpy as np

from .chamfer_diversity_parts import ChamferParts
from .core_cache import TextCache as TextCache
from .core_encoder import EncoderSettings, embed_sets
from .core_inputs import (
    find_scored_sets,
    mean_by_set,
    mean_over_sets,
    parse_min_quality,
    parse_sets,
    parse_values,
    split_by_set,
    spread,
    sum_by_set,
)
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL, matrix_device
from .core_parts import SetParts as SetParts
from .core_results import SETS, confidence_interval, confidence_settings, format_sizes, parse_confidence, signature
from .core_spectra import mean_pairwise_distances, nearest_neighbours
from .core_trainer import TrainerMetric as TrainerMetric

_DESCRIPTION = """\
How far is each text of a set, in meaning, from its nearest neighbour in the set? Chamfer diversity is the mean of
these cosine distances: 0 if every text has a twin, higher the more each stands alone. It needs no reference.
"""

_CITATION = """\
@misc{zhang2025evaluating,
  title = {Evaluating the Evaluation of Diversity in Commonsense Generation},
  author = {Zhang, Tianhui and Peng, Bei and Bollegala, Danushka},
  year = {2025},
  eprint = {2506.00514},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2506.00514}
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[list[str]]` or `list[str]`): sets of texts; or texts that make one set or, with `set_size`,
        consecutive sets.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    embeddings (array of shape (n, d)): embeddings of all texts, all sets in turn, in place of the encoder's.
    quality (like `predictions`): quality of each text, in [0, 1].
    min_quality (`float`): with `quality`, only texts of at least this quality count, as if the others were not there.
    singletons (`"error"` or `"skip"`): what to do about a set of one text, which has no neighbour: refuse it, or leave
        it out of the mean, with None among the scores.
    confidence (`float`): level of a confidence interval, such as 0.95: a seeded bootstrap over sets.
    model (`str` or path): a sentence-transformers model. Default `"all-MiniLM-L6-v2"`, which needs no network.
    precision (`str`): `"float32"`, `"bfloat16"`, `"float16"` or, on the CPU, `"int8"` for the encoder. Default
        as stored, or what is as good (cosines above 0.999999) and faster.
    batch_size (`int`), device (`str`): of the encoder; they do not change the score.
    cache_dir (`str` or path): a folder that keeps embeddings, so that a text is encoded once, in whichever run. Not the
        `cache_dir` of `evaluate.load`, which is where the module's code goes.
    details (`bool`): add, for each set, its mean pairwise distance, and each text's neighbour and distance.
    progress (`bool`): show a bar; by default where logging is at INFO.

Returns:
    chamfer_diversity (`float`): mean over sets of the mean over texts of the cosine distance to the nearest other text
        of the set, in [0, 2]; higher is more diverse. With `min_quality`, 0 for a set of which one text counts or none.
    mean_pairwise_distance (`float`): mean over sets of the mean cosine distance of all pairs (1 - self-CosSim), in
        [0, 2]; higher is more diverse.
    scores (`list[float]`): the Chamfer diversity of each set.
    confidence_interval (`list[float]`): with `confidence`, `[low, high]` of the main score; None for fewer than two.
    quality_chamfer_diversity (`float`), quality_scores (`list[float]`): with `quality`, the same with each text's
        distance times its quality.
    quality_confidence_interval (`list[float]`): with `quality` and `confidence`, that of `quality_chamfer_diversity`.
    n_counted (`list[int]`): with `min_quality`, how many texts of each set count.
    n_singletons (`int`): with `singletons="skip"`, how many sets were left out.
    details (`list[dict]`): with `details=True`.
    signature (`str`): the settings that decide the score.

Raises:
    TypeError, ValueError: for input that cannot be scored; the message names the parameter and the item.

Examples:

    >>> import evaluate
    >>> chamfer_diversity = evaluate.load("metrics/chamfer_diversity")
    >>> result = chamfer_diversity.compute(predictions=[
    ...     ["A man walks his dog in the park.", "The couple take a train to the sea."],
    ...     ["A man walks his dog in the park.", "In the park, a man is walking his dog."],
    ... ])
    >>> [round(score, 2) for score in result["scores"]]
    [0.94, 0.03]
    >>> result = chamfer_diversity.compute(predictions=["yes", "aye", "no"], embeddings=[[1, 0], [1, 0], [0, 1]])
    >>> round(result["chamfer_diversity"], 2)
    0.33
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ChamferDiversity(TextMetric, evaluate.Metric):
    """Mean distance of each text of a set to its nearest neighbour, from sentence embeddings."""

    _items = SETS
    _parts = ChamferParts

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": datasets.Sequence(datasets.Value("string"))}),
                datasets.Features({"predictions": datasets.Value("string")}),
            ],
            reference_urls=["https://arxiv.org/abs/2506.00514"],
        )

    def _compute(
        self,
        *,
        predictions: Any,
        set_size: int | None = None,
        embeddings: Any = None,
        quality: Any = None,
        min_quality: float | None = None,
        singletons: str = "error",
        confidence: float | None = None,
        model: Any = DEFAULT_MODEL,
        precision: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: Any = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        sets = parse_sets(predictions, set_size)
        encoder = EncoderSettings(model, precision, batch_size, device, cache_dir, progress)
        scored = find_scored_sets(sets, singletons, "chamfer_diversity")
        qualities = None if quality is None else parse_values(quality, sets, "quality")
        counted = parse_min_quality(min_quality, qualities)
        level = parse_confidence(confidence)
        vectors, settings = embed_sets(sets, embeddings, encoder)

        where = matrix_device(device)
        counts = sets.sizes if counted is None else sum_by_set(counted.astype(np.int64), sets.sizes)
        # A set of which fewer than two texts count has nothing to compare, and scores 0.
        compared = scored & (counts > 1)
        texts = np.repeat(compared, sets.sizes)
        rows, sizes = np.flatnonzero(texts if counted is None else texts & counted), counts[compared]
        if len(rows) < len(vectors):
            vectors = vectors[rows]
        distances, neighbours = nearest_neighbours(vectors, sizes, device=where)

        def of_scored(values: np.ndarray) -> np.ndarray:
            found = np.zeros(len(sets.sizes))
            found[compared] = values
            return found[scored]

        pairwise = of_scored(mean_pairwise_distances(vectors, sizes, device=where))
        scores = of_scored(mean_by_set(distances, sizes))

        result: dict[str, Any] = {
            "chamfer_diversity": mean_over_sets(scores),
            "mean_pairwise_distance": mean_over_sets(pairwise),
            "scores": spread(scores.tolist(), scored),
        }
        if level is not None:
            result["confidence_interval"] = confidence_interval(level, scores)
        if qualities is not None:
            weighted = of_scored(mean_by_set(distances * qualities[rows], sizes))
            result["quality_chamfer_diversity"] = mean_over_sets(weighted)
            result["quality_scores"] = spread(weighted.tolist(), scored)
            if level is not None:
                result["quality_confidence_interval"] = confidence_interval(level, weighted)
        if counted is not None:
            result["n_counted"] = counts.tolist()
        if singletons == "skip":
            result["n_singletons"] = int((~scored).sum())
        if details:
            places = np.arange(len(sets.texts)) - np.repeat(np.cumsum(sets.sizes) - sets.sizes, sets.sizes)
            nearest_rows = rows[np.repeat(np.cumsum(sizes) - sizes, sizes) + neighbours]
            columns = (_by_set(distances, rows, sets.sizes), _by_set(places[nearest_rows], rows, sets.sizes))
            result["details"] = [
                None if mean is None else {"mean_pairwise_distance": mean, "distances": own, "neighbours": nearest}
                for mean, own, nearest in zip(spread(pairwise.tolist(), scored), *columns, strict=True)
            ]
        result["signature"] = signature(
            "chamfer_diversity",
            **settings,
            set_size=format_sizes(sets.sizes),
            **({} if min_quality is None else {"min_quality": float(min_quality)}),
            **confidence_settings(level),
        )
        return result


def _by_set(values: np.ndarray, rows: np.ndarray, sizes: np.ndarray) -> list[list]:
    """Put the values of the compared texts in their places, and None in the others: a list for each set."""
    found = np.full(sizes.sum(), None, dtype=object)
    found[rows] = values
    return [part.tolist() for part in split_by_set(found, sizes)]
