"""Agreement of metrics, of the judge and of single persons with people."""

from typing import Any

import numpy as np

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE, Row, balanced_accuracy, choices
from text_metrics.commands.meta_eval.bootstrap import Draws
from text_metrics.commands.meta_eval.pairs import People

PERSON = "a person, with the other people"


def people_agreement(people: People, rows: list[Row]) -> list[dict[str, Any]]:
    """Compare the judge, each metric and each rule with people.

    A person is compared with the majority of the other people, where a tie counts half: the ceiling to expect of a
    metric.

    Returns
    -------
    list of dict : `name`; `majority`, the share of pairs on which it chooses as most people do; `balanced`, the mean of
    that share over the pairs of each verdict; `person`, the mean agreement with one person; an interval for each
    """
    draws = Draws(people.concepts)
    votes = people.votes.astype(float)
    n_people = votes.shape[1]
    majority = np.sign(votes.mean(axis=1) - 0.5) / 2 + 0.5
    chosen = {JUDGE: people.judge, **{row.name: choices(row, people) for row in rows}}
    chosen[FIRST_RULE] = np.zeros(len(votes))
    share_of_others = (
        (votes.sum(axis=1, keepdims=True) - votes) / (n_people - 1) if n_people > 1 else np.full(votes.shape, 0.5)
    )
    of_others = np.sign(share_of_others - 0.5) / 2 + 0.5
    rows_of_people = [
        {
            "name": PERSON,
            "people": n_people,
            **_share("majority", 1 - np.abs(votes - of_others).mean(axis=1), draws),
            **{"balanced": None, "balanced_interval": None},
            **_share("person", _pairwise(votes), draws),
        }
    ]
    for name, verdicts in chosen.items():
        agreed = 1 - np.abs(verdicts - majority)
        rows_of_people.append(
            {
                "name": name,
                **_share("majority", agreed, draws),
                **_balanced(agreed, majority, draws),
                **_share("person", 1 - np.abs(verdicts[:, None] - votes).mean(axis=1), draws),
            }
        )
    return rows_of_people


def _share(name: str, values: np.ndarray, draws: Draws) -> dict[str, Any]:
    return {name: float(values.mean()), f"{name}_interval": draws.interval(draws.means(values))}


def _balanced(agreed: np.ndarray, majority: np.ndarray, draws: Draws) -> dict[str, Any]:
    value, resampled = balanced_accuracy(agreed, majority, draws)
    if np.isnan(value):
        return {"balanced": None, "balanced_interval": None}
    return {"balanced": value, "balanced_interval": draws.interval(resampled)}


def _pairwise(votes: np.ndarray) -> np.ndarray:
    """Mean agreement of two people on each pair; (n,)."""
    n_people = votes.shape[1]
    if n_people < 2:
        return np.full(len(votes), np.nan)
    ones = votes.sum(axis=1)
    zeros = n_people - ones
    return (ones * (ones - 1) + zeros * (zeros - 1)) / (n_people * (n_people - 1))
