"""Files as tests write and read them, pipes, and disks that are full."""

import csv
import json
import os
import resource
import signal
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.files.columns import parse_cell


def write_jsonl(path, values):
    """Write a value on each line; returns the path."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def write_data(path, rows):
    """Write rows by the suffix of a path, or to a folder of `datasets`; in CSV, lists are JSON, and None no field."""
    if not path.suffix:
        datasets.Dataset.from_list(rows).save_to_disk(path)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        lines = []
        for row in rows:
            cells = [cell for cell in row.values() if cell is not None]
            lines.append([cell if isinstance(cell, str) else json.dumps(cell) for cell in cells])
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(rows[0]), *lines])
    else:
        write_jsonl(path, rows)
    return path


def compress(path, suffix):
    """Compress a file as .gz or .zst; returns the path of the compressed one."""
    with pa.CompressedOutputStream(f"{path}{suffix}", {".gz": "gzip", ".zst": "zstd"}[suffix]) as stream:
        stream.write(path.read_bytes())
    path.unlink()
    return path.with_name(f"{path.name}{suffix}")


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_data(path):
    """Read the rows of an output; in CSV, cells that are JSON are parsed."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return read_jsonl(path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = []
        for row in csv.DictReader(file):
            rows.append({name: parse_cell(cell) for name, cell in row.items()})
        return rows


@contextmanager
def small_files(n_bytes):
    """Let no file of this process grow beyond some bytes, as on a full disk: the system refuses with an error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
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
    """Make a pipe that gives some bytes once; returns its path, which has this name if it is a named one."""
    reader = None
    if kind == "fifo":
        path = writer = Path(name)
        os.mkfifo(path)
    else:
        reader, writer = os.pipe()
        path = Path(f"/dev/fd/{reader}")

    def write():
        # That of a named pipe waits for a reader, which must open it once: the bytes are gone afterwards.
        with suppress(BrokenPipeError), open(writer, "wb", buffering=0) as file:
            file.write(content)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        if reader is None:
            # Nobody may have opened it.
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            path.unlink()
        os.close(reader)
        thread.join(timeout=10)
