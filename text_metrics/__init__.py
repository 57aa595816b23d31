"""The metrics of this package, loaded by name: `text_metrics.load("vendi_embed")`."""

import importlib
from pathlib import Path
from typing import Any

METRICS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "semantic_entropy", "vendi_embed")
_HERE = Path(__file__).resolve().parent
# A build puts metrics/ into the folder of this file; in a checkout it is beside that folder.
FOLDER = next(folder for folder in (_HERE / "metrics", _HERE.parent / "metrics") if folder.is_dir())


# Where the other names are, which are imported at first use.
_LAZY = {
    "contributions": "text_metrics.questions.contributions",
    "rarefied": "text_metrics.questions.rarefied",
    "between_groups": "text_metrics.questions.groups",
    "for_trainer": "text_metrics.training.trainer",
    "for_rewards": "text_metrics.training.rewards",
    "SampleCallback": "text_metrics.training.samples",
    "Scorer": "text_metrics.scorer",
    "report": "text_metrics.commands.report.scores",
    "describe": "text_metrics.commands.report.scores",
}


def __getattr__(name: str) -> Any:
    """Return a name of the package at its first use, or the version, which is that of the signatures."""
    if name == "__version__":
        from text_metrics.metrics._core.core_results import VERSION

        return VERSION
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def load(name: str, **settings: Any) -> Any:
    """Load a metric by `evaluate.load`, from the installed folder; its evaluators are imported when they are used.

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
    from text_metrics.imports import import_evaluate

    return import_evaluate().load(str(FOLDER / name), **settings)
