"""Chamfer diversity of one set from its parts: embeddings, compared block by block, and the sum of the unit vectors."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .core_distances import mean_pairwise_from_sum, unit_sum
from .core_encoder import embed_part
from .core_models import matrix_device
from .core_statistics import Arrays, SetParts


class ChamferParts(SetParts):
    """Embeddings of parts of a set, and the sum of their unit vectors."""

    replaces = False
    least = 2

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Embed some texts: `embeddings`, of shape (n, d), and `sum`, of shape (d,)."""
        embeddings, _ = embed_part(texts, self.settings)
        return {"embeddings": embeddings, "sum": unit_sum(embeddings, device=matrix_device(self.settings.device))}

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Concatenate embeddings and add up sums."""
        return {
            "embeddings": np.concatenate([part["embeddings"] for part in parts]),
            "sum": np.sum([part["sum"] for part in parts], axis=0),
        }

    def score(self, nearest: Iterable[np.ndarray], total: np.ndarray, n: int) -> dict[str, Any]:
        """Score the set of n texts, as `compute` does.

        Parameters
        ----------
        nearest : blocks of the cosines of all texts with their nearest neighbour
        total : ndarray of shape (d,), the sum of the unit vectors of the set
        """
        distances = sum(float(np.clip(1 - block, 0.0, 2.0).sum()) for block in nearest)
        return {"chamfer_diversity": distances / n, "mean_pairwise_distance": mean_pairwise_from_sum(total, n)}
