"""Distances to the nearest neighbour; scores, contributions and details from them."""

from typing import Any, NamedTuple

import numpy as np

from .chamfer_diversity_settings import ChamferSettings
from .core_distances import mean_pairwise_distances
from .core_inputs import TextSets, find_scored_sets, lists_by_set, mean_by_set, parse_values, sum_by_set
from .core_leave_one_out import expected_nearest, nearest_neighbours, nearest_without
from .core_models import matrix_device
from .core_rarefaction import large_enough
from .core_results import rows_of, spread
from .core_similarity import Similarities


class Counted(NamedTuple):
    """The texts that are compared with each other.

    all_sizes : ndarray of shape (m,), the number of texts of each set
    qualities : ndarray of shape (n,), of all texts; None without quality
    counts : ndarray of shape (m,), the number of texts of each set that count
    scored : ndarray of shape (m,), bool, the sets with a score
    several : ndarray of shape (m,), bool, the scored sets of which two or more texts count; other scored sets score 0
    rows : ndarray of shape (r,), the texts that count in these sets
    """

    all_sizes: np.ndarray
    qualities: np.ndarray | None
    counts: np.ndarray
    scored: np.ndarray
    several: np.ndarray
    rows: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts that count in each of the sets that are compared."""
        return self.counts[self.several]

    def by_set(self, values: np.ndarray) -> np.ndarray:
        """Place the values of the sets that are compared among all sets: (m,), 0 for the others."""
        placed = np.zeros(len(self.several))
        placed[self.several] = values
        return placed


def count_texts(sets: TextSets, settings: ChamferSettings) -> Counted:
    """Find the texts that count, and the sets that have a score."""
    qualities = None if settings.quality is None else parse_values(settings.quality, sets, "quality")
    is_counted = np.ones(len(sets.texts), dtype=bool)
    if settings.min_quality is not None:
        assert qualities is not None
        is_counted = qualities >= settings.min_quality
    counts = sum_by_set(is_counted.astype(np.int64), sets.sizes)
    if settings.rarefy is None:
        scored = find_scored_sets(sets, settings.singletons, "chamfer_diversity")
    else:
        scored = large_enough(settings.rarefy, counts)
    several = scored & (counts > 1)
    return Counted(
        sets.sizes, qualities, counts, scored, several, np.flatnonzero(is_counted & np.repeat(several, sets.sizes))
    )


class Distances(NamedTuple):
    """Cosine distances among the r texts that count.

    compared : embeddings of the texts, (r, d), or their similarities
    nearest : ndarray of shape (r,), the distance of each text to its nearest neighbour, expected ones with `rarefy`
    neighbours : ndarray of shape (r,), the place of that neighbour among the texts of the set that count; or None
    pairwise : ndarray of shape (m,), the mean over pairs of each set
    device : where they were computed
    """

    compared: np.ndarray | Similarities
    nearest: np.ndarray
    neighbours: np.ndarray | None
    pairwise: np.ndarray
    device: str


def measure(compared: np.ndarray | Similarities, counted: Counted, settings: ChamferSettings) -> Distances:
    """Measure the distances among the texts that count."""
    device, neighbours = matrix_device(settings.device), None
    if len(counted.rows) < len(compared):
        compared = compared[counted.rows]
    if settings.rarefy is not None:
        nearest = expected_nearest(compared, counted.sizes, settings.rarefy, device=device)
    else:
        nearest, neighbours = nearest_neighbours(compared, counted.sizes, device=device)
    if isinstance(compared, Similarities):
        pairwise = compared.mean_pairwise_distances()
    else:
        pairwise = mean_pairwise_distances(compared, counted.sizes, device=device)
    return Distances(compared, nearest, neighbours, counted.by_set(pairwise), device)


def score(distances: Distances, counted: Counted, factors: np.ndarray | None = None) -> np.ndarray:
    """Average over the texts of each set their distance, times a factor for each of all texts: (m,)."""
    values = distances.nearest if factors is None else distances.nearest * factors[counted.rows]
    return counted.by_set(mean_by_set(values, counted.sizes))


def contributions(
    distances: Distances, counted: Counted, scores: np.ndarray, factors: np.ndarray | None = None
) -> list[list[float | None]]:
    """Subtract the score of each set without a text from its own: 0 for a text that does not count.

    Parameters
    ----------
    scores : ndarray of shape (m,)
    factors : ndarray of shape (n,), by which the distances of texts were multiplied

    Returns
    -------
    a list for each set, with None for the texts of a set of fewer than three
    """
    counted_factors = None if factors is None else factors[counted.rows]
    # NaN if fewer than two of the texts that count remain: the score is then 0.
    without = nearest_without(distances.compared, counted.sizes, counted_factors, device=distances.device)
    whole = np.repeat(np.where(counted.scored, scores, 0.0), counted.all_sizes)
    rest = whole.copy()
    rest[counted.rows] = np.nan_to_num(without)
    is_defined = np.repeat(counted.all_sizes > 2, counted.all_sizes)
    return lists_by_set((whole - rest)[is_defined], counted.all_sizes, is_defined)


def describe_sets(distances: Distances, counted: Counted) -> list[dict[str, Any] | None]:
    """List for each set what `details` shows; None for a set without a score."""
    sizes = counted.all_sizes
    columns: dict[str, Any] = {
        "mean_pairwise_distance": spread(distances.pairwise[counted.scored].tolist(), counted.scored),
        "distances": lists_by_set(distances.nearest, sizes, counted.rows),
    }
    if distances.neighbours is not None:
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        starts = np.repeat(np.cumsum(counted.sizes) - counted.sizes, counted.sizes)
        nearest_rows = counted.rows[starts + distances.neighbours]
        columns["neighbours"] = lists_by_set(places[nearest_rows], sizes, counted.rows)
    return rows_of(columns, counted.scored)
