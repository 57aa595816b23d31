"""Checks that no output of a command is one of its inputs."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def check_outputs(
    reads: Iterable[str | Path | None],
    writes: Iterable[Path | None],
    settings: Mapping[str, Any] | None = None,
    removed: Path | None = None,
) -> None:
    """Check that no output is a file that is read, by any path or link, and that no two outputs are one file.

    Parameters
    ----------
    reads : files, and folders into which nothing may be written; what does not exist, such as an id of the Hub, is
        skipped, and so is None
    writes : files, and folders to which files are added; None is skipped
    settings : of a metric; those that name a model are read, and a cache is written
    removed : a folder that the command makes and removes, so that nothing else may be in it

    Raises a ValueError if one is the other; it names both.
    """
    settings = settings or {}
    reads = [*reads, *(value for name, value in settings.items() if _is_path(name, value))]
    inputs = [Path(path) for path in reads if path is not None and os.path.exists(path)]
    outputs = [path for path in writes if path is not None]
    if isinstance(cache := settings.get("cache_dir"), str) and cache:
        outputs.append(Path(cache).expanduser())
    for i, output in enumerate(outputs):
        for path in inputs:
            if _is_same(output, path) or _is_in(output, path):
                raise _output_error(output, f"is the same file as, or in, {path}, which is read")
        for path in outputs[:i]:
            if _is_same(output, path):
                raise _output_error(output, f"is the same file as {path}, another output")
    for path in [*inputs, *outputs]:
        if removed is not None and (_is_same(removed, path) or _is_in(path, removed)):
            raise _output_error(removed, f"is removed at the end, and holds {path}")


def _is_path(name: str, value: Any) -> bool:
    # A value that is no path, such as that of kernel="ngram", may be the name of a folder.
    return isinstance(value, str) and name != "cache_dir" and (name.endswith("model") or os.sep in value)


def _output_error(output: Path, reason: str) -> ValueError:
    return ValueError(f"{output} cannot be written, because it {reason}: choose another output.")


def _is_in(path: Path, folder: Path) -> bool:
    return any(_is_same(parent, folder) for parent in Path(os.path.realpath(path)).parents)


def _is_same(first: Path, second: Path) -> bool:
    if os.path.exists(first) and os.path.exists(second):
        # Devices, such as /dev/null, may be given more than once.
        return os.path.samefile(first, second) and (os.path.isfile(first) or os.path.isdir(first))
    return os.path.realpath(first) == os.path.realpath(second)
