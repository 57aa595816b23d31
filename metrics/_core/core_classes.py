"""Classes of texts that say the same, found from pairs of texts.

Items are texts, of equal ones mostly the first. Items that are the same, directly or through others, make a component;
no class reaches beyond one, so small components are grouped side by side, in batches of equal size, as sets are
elsewhere, and large ones item by item. Memory grows with the number of pairs that are the same: 4 bytes each, and twice
as much while components are found.
"""

import itertools
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
_ENTRIES = 2**20
# Components of more items are grouped item by item: their matrices would grow with the square.
LARGE = 64


class Items(NamedTuple):
    """The texts that are grouped, set after set: the different ones, or all.

    of_text : ndarray of shape (n,), the item of each text
    first : ndarray of shape (u,), the first text of each item
    sizes : ndarray of shape (m,), the number of items of each set
    """

    of_text: np.ndarray
    first: np.ndarray
    sizes: np.ndarray


class Pairs(NamedTuple):
    """The pairs of items that are the same.

    order : ndarray of shape (u,), the items in some order, in which those of a set keep theirs
    starts : ndarray of shape (u + 1,), where the partners of each item begin, and the last end
    earlier : ndarray of shape (e,), int32: for each item, the positions in `order` of those before it that are the same
    """

    order: np.ndarray
    starts: np.ndarray
    earlier: np.ndarray


class Components(NamedTuple):
    """Connected components of the items under the relation "the same".

    order : ndarray of shape (u,), the items sorted by component, and within one as they were
    sizes : ndarray of shape (c,), the number of items of each component
    starts : ndarray of shape (u + 1,), where the partners of each item begin, and the last end
    earlier : ndarray of shape (e,), int32: for each item, the positions in its component of those before it that are
        the same
    """

    order: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    earlier: np.ndarray

    def large(self) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield for each large component its slice of `order`, and for each of its items those of `earlier`."""
        ends = np.cumsum(self.sizes)
        for c in np.flatnonzero(self.sizes > LARGE).tolist():
            begin, end = int(ends[c] - self.sizes[c]), int(ends[c])
            edges = self.starts[begin : end + 1].tolist()
            yield slice(begin, end), [self.earlier[i:j] for i, j in itertools.pairwise(edges)]


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


def similar_pairs(compared: np.ndarray | Similarities, items: Items, threshold: float, *, device: str = "cpu") -> Pairs:
    """Find the pairs of items of one set whose similarity is at least a threshold.

    `compared` are embeddings of all texts, ndarray of shape (n, d), rows non-zero; or similarities.
    """
    orders, counts, earlier, n_before = [], [], [np.empty(0, dtype=np.int32)], 0
    for _, rows in batches_by_size(items.sizes, BLOCK_ROWS):
        b, k = rows.shape
        step = k if rows.size <= BLOCK_ROWS else max(1, _ENTRIES // k)
        compare = comparison(compared, items.first[rows], device)
        for start in range(0, k, step):
            # Only rows up to the last of this part, so that each pair is compared once.
            similarities = compare(slice(start, start + step), slice(start + step))
            same = torch.tril(similarities >= threshold - _ROUNDING, diagonal=start - 1)
            which, _, j = torch.nonzero(same, as_tuple=True)
            earlier.append((which * k + j + n_before).to(torch.int32).cpu().numpy())
            counts.append(same.sum(-1).flatten().cpu().numpy())
        orders.append(rows.ravel())
        n_before += b * k
    return Pairs(np.concatenate(orders), _starts(np.concatenate(counts)), np.concatenate(earlier))


def selected_pairs(pairs: np.ndarray, n_items: int) -> Pairs:
    """Return pairs of items (e, 2), of one set each, as `Pairs`."""
    earlier, later = pairs.min(axis=1, initial=n_items), pairs.max(axis=1, initial=0)
    counts = np.bincount(later, minlength=n_items)
    return Pairs(np.arange(n_items), _starts(counts), earlier[np.argsort(later, kind="stable")].astype(np.int32))


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])


def all_pairs(sizes: np.ndarray) -> np.ndarray:
    """List all pairs of items of one set: ndarray of shape (e, 2), the earlier first."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for _, rows in batches_by_size(sizes, BLOCK_ROWS):
        i, j = np.triu_indices(rows.shape[1], 1)
        pairs.append(np.stack([rows[:, i].ravel(), rows[:, j].ravel()], axis=1))
    return np.concatenate(pairs)


def link(pairs: Pairs) -> Components:
    """Find the connected components of items that are the same."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n_items = len(pairs.order)
    label = np.arange(n_items)
    # Parts of about as many pairs as a matrix has entries.
    edges = np.searchsorted(pairs.starts, np.arange(0, pairs.starts[-1] + 1, _ENTRIES))
    edges = np.unique([*edges.tolist(), 0, n_items]).tolist()
    counts = np.diff(pairs.starts)
    for i, j in itertools.pairwise(edges):
        earlier_labels = label[pairs.earlier[pairs.starts[i] : pairs.starts[j]]]
        later_labels = np.repeat(label[i:j], counts[i:j])
        edge_labels = (later_labels, earlier_labels)
        graph = sparse.coo_array((np.ones(len(earlier_labels), dtype=bool), edge_labels), shape=(n_items, n_items))
        label = connected_components(graph, directed=False)[1][label]
    label = np.unique(label, return_inverse=True)[1]
    sizes = np.bincount(label)
    place = np.argsort(label, kind="stable")
    position = np.empty(n_items, dtype=np.int32)
    position[place] = np.arange(n_items) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    starts = _starts(counts[place])
    earlier = np.empty(len(pairs.earlier), dtype=np.int32)
    for i, j in itertools.pairwise(edges):
        moved = np.repeat(pairs.starts[:-1][place[i:j]] - starts[i:j], counts[place[i:j]])
        moved += np.arange(starts[i], starts[j])
        earlier[starts[i] : starts[j]] = position[pairs.earlier[moved]]
    return Components(pairs.order[place], sizes, starts, earlier)


def same_matrices(components: Components) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Make a matrix for each component that is not large of which items are the same.

    Yields
    ------
    rows : ndarray of shape (b, k), positions in `components.order`
    same : ndarray of shape (b, k, k), bool, symmetric with a diagonal of ones
    """
    counts = np.diff(components.starts)
    for _, rows in batches_by_size(components.sizes, BLOCK_ROWS):
        b, k = rows.shape
        if k > LARGE:
            return
        flat = rows.ravel()
        moved = np.repeat(components.starts[flat] - _starts(counts[flat])[:-1], counts[flat])
        j = components.earlier[moved + np.arange(len(moved))]
        which, i = np.divmod(np.repeat(np.arange(b * k), counts[flat]), k)
        same = np.zeros((b, k, k), dtype=bool)
        same[:, np.arange(k), np.arange(k)] = True
        same[which, i, j] = same[which, j, i] = True
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
        which, differing = np.nonzero(differs)
        slots = (offsets + labels[:, :i])[which, differing]
        conflicts = np.bincount(slots, minlength=b * k).reshape(b, k)
        labels[:, i] = (conflicts == 0).argmax(axis=1)
        is_first[:, i] = ~(labels[:, :i] == labels[:, i, None]).any(axis=1)
        # If a single conflict keeps an item out of a class, the sum of the indices in conflict is that index.
        alone = (conflicts == 1) & (places < labels[:, i, None])
        sums = np.bincount(slots, weights=differing, minlength=b * k).reshape(b, k)
        decisive[np.nonzero(alone)[0], sums[alone].astype(np.int64)] = True
    members = np.bincount((offsets + labels).ravel(), minlength=b * k)[offsets + labels]
    return labels, (decisive | is_first) & (members > 1)


class Assignment(NamedTuple):
    """How the k items of a component were assigned to classes, which are numbered in order of their first members.

    labels : ndarray of shape (k,), the class of each item
    firsts : ndarray of shape (c,), the first member of each class
    decisive : ndarray of shape (k,), bool, as by `group_matrices`
    """

    labels: np.ndarray
    firsts: np.ndarray
    decisive: np.ndarray


def group_items(earlier: list[np.ndarray], grouping: str) -> Assignment:
    """Assign each item to a class, as `group_matrices` does, from those before it that are the same."""
    k = len(earlier)
    labels, firsts = np.zeros(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    sizes, sums = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    decisive, n = np.zeros(k, dtype=bool), 0
    for i, same in enumerate(earlier):
        conflicts = class_conflicts(same, labels, firsts[:n], sizes[:n], grouping)
        fits = np.flatnonzero(conflicts == 0)
        label = int(fits[0]) if len(fits) else n
        if grouping == "complete":
            # If a single conflict keeps an item out of a class, it is with the member that is missing in the sum.
            alone = np.flatnonzero(conflicts[:label] == 1)
            missing = sums[alone] - np.bincount(labels[same], weights=same, minlength=n)[alone].astype(np.int64)
            decisive[missing] = True
        if label == n:
            firsts[n], n = i, n + 1
        labels[i] = label
        sizes[label] += 1
        sums[label] += i
    decisive[firsts[:n]] = True
    return Assignment(labels, firsts[:n], decisive & (sizes[labels] > 1))


def class_conflicts(
    same: np.ndarray, labels: np.ndarray, firsts: np.ndarray, sizes: np.ndarray, grouping: str
) -> np.ndarray:
    """Count the members of each class (c,) that keep an item out, given the earlier items that are the same as it."""
    if grouping == "greedy":
        same = same[firsts[labels[same]] == same]
        sizes = np.ones_like(sizes)
    return sizes - np.bincount(labels[same], minlength=len(sizes))


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
    for span, earlier in components.large():
        ids[components.order[span]] = span.start + group_items(earlier, grouping).labels
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


def parse_classes(labels: Any, sets: TextSets, name: str = "classes") -> Classes:
    """Read a label for each text, shaped like the predictions: strings or integers, by people or a judge.

    Raises a TypeError if it is not a list, or a label is neither a string nor an integer, and a ValueError if its shape
    is not that of the predictions.
    """
    flat = flatten(labels, sets, name, "label")
    for i, label in enumerate(flat):
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, int, np.integer)):
            raise TypeError(f"{name} ({sets.where(i)}) must be a string or an integer. Got {describe(label)}.")
    numbers = {label: i for i, label in enumerate(dict.fromkeys(flat))}
    return number_classes(np.array([numbers[label] for label in flat], dtype=np.int64), sets.sizes)
