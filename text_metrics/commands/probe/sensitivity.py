"""`text-metrics probe sensitivity`: how scores respond as answers move away from people's."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from text_metrics.commands.probe.comparing import Scorer
from text_metrics.commands.probe.files import Rows, Sections
from text_metrics.commands.shared.formats import number
from text_metrics.metrics.probeval.probeval_pipeline import Clusters, score
from text_metrics.metrics.probeval.probeval_protoqa import ranked_scores
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DESCRIPTION = """\
Change people's own distribution of answers step by step, and show how each score responds.

    text-metrics probe sensitivity targets.jsonl

The model gives people's answers, one wording for each cluster, with their frequencies; then a cluster is dropped, two
neighbouring ranks are swapped, or a share of the answers moves. Scores: probeval; those of ProtoQA, for answers ranked
by frequency; and top-1 accuracy, whether the most common answer is in people's most common cluster.
"""
RANKS = (1, 2, 3, 4, 5)
SHARES = tuple(np.linspace(0, 1, 11).round(2).tolist())


def drop(shares: np.ndarray, rank: int) -> np.ndarray:
    """Drop a cluster. Shares are of clusters in order of size, `wrong` last."""
    left = np.where(np.arange(len(shares)) == rank - 1, 0.0, shares)
    return left / left.sum()


def swap(shares: np.ndarray, rank: int) -> np.ndarray:
    """Swap the shares of a rank and of the next."""
    order = np.arange(len(shares))
    order[[rank - 1, rank]] = rank, rank - 1
    return shares[order]


def move(shares: np.ndarray, share: float, places: slice) -> np.ndarray:
    """Move a share of all answers to some places, in equal parts."""
    moved = (1 - share) * shares
    moved[places] += share / len(moved[places])
    return moved


# How shares are changed, what the levels are and which, and how many clusters a question needs.
CHANGES: dict[str, tuple[Callable[..., np.ndarray], str, tuple[float, ...], int]] = {
    "a cluster dropped": (drop, "its rank", RANKS, 5),
    "two ranks swapped": (swap, "rank, with the next", RANKS[:-1], 5),
    "to wrong answers": (partial(move, places=slice(-1, None)), "share moved", SHARES, 1),
    "to the uniform distribution": (partial(move, places=slice(-1)), "share moved", SHARES, 1),
    "to the commonest cluster": (partial(move, places=slice(1)), "share moved", SHARES, 1),
}


def respond(scorer: Scorer, clusters: Clusters, change: Callable[..., np.ndarray], level: float) -> dict[str, float]:
    """Score people's answers to a question after a change of the shares of its clusters: values by name."""
    counts = clusters.counts.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    ordered = Clusters([clusters.labels[i] for i in order], clusters.counts[:, order])
    shares = change(np.append(counts[order] / counts.sum(), 0.0), level)
    # What no answer is given to is not ranked; answers of equal frequency keep the order of the clusters.
    ranking = [i for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
    matches = np.eye(len(shares), len(counts), dtype=bool)[ranking]
    return {
        "probeval": score(shares * counts.sum(), np.eye(len(shares)), ordered, scorer.settings).score,
        "top-1 accuracy": float(ranking[0] == 0),
        **{f"ProtoQA {name}": value for name, value in ranked_scores(matches, counts[order]).items()},
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command: it has none of its own."""


def measure(arguments: argparse.Namespace, references: Rows, settings: ProbevalSettings) -> dict[str, Any]:
    """Score each level of each change, averaged over the questions that have clusters enough for all its levels."""
    scorer = Scorer(references, {}, settings)
    changes: list[dict[str, Any]] = []
    for title, (change, axis, levels, least) in CHANGES.items():
        wide = [clusters for clusters, _ in scorer.matched.values() if len(clusters.labels) >= least]
        if wide:
            scores = [[respond(scorer, clusters, change, level) for clusters in wide] for level in levels]
            curves = {name: [float(np.mean([row[name] for row in at])) for at in scores] for name in scores[0][0]}
            changes.append({"title": title, "axis": axis, "n": len(wide), "levels": [*levels], "curves": curves})
    if not changes:
        raise ValueError("no question has a cluster to change.")
    return {"signature": scorer.signature, "n_questions": len(scorer.questions), "changes": changes}


def sections(result: dict[str, Any]) -> Sections:
    """Lay the changes out."""
    parts: Sections = []
    for change in result["changes"]:
        step = 1 if len(change["levels"]) <= len(RANKS) else 2
        table = [[change["axis"], *(f"{level:g}" for level in change["levels"][::step])]]
        table += [[name, *(number(value, 3) for value in curve[::step])] for name, curve in change["curves"].items()]
        parts.append((change["title"].capitalize(), f"Mean over {change['n']} questions.", table))
    return parts
