"""The engine that does the work on batches, and that of one process."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np


class Engine(Protocol):
    """Where work is done: maps a function over items, and returns the results in the order of the items."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: Callable[[], Callable[[Any], Any]]) -> Iterator[Any]:
        """Map over the items the function that `open_work` returns; each process calls that once."""

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays in a form that can be sent to any process."""


class OneProcess:
    """The engine of this process alone."""

    def map(self, items: Callable[[], Iterator[Any]], open_work: Callable[[], Callable[[Any], Any]]) -> Iterator[Any]:
        """Map over the items in this process."""
        yield from map(open_work(), items())

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the arrays themselves."""
        return blocks
