"""Loading of the metric that a demo shows."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluate


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, where the build puts it."""
    return evaluate.load(str(Path(app).resolve().with_name(f"{name}.py")))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]
