"""Statistics of the parts of one set, which merge: what a set too large for memory is scored from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]


class SetParts:
    """What a metric needs of the texts of one set: arrays for each part of the set, and how these merge.

    A metric that can score a set from its parts has a subclass of this. Its maths is in pure functions beside it.

    Parameters
    ----------
    metric : the loaded metric
    given : settings of its `compute`
    reference : the references of the set, where the metric has any

    Attributes
    ----------
    replaces : bool, whether the merged arrays stay small, so that they can replace the parts
    least : int, the number of texts below which the score is undefined
    """

    replaces = True
    least = 1

    def __init__(self, metric: Any, given: Mapping[str, Any], reference: Any = None) -> None:
        self.metric, self.given, self.reference = metric, dict(given), reference
        self.settings = metric.settings.read(given, metric.name)
        self._signature: str | None = None

    def check(self) -> None:
        """Raise a ValueError that names the setting if parts cannot be merged under these settings."""
        self.settings.check_parts()

    def signature(self) -> str:
        """Return the signature of a small set under the same settings."""
        if self._signature is None:
            self._signature = self.metric.compute(predictions=[["a", "b"]], **self.given)["signature"]
        return self._signature

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Compute the arrays of some texts of the set."""
        raise NotImplementedError

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Merge the arrays of several parts."""
        raise NotImplementedError
