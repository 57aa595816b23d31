"""Compare models with people, and with each other, at equal numbers of answers."""

import math
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.probe.cleaning import clean_counts
from text_metrics.commands.probe.scoring import Scorer, draw, halve
from text_metrics.commands.shared.statistics import randomization_p
from text_metrics.metrics._core.core_results import mean_estimate
from text_metrics.metrics.probeval.probeval_pipeline import Clusters, Scored

PEOPLE, UNIFORM, COMMONEST = "people", "rule: uniform over clusters", "rule: always the commonest"
RULES = (UNIFORM, COMMONEST)
_SAMPLES = 200

Answers = Mapping[str, Mapping[str, Counter[str]]]


class Comparing(NamedTuple):
    """How to compare.

    level : of the confidence intervals
    rounds : random draws, averaged
    clean : clean the models' answers first
    """

    level: float = 0.95
    rounds: int = 20
    seed: int = 0
    clean: bool = True


def masses(rule: str, clusters: Clusters, total: float) -> np.ndarray:
    """Return what a trivial rule answers: ndarray of shape (c,) with a given sum."""
    counts = clusters.counts.sum(axis=0)
    if rule == UNIFORM:
        return np.full(len(counts), total / len(counts))
    return np.where(np.arange(len(counts)) == counts.argmax(), total, 0.0)


def describe(scorer: Scorer, scored: Mapping[str, Scored], sizes: Mapping[str, int], level: float) -> dict[str, Any]:
    """Describe a sample of answers by the scores of its questions, over all questions and by slot."""
    slots = sorted({scorer.slots[name] for name in scored} - {""})
    result = _means(list(scored.values()))
    values = np.array([question_score.score for question_score in scored.values()])
    return {
        "n_questions": len(scored),
        "n_answers": [min(sizes.values()), max(sizes.values())],
        **result,
        "interval": mean_estimate(values).interval(level, (0.0, math.inf)),
        "by_slot": {
            slot: _means([question_score for name, question_score in scored.items() if scorer.slots[name] == slot])
            for slot in slots
        },
        "scores": {name: question_score.score for name, question_score in scored.items()},
    }


def _means(scored: list[Scored]) -> dict[str, Any]:
    wrong = [result.wrong_rate for result in scored if result.wrong_rate is not None]
    return {
        "n": len(scored),
        "probeval": float(np.mean([result.score for result in scored])),
        "coverage": float(np.mean([result.coverage for result in scored])),
        "wrong_rate": float(np.mean(wrong)) if wrong else None,
        "entropy": float(np.mean([result.model_entropy for result in scored])),
        "gold_entropy": float(np.mean([result.gold_entropy for result in scored])),
    }


def rows(scorer: Scorer, files: Answers, level: float) -> list[dict[str, Any]]:
    """Score each file as it is, and the trivial rules with as many answers as people gave; the best first."""
    table = []
    for title, answers in files.items():
        names = [name for name in answers if name in scorer.questions]
        if not names:
            raise ValueError(f"{title}: none of its questions is among the targets: {list(answers)[:3]!r}.")
        counts = {name: scorer.counts(name, answers[name]) for name in names}
        scored = {name: scorer.score(scorer.matched(name), counts[name]) for name in names}
        sizes = {name: int(vector.sum()) for name, vector in counts.items()}
        table.append({"name": title, **describe(scorer, scored, sizes, level)})
    for rule in RULES:
        scored, sizes = {}, {}
        for name in scorer.questions:
            clusters = scorer.matched(name).clusters
            sizes[name] = int(clusters.counts.sum())
            scored[name] = scorer.score_clusters(clusters, masses(rule, clusters, sizes[name]))
        table.append({"name": rule, **describe(scorer, scored, sizes, level)})
    return sorted(table, key=lambda row: row["probeval"])


def describe_second(
    references: list[dict[str, Any]], people: Mapping[str, Counter[str]], rng: np.random.Generator
) -> dict[str, Any]:
    """Find out whether a second sample of people's answers is, in fact, the first.

    Answers are paired with equal gold answers, each one once. A new sample repeats some answers and misses others, even
    if it is drawn from the gold answers themselves; the same answers do not. "overlap" is the share of answers with a
    partner, "expected" the mean share in samples drawn from the gold answers with replacement, and "same" is whether it
    is above that of all 200 such samples.
    """
    gold = {str(row["id"]): Counter[str]() for row in references}
    for row in references:
        for answer in row["answers"]:
            gold[str(row["id"])][answer["text"]] += int(answer["count"])
    same, total, drawn = 0, 0, np.zeros(_SAMPLES)
    for name, theirs in people.items():
        if name not in gold:
            continue
        second, first = (clean_counts({"": counts})[""] for counts in (theirs, gold[name]))
        same += (second & first).total()
        total += second.total()
        counts = np.array(list(first.values()))
        drawn += np.minimum(rng.multinomial(second.total(), counts / counts.sum(), _SAMPLES), counts).sum(axis=1)
    total = max(total, 1)
    return {"overlap": same / total, "expected": float(drawn.mean()) / total, "same": bool(same > drawn.max())}


def against_people(
    scorer: Scorer, files: Answers, people: Mapping[str, Counter[str]] | None, once: bool, how: Comparing
) -> list[dict[str, Any]]:
    """Compare each file, and the trivial rules, with people at the same number of answers.

    In each round, people's answers are split at random: one half is the gold answers, the other half answers like a
    model. With a second sample of people, all gold answers and that sample serve instead. Of the two that are compared,
    the larger sample is drawn down to the size of the smaller, question by question.

    Parameters
    ----------
    once : each different answer of a sample counts once: for files that have lost how often an answer was given

    Returns
    -------
    list of dicts, the closest to people first: "own" and "people" are mean divergences, "difference" is own - people
    """
    rng = np.random.default_rng(how.seed)
    titles = [*files, *RULES]
    sums: dict[str, dict[str, np.ndarray]] = {title: {} for title in titles}
    for name, question in scorer.questions.items():
        if people is not None and not people.get(name):
            continue
        for _ in range(how.rounds):
            if people is None:
                half, theirs = halve(question, rng)
                matched = scorer.match(half)
            else:
                matched, theirs = scorer.matched(name), people[name]
            others = _counts(scorer, name, theirs, once)
            for title in titles:
                if title in RULES:
                    own = masses(title, matched.clusters, float(others.sum()))
                    scored = [scorer.score_clusters(matched.clusters, own), scorer.score(matched, others)]
                elif name in files[title]:
                    counts = _counts(scorer, name, files[title][name], once)
                    size = int(min(counts.sum(), others.sum()))
                    scored = [scorer.score(matched, draw(sample, size, rng)) for sample in (counts, others)]
                else:
                    continue
                pair = np.array([side.score for side in scored])
                sums[title][name] = sums[title].get(name, 0) + pair / how.rounds
    table_rows = []
    for title in titles:
        table = np.array(list(sums[title].values()))
        names = list(sums[title])
        if not len(table):
            continue
        table_rows.append({"name": title, **difference(table, how.level, ("own", "people"))})
        table_rows[-1]["by_slot"] = {
            slot: table[[scorer.slots[name] == slot for name in names]].mean(axis=0).tolist()
            for slot in sorted({scorer.slots[name] for name in names} - {""})
        }
    return sorted(table_rows, key=lambda row: row["difference"])


def _counts(scorer: Scorer, name: str, answers: Mapping[str, int], once: bool) -> np.ndarray:
    counts = scorer.counts(name, answers)
    return np.minimum(counts, 1) if once else counts


def pairs(scorer: Scorer, files: Answers, how: Comparing) -> list[dict[str, Any]]:
    """Compare all pairs of files over the questions of both, the larger sample drawn down to the smaller."""
    rng = np.random.default_rng(how.seed)
    comparisons: list[dict[str, Any]] = []
    for first, second in combinations(files, 2):
        names = [name for name in files[first] if name in files[second] and name in scorer.questions]
        if not names:
            continue
        table = np.zeros((len(names), 2))
        for row, name in enumerate(names):
            both = [scorer.counts(name, files[title][name]) for title in (first, second)]
            size = int(min(counts.sum() for counts in both))
            for column, counts in enumerate(both):
                # All answers are always the same draw.
                times = 1 if counts.sum() <= size else how.rounds
                drawn = [scorer.score(scorer.matched(name), draw(counts, size, rng)).score for _ in range(times)]
                table[row, column] = np.mean(drawn)
        comparisons.append({"a": first, "b": second, **difference(table, how.level, ("a_mean", "b_mean"))})
    if comparisons:
        from scipy.stats import false_discovery_control

        adjusted = false_discovery_control([pair["p"] for pair in comparisons])
        for pair, value in zip(comparisons, adjusted.tolist(), strict=True):
            pair["p_adjusted"] = value
    return comparisons


def difference(table: np.ndarray, level: float, names: tuple[str, str]) -> dict[str, Any]:
    """Test the mean difference of the paired scores of n questions, an ndarray of shape (n, 2)."""
    first, second = table.T
    differences = first - second
    return {
        "n": len(differences),
        names[0]: float(first.mean()),
        names[1]: float(second.mean()),
        "difference": float(differences.mean()),
        "interval": mean_estimate(differences).interval(level),
        "p": randomization_p(differences),
    }
