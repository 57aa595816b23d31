"""`text-metrics probe sensitivity`: how scores respond as answers move away from people's."""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.probe.files import read_references
from text_metrics.commands.probe.output import add_report, check_report, write_outputs
from text_metrics.commands.probe.scoring import Scorer
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics.probeval.probeval_pipeline import Clusters
from text_metrics.metrics.probeval.probeval_protoqa import ranked_scores

DESCRIPTION = """\
Change people's own distribution of answers step by step, and show how each score responds.

    text-metrics probe sensitivity targets.jsonl --plot sensitivity.svg

The model gives people's answers, one wording for each cluster, with their frequencies; then a cluster is dropped, two
neighbouring ranks are swapped, or a share of the answers moves. Scores: probeval; those of ProtoQA, for answers ranked
by frequency; and top-1 accuracy, whether the most common answer is in people's most common cluster.
"""
RANKS = 5
SHARES = tuple(np.linspace(0, 1, 11).round(2).tolist())


def drop(shares: np.ndarray, rank: int) -> np.ndarray:
    """Drop a cluster; 0 is the first rank. Shares are of clusters in order of size, `wrong` last."""
    left = shares.copy()
    left[rank] = 0.0
    return left / left.sum()


def swap(shares: np.ndarray, rank: int) -> np.ndarray:
    """Swap the shares of a rank and of the next."""
    swapped = shares.copy()
    swapped[[rank, rank + 1]] = shares[[rank + 1, rank]]
    return swapped


def move(shares: np.ndarray, share: float, places: slice) -> np.ndarray:
    """Move a share of all answers to some places, in equal parts."""
    moved = (1 - share) * shares
    moved[places] += share / len(moved[places])
    return moved


to_first = partial(move, places=slice(1))
to_uniform = partial(move, places=slice(-1))
to_wrong = partial(move, places=slice(-1, None))


class Change(NamedTuple):
    """A way to change people's distribution.

    axis : what the levels are
    apply : from shares and a level to shares
    clusters : how many a question needs
    """

    title: str
    axis: str
    apply: Callable[[np.ndarray, Any], np.ndarray]
    levels: tuple[Any, ...]
    clusters: int


CHANGES = [
    Change("a cluster dropped", "its rank", drop, tuple(range(RANKS)), RANKS),
    Change("two ranks swapped", "rank, with the next", swap, tuple(range(RANKS - 1)), RANKS),
    Change("to wrong answers", "share moved", to_wrong, SHARES, 1),
    Change("to the uniform distribution", "share moved", to_uniform, SHARES, 1),
    Change("to the commonest cluster", "share moved", to_first, SHARES, 1),
]


def respond(scorer: Scorer, clusters: Clusters, shares: np.ndarray) -> dict[str, float]:
    """Score answers with given shares of the clusters, in order of size, and of `wrong`: values by name."""
    counts = clusters.counts.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    ordered = Clusters([clusters.labels[i] for i in order], clusters.counts[:, order])
    scored = scorer.score_clusters(ordered, shares * counts.sum())
    # What no answer is given to is not ranked; answers of equal frequency keep the order of the clusters.
    ranking = [i for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
    matches = np.eye(len(shares), len(counts), dtype=bool)[ranking]
    return {
        "probeval": scored.score,
        "top-1 accuracy": float(ranking[0] == 0),
        **{f"ProtoQA {name}": value for name, value in ranked_scores(matches, counts[order]).items()},
    }


def measure(scorer: Scorer) -> dict[str, Any]:
    """Score each level of each change, averaged over the questions that have clusters enough for all its levels."""
    changes: list[dict[str, Any]] = []
    for change in CHANGES:
        everyone = [scorer.matched(name).clusters for name in scorer.questions]
        wide = [clusters for clusters in everyone if len(clusters.labels) >= change.clusters]
        if not wide:
            continue
        rows = [
            [respond(scorer, clusters, change.apply(_people(clusters), level)) for level in change.levels]
            for clusters in wide
        ]
        curves = {
            key: np.mean([[scores[key] for scores in row] for row in rows], axis=0).tolist() for key in rows[0][0]
        }
        # Ranks are counted from 1.
        levels = [level + 1 for level in change.levels] if change.clusters > 1 else list(change.levels)
        changes.append({"title": change.title, "axis": change.axis, "n": len(wide), "levels": levels, "curves": curves})
    if not changes:
        raise ValueError("no question has a cluster to change.")
    return {"n_questions": len(scorer.questions), "scores": list(changes[0]["curves"]), "changes": changes}


def _people(clusters: Clusters) -> np.ndarray:
    counts = np.sort(clusters.counts.sum(axis=0))[::-1]
    return np.append(counts / counts.sum(), 0.0)


def add_parser(commands: Any) -> None:
    """Add the command."""
    add_report(commands, "sensitivity", "how scores respond as answers move away from people's", DESCRIPTION, run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    pipeline = check_report(arguments, [arguments.targets])
    result = measure(Scorer(read_references(arguments.targets), {}, pipeline))
    write_outputs(arguments, "sensitivity", "\n".join(lines(result)) + "\n", result)
    return 0


def lines(result: dict[str, Any]) -> list[str]:
    """Write a table for each change."""
    written = []
    for change in result["changes"]:
        picked = change["levels"] if len(change["levels"]) <= RANKS else change["levels"][::2]
        table = [[change["axis"], *(f"{level:g}" for level in picked)]]
        for name in result["scores"]:
            values = dict(zip(change["levels"], change["curves"][name], strict=True))
            table.append([name, *(f"{values[level]:.3f}" for level in picked)])
        written += [f"{change['title'].capitalize()}, {change['n']} questions:", "", *markdown_table(table), ""]
    return written[:-1]
