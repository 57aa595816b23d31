"""The metrics of this package, loaded by name: `text_metrics.load("vendi_embed")`."""

import importlib
from pathlib import Path
from typing import Any

METRICS = ("chamfer_diversity", "gruen", "probeval", "self_bleu", "semantic_entropy", "vendi_embed")
_HERE = Path(__file__).resolve().parent
# A build puts metrics/ into the folder of this file; in a checkout it is beside that folder.
FOLDER = next(folder for folder in (_HERE / "metrics", _HERE.parent / "metrics") if folder.is_dir())

# Modules and names of what is imported at first use.
_LAZY = {
    "__version__": ("core_api", "VERSION"),
    "contributions": ("questions.contributions", "contributions"),
    "rarefied": ("questions.rarefied", "rarefied"),
    "between_groups": ("questions.groups", "between_groups"),
    "for_trainer": ("training.trainer", "TrainerMetric"),
    "for_rewards": ("training.rewards", "RewardFunction"),
    "SampleCallback": ("training.samples", "SampleCallback"),
    "Scorer": ("scorer", "Scorer"),
    "report": ("reporting.scores", "report"),
    "describe": ("reporting.scores", "describe"),
}


def __getattr__(name: str) -> Any:
    """Return a name of the package at its first use; the version is the one in signatures."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)


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
        If the name is not one of METRICS.
    """
    if name not in METRICS:
        from text_metrics.core_api import suggest

        raise ValueError(f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}.")
    from text_metrics.loading import import_evaluate

    return import_evaluate().load(str(FOLDER / name), **settings)
