"""Measurement of time and memory, each side in a fresh process, in turns; and a description of the machine."""

import datetime
import importlib.metadata
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scripts.reports.benchmark.cases import CASES
from scripts.reports.benchmark.inputs import captions_file

# Each size is measured this often, or until its time is spent; but at least once.
MAX_TURNS = 7
# A turn repeats a score that takes less than this, and reports the mean.
TURN_SECONDS = 0.2
# Thread pools spin for a while after their work is done: let those of one side stop before the turn of the other.
REST_SECONDS = 0.2
MEGABYTE = 1e6

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "torch",
    "transformers",
    "sentence-transformers",
    "evaluate",
    "pandas",
    "fast-bleu",
    "vendi-score",
    "rapidfuzz",
)
# The instructions that decide how fast a processor multiplies matrices of float32 and bfloat16.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")


class Measurement(NamedTuple):
    """Time, memory and numbers of one side at one size; megabytes are None where the system does not report them."""

    seconds: float
    megabytes: float | None
    numbers: np.ndarray


def peak_memory(reset: bool) -> float | None:
    """Read the peak resident memory of this process, in bytes; with `reset`, the current resident memory."""
    if sys.platform != "linux":
        return None
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def serve(pipe: Connection, name: str, side: str, n: int, scratch: str) -> None:
    """Score an input on each request, and send seconds and megabytes; at the end, send the numbers.

    The first message is an empty string once the process is ready, or the error of an import.
    """
    tempfile.tempdir = scratch
    case = CASES[name]
    score = case.ours if side == "ours" else case.peer.score
    inputs = case.inputs(n)
    try:
        score(inputs if case.warm_up is None else case.inputs(case.warm_up))
    except ImportError as error:
        pipe.send(str(error))
        return
    before = peak_memory(reset=True)
    pipe.send("")
    numbers = None
    while pipe.recv():
        peak_memory(reset=True)
        start, seconds, n_scores = time.perf_counter(), 0.0, 0
        while seconds < TURN_SECONDS:
            numbers = None
            numbers = score(inputs)
            seconds, n_scores = time.perf_counter() - start, n_scores + 1
        peak = peak_memory(reset=False)
        pipe.send((seconds / n_scores, None if before is None or peak is None else (peak - before) / MEGABYTE))
    pipe.send(np.asarray(numbers))


@contextmanager
def worker(name: str, side: str, n: int) -> Iterator[Connection]:
    """Start a fresh process that serves one side, and remove its files at the end."""
    context = multiprocessing.get_context("spawn")
    pipe, other_end = context.Pipe()
    with tempfile.TemporaryDirectory() as scratch:
        process = context.Process(target=serve, args=(other_end, name, side, n, scratch))
        process.start()
        other_end.close()
        try:
            yield pipe
        finally:
            process.terminate()
            process.join()


def measure(name: str, n: int, sides: list[str], budget: float) -> list[Measurement]:
    """Measure the sides in turns for about `budget` seconds.

    Raises an ImportError if a package is missing, and an EOFError if a process ends early.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(name, side, n)) for side in sides]
        lacks = [pipe.recv() for pipe in workers]
        if any(lacks):
            raise ImportError("; ".join(filter(None, lacks)))
        turns: list[list[tuple[float, float | None]]] = [[] for _ in sides]
        start = time.perf_counter()
        for _ in range(MAX_TURNS):
            for pipe, taken in zip(workers, turns, strict=True):
                time.sleep(REST_SECONDS)
                pipe.send(True)
                taken.append(pipe.recv())
            if time.perf_counter() - start > budget:
                break
        measured = []
        for pipe, taken in zip(workers, turns, strict=True):
            pipe.send(False)
            seconds, megabytes = zip(*taken, strict=True)
            peak = None if None in megabytes else max(megabytes)
            measured.append(Measurement(statistics.median(seconds), peak, pipe.recv()))
    return measured


def take_turns(steps: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Measure the processor seconds of each step, turn by turn; a list of `rounds` for each."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds):
        for name, run in steps.items():
            start = time.process_time()
            run()
            taken[name].append(time.process_time() - start)
            print(f"round {number + 1} of {rounds}, {name}: {taken[name][-1]:.1f} s", file=sys.stderr, flush=True)
    return taken


def machine() -> dict[str, str]:
    """Describe the machine, the system and the packages."""
    processor, flags = platform.processor() or platform.machine(), ""
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        about = {name.strip(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
        processor = about.get("model name", processor)
        flags = about.get("flags", about.get("Features", ""))
    known = [f"; {name}" for name in INSTRUCTIONS if name in flags.split()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    installed = {package.name.lower(): package.version for package in importlib.metadata.distributions()}
    versions = [f"{name} {installed[name]}" for name in PACKAGES if name in installed]
    missing = [name for name in PACKAGES if name not in installed]
    file = captions_file()
    threads = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ}
    return {
        "Date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "Processor": f"{processor}, {os.cpu_count()} cores{''.join(known)}",
        "Memory": f"{memory:.0f} GiB",
        "Accelerator": accelerator(),
        "System": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "Packages": ", ".join(versions) + (f"; not installed: {', '.join(missing)}" if missing else ""),
        "Threads": ", ".join(f"{name}={value}" for name, value in threads.items()) or "as many as each side takes",
        "Busy at the start": f"{os.getloadavg()[0]:.1f} processes, by the load average of a minute",
        "Captions": f"COCO, {file.name}" if file else "from templates",
        "Embeddings": "random, where a case scores embeddings that are given",
    }


def accelerator() -> str:
    """Name the accelerator that torch would choose."""
    import torch

    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    return "Apple GPU" if torch.backends.mps.is_available() else "none"
