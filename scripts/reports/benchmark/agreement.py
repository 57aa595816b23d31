"""Comparison of the numbers of the two sides of a case."""

import math
from typing import NamedTuple

import numpy as np


class Values(NamedTuple):
    """Numbers that agree to a tolerance, absolute and relative."""

    tolerance: float

    def __str__(self) -> str:
        return f"the same numbers to {self.tolerance:g}" if self.tolerance else "the same numbers"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Return the largest difference, as text, and whether it is within bounds."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        close = np.allclose(ours, peer, rtol=self.tolerance, atol=self.tolerance)
        return f"{np.abs(ours - peer).max():.1g}", bool(close)


class Cosines(NamedTuple):
    """Embeddings with cosines near 1: the difference from 1 is at most `largest`, and in the mean at most `mean`."""

    largest: float = math.inf
    mean: float = math.inf

    def __str__(self) -> str:
        named = {"every one": self.largest, "their mean": self.mean}
        limits = [f"{name} within {limit:g}" for name, limit in named.items() if limit < math.inf]
        return f"cosines to the peer's embeddings of 1, {', '.join(limits)}"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Return the largest difference, as text, and whether it is within bounds."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        ours, peer = (side.astype(np.float64) for side in (ours, peer))
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(peer, axis=1)
        apart = np.maximum(1 - (ours * peer).sum(axis=1) / lengths, 0)
        distances = f"cosines {apart.max():.1g} from 1, {apart.mean():.1g} in the mean"
        return distances, bool(apart.max() <= self.largest and apart.mean() <= self.mean)
