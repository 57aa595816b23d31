"""Classes of texts that say the same, found from pairs of texts.

Items are texts, of equal ones mostly the first. Items that are the same, directly or through others, make a component;
no class reaches beyond one, so components are grouped side by side, in batches of equal size, as sets are elsewhere.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_distances import BLOCK_ROWS
from .core_inputs import TextSets, batches_by_size, flatten
from .core_numbers import describe
from .core_similarity import Similarities, comparison

GROUPINGS = ("complete", "greedy")

# Tolerance of the comparison with a threshold: cosines of equal rows may differ from 1 by rounding.
_ROUNDING = 1e-9
# Entries of a matrix held at a time.
_ENTRIES = 2**22


class Items(NamedTuple):
    """The texts that are grouped, set after set: the different ones, or all.

    of_text : ndarray of shape (n,), the item of each text
    first : ndarray of shape (u,), the first text of each item
    sizes : ndarray of shape (m,), the number of items of each set
    """

    of_text: np.ndarray
    first: np.ndarray
    sizes: np.ndarray


class Components(NamedTuple):
    """Connected components of the items under the relation "the same".

    order : ndarray of shape (u,), the items sorted by component, and within one as they were
    sizes : ndarray of shape (c,), the number of items of each component
    pairs : ndarray of shape (e, 3), sorted: batch rank of the component, and the positions of both items in it
    """

    order: np.ndarray
    sizes: np.ndarray
    pairs: np.ndarray


class Classes(NamedTuple):
    """The class of each text.

    of_text : ndarray of shape (n,), numbered in each set from 0, in order of first appearance
    counts : ndarray of shape (m,), the number of classes of each set
    """

    of_text: np.ndarray
    counts: np.ndarray


def distinct_items(ranks: np.ndarray, sizes: np.ndarray, grouping: str = "complete") -> Items:
    """Return the items that a grouping visits, in its order: the different texts of each set, or all texts.

    Parameters
    ----------
    ranks : ndarray of shape (n,), as by `content_ranks`
    sizes : ndarray of shape (m,), the number of texts of each set
    grouping : "complete" visits different texts in order of content, "greedy" all texts in the order given, since
        without a text its duplicate would be visited later
    """
    if grouping == "greedy":
        rows = np.arange(len(ranks))
        return Items(rows, rows, sizes)
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    keys = set_of * (ranks.max(initial=0) + 1) + ranks
    _, first, of_text = np.unique(keys, return_index=True, return_inverse=True)
    return Items(of_text, first, np.bincount(set_of[first], minlength=len(sizes)))


def similar_pairs(
    compared: np.ndarray | Similarities,
    items: Items,
    threshold: float,
    *,
    device: str = "cpu",
    block_rows: int = BLOCK_ROWS,
) -> np.ndarray:
    """Find the pairs of items of one set whose similarity is at least a threshold.

    Parameters
    ----------
    compared : ndarray of shape (n, d), embeddings of all texts, rows non-zero; or similarities

    Returns
    -------
    ndarray of shape (e, 2), int64: items; memory grows with the number of pairs found
    """
    found = [np.empty((0, 2), dtype=np.int64)]
    for _, rows in batches_by_size(items.sizes, block_rows):
        k = rows.shape[1]
        step = k if rows.size <= block_rows else max(1, _ENTRIES // k)
        compare = comparison(compared, items.first[rows], device)
        for start in range(0, k, step):
            part = rows[:, start : start + step]
            # Only rows up to the last of this part, so that each pair is compared once.
            similarities = compare(slice(start, start + step), slice(start + step))
            same = torch.tril(similarities >= threshold - _ROUNDING, diagonal=start - 1)
            which, i, j = (index.cpu().numpy() for index in torch.nonzero(same, as_tuple=True))
            found.append(np.stack([part[which, i], rows[which, j]], axis=1))
    return np.concatenate(found)


def all_pairs(sizes: np.ndarray) -> np.ndarray:
    """List all pairs of items of one set: ndarray of shape (e, 2), the earlier first."""
    found = [np.empty((0, 2), dtype=np.int64)]
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        i, j = np.triu_indices(rows.shape[1], 1)
        found.append(np.stack([rows[:, i].ravel(), rows[:, j].ravel()], axis=1))
    return np.concatenate(found)


def link(sizes: np.ndarray, pairs: np.ndarray) -> Components:
    """Find the connected components of items that are the same.

    Parameters
    ----------
    sizes : ndarray of shape (m,), the number of items of each set
    pairs : ndarray of shape (e, 2), items of one set that are the same
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n_items = int(sizes.sum())
    ones = np.ones(len(pairs), dtype=bool)
    graph = sparse.coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_items, n_items))
    _, label = connected_components(graph, directed=False)
    order = np.lexsort((np.arange(n_items), label, np.repeat(np.arange(len(sizes)), sizes)))
    new = np.flatnonzero(np.diff(label[order], prepend=-1))
    own_sizes = np.diff(new, append=n_items)
    position = np.argsort(order)[pairs]
    component = np.searchsorted(new, position[:, :1], side="right") - 1
    # The order in which `batches_by_size` yields components.
    rank = np.argsort(np.argsort(own_sizes, kind="stable"))
    found = np.concatenate([rank[component], position - new[component]], axis=1)
    return Components(order, own_sizes, found[np.argsort(found[:, 0], kind="stable")])


def same_matrices(components: Components, max_rows: int = BLOCK_ROWS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Make a matrix for each component of which items are the same.

    Yields
    ------
    rows : ndarray of shape (b, k), positions in `components.order`
    same : ndarray of shape (b, k, k), bool, symmetric with a diagonal of ones
    """
    done, ranks = 0, components.pairs[:, 0]
    for _, rows in batches_by_size(components.sizes, max_rows):
        b, k = rows.shape
        start, stop = np.searchsorted(ranks, [done, done + b])
        which, i, j = components.pairs[start:stop].T
        same = np.zeros((b, k, k), dtype=bool)
        same[:, np.arange(k), np.arange(k)] = True
        same[which - done, i, j] = same[which - done, j, i] = True
        done += b
        yield rows, same


def group_matrices(same: np.ndarray, grouping: str) -> tuple[np.ndarray, np.ndarray]:
    """Assign each item, in order, to the first class that it fits, or else to a new one.

    Parameters
    ----------
    same : ndarray of shape (b, k, k), bool, symmetric
    grouping : "complete": an item fits a class if it is the same as all its members; "greedy": as the first of them

    Returns
    -------
    labels : ndarray of shape (b, k), numbered from 0
    decisive : ndarray of shape (b, k), bool: items whose absence might change the class of another. It is true of the
        first member of a class of several, and of an item that alone keeps a later one out of an earlier class.
    """
    b, k = same.shape[:2]
    labels = np.zeros((b, k), dtype=np.int64)
    is_first = np.zeros((b, k), dtype=bool)
    decisive = np.zeros((b, k), dtype=bool)
    offsets, places = np.arange(b)[:, None] * k, np.arange(k)
    for i in range(k):
        differs = ~same[:, i, :i]
        if grouping == "greedy":
            differs &= is_first[:, :i]
        which, others = np.nonzero(differs)
        slots = (offsets + labels[:, :i])[which, others]
        conflicts = np.bincount(slots, minlength=b * k).reshape(b, k)
        labels[:, i] = (conflicts == 0).argmax(axis=1)
        is_first[:, i] = ~(labels[:, :i] == labels[:, i, None]).any(axis=1)
        # If a single conflict keeps an item out of a class, the sum of the indices in conflict is that index.
        alone = (conflicts == 1) & (places < labels[:, i, None])
        sums = np.bincount(slots, weights=others, minlength=b * k).reshape(b, k)
        decisive[np.nonzero(alone)[0], sums[alone].astype(np.int64)] = True
    members = np.bincount((offsets + labels).ravel(), minlength=b * k)[offsets + labels]
    return labels, (decisive | is_first) & (members > 1)


def group(items: Items, components: Components, n_sets: np.ndarray, grouping: str) -> Classes:
    """Group the items of each component, and return the class of each text.

    Parameters
    ----------
    n_sets : ndarray of shape (m,), the number of texts of each set
    grouping : "complete" or "greedy", the one by which `items` are ordered
    """
    ids = np.empty(len(items.first), dtype=np.int64)
    for rows, same in same_matrices(components):
        labels, _ = group_matrices(same, grouping)
        ids[components.order[rows]] = rows[:, :1] + labels
    return number_classes(ids[items.of_text], n_sets)


def number_classes(ids: np.ndarray, sizes: np.ndarray) -> Classes:
    """Renumber the classes of each set in order of first appearance.

    Parameters
    ----------
    ids : ndarray of shape (n,), int64 >= 0: equal for texts of one class, within a set
    sizes : ndarray of shape (m,)
    """
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    _, first, inverse = np.unique(set_of * (ids.max(initial=0) + 1) + ids, return_index=True, return_inverse=True)
    counts = np.bincount(set_of[first], minlength=len(sizes))
    numbers = np.argsort(np.argsort(first))[inverse]
    return Classes(numbers - (np.cumsum(counts) - counts)[set_of], counts)


def parse_classes(labels: Any, sets: TextSets) -> Classes:
    """Read a label for each text, shaped like the predictions: strings or integers, by people or a judge.

    Raises
    ------
    TypeError
        If it is no list, or a label is neither a string nor an integer.
    ValueError
        If its shape is not that of the predictions.
    """
    flat = flatten(labels, sets, "classes", "label")
    for i, label in enumerate(flat):
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, int, np.integer)):
            raise TypeError(f"classes ({sets.where(i)}) must be a string or an integer. Got {describe(label)}.")
    numbers = {label: i for i, label in enumerate(dict.fromkeys(flat))}
    return number_classes(np.array([numbers[label] for label in flat], dtype=np.int64), sets.sizes)
