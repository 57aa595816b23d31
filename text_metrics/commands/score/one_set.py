"""The Vendi score of a whole file, from a sum over its texts: the file is never in memory as a whole."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from text_metrics.commands.jobs.job import Done, score_valid_units
from text_metrics.commands.score.scoring import RowScorer
from text_metrics.commands.score.summary import merge_signatures
from text_metrics.commands.shared.sets import Unit
from text_metrics.metrics._core.core_results import Signature, format_order


def is_summed(scorer: RowScorer) -> bool:
    """Whether the score of the whole file follows from sums over its pieces; otherwise, its texts are one call."""
    is_vendi = scorer.command.one_set and scorer.metric.name == "vendi_embed" and not scorer.columns
    return is_vendi and scorer.settings.kernel == "embedding"


def sum_units(scorer: RowScorer, units: list[Unit]) -> Done:
    """Sum up the outer products of the embeddings of texts."""
    from text_metrics.metrics._core.core_encoder import encode
    from text_metrics.metrics._core.core_models import matrix_device
    from text_metrics.metrics._core.core_spectra import gram_sums

    def add_up(units: list[Unit]) -> np.ndarray:
        embeddings, *_ = encode([text for unit in units for text in unit.texts], scorer.settings)
        return gram_sums(embeddings, device=matrix_device(scorer.settings.device))

    signature = scorer.metric.compute(predictions=[["a", "b"]], **scorer.command.settings)["signature"]
    return [
        ({"signature": signature, "sums": sums, "n": sum(len(unit.texts) for unit in of_sums)}, [])
        for of_sums, sums in score_valid_units(add_up, units)
    ]


def score_sums(pieces: Iterable[Mapping[str, Any]], scorer: RowScorer) -> dict[str, Any]:
    """Score a set from the sums of its parts; returns the result."""
    from text_metrics.metrics._core.core_spectra import vendi_from_sums

    total, signature, n = np.zeros(()), "", 0
    for facts in pieces:
        total, n = total + facts["sums"], n + facts["n"]
        signature = merge_signatures(signature, facts["signature"])
    orders = scorer.settings.orders
    scores = vendi_from_sums(total, n, orders).tolist()
    by_order = {f"by_order_{format_order(q)}": score for q, score in zip(orders, scores, strict=True)}
    return {
        "vendi_embed": scores[0],
        "n_scores": 1,
        **(by_order if scorer.settings.has_orders else {}),
        "signature": str(Signature.parse(signature).merge(set_size=n)),
    }
