"""Group texts into classes, given the pairs that say the same.

The items that are grouped are the different texts of each set. Sets of equal size are grouped side by side, from blocks
of the rows of their matrices.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .core import LIMITS, TIE, batches_by_size, content_ranks, find_different, owners_of, starts_of

# From items (b, k) to a function that maps places of some of the k to whether these are the same as each: a bool array
# (b, places, k).
Same = Callable[[np.ndarray], Callable[[slice], np.ndarray]]


class Items(NamedTuple):
    """The different texts of each set, set after set, in the order in which a grouping visits them.

    first : ndarray of shape (u,), the first text of each item
    of_text : ndarray of shape (n,), the item of each text
    sizes : ndarray of shape (m,), the number of items of each set
    """

    first: np.ndarray
    of_text: np.ndarray
    sizes: np.ndarray


class Classes(NamedTuple):
    """The classes of the n texts of m sets.

    numbers : ndarray of shape (n,), the class of each text among the classes of all sets, in order of appearance
    counts : ndarray of shape (m,), the number of classes of each set
    sizes : ndarray of shape (m,), the number of texts of each set
    """

    numbers: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray

    @property
    def within_sets(self) -> np.ndarray:
        """The class of each text, numbered from 0 in each set: (n,)."""
        return self.numbers - np.repeat(starts_of(self.counts), self.sizes)

    def sums(self, values: np.ndarray | None = None) -> np.ndarray:
        """Sum values (n,) over the texts of each class, or count them: an array set after set."""
        return np.bincount(self.numbers, values, minlength=int(self.counts.sum()))


def different_texts(texts: list[str], sizes: np.ndarray, grouping: str, embeddings: np.ndarray | None = None) -> Items:
    """List the different texts of each set: in order of content for "complete", in the order given for "greedy".

    If embeddings, (n, d), are given, equal texts with different rows are different texts.
    """
    set_of = owners_of(sizes)
    ranks = content_ranks(texts)
    keys = set_of * (ranks.max(initial=0) + 1) + ranks
    contents = keys.tolist()
    if embeddings is not None:
        contents = [
            (key, hashlib.blake2b(row.tobytes()).digest()) for key, row in zip(contents, embeddings, strict=True)
        ]
    _, of_text = find_different(contents)
    first = np.unique(of_text, return_index=True)[1]
    if grouping != "greedy":
        order = _content_order(keys[first], None if embeddings is None else embeddings[first])
        first = first[order]
        of_text = np.argsort(order)[of_text]
    return Items(first, of_text, np.bincount(set_of[first], minlength=len(sizes)))


def _content_order(keys: np.ndarray, embeddings: np.ndarray | None) -> np.ndarray:
    """Sort items by integers (u,), then by the coordinates of their unit embeddings, then by index: (u,).

    The order is the same in each floating-point type and at each norm: coordinates within the tolerance are equal, and
    so are those between which a chain of such steps leads.
    """
    # The index at which each group of equal items begins.
    groups = np.searchsorted(np.sort(keys), keys)
    if embeddings is None:
        return np.argsort(groups, kind="stable")
    norms = np.sqrt(np.einsum("ij,ij->i", embeddings, embeddings, dtype=np.float64))
    for column in embeddings.T:
        tied = np.flatnonzero(np.bincount(groups)[groups] > 1)
        if not len(tied):
            break
        values = column[tied] / norms[tied]
        order = np.lexsort((values, groups[tied]))
        tied = tied[order]
        values = values[order]
        indices = np.arange(len(tied))
        starts = np.diff(groups[tied], prepend=-1) > 0
        splits = starts | (np.diff(values, prepend=-np.inf) > TIE)
        start_of_group = np.maximum.accumulate(np.where(starts, indices, 0))
        start_of_part = np.maximum.accumulate(np.where(splits, indices, 0))
        groups[tied] += start_of_part - start_of_group
    return np.argsort(groups, kind="stable")


def group(items: Items, same: Same, grouping: str) -> np.ndarray:
    """Assign each item to a class: (u,), numbered from 0 within each set.

    An item joins the first class that it fits, or founds one. With "complete" it fits if it is the same as all members
    of the class, with "greedy" if it is the same as the first of them.
    """
    labels = np.empty(len(items.first), dtype=np.int64)
    for _, rows in batches_by_size(items.sizes, LIMITS.block_rows):
        b, k = rows.shape
        compare = same(rows)
        step = max(1, LIMITS.block_rows**2 // rows.size)
        classes = np.zeros((b, k), dtype=np.int64)
        is_first = np.zeros((b, k), dtype=bool)
        offsets = np.arange(b)[:, None] * k
        for start in range(0, k, step):
            is_same = compare(slice(start, start + step))
            for i in range(start, min(start + step, k)):
                differs = ~is_same[:, i - start, :i]
                if grouping == "greedy":
                    differs &= is_first[:, :i]
                slots = (offsets + classes[:, :i])[differs]
                conflicts = np.bincount(slots, minlength=b * k).reshape(b, k)
                classes[:, i] = (conflicts == 0).argmax(axis=1)
                is_first[:, i] = ~(classes[:, :i] == classes[:, i, None]).any(axis=1)
        labels[rows] = classes
    return labels


def number_classes(labels: np.ndarray, sizes: np.ndarray) -> Classes:
    """Make the classes of m sets from labels (n,), int64 >= 0, equal for texts of one class within a set."""
    set_of = owners_of(sizes)
    _, first, inverse = np.unique(set_of * (labels.max(initial=0) + 1) + labels, return_index=True, return_inverse=True)
    return Classes(np.argsort(np.argsort(first))[inverse], np.bincount(set_of[first], minlength=len(sizes)), sizes)
