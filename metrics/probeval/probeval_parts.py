"""ProbEval of one question from parts of its answers: how many answers went to the same clusters."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from .core_parts import Arrays, SetParts

_COLUMNS = ("clusters", "texts", "counts")


class AnswerParts(SetParts):
    """Counts of the answers that went to the same clusters; one answer stands for all of these."""

    def check(self) -> None:
        """Refuse the original's lookup of answers among all others by their first characters."""
        if self.settings["parity"] and self.settings["matcher"] == "wordnet":
            raise ValueError("parity=True with matcher='wordnet' matches answers by one another, and does not merge")
        super().check()

    def signature(self) -> str:
        """Return an empty string: the signature comes with the score."""
        return ""

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Match some answers: `clusters` and `texts`, each value as JSON, and `counts`."""
        details = self._compute(texts, details=True)["details"][0]
        rows = [(json.dumps(own["clusters"]), json.dumps(own["text"]), own["count"]) for own in details["assignments"]]
        return _count(rows)

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Add up the counts."""
        columns = ([part[name].tolist() for name in _COLUMNS] for part in parts)
        return _count([row for part in columns for row in zip(*part, strict=True)])

    def score(self, merged: Arrays, n: int) -> dict[str, Any]:
        """Score the answers that stand for all, with the counts of all."""
        columns = zip(merged["texts"].tolist(), merged["counts"].tolist(), strict=True)
        return self._compute([{"text": json.loads(text), "count": count} for text, count in columns])

    def _compute(self, answers: list[Any], **more: Any) -> dict[str, Any]:
        return self.metric.compute(predictions=[answers], references=[self.reference], **self.given, **more)


def _count(rows: Sequence[tuple[str, str, int]]) -> dict[str, np.ndarray]:
    first: dict[str, str] = {}
    times: dict[str, int] = {}
    for clusters, text, count in rows:
        first.setdefault(clusters, text)
        times[clusters] = times.get(clusters, 0) + count
    columns = (list(first), list(first.values()), list(times.values()))
    return {name: np.array(column) for name, column in zip(_COLUMNS, columns, strict=True)}
