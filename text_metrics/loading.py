"""Load metrics, and `evaluate` without its evaluators until they are used."""

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from typing import Any

from text_metrics import METRICS, load
from text_metrics.core_api import first_line, suggest

_EVALUATORS = "evaluate.evaluator"


def import_evaluate() -> Any:
    """Import `evaluate`.

    Its evaluators import `transformers.pipelines`, which takes three quarters of the time. They are imported at the
    first use of one of their names.
    """
    package = find_spec("evaluate") if "evaluate" not in sys.modules else None
    spec = PathFinder.find_spec(_EVALUATORS, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        return import_module("evaluate")
    module: Any = module_from_spec(spec)
    execute = spec.loader.exec_module
    names: set[str] = set()
    lock = RLock()
    is_executed = False

    def note(name: str) -> None:
        """Note a name that `evaluate` imports, which is None for now."""
        if name.startswith("__"):
            raise AttributeError(name)
        names.add(name)

    def load(name: str) -> Any:
        """Execute the module at the first use of a name; others, such as torch, look for special names in it."""
        nonlocal is_executed
        with lock:
            if not is_executed and not name.startswith("__"):
                is_executed = True
                execute(module)
        if name not in vars(module):
            raise AttributeError(f"module {_EVALUATORS!r} has no attribute {name!r}")
        return vars(module)[name]

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module 'evaluate' has no attribute {name!r}")
        return load(name)

    module.__getattr__ = note
    sys.modules[_EVALUATORS] = module
    try:
        evaluate: Any = import_module("evaluate")
    except BaseException:
        del sys.modules[_EVALUATORS]
        raise
    for name in names:
        vars(evaluate).pop(name, None)
    module.__getattr__ = load
    evaluate.__getattr__ = find
    evaluate.evaluation_suite.evaluator = lambda *args, **kwargs: load("evaluator")(*args, **kwargs)
    return evaluate


def load_metric(name: str, from_hub: bool = True) -> Any:
    """Load a metric of the package by its name, or a module of `evaluate` by its path or from the Hub."""
    if name in METRICS or not (from_hub or os.sep in name or os.path.isdir(name)):
        return load(name)
    try:
        return import_evaluate().load(name)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(
            f"there is no metric {name!r}{suggest(name, METRICS)} The metrics are {', '.join(METRICS)}, and modules of "
            f"`evaluate`: {first_line(error)}"
        ) from error
