"""Where is computed: the torch device, and one thread in a forked process.

OpenMP and tokenizers would wait forever for threads that a forked process does not have.
"""

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from .core_numbers import describe

# Each metric has its own copy of this file, so whether the process was forked is noted outside all of them.
_NOTE: Any = sys.modules.setdefault("_text_metric_fork", types.ModuleType("_text_metric_fork"))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: setattr(_NOTE, "is_forked", True))


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread if this process was forked after a metric was loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(_NOTE, "is_forked"):
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


def find_device(device: str | None) -> str:
    """Return the full name of a device: the one given, or the fastest available.

    Raises a ValueError if it is not the name of a device, or not available on this machine.
    """
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        named = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        named = None
    if named is None or named.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device must be a torch device: 'cpu', 'cuda', 'cuda:1', 'mps'. Got {describe(device)}.")
    if named.type == "cpu":
        return "cpu"
    try:
        # So that 'cuda' and 'cuda:0' are the same key.
        return str(torch.empty(0, device=named).device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {str(device)!r} is not available on this machine: {reason}") from None


def matrix_device(device: str | None) -> str:
    """Return the device for float64 matrices: mps does not support float64."""
    full_name = find_device(device)
    return full_name if full_name.startswith("cuda") else "cpu"
