"""Score many samples of answers to the same questions: each text is embedded once, and matched once to the clusters."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from text_metrics.metrics._core.core_results import signature
from text_metrics.metrics.probeval.probeval_formats import Question, pair_rows, read_questions
from text_metrics.metrics.probeval.probeval_pipeline import (
    Clusters,
    Scored,
    cluster,
    load_resources,
    match,
    score,
)
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings, resolve


class Matched(NamedTuple):
    """The clusters of a question, and the clusters of all texts that anyone gave in answer to it.

    weights : ndarray of shape (u, c + 1), rows summing to 1, `wrong` last
    """

    clusters: Clusters
    weights: np.ndarray


class Scorer:
    """Scores answers to some questions by one pipeline of probeval.

    Parameters
    ----------
    references : people's answers, as probeval takes them, all with ids
    files : answers by whom they are from: name to question id to counts; questions without a reference are ignored
    settings : the pipeline, and how texts are embedded
    """

    def __init__(
        self,
        references: list[dict[str, Any]],
        files: Mapping[str, Mapping[str, Counter[str]]],
        settings: ProbevalSettings,
    ) -> None:
        given, gold, _ = pair_rows({str(row["id"]): [] for row in references}, references)
        self.references = gold
        self.slots = {row["id"]: row["slot"] for row in gold}
        self.questions = {question.name: question for question in read_questions(given, gold)}
        self.settings = resolve(settings, list(self.questions.values()))
        self.texts: dict[str, list[str]] = {}
        for name, question in self.questions.items():
            said = {text for answers in files.values() for text in answers.get(name, ())}
            self.texts[name] = sorted({*said, *question.gold})
        self._places = {name: {text: i for i, text in enumerate(texts)} for name, texts in self.texts.items()}
        texts = (text for texts_of_question in self.texts.values() for text in texts_of_question)
        self._resources, signed = load_resources(texts, self.settings)
        self.signature = signature("probeval", **self.settings.signed_pipeline(), **signed)
        self._matched: dict[str, Matched] = {}

    def counts(self, name: str, answers: Mapping[str, int]) -> np.ndarray:
        """Count answers over all texts of a question: ndarray of shape (u,), int."""
        counts = np.zeros(len(self.texts[name]), dtype=np.int64)
        for text, count in answers.items():
            counts[self._places[name][text]] = count
        return counts

    def match(self, question: Question) -> Matched:
        """Cluster the gold answers of a question, and match all texts of it."""
        with_texts = question._replace(answers=self.texts[question.name])
        clusters = cluster(with_texts, self.settings, self._resources)
        return Matched(clusters, match(with_texts, clusters, self.settings, self._resources))

    def matched(self, name: str) -> Matched:
        """Match all texts of a question to the clusters of all gold answers."""
        if name not in self._matched:
            self._matched[name] = self.match(self.questions[name])
        return self._matched[name]

    def score(self, matched: Matched, counts: np.ndarray) -> Scored:
        """Score counts over all texts of a question."""
        said = np.flatnonzero(counts)
        return score(counts[said].astype(np.float64), matched.weights[said], matched.clusters, self.settings)

    def score_clusters(self, clusters: Clusters, masses: np.ndarray) -> Scored:
        """Score masses over the clusters themselves, ndarray of shape (c,), or (c + 1,) with `wrong` last."""
        return score(masses, np.eye(len(masses), len(clusters.labels) + 1), clusters, self.settings)


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
        clusters=None if question.clusters is None else [question.clusters[j] for j in columns],
    )
    return gold, {text: int(count) for text, count in zip(question.gold, rest, strict=True) if count}
