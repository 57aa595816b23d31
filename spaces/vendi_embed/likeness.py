"""How alike several sets are: mean similarities of their texts, and how many different sets there are in effect."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from _kit import sets
from _kit.show import panels, plots

# The permutation test of more texts would take seconds.
MOST_TEXTS = 240
# Sets drawn in the matrix, and sets whose repeats are listed.
MOST_SETS, MOST_REPEATS = 20, 12
_LEVEL = 0.05


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


def partition(vendi_embed: Any, texts: list[list[str]], vectors: np.ndarray | None) -> dict[str, Any] | None:
    """Divide the diversity of all texts into that within and that between the sets; None if it would take too long.

    `vectors` are the embeddings of all texts, (n, d); None to compare n-grams.
    """
    flat = [text for members in texts for text in members]
    if len(flat) > MOST_TEXTS:
        return None
    groups = [i for i, members in enumerate(texts) for _ in members]
    given = {"kernel": "ngram"} if vectors is None else {"embeddings": vectors}
    return vendi_embed.compute(predictions=flat, groups=groups, **given)


def in_words(n_sets: int, parts: dict[str, Any] | None) -> str:
    """Say how many different sets there are in effect."""
    if parts is None:
        return f"How many different sets there are is computed for at most {MOST_TEXTS} texts."
    p = parts["between_p"]
    found = "differ" if p < _LEVEL else "are not shown to differ"
    return (
        f"The {panels.in_words(n_sets)} sets count as {parts['between']:.2f}, where their texts, exchanged at random, "
        f"count as {parts['between_expected']:.2f}: they {found} (permutation test, p = {p:.3f})."
    )


def draw(
    vendi_embed: Any,
    texts: list[list[str]],
    whole: np.ndarray,
    places: Sequence[np.ndarray],
    vectors: np.ndarray | None,
) -> tuple[Any, str] | None:
    """Draw the mean similarities of the sets, with a caption; None for a single set."""
    if len(texts) < 2:
        return None
    drawn = mean_similarities(whole, places[:MOST_SETS])
    names = [sets.set_name(texts, i) for i in range(len(drawn))]
    caption = "Mean similarity of two texts: of different sets, and on the diagonal of one. "
    caption += in_words(len(texts), partition(vendi_embed, texts, vectors))
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
