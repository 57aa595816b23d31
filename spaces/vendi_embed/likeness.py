"""How alike several sets are: the mean similarities of their texts, and what each repeats the most."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from _kit import sets
from _kit.show import panels, plots

# Sets drawn in the matrix, and sets whose repeats are listed.
MOST_SETS, MOST_REPEATS = 20, 12


def mean_similarities(whole: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Average the similarities between the texts of m sets: (m, m); on the diagonal, of different texts of one set.

    Parameters
    ----------
    whole : ndarray of shape (n, n), the similarities of all texts
    places : the rows of the texts of each set; one of a single text has NaN on the diagonal
    """
    sizes = np.array([len(place) for place in places])
    member = np.zeros((len(places), len(whole)))
    for i, place in enumerate(places):
        member[i, place] = 1.0
    sums, pairs = member @ whole @ member.T, np.outer(sizes, sizes).astype(float)
    sums[np.diag_indices_from(sums)] -= [whole[place, place].sum() for place in places]
    pairs[np.diag_indices_from(pairs)] -= sizes
    return np.divide(sums, pairs, out=np.full_like(sums, np.nan), where=pairs > 0)


def draw(texts: list[list[str]], whole: np.ndarray, places: Sequence[np.ndarray]) -> tuple[Any, str] | None:
    """Draw the mean similarities of the sets, with a caption; None for a single set."""
    if len(texts) < 2:
        return None
    drawn = mean_similarities(whole, places[:MOST_SETS])
    names = [sets.set_name(texts, i) for i in range(len(drawn))]
    caption = "Mean similarity of two texts: of different sets, and on the diagonal of one."
    return plots.heat_map(drawn, names, what="set"), caption + sets.first_of(len(drawn), len(texts), "sets")


def repeats(texts: list[list[str]], classes: list[list[int]], most: int) -> tuple[str, str] | None:
    """List the largest group of each set that says the same, with a caption; None for a single set, or without any."""
    if len(texts) < 2 or not classes:
        return None
    blocks = []
    for i, (members, labels) in enumerate(zip(texts, classes, strict=True)):
        label, size = Counter(labels).most_common(1)[0]
        if size > 1:
            group = [(text, None) for text, other in zip(members, labels, strict=True) if other == label]
            blocks.append((size / len(members), f"{size} of {len(members)} texts", sets.set_name(texts, i), group, i))
    if not blocks:
        return None
    blocks.sort(key=lambda block: -block[0])
    shown = [(title, [(name, group, i % 2)]) for _, title, name, group, i in blocks[:MOST_REPEATS]]
    caption = "The largest group of each set, sets with the largest share first."
    return panels.groups(shown, most), caption + sets.first_of(len(shown), len(blocks), "sets")
