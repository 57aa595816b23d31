"""Computing in a forked process, where libraries would wait forever for threads that the fork did not copy."""

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Each metric has its own copy of this file, so whether the process was forked is noted outside all of them.
_NOTE = "_text_metric_fork"
_TOKENIZERS = "TOKENIZERS_PARALLELISM"


def _process() -> Any:
    """Return the note of this process: `is_forked`, since the first metric was loaded."""
    fresh: Any = types.ModuleType(_NOTE)
    fresh.is_forked = False
    note = sys.modules.setdefault(_NOTE, fresh)
    if note is fresh and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(note, "is_forked", True))
    return note


PROCESS = _process()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread if this process was forked after a metric was loaded (`PROCESS.is_forked`).

    There, OpenMP waits forever for threads that the fork did not copy, and so do tokenizers if `TOKENIZERS_PARALLELISM`
    is set to true. The settings of torch and of tokenizers are restored.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not PROCESS.is_forked:
        yield
        return
    n_threads, tokenizers = torch.get_num_threads(), os.environ.get(_TOKENIZERS)
    torch.set_num_threads(1)
    os.environ[_TOKENIZERS] = "false"
    # It comes with scikit-learn, whose clustering uses OpenMP too.
    pools: Any = sys.modules.get("threadpoolctl")
    limits = pools.threadpool_limits(1) if pools else None
    try:
        yield
    finally:
        if limits is not None:
            limits.restore_original_limits()
        torch.set_num_threads(n_threads)
        del os.environ[_TOKENIZERS]
        if tokenizers is not None:
            os.environ[_TOKENIZERS] = tokenizers
