"""The results of vendi_embed, named from the eigenvalues of each set, wherever these come from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .core import TIE, Spectra, format_order, rows_of, sum_by_set, vendi_scores
from .vendi_embed_settings import VendiSettings


def name_results(
    spectra: Sequence[Spectra],
    sizes: np.ndarray,
    settings: VendiSettings,
    summary: Any,
    weights: np.ndarray | None = None,
    quality: np.ndarray | None = None,
) -> dict[str, Any]:
    """Compute and name the results of m sets of n texts.

    spectra : of all sets
    sizes : ndarray of shape (m,), the number of texts of each set
    weights : ndarray of shape (n,), probabilities that sum to 1 within each set; uniform if None
    quality : ndarray of shape (n,), in [0, 1]
    """
    orders = [*settings.orders, 2.0] if settings.pairs else settings.orders
    all_scores = vendi_scores(spectra, len(sizes), orders)
    scores = all_scores[:, : len(settings.orders)]
    result = summary.of("vendi_embed", scores[:, 0])
    if settings.has_orders:
        result["by_order"] = _name_orders(settings.orders, scores.mean(axis=0))
    if quality is not None:
        shares = 1 / np.repeat(sizes, sizes) if weights is None else weights
        products = sum_by_set(quality * shares, sizes) * scores[:, 0]
        result |= summary.of("quality_vendi_embed", products, "quality_", bounds=(0.0, float))
    if settings.pairs:
        similarities = _pair_similarities(all_scores[:, -1], sizes)
        result |= summary.of_reciprocals("pairs", similarities, "pairs_")
    if settings.details:
        result["details"] = _describe_sets(spectra, sizes, scores, settings)
    return result


def _pair_similarities(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Compute the mean squared similarity of two different texts of each set: (m,), in [0, 1]; NaN for one text.

    With k_ii = 1, the mean over all pairs is 1 / V, for the Vendi score V at order 2, and pairs of a text with itself
    add 1 / n to it. The mean over the others is unbiased at any number of texts: it is a U-statistic. `scores`, (m,),
    are Vendi scores at order 2 without weights.
    """
    n_rest = np.where(sizes > 1, sizes - 1, np.nan)
    similarities = np.clip((sizes / scores - 1) / n_rest, 0, 1)
    return np.where(similarities < TIE**2, 0, similarities)


def _describe_sets(
    spectra: Sequence[Spectra], sizes: np.ndarray, scores: np.ndarray, settings: VendiSettings
) -> list[dict[str, Any]]:
    """Return the details of each set, with its scores at each order, (m, len(orders))."""
    eigenvalues: dict[int, list[float]] = {}
    for members, ascending in spectra:
        eigenvalues.update(zip(members.tolist(), ascending.flip(-1).tolist(), strict=True))
    columns = {
        "size": sizes.tolist(),
        "by_order": [_name_orders(settings.orders, row) for row in scores],
        "eigenvalues": [eigenvalues[i] for i in range(len(sizes))],
    }
    return rows_of(columns)


def _name_orders(orders: list[float], scores: np.ndarray) -> dict[str, float]:
    return dict(zip(map(format_order, orders), scores.tolist(), strict=True))
