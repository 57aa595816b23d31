"""Show how the divergence of m people from all people falls with m.

    text-metrics probe annotators targets.jsonl --sizes 50 100 200 --setting clustering=soft

All people who answered a question stand for everyone: m people are drawn from them with replacement, and scored like a
model. A divergence between models that is not larger than this one needs more people.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from text_metrics import load
from text_metrics.core_api import count_answers, kl_divergence, parse_count, smooth
from text_metrics.probe.files import Report, Rows
from text_metrics.reporting.formats import number

SIZES = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
_DRAWS = 200
_TEXT = "{n_questions} questions with {n_people:.0f} people and {n_clusters:.1f} clusters each, mean over questions."


def score_people(references: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    """Score people's answers against themselves, with the details of each question."""
    for name in ("debias", "rarefy", "rarefy_people"):
        if settings.get(name):
            raise ValueError(f"{name} is for samples, and all people are the population here. Got {settings[name]}.")
    predictions = [count_answers(row["answers"]) for row in references]
    arguments = settings | {"details": True}
    return load("probeval").compute(predictions=predictions, references=references, **arguments)


def cluster_counts(detail: dict[str, Any]) -> np.ndarray:
    """Return how many people are in each cluster of a question, (c,)."""
    return np.array([cluster["count"] for cluster in detail["clusters"]], dtype=np.float64)


def from_people(detail: dict[str, Any], counts: np.ndarray) -> np.ndarray:
    """Compute the divergence from people of samples counted by cluster and wrong answers, (n, c + 1): (n,)."""
    people = np.array(list(detail["gold_distribution"].values()))
    smoothing = np.array(list(detail["smoothing"]["model"].values()))
    return kl_divergence(people, smooth(counts, smoothing))


def divergence(detail: dict[str, Any], m: int, rng: np.random.Generator) -> float:
    """Draw m people with replacement, and score them against all who answered a question: mean over draws."""
    counts = cluster_counts(detail)
    samples = rng.multinomial(m, counts / counts.sum(), size=_DRAWS).astype(np.float64)
    # The last column counts wrong answers, which people do not give.
    counts_of_draws = np.pad(samples, ((0, 0), (0, 1)))
    return float(from_people(detail, counts_of_draws).mean())


def report(references: Rows, settings: dict[str, Any], sizes: Sequence[int] = SIZES) -> Report:
    """Compute the divergence at some numbers of people; returns the numbers, and the printed sections."""
    parse_count(min(sizes), "--sizes")
    rng = np.random.default_rng(0)
    result = score_people(references, settings)
    details = result["details"]
    means = []
    for m in sizes:
        divergences = [divergence(detail, m, rng) for detail in details]
        means.append(float(np.mean(divergences)))
    numbers = {
        "signatures": [result["signature"]],
        "n_questions": len(details),
        "n_people": float(np.mean([cluster_counts(detail).sum() for detail in details])),
        "n_clusters": result["n_clusters"],
        "sizes": list(sizes),
        "scores": means,
    }
    table = {
        "m": list(map(str, sizes)),
        "KL(all ‖ m people)": [number(mean, 3) for mean in means],
    }
    return numbers, [("Divergence of m people from all", _TEXT.format(**numbers), table)]
