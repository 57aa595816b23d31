"""Which of two models is closer to people on the questions asked, and whether their answers are enough to tell."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

_DRAWS = 1_000
_SEED = 0
_NORMAL_95 = 1.96
# With fewer answers the interval is too narrow: models that answer alike are told apart more often than 1 time in 20.
_FEWEST = 10


class Comparison(NamedTuple):
    """Divergence of the other model less that of the first, in nats; above 0, the first is closer to people.

    n : number of answers of each model to each question, at which the models are compared
    low, high : 95% interval; None if people or a model gave fewer than 10 answers to a question
    """

    n: list[int]

    difference: float
    low: float | None
    high: float | None


def compare(first: Mapping[str, Any], other: Mapping[str, Any], sampling: ModuleType, *, debias: bool) -> Comparison:
    """Compare two models on the same questions, clusters and people.

    The interval is normal. Its standard deviation is that of the difference over samples of the same sizes, drawn from
    the smoothed distributions of people and of both models, in the clusters found, and scored as the metric scores
    them. It says how far chance in the answers could move the difference, not how the models compare on other
    questions. If one model gave more answers to a question, its divergence is the expected one of as many as the other
    model gave.

    Parameters
    ----------
    first, other : results of the metric with details
    sampling : the module of the metric that draws and scores samples
    debias : the setting of the metric
    """
    questions = list(zip(first["details"], other["details"], strict=True))
    n = [min(detail["n_answers"] for detail in details) for details in questions]
    scores = [
        [expected(detail, size, sampling, debias=debias) for detail in details]
        for details, size in zip(questions, n, strict=True)
    ]
    difference = float(np.diff(scores).mean())
    people = [sampling.sides(detail)[0] for detail, _ in questions]
    if min(*n, *(side.times.sum() for side in people)) < _FEWEST:
        return Comparison(n, difference, None, None)
    rng = np.random.default_rng(_SEED)
    drawn = np.zeros(_DRAWS)
    for details, size, of_people in zip(questions, n, people, strict=True):
        gold, gold_times = sampling.redrawn(of_people, _DRAWS, rng)
        for sign, detail in zip((-1, 1), details, strict=True):
            side = sampling.sides(detail)[1]
            model, times = sampling.redrawn(side._replace(times=side.times * size / side.times.sum()), _DRAWS, rng)
            drawn += sign * sampling.divergences(gold, model, gold_times, times, debias=debias)
    spread = _NORMAL_95 * float(drawn.std()) / len(questions)
    return Comparison(n, difference, difference - spread, difference + spread)


def expected(detail: Mapping[str, Any], size: int, sampling: ModuleType, *, debias: bool) -> float:
    """Return the expected divergence of `size` answers of a model, drawn without replacement."""
    gold, model = sampling.sides(detail)
    times = sampling.drawn_down(model, size, _SEED)
    return float(sampling.divergences(gold, model, gold.times[None], times, debias=debias).mean())


def verdict(comparison: Comparison, n_questions: int) -> str:
    """Say which model is closer, for these questions only."""
    where = "on this question" if n_questions == 1 else f"on these {n_questions} questions"
    if comparison.low is None or comparison.high is None:
        return f"There are too few answers to compare the models {where}."
    if comparison.low > 0:
        return f"Model 1 is closer to people {where}."
    if comparison.high < 0:
        return f"Model 2 is closer to people {where}."
    return f"The two models are too close to call {where}."


def caveat(comparison: Comparison, n_questions: int) -> str:
    """Say how sure the verdict is, and of what."""
    scope = (
        "One question does not rank models: another one may reverse the order."
        if n_questions == 1
        else "Other questions may reverse the order."
    )
    if comparison.low is None or comparison.high is None:
        return f"To compare two models takes at least {_FEWEST} answers of people and of each model. {scope}"
    low, high = _signed(comparison.low), _signed(comparison.high)
    least, most = min(comparison.n), max(comparison.n)
    n = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f"Divergence of model 2 less that of model 1, of {n} answers of each model: "
        f"{_signed(comparison.difference)} nats, 95% interval {low} to {high} for other samples of the answers. {scope}"
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
