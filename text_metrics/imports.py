"""Import `evaluate` without its evaluators, until they are used."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_EVALUATORS = "evaluate.evaluator"
_LOCK = RLock()
# What the names of the evaluators stand for while `evaluate` is imported.
_ABSENT = object()


class _LazyModule(ModuleType):
    """A module whose code runs at the first use of a name, once it `may_run`."""

    may_run: bool | None = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _LOCK:
            if self.may_run is False:
                return _ABSENT
            if self.may_run:
                self.may_run = None
                self.__spec__.loader.exec_module(self)  # type: ignore[union-attr]
        if name not in vars(self):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return vars(self)[name]


def import_evaluate() -> Any:
    """Import `evaluate`.

    Its evaluators import `transformers.pipelines`, which takes three quarters of the time. They are imported at the
    first use of one of their names, in `evaluate` or in `evaluate.evaluator`, and work as if they were imported before.
    """
    package = find_spec("evaluate") if "evaluate" not in sys.modules else None
    spec = PathFinder.find_spec(_EVALUATORS, package.submodule_search_locations) if package else None
    if spec is None:
        return import_module("evaluate")
    module: Any = module_from_spec(spec)
    module.__class__ = _LazyModule
    sys.modules[_EVALUATORS] = module
    try:
        evaluate: Any = import_module("evaluate")
    except BaseException:
        del sys.modules[_EVALUATORS]
        raise
    names = [name for name, value in vars(evaluate).items() if value is _ABSENT]
    for name in names:
        delattr(evaluate, name)

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module 'evaluate' has no attribute {name!r}")
        setattr(evaluate, name, getattr(module, name))
        return getattr(module, name)

    evaluate.__getattr__ = find
    # It has read one of the names.
    evaluate.evaluation_suite.evaluator = lambda *args, **kwargs: evaluate.evaluator(*args, **kwargs)
    module.may_run = True
    return evaluate
