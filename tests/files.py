"""Files of JSON lines, as tests write and read them, and disks that are full."""

import json
import resource
import signal
from contextlib import contextmanager

import pyarrow as pa


def write_jsonl(path, values):
    """Write a value on each line; returns the path."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def compress(path, suffix):
    """Compress a file as .gz or .zst; returns the path of the compressed one."""
    with pa.CompressedOutputStream(f"{path}{suffix}", {".gz": "gzip", ".zst": "zstd"}[suffix]) as stream:
        stream.write(path.read_bytes())
    path.unlink()
    return path.with_name(f"{path.name}{suffix}")


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def small_files(n_bytes):
    """Let no file of this process grow beyond some bytes, as on a full disk: the system refuses with an error."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
