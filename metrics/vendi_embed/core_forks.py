"""Computing in a forked process, where threads of libraries that the fork did not copy are waited for forever."""

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Each metric has its own copy of this file, so the process that first computed is noted outside all of them.
_NOTE = "_text_metric_process"
_TOKENIZERS = "TOKENIZERS_PARALLELISM"


@contextmanager
def one_thread_in_fork() -> Iterator[None]:
    """Compute with one thread in a process that was forked after a metric computed.

    There, OpenMP waits forever for threads that the fork did not copy, and so do tokenizers if `TOKENIZERS_PARALLELISM`
    is set to true. The settings of torch and of tokenizers are restored.
    """
    note: Any = types.ModuleType(_NOTE)
    note.process = os.getpid()
    torch: Any = sys.modules.get("torch")
    if sys.modules.setdefault(_NOTE, note).process == os.getpid() or torch is None:
        yield
        return
    n_threads, tokenizers = torch.get_num_threads(), os.environ.get(_TOKENIZERS)
    torch.set_num_threads(1)
    os.environ[_TOKENIZERS] = "false"
    # It comes with scikit-learn, whose clustering uses OpenMP too.
    pools: Any = sys.modules.get("threadpoolctl")
    others = pools.threadpool_limits(1) if pools else None
    try:
        yield
    finally:
        if others is not None:
            others.restore_original_limits()
        torch.set_num_threads(n_threads)
        del os.environ[_TOKENIZERS]
        if tokenizers is not None:
            os.environ[_TOKENIZERS] = tokenizers
