"""Computing in a forked process: OpenMP and tokenizers would wait forever for threads that it does not have."""

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

# Each metric has its own copy of this file, so whether the process was forked is noted outside all of them.
NOTE: Any = sys.modules.setdefault("_text_metric_fork", types.ModuleType("_text_metric_fork"))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(NOTE, "is_forked", True))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread if this process was forked after a metric was loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(NOTE, "is_forked"):
        yield
        return
    n_threads, tokenizers = torch.get_num_threads(), os.environ.get("TOKENIZERS_PARALLELISM")
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # It comes with scikit-learn, whose clustering uses OpenMP too.
    pools: Any = sys.modules.get("threadpoolctl")
    try:
        with pools.threadpool_limits(1) if pools else nullcontext():
            yield
    finally:
        torch.set_num_threads(n_threads)
        del os.environ["TOKENIZERS_PARALLELISM"]
        if tokenizers is not None:
            os.environ["TOKENIZERS_PARALLELISM"] = tokenizers
