"""What evaluation in training and rewards share."""

from collections.abc import Mapping
from typing import Any

from torch import distributed

import text_metrics
from text_metrics.metrics._core.core_settings import CALL


def read_metric(metric: Any, settings: Mapping[str, Any], caller: str) -> Any:
    """Load a metric by its name, and raise an error for a setting that is invalid or not known before training."""
    metric = text_metrics.load(metric) if isinstance(metric, str) else metric
    metric.settings.read(settings, metric.name)
    for name, declared in metric.settings.declared().items():
        if name in settings and declared.given != CALL:
            raise ValueError(f"{name} cannot be given to {caller}: it has a value for each {declared.given}.")
    return metric


def gather(value: Any) -> tuple[list[Any], int]:
    """Collect a value from all processes of torch.distributed, in order; also return the rank of this process."""
    if not distributed.is_available() or not distributed.is_initialized():
        return [value], 0
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values, distributed.get_rank()
