"""The metrics of this package, loaded by name: `text_metrics.load("vendi_embed")`."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

METRICS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "vendi_embed")
_HERE = Path(__file__).resolve().parent
# A build puts metrics/ into the folder of this file; in a checkout it is beside that folder.
FOLDER = next(folder for folder in (_HERE / "metrics", _HERE.parent / "metrics") if folder.is_dir())


def __getattr__(name: str) -> Any:
    """Return the version, which is that of the signatures, as `__version__`."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from text_metrics.metrics._core.core_results import VERSION

    return VERSION


def load(name: str, **settings: Any) -> Any:
    """Load a metric by `evaluate.load`, from the installed folder.

    Parameters
    ----------
    name : one of METRICS
    **settings : passed to `evaluate.load`, such as `num_process` and `process_id`

    Returns
    -------
    evaluate.Metric

    Raises
    ------
    ValueError
        If there is no metric of this name.
    """
    if name not in METRICS:
        from text_metrics.metrics._core.core_settings import suggest

        raise ValueError(f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}.")
    with without_garbage_collection():
        import evaluate

    return evaluate.load(str(FOLDER / name), **settings)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which would take a quarter of the time of large imports and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
