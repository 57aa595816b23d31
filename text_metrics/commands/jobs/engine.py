"""The engine that does the work on batches, and that of one process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

# What each process calls once: it returns the function of an item, which returns its results.
OpenWork = Callable[[], Callable[[Any], Iterable[Any]]]


class Engine(Protocol):
    """Where work is done: maps a function over items, and returns all results in the order of the items."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: OpenWork) -> Iterator[Any]:
        """Map over the items the function that `open_work` returns."""

    def reads(self, path: Path) -> bool:
        """Say whether each process can read a file."""

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays in a form that can be sent to any process."""


class OneProcess:
    """The engine of this process alone."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: OpenWork) -> Iterator[Any]:
        """Map over the items in this process."""
        yield from chain.from_iterable(map(open_work(), items()))

    def reads(self, path: Path) -> bool:
        """Return True."""
        return True

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays themselves."""
        return blocks
