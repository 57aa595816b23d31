"""Compare models with people: each text is embedded once, and matched once to the clusters of its question."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from text_metrics.commands.shared.statistics import randomization_p
from text_metrics.metrics._core.core_results import mean_estimate, signature
from text_metrics.metrics.probeval.probeval_formats import Question, pair_rows, read_questions
from text_metrics.metrics.probeval.probeval_pipeline import (
    Clusters,
    Scored,
    ScoredQuestion,
    cluster,
    load_resources,
    match,
    score,
    summarize,
)
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings, resolve

UNIFORM, COMMONEST = "rule: uniform over clusters", "rule: always the commonest"
RULES = (UNIFORM, COMMONEST)
# Answers by whom they are from: name to question id to counts.
Answers = Mapping[str, Mapping[str, Counter[str]]]


# The clusters of a question, and the weights of all texts that anyone gave in answer to it, and then of the clusters
# themselves: ndarray of shape (u + c, c + 1), rows summing to 1, `wrong` last.
Matched = tuple[Clusters, np.ndarray]


class Scorer:
    """Scores answers to some questions by one pipeline of probeval.

    Parameters
    ----------
    references : people's answers, as probeval takes them, all with ids
    files : answers; questions without a reference are ignored
    settings : the pipeline, and how texts are embedded
    """

    def __init__(self, references: list[dict[str, Any]], files: Answers, settings: ProbevalSettings) -> None:
        given, gold, _ = pair_rows({row["id"]: [] for row in references}, references)
        self.questions = {question.name: question for question in read_questions(given, gold)}
        self.settings = resolve(settings, list(self.questions.values()))
        # The place of each text among the sorted texts of its question.
        self._places: dict[str, dict[str, int]] = {}
        for name, question in self.questions.items():
            texts = {text for answers in files.values() for text in answers.get(name, ())}.union(question.gold)
            self._places[name] = {text: i for i, text in enumerate(sorted(texts))}
        every_text = (text for places in self._places.values() for text in places)
        self._resources, signed = load_resources(every_text, self.settings)
        self.signature = signature("probeval", **self.settings.signed_pipeline(), **signed)
        self.matched = {name: self.match(question) for name, question in self.questions.items()}

    def match(self, question: Question) -> Matched:
        """Cluster the gold answers of a question, and match all texts of it."""
        with_texts = question._replace(answers=list(self._places[question.name]))
        clusters = cluster(with_texts, self.settings, self._resources)
        weights = match(with_texts, clusters, self.settings, self._resources)
        return clusters, np.vstack([weights, np.eye(weights.shape[1])[:-1]])

    def counts(self, name: str, answers: Mapping[str, int], matched: Matched) -> np.ndarray:
        """Count answers over all texts of a question, and none over its clusters: ndarray of shape (u + c,), int."""
        counts = np.zeros(len(matched[1]), dtype=np.int64)
        for text, count in answers.items():
            counts[self._places[name][text]] = count
        return counts

    def score(self, matched: Matched, counts: np.ndarray) -> Scored:
        """Score counts over all texts and clusters of a question."""
        (clusters, weights), said = matched, np.flatnonzero(counts)
        return score(counts[said].astype(np.float64), weights[said], clusters, self.settings)


def draw(counts: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a sample of answers without replacement; all of them if there are no more: counts of the same shape."""
    if counts.sum() <= size:
        return counts
    drawn = np.zeros_like(counts)
    said = np.flatnonzero(counts)
    drawn[said] = rng.multivariate_hypergeometric(counts[said], size)
    return drawn


def halve(question: Question, rng: np.random.Generator) -> tuple[Question, dict[str, int]]:
    """Split people's answers at random: the question with half of its gold answers, and the counts of the others.

    Clusters without a gold answer are gone.
    """
    cells = question.gold_counts.astype(np.int64)
    drawn = rng.multivariate_hypergeometric(cells.ravel(), (int(cells.sum()) + 1) // 2).reshape(cells.shape)
    rest = (cells - drawn).sum(axis=1)
    rows, columns = np.flatnonzero(drawn.sum(axis=1)), np.flatnonzero(drawn.sum(axis=0))
    gold = question._replace(
        gold=[question.gold[i] for i in rows],
        gold_counts=drawn[np.ix_(rows, columns)].astype(np.float64),
        clusters=question.clusters and [question.clusters[j] for j in columns],
    )
    return gold, {text: int(count) for text, count in zip(question.gold, rest, strict=True) if count}


def apply_rule(rule: str, matched: Matched, total: float) -> np.ndarray:
    """Return what a trivial rule answers: ndarray of shape (u + c,) with a given sum, over the clusters only."""
    clusters, weights = matched
    counts = clusters.counts.sum(axis=0)
    shares = np.full(len(counts), 1 / len(counts)) if rule == UNIFORM else np.arange(len(counts)) == counts.argmax()
    return np.concatenate([np.zeros(len(weights) - len(counts)), total * shares])


def rows(scorer: Scorer, files: Answers, level: float) -> list[dict[str, Any]]:
    """Score each file as it is, and the trivial rules with as many answers as people gave; the best first.

    Returns dicts with the results of `summarize`, an "interval" and the ids of the "questions".
    """
    table = []
    for title in (*files, *RULES):
        scored = []
        for name, matched in scorer.matched.items():
            if title in RULES:
                counts = apply_rule(title, matched, float(matched[0].counts.sum()))
            elif name in files[title]:
                counts = scorer.counts(name, files[title][name], matched)
            else:
                continue
            question = scorer.questions[name]._replace(counts=counts)
            scored.append(ScoredQuestion(question, *matched, scorer.score(matched, counts)))
        summary = summarize(scored)
        interval = mean_estimate(np.array(summary["scores"])).interval(level, (0.0, math.inf))
        names = [one.question.name for one in scored]
        table.append({"name": title, "questions": names, **summary, "interval": interval})
    return sorted(table, key=lambda row: row["probeval"])


def against_people(
    scorer: Scorer, files: Answers, rounds: int, seed: int, level: float, once: bool
) -> list[dict[str, Any]]:
    """Compare each file, and the trivial rules, with people at the same number of answers.

    In each round, people's answers are split at random: one half is the gold answers, the other half answers like a
    model. Of the two that are compared, the larger sample is drawn down to the size of the smaller, question by
    question. With `once`, each different answer of a sample counts once: for files that have lost how often an answer
    was given.

    Returns
    -------
    list of dicts, the closest to people first: "own" and "people" are mean divergences, "difference" is own - people
    """
    rng = np.random.default_rng(seed)
    most = 1 if once else np.iinfo(np.int64).max
    pairs: dict[str, dict[str, list[list[float]]]] = {title: defaultdict(list) for title in (*files, *RULES)}
    for name, question in scorer.questions.items():
        for _ in range(rounds):
            half, rest = halve(question, rng)
            matched = scorer.match(half)
            people = np.minimum(scorer.counts(name, rest, matched), most)
            for title, of_questions in pairs.items():
                if title in RULES:
                    samples = [apply_rule(title, matched, float(people.sum())), people]
                elif name in files[title]:
                    counts = np.minimum(scorer.counts(name, files[title][name], matched), most)
                    size = int(min(counts.sum(), people.sum()))
                    samples = [draw(sample, size, rng) for sample in (counts, people)]
                else:
                    continue
                of_questions[name].append([scorer.score(matched, sample).score for sample in samples])
    # All questions have the same number of rounds.
    table = [
        _test(title, np.array(list(of_questions.values())).mean(axis=1), level) for title, of_questions in pairs.items()
    ]
    return sorted(table, key=lambda row: row["difference"])


def _test(title: str, scores: np.ndarray, level: float) -> dict[str, Any]:
    """Test the mean difference of paired scores, ndarray of shape (n, 2)."""
    own, people = scores.mean(axis=0).tolist()
    differences = scores[:, 0] - scores[:, 1]
    return {
        "name": title,
        "n": len(differences),
        "own": own,
        "people": people,
        "difference": own - people,
        "interval": mean_estimate(differences).interval(level),
        "p": randomization_p(differences),
    }
