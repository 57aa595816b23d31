"""Compare a model with people at equal numbers of answers, through probeval's `compute`."""

from collections import Counter
from typing import Any

import numpy as np

from text_metrics import load
from text_metrics.commands.shared.statistics import randomization_p
from text_metrics.metrics._core.core_results import mean_estimate
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence, smooth


def score_people(references: list[dict[str, Any]], settings: dict[str, Any]) -> dict[str, Any]:
    """Score people's answers as if a model had given them, against themselves, with the details of each question."""
    for name in ("debias", "rarefy", "rarefy_people"):
        if settings.get(name):
            raise ValueError(f"{name} is for samples, and all people are the population here. Got {settings[name]}.")
    answers = [[{"text": answer["text"], "count": answer["count"]} for answer in row["answers"]] for row in references]
    return load("probeval").compute(predictions=answers, references=references, details=True, **settings)


def from_people(detail: dict[str, Any], counts: np.ndarray) -> np.ndarray:
    """Compute the divergence from people of samples counted by cluster and wrong answers, (n, c + 1): (n,)."""
    people, smoothing = (
        np.array(list(row.values())) for row in (detail["gold_distribution"], detail["smoothing"]["model"])
    )
    return kl_divergence(people, smooth(counts, smoothing))


def draw(counts: Counter[str], size: int, rng: np.random.Generator) -> dict[str, int]:
    """Draw a sample of answers without replacement; all of them if there are no more."""
    texts = sorted(counts)
    times = [counts[text] for text in texts]
    if sum(times) > size:
        times = rng.multivariate_hypergeometric(times, size).tolist()
    return {text: n for text, n in zip(texts, times, strict=True) if n}


def halve(reference: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], Counter[str]]:
    """Split people's answers at random: a reference with half of them, and the counts of the others."""
    answers = reference["answers"]
    counts = np.array([answer["count"] for answer in answers])
    drawn = rng.multivariate_hypergeometric(counts, (int(counts.sum()) + 1) // 2)
    half = [{**answer, "count": int(n)} for answer, n in zip(answers, drawn, strict=True) if n]
    rest: Counter[str] = Counter()
    for answer, n in zip(answers, counts - drawn, strict=True):
        rest[answer["text"]] += int(n)
    return {"answers": half}, rest


def against_people(
    metric: Any, answers: list[Counter[str]], references: list[dict[str, Any]], rounds: int, level: float
) -> dict[str, Any]:
    """Compare a model's answers with people's at the same number of answers.

    In each round, people's answers are split at random: one half is the gold answers, the other half answers like a
    model. The larger of the two samples is drawn down to the size of the smaller, question by question.

    Parameters
    ----------
    metric : `compute` of probeval, with its settings
    answers, references : the model's answers and people's, a question each

    Returns
    -------
    dict: "own" and "people" are mean divergences, "difference" is own - people, with an "interval" and the "p" of a
    paired randomization test over questions
    """
    # The splits are those of every other model.
    splits, draws = np.random.default_rng(0).spawn(2)
    samples, gold = [], []
    for own, reference in zip(answers, references, strict=True):
        for _ in range(rounds):
            half, people = halve(reference, splits)
            size = min(own.total(), people.total())
            samples += [{"answers": draw(counts, size, draws)} for counts in (own, people)]
            gold += [half, half]
    scores = metric(predictions=samples, references=gold)["scores"]
    own_scores, people_scores = np.reshape(scores, (-1, rounds, 2)).mean(axis=1).T
    differences = own_scores - people_scores
    return {
        "own": float(own_scores.mean()),
        "people": float(people_scores.mean()),
        "difference": float(differences.mean()),
        "interval": mean_estimate(differences).interval(level),
        "p": randomization_p(differences),
    }
