"""Read and write files, for all commands: an output is complete or absent, and never an input."""

import io
import json
import os
import re
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

# Compressions as pyarrow names them. `fsspec` reads only the first frame of a .zst file.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def file_format(path: Path) -> str:
    """Return the format of a file as the suffix of its decompressed name, such as `.csv` for `data.csv.gz`."""
    return (path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()


def parse_path(text: str) -> Path:
    """Read a path, or a URL that `fsspec` opens, as a type of argparse."""
    if "://" not in text:
        return Path(text)
    from upath import UPath

    try:
        path: Any = UPath(text)
        exists = path.exists()
    except Exception as error:  # Each file system has its own errors, such as missing credentials.
        problem = f"{text} cannot be read: {type(error).__name__}: {error}"
        raise ArgumentTypeError(without_secrets(problem)) from None
    if not exists:
        raise ArgumentTypeError(without_secrets(f"{text} does not exist."))
    # Outputs are compared with paths of this machine.
    return Path(path.path) if path.protocol in ("file", "local") else path


def without_secrets(text: str) -> str:
    """Cut names, passwords and queries out of the URLs in a text."""
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", re.sub(r"://[^/\s]*@", "://", text))


@contextmanager
def open_file(path: Path) -> Iterator["io.BufferedReader[Any]"]:
    """Open a file to read bytes, decompressed if it is .gz or .zst; raises a ValueError that names the file."""
    codec = COMPRESSIONS.get(path.suffix.lower())
    try:
        raw: Any = path.open("rb", buffering=0)
        if codec is not None:
            import pyarrow as pa

            raw = pa.CompressedInputStream(raw, codec)
        with io.BufferedReader(raw, 2**16) as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def parse_json(data: bytes) -> Any:
    """Parse JSON in UTF-8. NaN, which is common though invalid, becomes None; a byte order mark is skipped.

    Raises a ValueError if it is not JSON, is nested too deeply, or has an unpaired surrogate.
    """
    with suppress(ValueError, RecursionError):
        # Three times as fast; what it rejects, such as NaN, is read below.
        return msgspec.json.decode(data)
    text = data.decode("utf-8-sig")
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def to_json(value: Any) -> str:
    """Format as JSON: binary data as base64, times and decimals as strings, NaN and infinity as null."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Write a file of JSON lines atomically."""
    write_text(path, "".join(f"{to_json(value)}\n" for value in values))


def write_text(path: Path, text: str) -> None:
    """Write a file atomically, as `written_whole` does; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as name:
        name.write_text(text, encoding="utf-8")


@contextmanager
def written_whole(path: Path, temporary: Path | None = None) -> Iterator[Path]:
    """Yield a name to write a file under, which is renamed to `path` once it is complete; an OSError names a file.

    The name is new, unless it is given. A link is followed. A special file, such as /dev/stdout, keeps its name.
    """
    if path.is_symlink():
        path = Path(os.path.realpath(path))
        temporary = None
    if path.exists() and not path.is_file():
        temporary = path
    temporary = temporary or path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        with named_writing(path):
            yield temporary
            if temporary != path:
                put(temporary, path)
    except BaseException:
        if temporary != path:
            temporary.unlink(missing_ok=True)
        raise


def put(temporary: Path, path: Path) -> None:
    """Move a complete file to its name, once it is on the disk."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)


@contextmanager
def named_writing(path: Path) -> Iterator[None]:
    """Name the file in errors of writing it: on a full disk, the system's error has no name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def check_outputs(
    reads: Iterable[str | Path | None],
    writes: Iterable[Path | None],
    settings: Mapping[str, Any] | None = None,
    removed: Path | None = None,
) -> None:
    """Check that no output is a file that is read, by any path or link, and that no two outputs are one file.

    reads : files, and folders into which nothing may be written; None and missing files are skipped
    writes : files, and folders to which files are added; None is skipped
    settings : settings of a metric; those that name a model are read, and a cache is written
    removed : a folder that the command removes, so that nothing else may be in it

    Raises a ValueError if one is the other; it names both.
    """
    for name, value in (settings or {}).items():
        # A value that is not a path, such as kernel="ngram", may be the name of a folder.
        if isinstance(value, str) and name != "cache_dir" and (name.endswith("model") or os.sep in value):
            reads = [*reads, value]
    inputs = [Path(path) for path in reads if path is not None and os.path.exists(path)]
    outputs = [path for path in writes if path is not None]
    if isinstance(cache := (settings or {}).get("cache_dir"), str) and cache:
        outputs.append(Path(cache).expanduser())
    read = {_identity(path): path for path in inputs}
    written: dict[Any, Path] = {}
    for output in outputs:
        for place in _places(output):
            if place in read:
                raise _output_error(output, f"is the same file as, or in, {read[place]}, which is read")
        if (earlier := written.setdefault(_identity(output), output)) is not output:
            raise _output_error(output, f"is the same file as {earlier}, another output")
    for path in inputs + outputs:
        if removed is not None and _identity(removed) in _places(path):
            raise _output_error(removed, f"is removed at the end, and holds {path}")


def _output_error(output: Path, reason: str) -> ValueError:
    return ValueError(f"{output} cannot be written, because it {reason}: choose another output.")


def _places(path: Path) -> list[Any]:
    """Identify a file, and all folders that it is in."""
    return [_identity(each) for each in (path, *Path(os.path.realpath(path)).parents)]


def _identity(path: Path) -> Any:
    """Identify a file or folder by any name or link; a device, such as /dev/null, may be given twice."""
    if os.path.isfile(path) or os.path.isdir(path):
        return os.stat(path).st_dev, os.stat(path).st_ino
    return object() if os.path.exists(path) else os.path.realpath(path)
