"""List the files that a path, a folder or a pattern names, and those that are ignored."""

import glob
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from text_metrics.files.reading import current
from text_metrics.files.storage import COMPRESSIONS, file_format, parse_path
from text_metrics.files.written import PROGRAM, Written, find_writer

_DATASETS = "of `datasets`"
# The formats of the files of a folder: the first one that it has is read.
_KINDS = {
    "Parquet": (".parquet",),
    _DATASETS: (".arrow",),
    "JSON": (".json", ".jsonl", ".ndjson"),
    "CSV": (".csv", ".tsv"),
    "text": (".txt",),
}
_DATA = set(chain.from_iterable(_KINDS.values()))


class Listing(NamedTuple):
    """The files of a path, in order, and the names of other files beside them, by the reason why they are ignored."""

    files: list[Path]
    ignored: dict[str, list[str]]


def data_files(path: Path) -> list[Path]:
    """List the files of a path, as `list_files` does."""
    return list_files(path).files


def list_files(path: Path) -> Listing:
    """List the files of a path, which may be a pattern such as `runs/*.jsonl`, and the ignored files beside them.

    Of a folder, these are its Parquet files, or the Arrow files that `datasets` saved, or its JSON files, or its CSV
    files; and Parquet files of subfolders, unless there are others in the folder itself. Hidden files of a folder or
    pattern are ignored, and so are files that commands wrote. Raises a ValueError if no file is left.
    """
    if path.is_dir():
        return _files_of_folder(path)
    if not path.exists():
        return _files_of_pattern(path)
    if writer := find_writer(path):
        if writer.is_record:
            raise ValueError(f"{path} was written by {writer.command}, and holds no texts: pass the file of the texts.")
        current().note_own(path, writer.command)
    return Listing([path], {})


def _files_of_folder(folder: Path) -> Listing:
    if (folder / "dataset_dict.json").exists():
        splits = sorted(each.name for each in folder.iterdir() if each.is_dir())
        raise ValueError(f"{folder} has splits: pass the folder of one of them, {', '.join(splits)}.")
    entries = sorted(folder.iterdir())
    visible = [each for each in entries if not each.name.startswith(".")]
    files, subfolders, own = _without_own(visible)
    data: dict[str, list[Path]] = {}
    for name, suffixes in _KINDS.items():
        data[name] = [each for each in files if file_format(each) in suffixes]
    # Other Arrow files are caches of `datasets`, or of a larger dataset that was in this folder.
    state = folder / "state.json"
    saved = state.read_text(encoding="utf-8") if state.exists() else ""
    data[_DATASETS] = [each for each in data[_DATASETS] if f'"{each.name}"' in saved]
    if data[_DATASETS]:
        data["JSON"] = [each for each in data["JSON"] if each.name not in ("state.json", "dataset_info.json")]
    # A text file beside data is more often about them than one of them.
    kind = next((name for name, paths in data.items() if paths and name != "text"), "Parquet")
    nested = _parquet_below(subfolders) if kind == "Parquet" else []
    chosen = sorted(data.pop(kind) + nested)
    others = [each.name for each in chain.from_iterable(data.values())]
    # All folders that a chosen file is in.
    read = set(chain.from_iterable(file.parents for file in chosen))
    unread = [f"{each.name}/" for each in subfolders if each not in read]
    hidden = [each.name for each in entries if each.name.startswith(".") and file_format(each) in _DATA]
    ignored = {**own, f"not {kind}": others, "subfolders": unread, "hidden": hidden}
    ignored = {reason: names for reason, names in ignored.items() if names}
    if not chosen:
        left = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in ignored.items())
        raise ValueError(f"{folder} has no Parquet, JSON or CSV files, nor files of `datasets`{left and f': {left}'}.")
    return Listing(chosen, ignored)


def _parquet_below(folders: Iterable[Path]) -> list[Path]:
    """List the Parquet files of folders and of their subfolders, without those that begin with `.` or `_`."""
    found = []
    for folder in folders:
        for file in folder.rglob("*.parquet"):
            names = file.relative_to(folder.parent).parts
            if not any(name.startswith((".", "_")) for name in names) and find_writer(file) is None:
                found.append(file)
    return found


def _files_of_pattern(pattern: Path) -> Listing:
    named = list(map(Path, sorted(glob.glob(str(pattern)))))
    if not named:
        raise ValueError(f"{pattern} does not exist.")
    files, folders, ignored = _without_own(named)
    for folder in folders:
        try:
            listing = _files_of_folder(folder)
        except ValueError:
            listing = Listing([], {"no data": [""]})
        files += listing.files
        for reason, names in listing.ignored.items():
            ignored.setdefault(reason, []).extend(f"{folder.name}/{name}" for name in names)
    if not files:
        left = ", ".join(chain.from_iterable(ignored.values()))
        raise ValueError(f"{pattern} names no data, but {left}, which commands wrote: name a file itself to read it.")
    return Listing(files, ignored)


def _without_own(paths: Iterable[Path]) -> tuple[list[Path], list[Path], dict[str, list[str]]]:
    """Divide paths into files, folders, and files that commands wrote, by the reason."""
    files = []
    folders = []
    own: dict[str, list[str]] = {}
    for path in paths:
        writer = find_writer(path)
        if writer is not None:
            own.setdefault(f"written by {writer.command}", []).append(path.name)
        elif path.is_dir():
            folders.append(path)
        else:
            files.append(path)
    return files, folders, own


def is_pattern(path: Path) -> bool:
    """Tell whether a path is a pattern of names, and not the name of a file."""
    return isinstance(path, Path) and glob.has_magic(str(path)) and not path.exists()


def fixed_folder(pattern: Path) -> Path:
    """Return the deepest folder that a pattern names without wildcards."""
    return next(folder for folder in pattern.parents if not glob.has_magic(str(folder)))


def output_beside(path: Path) -> Path:
    """Return the base path of an output: for a pattern, without its wildcards.

    For `runs/*.jsonl`, it is `runs/all.jsonl`, and for `runs/day-*/a.jsonl`, it is `runs/day-a.jsonl`.
    """
    if not is_pattern(path):
        return path
    folder = fixed_folder(path)
    suffix = "" if glob.has_magic(path.suffix) else file_format(path)
    fixed = re.sub(r"\[[^]]*\]|[*?]", " ", str(path.relative_to(folder)).partition(".")[0])
    words = [word for part in re.findall(r"\w+", fixed) if (word := part.strip("_"))]
    return folder / f"{'-'.join(words) or 'all'}{suffix}"


def named_files(words: Sequence[str], takes_answers: bool = False) -> dict[str, Path]:
    """Name the files of systems: NAME=path, or a path, which is named by its stem, and by folders if needed.

    A path may be a folder, or a pattern of names such as `runs/*.jsonl`: after NAME=, its files are one system, and
    otherwise each file is one, but for those that commands wrote; `takes_answers` says that answers of chat models are
    wanted. Of several files that are named, as by a shell for a pattern, records and scores of another one are
    ignored. Raises a ValueError if two systems have one name.
    """
    named: list[tuple[str | None, Path]] = []
    for word in words:
        name, path = _split_name(word)
        if name and path and "/" not in name and not Path(word).exists():
            named.append((name, parse_path(path)))
        elif "://" in word or Path(word).exists():
            named.append((None, parse_path(word)))
        else:
            found = list(map(Path, sorted(glob.glob(word)))) or [Path(word)]
            named += [(None, each) for each in found if not _is_own(each, takes_answers)]
    paths = [path for name, path in named if name is None]
    if len(paths) > 1:
        named = [(name, path) for name, path in named if name is not None or not _repeats(path, paths)]
        paths = [path for name, path in named if name is None]
    if words and not named:
        raise ValueError(f"{', '.join(words)}: only files that commands wrote. Name a file itself to read it.")
    names = [name or _distinct_name(path, paths) for name, path in named]
    if len(set(names)) < len(names):
        raise ValueError(f"each system needs a name of its own: pass NAME=path. Got {', '.join(names)}.")
    return dict(zip(names, (path for _, path in named), strict=True))


def _split_name(word: str) -> tuple[str, str]:
    """Split NAME=path at the last `=` whose path exists, so that a name may be `T=0.3`; or else at the first one."""
    places = [i for i, character in enumerate(word) if character == "="]
    for i in reversed(places):
        path = word[i + 1 :]
        if path and ("://" in path or glob.glob(path) or Path(path).exists()):
            return word[:i], path
    name, _, path = word.partition("=")
    return name, path


def _is_own(path: Path, takes_answers: bool) -> bool:
    """Tell whether a command wrote a file that a pattern names, which is then ignored."""
    writer = find_writer(path)
    if writer is None or (takes_answers and writer.command == PROGRAM and not writer.is_record):
        return False
    current().ignore({f"written by {writer.command}": [path.name]})
    return True


def _repeats(path: Path, paths: Sequence[Path]) -> bool:
    """Tell whether to ignore a named file: a record of a command, or the scores of another named file."""
    writer = find_writer(path)
    if writer is None:
        return False
    repeats = writer.is_record or any(_is_scored(writer, other) for other in paths if other is not path)
    if repeats:
        current().ignore({f"written by {writer.command}": [path.name]})
    return repeats


def _is_scored(writer: Written, data: Path) -> bool:
    """Tell whether the output of a command holds the scores of a file."""
    if writer.command != f"{PROGRAM} score" or not (isinstance(data, Path) and data.is_file()):
        return False
    stat = data.stat()
    recorded = (Path(str(writer.of.get("data"))).name, writer.of.get("size"), writer.of.get("modified"))
    return recorded == (data.name, stat.st_size, stat.st_mtime_ns)


def _distinct_name(path: Path, paths: Sequence[Path]) -> str:
    """Return the stem of a path, with as many of its folders as make it unique."""
    parts = _parts(path)
    rivals = [_parts(other) for other in paths if other is not path]
    depth = 1
    while depth < len(parts) and any(other[-depth:] == parts[-depth:] for other in rivals):
        depth += 1
    return "/".join(parts[-depth:])


def _parts(path: Path) -> list[str]:
    stem = path.with_suffix("") if path.suffix in COMPRESSIONS else path
    return [*path.parts[:-1], path.name if path.is_dir() else stem.stem]
