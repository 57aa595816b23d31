"""The metric beside the app: loaded by its file, as `evaluate` loads it."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluate


def load(app: str, name: str) -> Any:
    """Load the metric that lies beside an app, as in a Space, or among the metrics of the checkout."""
    here = Path(app).resolve().parent
    script = here / f"{name}.py"
    if not script.is_file():
        script = here.parents[1] / "metrics" / name / f"{name}.py"
    return evaluate.load(str(script))


def part(metric: Any, name: str) -> ModuleType:
    """Give one of the files that a metric is made of: the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]
