"""Checks that no output of a command is one of its inputs."""

import os
from collections.abc import Iterable
from pathlib import Path

from text_metrics.commands.shared.files import temporary_name


def check_outputs(
    reads: Iterable[str | Path | None], writes: Iterable[Path | None], folders: Iterable[Path] = ()
) -> None:
    """Check that no output is a file that is read, by any path or link, and that no two outputs are one file.

    Parameters
    ----------
    reads : files, and folders into which nothing may be written; what does not exist, such as an id of the Hub, is
        skipped, and so is None
    writes : files, and folders to which files are added; None is skipped
    folders : folders that the command makes and removes, so that nothing else may be in them

    Raises a ValueError if one is the other; it names both.
    """
    inputs = [Path(path) for path in reads if path is not None and os.path.exists(path)]
    outputs = [path for path in writes if path is not None]
    taken: list[Path] = []
    for output in outputs:
        places = [output, temporary_name(output)]
        for problem, paths in (("which is read", inputs), ("another output", taken)):
            for path in paths:
                is_in = problem == "which is read" and any(_is_in(place, path) for place in places)
                if is_in or any(_is_same(place, path) for place in places):
                    raise _output_error(output, f"is the same file as, or in, {path}, {problem}")
        taken += places
    for folder in folders:
        for path in [*inputs, *outputs]:
            if _is_same(folder, path) or _is_in(path, folder):
                raise _output_error(folder, f"is removed at the end, and holds {path}")


def _output_error(output: Path, reason: str) -> ValueError:
    return ValueError(f"{output} cannot be written, because it {reason}: choose another output.")


def _is_in(path: Path, folder: Path) -> bool:
    return any(_is_same(parent, folder) for parent in Path(os.path.realpath(path)).parents)


def _is_same(first: Path, second: Path) -> bool:
    if os.path.exists(first) and os.path.exists(second):
        # Devices, such as /dev/null, may be given more than once.
        return os.path.samefile(first, second) and (os.path.isfile(first) or os.path.isdir(first))
    return os.path.realpath(first) == os.path.realpath(second)
