"""ProbEval of one question from parts of its answers: the weight of the answers in each cluster."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .core_statistics import Arrays, SetParts
from .probeval_pipeline import reached, score_sides, summarize
from .probeval_sampling import sides


class AnswerParts(SetParts):
    """The answers by kind: mean weights in the clusters, reached clusters and a count.

    All answers are one kind, because the score depends on the sum of their weights only. With `debias`, answers with
    the same weights are a kind.
    """

    def check(self) -> None:
        """Raise a ValueError for settings under which a score needs more than sums over the answers."""
        if self.settings.parity and self.settings.matcher == "wordnet":
            raise ValueError(
                "parity=True with matcher='wordnet' matches answers by each other, so parts cannot be merged."
            )
        if self.settings.smoothing == 0:
            raise ValueError("smoothing=0 makes the score of a part that misses a cluster infinite.")
        if self.settings.debias is True and self._divides_answers():
            raise ValueError(
                "debias leaves out each answer in turn, which needs the degrees of each different answer in soft "
                "clusters. Pass debias=False, or clusters that do not divide answers, such as clustering='hac'."
            )
        super().check()

    def _divides_answers(self) -> bool:
        try:
            return "|matcher:soft|" in self._compute([])["signature"]
        except (TypeError, ValueError):
            return False  # It is reported with the first batch.

    def signature(self) -> str:
        """Return an empty string: the signature comes with the score."""
        return ""

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Match some answers.

        Returns
        -------
        dict with "weights", ndarray of shape (k, c + 1), "reached", of shape (k, c), "counts", of shape (k,), and
        "example", of shape (1,), an answer as JSON
        """
        (detail,) = self._compute(texts, details=True)["details"]
        _, model = sides(detail)
        return self._by_kind(model.weights, reached(model.weights), model.times, json.dumps(texts[0]))

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Add up the counts, and the weights where all answers are one kind."""
        weights, reach, counts = (
            np.concatenate([part[name] for part in parts]) for name in ("weights", "reached", "counts")
        )
        return self._by_kind(weights, reach, counts, str(parts[0]["example"][0]))

    def score(self, merged: Arrays, n: int) -> dict[str, Any]:
        """Score the answers from their kinds."""
        # All results but those of the model's distribution are the same for any answer.
        example = [{"text": json.loads(str(merged["example"][0])), "count": n}]
        result = self._compute(example, details=True)
        gold, model = sides(result.pop("details")[0])
        model = model._replace(times=merged["counts"], weights=merged["weights"])
        scored = score_sides(gold, model, merged["reached"], self.settings)
        return {**result, **summarize([scored], [n])}

    def _by_kind(self, weights: np.ndarray, reach: np.ndarray, counts: np.ndarray, example: str) -> dict[str, Any]:
        if self.settings.debias:
            weights, kinds = np.unique(weights, axis=0, return_inverse=True)
        else:
            total = counts.sum()
            weights, kinds = (counts / total @ weights)[None], np.zeros(len(counts), dtype=np.intp)
        reached_by_kind = np.zeros((len(weights), reach.shape[1]), dtype=bool)
        np.logical_or.at(reached_by_kind, kinds, reach)
        return {
            "weights": weights,
            "reached": reached_by_kind,
            "counts": np.bincount(kinds, counts, len(weights)),
            "example": np.array([example]),
        }

    def _compute(self, answers: list[Any], **more: Any) -> dict[str, Any]:
        return self.metric.compute(predictions=[answers], references=[self.reference], **self.given, **more)
