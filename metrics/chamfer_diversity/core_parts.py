"""Statistics of the parts of one set, which merge: what a set too large for memory is scored from."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]

# Given text by text, or for many sets: meaningless for one set that is read in parts.
_NOT_FOR_PARTS = (
    *("embeddings", "similarity", "weights", "quality", "min_quality", "singletons"),
    *("classes", "contexts", "patience", "contributions", "rarefy", "repetition"),
)


class SetParts:
    """What a metric needs of the texts of one set: arrays for each part of the set, and how these merge.

    A metric that can score a set from its parts has a subclass of this. Its maths is in pure functions beside it.

    Parameters
    ----------
    metric : the loaded metric
    settings : arguments of its `compute`; those left out have the metric's defaults
    reference : the references of the set, where the metric has any

    Attributes
    ----------
    replaces : bool, whether the merged arrays stay small, so that they can replace the parts
    least : int, the number of texts below which the score is undefined
    """

    replaces = True
    least = 1

    def __init__(self, metric: Any, settings: Mapping[str, Any], reference: Any = None) -> None:
        known = inspect.signature(metric._compute).parameters.values()
        defaults = {one.name: one.default for one in known if one.default is not one.empty}
        self.metric, self.given, self.reference = metric, dict(settings), reference
        self.settings: dict[str, Any] = {**defaults, **settings}
        self._signature: str | None = None

    def check(self) -> None:
        """Raise a ValueError that names the setting if parts cannot be merged under these settings."""
        given = self.metric._with_flags(self.given)
        for name in _NOT_FOR_PARTS:
            if given.get(name, False) is not False:
                raise ValueError(f"{name} is not for one set in a file")

    def signature(self) -> str:
        """Return the signature of a small set under the same settings, which checks their values too."""
        if self._signature is None:
            self._signature = self.metric.compute(predictions=[["a", "b"]], **self.given)["signature"]
        return self._signature

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Compute the arrays of some texts of the set."""
        raise NotImplementedError

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Merge the arrays of several parts."""
        raise NotImplementedError
