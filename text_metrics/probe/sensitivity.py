"""Change people's own distribution of answers step by step, and show how each score responds.

    text-metrics probe sensitivity targets.jsonl

The model gives people's answers, one wording for each cluster, with their frequencies; then a cluster is dropped, two
neighbouring ranks are swapped, or a share of the answers moves. Scores: probeval; ProtoQA's scores, for answers ranked
by frequency; and top-1 accuracy, whether the most common answer is in people's most common cluster.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from text_metrics.core_api import ranked_scores
from text_metrics.probe.annotators import cluster_counts, from_people, score_people
from text_metrics.probe.files import Report, Rows
from text_metrics.reporting.formats import number

RANKS = 5
SHARES = np.linspace(0, 1, 11)


def changes(shares: np.ndarray) -> dict[str, np.ndarray]:
    """Change a distribution step by step.

    Parameters
    ----------
    shares : ndarray of shape (c + 1,), of the clusters in order of size, and of wrong answers

    Returns
    -------
    dict from the name of a change to an ndarray of shape (steps, c + 1); ranks change if there are enough clusters
    """
    places = np.eye(len(shares))
    targets = {
        "a share moved to wrong answers": places[-1],
        "a share moved to all clusters equally": (1 - places[-1]) / (len(shares) - 1),
        "a share moved to the commonest cluster": places[0],
    }
    changed = {name: np.outer(1 - SHARES, shares) + np.outer(SHARES, target) for name, target in targets.items()}
    if len(shares) > RANKS:
        dropped = shares * (1 - places[:RANKS])
        changed["a cluster dropped"] = dropped / dropped.sum(axis=1, keepdims=True)
        swapped = np.tile(shares, (RANKS - 1, 1))
        for i, row in enumerate(swapped):
            row[[i, i + 1]] = shares[[i + 1, i]]
        changed["a rank swapped with the next"] = swapped
    return changed


def ranks(shares: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Score a distribution (c + 1,) by its ranks, against counts (c,) of clusters in order of size."""
    # Clusters without an answer are not ranked; answers of equal frequency keep the order of the clusters.
    ranking = [i for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
    matches = np.eye(len(shares), len(counts), dtype=bool)[ranking]
    scores = {f"ProtoQA {name}": value for name, value in ranked_scores(matches, counts).items()}
    return {"top-1 accuracy": float(ranking[0] == 0), **scores}


def respond(detail: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the scores of each step of each change of people's answers to a question."""
    counts = cluster_counts(detail)
    order = np.argsort(-counts, kind="stable")
    counts = counts[order]
    for name, steps in changes(np.append(counts / counts.sum(), 0.0)).items():
        samples = np.empty_like(steps)
        samples[:, [*order, -1]] = steps * counts.sum()
        for i, (shares, score) in enumerate(zip(steps, from_people(detail, samples), strict=True)):
            step = i / 10 if len(steps) == len(SHARES) else i + 1
            yield {"change": name, "step": step, "probeval": score, **ranks(shares, counts)}


def report(references: Rows, settings: dict[str, Any]) -> Report:
    """Average the scores of each step over the questions that have enough clusters; as `annotators.report`."""
    # Its import takes a second.
    from pandas import DataFrame

    result = score_people(references, settings)
    rows = [row for detail in result["details"] for row in respond(detail)]
    rows_of_changes = []
    sections = []
    for name, frame in DataFrame(rows).groupby("change", sort=False):
        by_step = frame.drop(columns="change").groupby("step")
        means = by_step.mean()
        n = int(by_step.size().iloc[0])
        steps = means.index.tolist()
        rows_of_changes.append({"change": name, "n_questions": n, "steps": steps, "scores": means.to_dict("list")})
        table = means.T.map(number, digits=3).rename(columns="{:g}".format)
        sections.append((name.capitalize(), f"Mean over {n} questions.", table.reset_index(names="rank or share")))
    return {"signatures": [result["signature"]], "changes": rows_of_changes}, sections
