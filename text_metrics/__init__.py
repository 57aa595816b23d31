"""The metrics of this package, loaded by name: `text_metrics.load("vendi_embed")`."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text_metrics.choosing.subset import choose
    from text_metrics.questions.contributions import contributions
    from text_metrics.questions.groups import between_groups
    from text_metrics.questions.rarefied import rarefied
    from text_metrics.reporting.report import describe, report
    from text_metrics.scorer import Scorer
    from text_metrics.training.rewards import for_rewards
    from text_metrics.training.samples import SampleCallback
    from text_metrics.training.trainer import for_trainer

    __version__: str

__all__ = [
    "FOLDER",
    "METRICS",
    "SampleCallback",
    "Scorer",
    "__version__",
    "between_groups",
    "choose",
    "contributions",
    "describe",
    "for_rewards",
    "for_trainer",
    "load",
    "rarefied",
    "report",
]

METRICS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "semantic_entropy", "vendi_embed")
_HERE = Path(__file__).resolve().parent
# A build puts metrics/ into the folder of this file; in a checkout it is beside that folder.
FOLDER = next(folder for folder in (_HERE / "metrics", _HERE.parent / "metrics") if folder.is_dir())

# The modules of what is imported at first use; as in the imports above, which tools read.
_LAZY = {
    "SampleCallback": "text_metrics.training.samples",
    "Scorer": "text_metrics.scorer",
    "between_groups": "text_metrics.questions.groups",
    "choose": "text_metrics.choosing.subset",
    "contributions": "text_metrics.questions.contributions",
    "describe": "text_metrics.reporting.report",
    "for_rewards": "text_metrics.training.rewards",
    "for_trainer": "text_metrics.training.trainer",
    "rarefied": "text_metrics.questions.rarefied",
    "report": "text_metrics.reporting.report",
}


# Type checkers would take any name for one of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a public name at its first use, or return the version that signatures report."""
        if name == "__version__":
            return importlib.import_module("text_metrics.core_api").VERSION
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


def load(name: str, **settings: Any) -> Any:
    """Load a metric of this package; the evaluators of `evaluate` are imported when they are used.

    It scores as the one of `evaluate.load`, which copies the code into the cache of Hugging Face; no copy is made here.

    Parameters
    ----------
    name : one of METRICS
    **settings : as for `evaluate.load`, such as `num_process` and `process_id`

    Returns
    -------
    evaluate.Metric

    Raises
    ------
    ValueError
        If the name is not one of METRICS.
    """
    if name not in METRICS:
        from text_metrics.core_api import suggest

        raise ValueError(f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}.")
    from text_metrics.loading import import_evaluate

    main_class = import_evaluate().loading.import_main_class(f"{__name__}.metrics.{name}.{name}")
    metric = main_class(**settings)
    metric.download_and_prepare()
    return metric
