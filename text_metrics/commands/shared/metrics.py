"""Metrics as commands load them: those of the package by name, others by path."""

from typing import Any

from text_metrics import METRICS, load, without_garbage_collection
from text_metrics.metrics._core.core_settings import suggest


def load_metric(name: str) -> Any:
    """Load a metric of the package by its name, or any module of `evaluate` by its path or its name on the Hub.

    Raises
    ------
    ValueError
        If it cannot be loaded.
    """
    if name in METRICS:
        return load(name)
    with without_garbage_collection():
        import evaluate

    try:
        return evaluate.load(name)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(
            f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}, and modules of "
            f"`evaluate`: {str(error).splitlines()[0]}"
        ) from error
