"""Loading of the metric that a demo shows."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluate


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, as in a Space, else from the metrics of the checkout."""
    here = Path(app).resolve().parent
    script = here / f"{name}.py"
    if not script.is_file():
        script = here.parents[1] / "metrics" / name / f"{name}.py"
    return evaluate.load(str(script))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]
