"""Whether the answers are enough for a verdict, and how a model compares with people at equal numbers of answers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from _kit import metric

# Answers of each side to each question; fewer give no verdict.
LEAST = 20
# At most so many answers are drawn of each side.
_MOST = 100
_DRAWS = 200
_SEED = 0
# No verdict if the divergence of other people exceeds this share of the largest one.
_LARGEST_NOISE = 0.5
# Upper bounds of how far a model is from people, and of the coverage that it lacks, each as a share of the possible.
# Chosen by hand, so that small samples of people's own distribution are mostly in the first.
_BANDS = (
    (0.05, 0.15, "The model answers much as people do."),
    (0.15, 0.35, "The model answers somewhat differently from people."),
    (0.4, 0.6, "The model answers differently from people."),
)
_FARTHEST = "The model answers very differently from people."


class Ground(NamedTuple):
    """Expected results of n answers of the model and of n answers of other people, beside n answers of people.

    Each is a mean over questions and over draws without replacement. `largest` is the divergence of a model none of
    whose n answers match a cluster.

    n : number of answers to each question
    divergence, of_people, largest : in nats
    coverage, coverage_of_people : in [0, 1]
    """

    n: list[int]
    divergence: float
    of_people: float
    largest: float
    coverage: float
    coverage_of_people: float


def find(probeval: Any, result: Mapping[str, Any]) -> Ground | None:
    """Compare the model with people at equal numbers; None if a question has fewer than 20 answers of either side.

    People's answers to a question are divided in two at random, so that the model and other people are compared with
    the same half. The clusters are those of all answers. The result of the metric has details.
    """
    sampling, pipeline = (metric.part(probeval, f"probeval_{name}") for name in ("sampling", "pipeline"))
    rng = np.random.default_rng(_SEED)
    sizes, rows = [], []
    for detail in result["details"]:
        gold, model = sampling.sides(detail)
        people, said = (np.rint(side.times).astype(np.int64) for side in (gold, model))
        if min(people.sum(), said.sum()) < LEAST:
            return None
        n = min(int(people.sum()) // 2, int(said.sum()), _MOST)
        both = rng.multivariate_hypergeometric(people, 2 * n, _DRAWS)
        half = np.array([rng.multivariate_hypergeometric(drawn, n) for drawn in both])
        nobody = sampling.Side(np.array([n]), np.eye(len(model.smoothing))[-1:], model.smoothing)
        compared = (
            (model, rng.multivariate_hypergeometric(said, n, _DRAWS)),
            (gold._replace(smoothing=model.smoothing), both - half),
            (nobody, np.array([[n]])),
        )
        masses = (half @ gold.weights)[:, :-1]
        values = []
        for side, times in compared:
            hit = (times > 0).astype(float) @ pipeline.reached(side.weights) > 0
            values += [
                sampling.divergences(gold, side, half.astype(float), times.astype(float)).mean(),
                ((masses * hit).sum(axis=1) / masses.sum(axis=1)).mean(),
            ]
        sizes.append(n)
        rows.append(values)
    divergence, coverage, of_people, coverage_of_people, largest, _ = np.mean(rows, axis=0).tolist()
    return Ground(sizes, divergence, of_people, largest, coverage, coverage_of_people)


def verdict(ground: Ground) -> str:
    """Say how far the model is from people, in divergence and in coverage, whichever is farther; "" if unknown."""
    if ground.of_people > _LARGEST_NOISE * ground.largest or not ground.coverage_of_people:
        return ""
    lacking = 1 - ground.coverage / ground.coverage_of_people
    return next(
        (words for far, lacks, words in _BANDS if distance(ground) <= far and lacking <= lacks),
        _FARTHEST,
    )


def distance(ground: Ground) -> float:
    """Return where the model is between other people, 0, and a model that gives none of people's answers, 1."""
    return (ground.divergence - ground.of_people) / (ground.largest - ground.of_people)


def of_result(result: Mapping[str, Any]) -> Ground | None:
    """Read the comparison at equal numbers from a result of the demo."""
    return None if result["equal_numbers"] is None else Ground(**result["equal_numbers"])


def missing(ground: Ground | None, result: Mapping[str, Any]) -> str:
    """Say what a verdict takes; "" if there is one."""
    if ground is None:
        return _few(result)
    if not verdict(ground):
        return (
            "No verdict: people's answers differ so much from each other that other people would score "
            f"{ground.of_people:.2f} nats, and a model without any of their answers {ground.largest:.2f}."
        )
    return ""


def facts(ground: Ground) -> list[tuple[str, str, str]]:
    """Return the comparison at equal numbers: value, name and explanation of each fact."""
    low, high = min(ground.n), max(ground.n)
    n = f"{low}" if low == high else f"{low} to {high}"
    return [
        (
            f"{ground.divergence:.2f}",
            f"At {n} answers each",
            f"nats apart. Other people: {ground.of_people:.2f}. None of their answers: {ground.largest:.2f}.",
        ),
        (
            f"{ground.coverage:.0%}",
            f"Covered by {n}",
            f"of the model's answers. Other people: {ground.coverage_of_people:.0%}.",
        ),
    ]


def _few(result: Mapping[str, Any]) -> str:
    people = [sum(answer["count"] for answer in detail["gold_assignments"]) for detail in result["details"]]
    few = sum(min(sizes) < LEAST for sizes in zip(people, result["n_answers"], strict=True))
    if len(people) == 1:
        number = f"Here people gave {people[0]:,.0f} and the model {result['n_answers'][0]:,}."
    else:
        number = f"{few:,} of {len(people):,} questions have fewer."
    return f"No verdict: it takes at least {LEAST} answers of people and {LEAST} of the model. {number}"
