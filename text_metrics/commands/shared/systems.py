"""Files that are systems, by their names."""

import glob
from collections.abc import Sequence
from pathlib import Path

from text_metrics.commands.shared.files import COMPRESSIONS, parse_path


def named_files(words: Sequence[str]) -> dict[str, Path]:
    """Name the files of systems: NAME=path, or a path, which is named by its stem, and by its folders as far as needed.

    A path may be a folder, or a pattern of names such as `runs/*.jsonl`: after NAME=, what it names is one system, and
    otherwise each file is one. Raises a ValueError if two systems have one name.
    """
    named: list[tuple[str | None, Path]] = []
    for word in words:
        name, _, path = word.partition("=")
        if name and path and "/" not in name and not Path(word).exists():
            named.append((name, parse_path(path)))
        elif "://" in word or Path(word).exists():
            named.append((None, parse_path(word)))
        else:
            named += [(None, Path(each)) for each in sorted(glob.glob(word)) or [word]]
    paths = [path for name, path in named if name is None]
    names = [name or _distinct_name(path, paths) for name, path in named]
    if len(set(names)) < len(names):
        raise ValueError(f"each system needs a name of its own: pass NAME=path. Got {', '.join(names)}.")
    return dict(zip(names, (path for _, path in named), strict=True))


def _distinct_name(path: Path, paths: Sequence[Path]) -> str:
    """Return the stem of a path, with as many of its folders as tell it from the others."""
    parts, rivals = _parts(path), [_parts(other) for other in paths if other is not path]
    depth = next((n for n in range(1, len(parts)) if all(parts[-n:] != other[-n:] for other in rivals)), len(parts))
    return "/".join(parts[-depth:])


def _parts(path: Path) -> list[str]:
    stem = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    return [*path.parts[:-1], path.name if path.is_dir() else stem.stem]
