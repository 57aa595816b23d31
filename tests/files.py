"""Files of JSON lines, as tests write and read them, and disks that are full."""

import json
import os
import resource
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

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


# A named pipe, and what a shell makes of <(command).
KINDS_OF_PIPES = ("fifo", "/dev/fd")


@contextmanager
def pipe_of(content, kind, name="pipe"):
    """Make a pipe that gives some bytes once: a path, of that name in this folder if it is a named one.

    They must be more than a pipe holds, 64 KiB, so that a named one is not at its end before a reader has it open.
    """
    if kind == "fifo":
        os.mkfifo(name)
        # Opened for both, so that no end waits for the other one.
        path, reader = Path(name), os.open(name, os.O_RDWR)
        writer = os.open(name, os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        path = Path(f"/dev/fd/{reader}")
    rest = [reader]

    def write():
        with suppress(BrokenPipeError, OSError), open(writer, "wb", buffering=0) as file:
            for begin in range(0, len(content), 4096):
                file.write(content[begin : begin + 4096])
            if kind == "fifo":
                # A reader has the file open by now, and needs its end.
                os.close(rest.pop())

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        for end in rest:
            os.close(end)
        if kind == "fifo":
            os.unlink(name)
