"""Scores of classes: Vendi scores of kernels of blocks of ones, leave-one-out scores, and utility."""

from typing import NamedTuple

import numpy as np
import torch

from .core_classes import Classes, Components, Items, group_items, group_matrices, same_matrices
from .core_inputs import batches_by_size
from .core_regrouping import Changes, group_without
from .core_spectra import vendi_from_eigenvalues

# Entries of a matrix held at a time.
_ENTRIES = 2**22
# Removals from one component that are followed at a time.
_REMOVALS = 1024


class Relation(NamedTuple):
    """The relation from which classes were made, to make them again without a text."""

    items: Items
    components: Components
    grouping: str


def class_shares(classes: Classes, sizes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sum the probability of each class: ndarray of shape (c,), which sums to 1 within a set."""
    of_text = np.repeat(np.cumsum(classes.counts) - classes.counts, sizes) + classes.of_text
    shares = np.repeat(1 / sizes, sizes) if weights is None else weights
    return np.bincount(of_text, weights=shares, minlength=int(classes.counts.sum()))


def vendi_from_classes(
    classes: Classes, sizes: np.ndarray, orders: list[float], weights: np.ndarray | None = None
) -> np.ndarray:
    """Vendi score of each set with a kernel of ones within a class and zeros elsewhere.

    Its eigenvalues are the shares of the classes: order 0 is the number of classes (distinct_k of NoveltyBench,
    arXiv 2504.05228), order 1 the exponential of the discrete semantic entropy (Farquhar et al. 2024).

    Parameters
    ----------
    sizes : ndarray of shape (m,), the number of texts of each set
    weights : ndarray of shape (n,), positive, summing to 1 in each set; uniform if None

    Returns
    -------
    ndarray of shape (m, len(orders)), each in [1, number of classes]; higher is more diverse
    """
    shares = class_shares(classes, sizes, weights)
    scores = np.empty((len(sizes), len(orders)))
    for members, rows in batches_by_size(classes.counts, _ENTRIES):
        scores[members] = vendi_from_shares(shares[rows], orders)
    return np.clip(scores, 1.0, classes.counts[:, None])


def vendi_from_shares(shares: np.ndarray, orders: list[float]) -> np.ndarray:
    """Exponential of the Rényi entropy of shares (b, c) that sum to 1: (b, len(orders))."""
    values = torch.from_numpy(shares)
    # Shares carry no noise of an eigenvalue solver: with n = 0, none is counted as noise.
    return torch.stack([vendi_from_eigenvalues(values, 0, q) for q in orders], dim=-1).numpy()


def classes_without(
    classes: Classes,
    sizes: np.ndarray,
    order: float,
    weights: np.ndarray | None = None,
    relation: Relation | None = None,
) -> np.ndarray:
    """Vendi score of each set without each of its texts, with the kernel of classes.

    Parameters
    ----------
    sizes, weights : as for `vendi_from_classes`
    order : q, the order of the Rényi entropy
    relation : how the classes were made: the others are grouped again where the absence of a text may change their
        classes. None for classes that were given.

    Returns
    -------
    ndarray of shape (n,): the score without text i, its probability shared out among the others in proportion; NaN
        where nothing is left
    """
    sets = _Sets(classes, sizes, weights)
    scores = np.empty(len(sets.set_of))
    counts = classes.counts[sets.set_of]
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        step = max(1, _ENTRIES // count)
        for start in range(0, len(rows), step):
            texts = rows[start : start + step]
            rest = sets.shares_by_class(sets.set_of[texts], count)
            rest[np.arange(len(texts)), classes.of_text[texts]] -= sets.shares[texts]
            scores[texts] = _score_rest(np.maximum(rest, 0.0), order)
    # If one text has most of the probability, the difference loses digits.
    large = np.flatnonzero(sets.shares > 0.5)
    if len(large):
        without_large = _Sets(classes, sizes, np.where(sets.shares > 0.5, 0.0, sets.shares))
        for text in large.tolist():
            owner = without_large.set_of[text : text + 1]
            scores[text] = _score_rest(without_large.shares_by_class(owner, int(classes.counts[owner[0]])), order)[0]
    if relation is not None:
        _group_anew(scores, sets, order, relation)
    return scores


class _Sets:
    """The classes of some sets, and their shares."""

    def __init__(self, classes: Classes, sizes: np.ndarray, weights: np.ndarray | None) -> None:
        self.classes = classes
        self.set_of = np.repeat(np.arange(len(sizes)), sizes)
        self.shares = np.repeat(1 / sizes, sizes) if weights is None else weights
        self._by_class = class_shares(classes, sizes, weights)
        self._starts = np.cumsum(classes.counts) - classes.counts

    def shares_by_class(self, sets: np.ndarray, width: int) -> np.ndarray:
        """Return the shares of the classes of sets (b,), padded with zeros: (b, width)."""
        columns = np.arange(width)
        inside = columns < self.classes.counts[sets][:, None]
        places = np.where(inside, self._starts[sets][:, None] + columns, 0)
        return np.where(inside, self._by_class[places], 0.0)

    def shares_without(self, text: int, width: int) -> np.ndarray:
        """Return the shares of the classes of the set of a text, but for its own: (width,)."""
        members = np.flatnonzero((self.set_of == self.set_of[text]) & (np.arange(len(self.set_of)) != text))
        return np.bincount(self.classes.of_text[members], weights=self.shares[members], minlength=width)


def _score_rest(rest: np.ndarray, order: float) -> np.ndarray:
    """Score shares (b, c), which need not sum to 1: (b,); NaN if all are 0."""
    total = rest.sum(axis=1)
    left = total > 0
    scores = np.full(len(rest), np.nan)
    scores[left] = vendi_from_shares(rest[left] / total[left, None], [order])[:, 0]
    return scores


def _group_anew(scores: np.ndarray, sets: _Sets, order: float, relation: Relation) -> None:
    """Correct the scores without those texts whose absence may change the classes of others.

    Classes do not reach beyond a component, so only the rest of its component is grouped again.
    """
    items, components, grouping = relation
    texts_of_item = np.bincount(items.of_text, minlength=len(items.first))
    item_shares = np.bincount(items.of_text, weights=sets.shares, minlength=len(items.first))
    for rows, same in same_matrices(components):
        size = rows.shape[1]
        # Of two items that are the same, the other one remains, in the same class.
        if size < 3:
            continue
        members = components.order[rows]
        _, decisive = group_matrices(same, grouping)
        which, place = np.nonzero(decisive & (texts_of_item[members] == 1))
        step = max(1, _ENTRIES // size**2)
        for start in range(0, len(which), step):
            part, out = which[start : start + step], place[start : start + step]
            remaining = np.nonzero(np.arange(size) != out[:, None])[1].reshape(len(part), size - 1)
            remaining_same = same[part[:, None, None], remaining[:, :, None], remaining[:, None, :]]
            labels, _ = group_matrices(remaining_same, grouping)
            first_texts = items.first[members[part]]
            owners = sets.set_of[first_texts[:, 0]]
            rest = sets.shares_by_class(owners, int(sets.classes.counts[owners].max()))
            np.put_along_axis(rest, sets.classes.of_text[first_texts], 0.0, axis=1)
            slots = labels + np.arange(len(part))[:, None] * size
            weights = item_shares[np.take_along_axis(members[part], remaining, axis=1)]
            anew = np.bincount(slots.ravel(), weights=weights.ravel(), minlength=len(part) * size)
            rest = np.concatenate([rest, anew.reshape(len(part), size)], axis=1)
            scores[np.take_along_axis(first_texts, out[:, None], axis=1)[:, 0]] = _score_rest(rest, order)
    for span, earlier in components.large():
        members = components.order[span]
        assignment = group_items(earlier, grouping)
        removed = np.flatnonzero(assignment.decisive & (texts_of_item[members] == 1))
        columns = sets.classes.of_text[items.first[members[assignment.firsts]]]
        counts = np.bincount(assignment.labels)
        # A matrix has a column for each class of the set, and for each that an item may found.
        width = int(sets.classes.counts[sets.set_of[items.first[members[0]]]]) + len(members)
        most = max(1, min(_REMOVALS, _ENTRIES // width))
        for part, changes in group_without(earlier, assignment, removed, grouping, most):
            texts = items.first[members[part]]
            scores[texts] = _score_changes(sets, texts, changes, columns, counts, item_shares[members], order)


def _score_changes(
    sets: _Sets,
    texts: np.ndarray,
    changes: Changes,
    columns: np.ndarray,
    counts: np.ndarray,
    shares: np.ndarray,
    order: float,
) -> np.ndarray:
    """Score a set without each of some texts (b,) of a component of c classes: (b,).

    Parameters
    ----------
    columns, counts : ndarrays of shape (c,), the number of each class in its set, and of its items
    shares : ndarray of shape (k,), the probability of each item of the component
    """
    owner = sets.set_of[texts[:1]]
    width = int(sets.classes.counts[owner[0]])
    # New classes come after the others, numbered by removal.
    is_new = changes.label >= len(columns)
    new, inverse = np.unique(np.stack([changes.removal[is_new], changes.label[is_new]]), axis=1, return_inverse=True)
    number = np.arange(new.shape[1]) - np.searchsorted(new[0], new[0])
    column = np.empty(len(changes.label), dtype=np.int64)
    column[~is_new], column[is_new] = columns[changes.label[~is_new]], width + number[inverse.ravel()]
    rest = np.zeros((len(texts), width + int(number.max(initial=-1)) + 1))
    rest[:, :width] = sets.shares_by_class(owner, width)
    members = np.zeros(rest.shape, dtype=np.int64)
    members[:, :width] = len(shares)
    members[:, columns] = counts
    moved = changes.sign * shares[changes.item]
    # Without a text of most of the probability, the difference would lose digits.
    for i in np.flatnonzero(sets.shares[texts] > 0.5).tolist():
        rest[i, :width] = sets.shares_without(int(texts[i]), width)
        moved[(changes.removal == i) & (shares[changes.item] > 0.5)] = 0.0
    np.add.at(rest, (changes.removal, column), moved)
    np.add.at(members, (changes.removal, column), changes.sign)
    return _score_rest(np.where(members > 0, np.maximum(rest, 0.0), 0.0), order)


def utility(classes: Classes, sizes: np.ndarray, quality: np.ndarray, patience: float) -> np.ndarray:
    """Score what a set is worth to a reader who goes on to the next text with probability `patience` (NoveltyBench).

    It is (1 - p) / (1 - p^k) times the sum, over the texts in their order, of p^(i - 1) times the quality of text i if
    no earlier text is of its class. At p = 1 it is the limit, the mean over texts.

    Parameters
    ----------
    quality : ndarray of shape (n,), in [0, 1]
    patience : p, in [0, 1]

    Returns
    -------
    ndarray of shape (m,), in [0, 1]; higher is better
    """
    places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    attention = np.float64(patience) ** places
    of_text = np.repeat(np.cumsum(classes.counts) - classes.counts, sizes) + classes.of_text
    is_first = np.zeros(len(of_text), dtype=bool)
    is_first[np.unique(of_text, return_index=True)[1]] = True
    starts = np.cumsum(sizes) - sizes
    gained = np.add.reduceat(attention * is_first * quality, starts)
    return gained / np.add.reduceat(attention, starts)
