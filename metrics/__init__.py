"""The metrics, each a folder that `evaluate.load` takes, and the core that they share.

`evaluate.load` needs the core in each folder. In this package, the core of a metric has the objects of `_core`, so that
classes and caches are shared.
"""

import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_SECTION = re.compile(r"^# (core_\w+)\.py: ", re.MULTILINE)


class _SharedCore(MetaPathFinder, Loader):
    """Import `<metric>.core` of this package with the objects of the files of `_core` from which it is generated."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        parent, _, metric = package.rpartition(".")
        if name != "core" or parent != __name__:
            return None
        return spec_from_file_location(fullname, Path(__file__).parent / metric / "core.py", loader=self)

    def exec_module(self, module: ModuleType) -> None:
        _, *parts = _SECTION.split(Path(str(module.__file__)).read_text(encoding="utf-8"))

        def find(name: str) -> Any:
            """Return an object of the core, by importing only the file that defines it."""
            definition = re.compile(rf"^(?:class |def |(?:\w+, )*){name}\b", re.MULTILINE)
            for file, code in zip(parts[::2], parts[1::2], strict=True):
                if definition.search(code):
                    return getattr(importlib.import_module(f"{__name__}._core.{file}"), name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        vars(module)["__getattr__"] = find


sys.meta_path.insert(0, _SharedCore())
