"""Chamfer diversity of texts: how far each text of a set is from its nearest neighbour in meaning."""

from typing import Any

import evaluate
import numpy as np

from .chamfer_diversity_scores import measure
from .chamfer_diversity_settings import ChamferSettings
from .core import (
    ItemResult,
    ScoreSummary,
    SetMetric,
    TextSets,
    describe_results,
    describe_settings,
    find_scored_sets,
    lists_by_set,
    mean_by_set,
    mean_over_sets,
    parse_values,
    rows_of,
)

_DESCRIPTION = """\
How far is each text of a set, in meaning, from its nearest neighbour in the
set? Chamfer diversity is the mean of these cosine distances. It is 0 if every
text has a duplicate, and higher the further apart the texts are. It needs no
reference texts.
"""

_CITATION = """\
@inproceedings{zhang2025evaluating,
  title = {Evaluating the Evaluation of Diversity in Commonsense Generation},
  author = {Zhang, Tianhui and Peng, Bei and Bollegala, Danushka},
  booktitle = {Proceedings of the 63rd Annual Meeting of the Association for Computational Linguistics (Volume 1: Long
               Papers)},
  pages = {24258--24275},
  year = {2025},
  eprint = {2506.00514},
  archivePrefix = {arXiv},
  url = {https://aclanthology.org/2025.acl-long.1181}
}
"""

_KWARGS_DESCRIPTION = (
    describe_settings(ChamferSettings, "set", similarity="The distance of two texts is 1 - similarity.")
    + """
Returns:
    chamfer_diversity (`float`): mean over sets of the mean cosine distance from
        each text to its nearest neighbour in the set, in [0, 2]. Higher is more
        diverse. None if all sets are left out.
    mean_pairwise_distance (`float`): mean over sets of the mean cosine distance
        of all pairs (1 - self-CosSim), in [0, 2]. Higher is more diverse.
    scores (`list[float]`): Chamfer diversity of each set. None for a set that
        is left out.
    quality_chamfer_diversity (`float`), quality_scores (`list[float]`): only
        with `quality`. The same, with each text's distance multiplied by its
        quality, in [0, 2]. Higher is better and more diverse.
    n_singletons (`int`): only with `singletons="skip"`. Number of sets of one
        text.
    details (`list[dict]`): only with `details=True`. For each set
        `mean_pairwise_distance`, `distances` and `neighbours`: the index within
        the set, from 0, of each text's nearest neighbour, or of the first text
        whose distance is larger by at most 1e-6. None for a set that is left
        out.
"""
    + describe_results("set", {"": "chamfer_diversity", "quality_": "quality_chamfer_diversity"})
    + """
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
)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class ChamferDiversity(SetMetric, evaluate.Metric):
    """Mean distance of each text of a set to its nearest neighbour, from sentence embeddings."""

    bounds = (0.0, 2.0)
    settings = ChamferSettings
    item_results = (ItemResult("quality_scores", ("quality",), bounds=bounds),)

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://arxiv.org/abs/2506.00514"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def _score(
        self, sets: TextSets, settings: ChamferSettings, summary: ScoreSummary
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        quality = None if settings.quality is None else parse_values(settings.quality, sets, "quality")
        scored = find_scored_sets(sets, settings.singletons)
        distances, signed = measure(sets, scored, settings)

        scores = np.full(len(sets.sizes), np.nan)
        scores[scored] = mean_by_set(distances.nearest, sets.sizes[scored])
        result = summary.of("chamfer_diversity", scores)
        result["mean_pairwise_distance"] = mean_over_sets(distances.pairwise)
        if quality is not None:
            scored_quality = quality[np.repeat(scored, sets.sizes)]
            scores[scored] = mean_by_set(distances.nearest * scored_quality, sets.sizes[scored])
            result |= summary.of("quality_chamfer_diversity", scores, "quality_")
        if settings.singletons == "skip":
            result["n_singletons"] = int((~scored).sum())
        if settings.details:
            columns = {
                "mean_pairwise_distance": distances.pairwise.tolist(),
                "distances": lists_by_set(distances.nearest, sets.sizes[scored]),
                "neighbours": lists_by_set(distances.neighbours, sets.sizes[scored]),
            }
            result["details"] = rows_of(columns, scored)
        return result, signed
