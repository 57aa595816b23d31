"""Checks that no output of a command is one of its inputs."""

import os
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from text_metrics.commands.shared.files import temporary_name

# A model has its configuration and its tokenizer beside its weights.
_METRIC_FILES = (".py", ".safetensors")
_MODEL_FILES = (*_METRIC_FILES, ".bin", ".pt", ".gguf", ".onnx", ".json", ".txt", ".model")


class Folder(type(Path())):  # type: ignore[misc]
    """An output that is a folder, written as a whole."""


def parse_output(text: str) -> Path:
    """Read the path of an output, as a type of argparse: a folder if it ends in a slash, or is one already."""
    if not text.endswith("/") and not os.path.isdir(text):
        return Path(text)
    path = text.rstrip("/") or "/"
    return Folder(os.path.realpath(path) if os.path.islink(path) else path)


def check_outputs(
    reads: Iterable[str | Path | None], writes: Iterable[Path | None], folders: Iterable[Path] = ()
) -> None:
    """Check that no output is a file that is read, by any path or link, and that no two outputs are one file.

    Parameters
    ----------
    reads : files, and folders into which nothing may be written; what does not exist, such as an id of the Hub, is
        skipped, and so is None
    writes : files, and folders to which files are added; None is skipped
    folders : folders that the command makes and removes or replaces, so that nothing else may be in them

    Raises a ValueError if one is the other; it names both.
    """
    inputs = [path for path in reads if path is not None and os.path.exists(path)]
    outputs = [path for path in writes if path is not None]
    taken: list[tuple[Path, Path]] = []
    for output in outputs:
        places = (output, temporary_name(output))
        for place, path in product(places, inputs):
            if _is_same(place, path):
                raise _output_error(output, f"the same file as {path}, which is read")
            if any(_is_same(parent, path) for parent in _parents(place)):
                raise _output_error(output, f"in the folder {path}, which is read")
        for place, (other_place, other) in product(places, taken):
            if _is_same(place, other_place):
                raise _output_error(output, f"the same file as {other}, another output")
        taken += [(place, output) for place in places]
    for folder, path in product(folders, inputs):
        if any(_is_same(folder, place) for place in [path, *_parents(path)]):
            raise _output_error(folder, f"a folder that is removed at the end, and {path}, which is read, is in it")
    for folder, output in product(folders, outputs):
        if any(_is_same(folder, place) for place in _parents(output)):
            raise _output_error(output, f"in the folder {folder}, which is removed at the end")


def module_files(name: str | Path | None) -> list[str | Path]:
    """List the files of a model or of a metric, where the name is a path; other files may be beside them."""
    if name is None or not os.path.isdir(name):
        return [] if name is None else [name]
    folder = Path(name)
    # A metric's folder has a script of its name.
    kinds = _METRIC_FILES if (folder / f"{folder.resolve().name}.py").is_file() else _MODEL_FILES
    return [path for path in [*folder.glob("*"), *folder.glob("*/*")] if path.suffix in kinds]


def _output_error(output: Path, reason: str) -> ValueError:
    return ValueError(f"{output} cannot be written, because it is {reason}: choose another output.")


def _parents(path: str | Path) -> Iterable[Path]:
    return Path(os.path.realpath(path)).parents


def _is_same(first: str | Path, second: str | Path) -> bool:
    if os.path.exists(first) and os.path.exists(second):
        # Devices, such as /dev/null, may be given more than once.
        return os.path.samefile(first, second) and (os.path.isfile(first) or os.path.isdir(first))
    return os.path.realpath(first) == os.path.realpath(second)
