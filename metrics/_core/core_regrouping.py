"""Classes of a component without each of some of its items, from the classes of all of them.

Removals are processed together, item by item. For each, only the items that change their class are stored, so the work
grows with the changes, not with the square of the component for each removal. Where there are many, fewer removals are
processed together, so that memory is bounded.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .core_classes import Assignment, class_conflicts

# Classes that differ, and changes to them, that are stored at a time; one removal may have more.
_STORED = 2**18


class Changes(NamedTuple):
    """What is different about the classes of a component of k items in c classes, without each of some items.

    removal : ndarray of shape (e,), which removal a change belongs to
    label : ndarray of shape (e,), the class that an item joins or leaves; c + i if item i founds a class of its own
    item : ndarray of shape (e,)
    sign : ndarray of shape (e,), 1 if the item joins the class, -1 if it leaves it
    """

    removal: np.ndarray
    label: np.ndarray
    item: np.ndarray
    sign: np.ndarray


class _Table:
    """Columns of integers that grow together."""

    def __init__(self, n_columns: int) -> None:
        self._values, self.n = np.zeros((n_columns, 1024), dtype=np.int64), 0

    def add(self, *values: np.ndarray | int) -> int:
        """Add rows, and return the number of the first."""
        start, self.n = self.n, self.n + np.broadcast(*values).size
        while self.n > self._values.shape[1]:
            self._values = np.concatenate([self._values, np.zeros_like(self._values)], axis=1)
        for column, entries in zip(self._values, values, strict=True):
            column[start : self.n] = entries
        return start

    @property
    def columns(self) -> np.ndarray:
        return self._values[:, : self.n]


class _Removals:
    """The classes that differ from those of all items, concatenated in `slots`, and the changes to them.

    slots : of each, the removal, the class, its first member and how many members more or fewer it has
    changes : of each, the slot, the item and the sign
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.slots, self.changes = _Table(4), _Table(3)
        self.slot_of: dict[tuple[int, int], int] = {}

    def touch(self, removal: int, label: int, first: int) -> int:
        """Return the slot of a class, a new one with this first member if it has none."""
        if (removal, label) not in self.slot_of:
            self.slot_of[removal, label] = self.slots.add(removal, label, first, 0)
        return self.slot_of[removal, label]

    def change(self, slot: int, item: int, sign: int) -> None:
        """Let an item join or leave a class."""
        self.changes.add(slot, item, sign)
        self.slots.columns[3, slot] += sign


def group_without(
    earlier: list[np.ndarray], assignment: Assignment, removed: np.ndarray, grouping: str, most: int
) -> Iterator[tuple[np.ndarray, Changes]]:
    """Assign the items of a component to classes without each of some of its items.

    Parameters
    ----------
    earlier : for each of the k items, those before it that are the same
    assignment : of all items, as by `group_items`
    removed : ndarray of shape (r,), the items that are removed, one at a time
    most : the largest number of removals that are followed together

    Yields
    ------
    part : ndarray of shape (b,), the next of `removed`
    changes : without each of them
    """
    start = 0
    while start < len(removed):
        part = removed[start : start + most]
        changes = _follow(earlier, assignment, part, grouping)
        if changes is None:
            most = len(part) // 2
            continue
        yield part, changes
        start += len(part)


def _follow(earlier: list[np.ndarray], assignment: Assignment, removed: np.ndarray, grouping: str) -> Changes | None:
    """Follow removals (b,) together; None if there is too much to store, and more than one."""
    labels, firsts, _ = assignment
    state = _Removals(len(firsts))
    removal_of = dict(zip(removed.tolist(), range(len(removed)), strict=True))
    sizes = np.zeros(len(firsts), dtype=np.int64)
    is_same = np.zeros(len(earlier), dtype=bool)
    n = 0
    for i, same in enumerate(earlier):
        conflicts = class_conflicts(same, labels, firsts[:n], sizes[:n], grouping)
        if state.slots.n:
            is_same[same] = True
            _assign(state, i, int(labels[i]), is_same, conflicts, sizes, firsts, grouping)
            is_same[same] = False
            if state.slots.n + state.changes.n > _STORED and len(removed) > 1:
                return None
        n = max(n, int(labels[i]) + 1)
        sizes[labels[i]] += 1
        if i in removal_of:
            state.change(state.touch(removal_of[i], int(labels[i]), int(firsts[labels[i]])), i, -1)
    slot, item, sign = state.changes.columns
    removal, label = state.slots.columns[:2]
    return Changes(removal[slot], label[slot], item, sign)


def _assign(
    state: _Removals,
    i: int,
    usual: int,
    is_same: np.ndarray,
    conflicts: np.ndarray,
    sizes: np.ndarray,
    firsts: np.ndarray,
    grouping: str,
) -> None:
    """Find the removals without which item i is in another class than usual, and note the changes.

    Parameters
    ----------
    usual : the class of the item with all items
    conflicts, sizes : of each class so far, with all items
    """
    removal, label, first, more = state.slots.columns
    is_known = label < len(conflicts)
    known = np.where(is_known, label, 0)
    members = np.where(is_known, sizes[known], 0) + more
    if grouping == "greedy":
        against = ~is_same[first]
    else:
        slot, item, sign = state.changes.columns
        changed = np.bincount(slot, weights=sign * ~is_same[item], minlength=len(label)).astype(np.int64)
        against = (np.where(is_known, conflicts[known], 0) if len(conflicts) else 0) + changed
    fits = (against == 0) & (members > 0)
    n_removals = int(removal.max()) + 1
    nobody = len(is_same)
    best = np.full(n_removals, nobody)
    np.minimum.at(best, removal[fits], first[fits])
    usual_first = int(firsts[usual])
    is_touched = np.zeros(n_removals, dtype=bool)
    is_usual = label == usual
    is_touched[removal[is_usual]] = True
    stays = np.zeros(n_removals, dtype=bool)
    stays[removal[is_usual & fits & (first == usual_first)]] = True
    differs = np.where(is_touched, ~(stays & (best == usual_first)), best < usual_first)
    has_slots = np.bincount(removal, minlength=n_removals) > 0
    fitting = np.flatnonzero(conflicts == 0)
    for index in np.flatnonzero(differs & has_slots).tolist():
        # Of the classes that are as usual, the first; and of those that are not.
        untouched = next((c for c in fitting.tolist() if (index, c) not in state.slot_of), None)
        if untouched is not None and firsts[untouched] < best[index]:
            new = state.touch(index, untouched, int(firsts[untouched]))
        elif best[index] < nobody:
            new = int(np.flatnonzero(fits & (removal == index) & (first == best[index]))[0])
            if label[new] == usual:
                continue
        else:
            new = -1
        old = state.touch(index, usual, usual_first)
        if new < 0 and not _has_members(state, old, sizes):
            # The item founds the class that it is usually in.
            state.slots.columns[2, old] = i
            continue
        state.change(old, i, -1)
        state.change(new if new >= 0 else state.touch(index, state.n_classes + i, i), i, 1)


def _has_members(state: _Removals, slot: int, sizes: np.ndarray) -> bool:
    """Say whether a class has members before the item that is being assigned."""
    _, label, _, more = state.slots.columns[:, slot]
    return bool((sizes[label] if label < len(sizes) else 0) + more > 0)
