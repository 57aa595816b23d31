"""The settings that decide a score, as one line: what another person needs to get the same number."""

from typing import Any

import numpy as np

VERSION = "0.1.0"


def format_order(q: float) -> str:
    """Write an order q of the Rényi entropy as a short exact string: 1, 0.5, inf."""
    return str(int(q)) if float(q).is_integer() and q < 1e16 else repr(float(q))


def format_sizes(sizes: np.ndarray) -> str:
    """Write how many texts the sets hold: 4, or 2-5 where they differ."""
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low}-{high}"


def format_callable(function: Any) -> str:
    """Name a caller's own function: what it computes is for the caller to report."""
    return f"custom({getattr(function, '__qualname__', type(function).__qualname__)})"


def signature(metric: str, **settings: object) -> str:
    """Join the settings, as sacreBLEU does: `vendi_embed|q:1|kernel:embedding|...|version:0.1.0`.

    A setting belongs here if it can change the number, and only then: no batch size, no device.
    """
    return "|".join([metric, *(f"{name}:{value}" for name, value in settings.items()), f"version:{VERSION}"])
