"""Import `evaluate` without its evaluators, until they are used."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any

_EVALUATORS = "evaluate.evaluator"


def import_evaluate() -> Any:
    """Import `evaluate`.

    Its evaluators import `transformers.pipelines`, which takes three quarters of the time. They are imported at the
    first use of one of their names, in `evaluate` or in `evaluate.evaluator`, and work as if they were imported before.
    """
    package = find_spec("evaluate") if "evaluate" not in sys.modules else None
    spec = PathFinder.find_spec(_EVALUATORS, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        return import_module("evaluate")
    absent, stand_in = object(), ModuleType(_EVALUATORS)
    stand_in.__getattr__ = lambda name: absent  # type: ignore[method-assign]
    sys.modules[_EVALUATORS] = stand_in
    try:
        evaluate: Any = import_module("evaluate")
    finally:
        del sys.modules[_EVALUATORS]
    names = [name for name, value in vars(evaluate).items() if value is absent]
    for name in names:
        delattr(evaluate, name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[_EVALUATORS] = module_from_spec(spec)
    spec.loader.exec_module(module)

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module 'evaluate' has no attribute {name!r}")
        return getattr(module, name)

    evaluate.__getattr__ = find
    # It has read one of the names.
    evaluate.evaluation_suite.evaluator = lambda *args, **kwargs: evaluate.evaluator(*args, **kwargs)
    return evaluate
