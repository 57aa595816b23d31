"""The metrics, each a folder that `evaluate.load` takes, and the core that they share.

`evaluate.load` needs a copy of the core in each folder. In this package, a copy is the same module as its original in
`_core`, so that classes and caches are shared.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _SharedCore(MetaPathFinder, Loader):
    """Import `<metric>.core_x` of this package as `_core.core_x`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder, _, name = fullname.rpartition(".")
        package, _, metric = folder.rpartition(".")
        if package != __name__ or metric == "_core" or not name.startswith("core_"):
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"{__name__}._core.{spec.name.rpartition('.')[2]}")
        # The import system replaces the specification of the module by that of the copy.
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _SharedCore())
