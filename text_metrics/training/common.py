"""What evaluation in training and rewards share."""

import sys
from collections.abc import Mapping
from typing import Any

import text_metrics
from text_metrics.metrics._core.core_settings import CALL


def read_metric(metric: Any, settings: Mapping[str, Any], caller: str) -> Any:
    """Load a metric by its name, and raise an error for a setting that is invalid or not known before training."""
    metric = text_metrics.load(metric) if isinstance(metric, str) else metric
    metric.settings.read(settings, metric.name)
    declared = metric.settings.declared()
    for name in settings:
        if declared[name].given != CALL:
            raise ValueError(f"{name} cannot be given to {caller}: it has a value for each {declared[name].given}.")
    return metric


def count_processes() -> int:
    """Count the processes of torch.distributed; 1 where it is not in use."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return distributed.get_world_size()
