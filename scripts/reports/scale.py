"""Measure `text-metrics score` on files: texts a second on a Ray cluster of this machine, and the steps of reading.

    python -m scripts.reports.scale score                             one process, and 1, 2 and 4 workers
    python -m scripts.reports.scale read                              the steps of reading, and their share of a job
    python -m scripts.reports.scale score --write docs/scale.md       put the table between its markers, too
    python -m scripts.reports.scale score --texts 20000 --workers 1   check that it runs

The metric is self_bleu with its defaults, the texts are captions. All times count from the first batch that is saved
to the end of the command: they contain the writing of --out, but not the start of Ray and of the workers. Processor
time varies less on a busy machine than time on the clock. `score` takes about three minutes on two idle cores.
"""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scripts.arguments import publish
from scripts.reports.benchmark.inputs import captions
from scripts.reports.benchmark.measure import machine, take_turns
from scripts.reports.benchmark.report import number
from text_metrics.commands.jobs.batches import Job, open_reader, read_items
from text_metrics.commands.jobs.options import Command
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.score import main as score
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics._core.core_results import SETS

SET = 4
# Rows of a file, with the options that make sets of them.
LAYOUTS = {"a text in a row, --set-size 4": ["--set-size", str(SET)], "four texts in a row": []}
OUTPUTS = {"a file": "scores.parquet", "a folder": "scores/"}
# Turns of the steps of reading, of which the median is taken.
TURNS = 5
SAMPLE_SECONDS = 0.1


class Spent(NamedTuple):
    """Seconds on the clock, of the command's processor time, and of that of Ray and its workers."""

    clock: float
    command: float
    cluster: float


def _seconds_below(root: int, but: int | None) -> dict[int, float]:
    """Read the processor seconds of the processes below one, but for those of one branch."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        seconds[int(folder.name)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def is_below(process: int) -> bool:
        while process not in (root, but) and process in parents:
            process = parents[process]
        return process == root

    return {process: value for process, value in seconds.items() if process != root and is_below(process)}


def run_job(words: list[str], pipe: Connection) -> None:
    """Run the command; sends the texts scored after its first batch, and the clocks after it and at the end."""
    saved: list[tuple[int, tuple[float, float]]] = []
    append = Store.append

    def timed(store: Store, state: State) -> None:
        append(store, state)
        if not saved:
            saved.append((state.n_texts, (time.perf_counter(), time.process_time())))

    Store.append = timed  # type: ignore[method-assign, assignment]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        code = score.main(words)
    summary = json.loads(Path(f"{words[words.index('--out') + 1].rstrip('/')}.summary.json").read_text())
    n_first, start = saved[0]
    pipe.send((code, summary["n_texts"] - n_first, start, (time.perf_counter(), time.process_time())))


def measure_job(words: list[str]) -> tuple[int, Spent]:
    """Run the command in a fresh process."""
    context = multiprocessing.get_context("spawn")
    pipe, other_end = context.Pipe()
    process = context.Process(target=run_job, args=(words, other_end))
    process.start()
    other_end.close()
    # The processes of Ray's workers end before the command: what they have spent is read as it grows.
    last: dict[int, float] = {}
    totals: list[tuple[float, float]] = []
    while True:
        last |= _seconds_below(os.getpid(), but=process.pid)
        totals.append((time.perf_counter(), sum(last.values())))
        if pipe.poll(SAMPLE_SECONDS):
            break
    try:
        code, n_texts, start, end = pipe.recv()
    except EOFError:
        raise RuntimeError(f"the command ended early: {' '.join(words)}") from None
    process.join()
    if code:
        raise RuntimeError(f"the command ended with code {code}: {' '.join(words)}")
    if not n_texts:
        raise ValueError("--texts: all are in the first batch, which is not timed. Pass more.")
    clock, spent = np.array(totals).T
    before, after = np.interp([start[0], end[0]], clock, spent).tolist()
    return n_texts, Spent(end[0] - start[0], end[1] - start[1], after - before)


def write_texts(path: Path, n: int, layout: list[str]) -> list[str]:
    """Write n captions as JSON Lines; returns the words of the command that scores them."""
    texts = captions(n)
    in_rows: Sequence[object] = texts if layout else [texts[i : i + SET] for i in range(0, n, SET)]
    values = [{"id": i, "text": text} for i, text in enumerate(in_rows)]
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return [str(path), "--metric", "self_bleu", "--text-key", "text", "--quiet", *layout]


@contextmanager
def ray_cluster(n_cores: int) -> Iterator[str]:
    """Start a Ray cluster on this machine that takes itself for one of so many cores; yields its address."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", RAY_ENABLE_AUTO_CONNECT="0")
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": n_cores, "include_dashboard": False})
    try:
        yield started.address
    finally:
        started.shutdown()


def score_table(n: int, workers: list[int], folder: Path) -> list[str]:
    """Write the texts a second of the command on one process and on so many workers."""
    rows = []
    with ray_cluster(max(workers)) as address:
        engines: dict[str, list[str]] = {"one process": []}
        for count in workers:
            on_ray = ["--engine", "ray", "--address", address, "--workers", str(count)]
            engines[f"{count} worker{'s' * (count > 1)}"] = on_ray
        for layout, more in LAYOUTS.items():
            job = write_texts(folder / f"{len(more)}.jsonl", n, more)
            for engine, words in engines.items():
                for output, name in OUTPUTS.items():
                    n_texts, spent = measure_job([*job, *words, "--out", f"{folder}/{name}", "--restart"])
                    rates = [n_texts / spent.clock, n_texts / spent.command]
                    shares = [f"{seconds / spent.clock:.2f}" for seconds in spent[1:]]
                    rows.append([layout, engine, output, *map(_rate, rates), *shares])
                    print(rows[-1], file=sys.stderr, flush=True)
    header = ["rows", "engine", "`--out`", "texts/s", "texts per second of processor time of the command"]
    header += ["cores of the command", "cores of Ray and the workers"]
    return [*markdown_table([header, *rows]), "", about_machine(n)]


def read_table(n: int, folder: Path) -> list[str]:
    """Write the speed of the steps of reading, and their share of the processor time of a job in one process."""
    rows = []
    for layout, more in LAYOUTS.items():
        path = folder / f"{len(more)}.jsonl"
        words = write_texts(path, n, more)
        n_texts, spent = measure_job([*words, "--out", f"{folder}/scores.parquet", "--restart"])
        job_seconds = spent.command / n_texts * n
        reading = Command(data=path, metric="self_bleu", text_key="text", set_size=SET if more else None)
        job = Job(reading, SETS, in_pieces=True)
        least, multiple = reading.batch_size, reading.set_size or 1
        steps: dict[str, Callable[[], object]] = {
            "find pieces (count line ends)": lambda: list(Source(path, None).pieces(0, least, multiple)),  # noqa: B023
            "parse rows": lambda: sum(1 for _ in Source(path, None).rows(0)),  # noqa: B023
            "find pieces, parse and check rows, form batches": lambda: _read_all(job),  # noqa: B023
        }
        for step, taken in take_turns(steps, TURNS).items():
            seconds = statistics.median(taken)
            megabytes = path.stat().st_size / 1e6 / seconds
            rows.append([layout, step, f"{megabytes:.0f}", _rate(n / seconds), f"{100 * seconds / job_seconds:.1f} %"])
        rows.append([layout, "the whole command", "", _rate(n / job_seconds), "100 %"])
    header = ["rows", "step", "MB/s", "texts/s", "share of the command"]
    return [*markdown_table([header, *rows]), "", f"Per second of processor time. {about_machine(n)}"]


def _read_all(job: Job) -> int:
    read = open_reader(job)
    return sum(len(units) for piece in read_items(job) for units, _ in read(piece))


def _rate(value: float) -> str:
    return number(float(f"{value:.2g}"))


def about_machine(n: int) -> str:
    """Say what the times were measured on."""
    about = machine()
    return f"{number(n)} captions. Processor: {about['Processor']}. {about['System']}."


@command
def main(words: list[str] | None = None) -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("table", choices=("score", "read"))
    parser.add_argument("--texts", type=int, default=100_000, metavar="N", help="captions in the file")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4], metavar="N", help="workers on Ray")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its markers in a page")
    arguments = parser.parse_args(words)
    if arguments.texts % SET or arguments.texts < SET:
        parser.error(f"--texts must be a multiple of {SET}. Got {arguments.texts}.")
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.table == "score":
            lines = score_table(arguments.texts, arguments.workers, Path(scratch))
        else:
            lines = read_table(arguments.texts, Path(scratch))
    publish(lines, arguments.write, f"scale {arguments.table}")


if __name__ == "__main__":
    raise SystemExit(main())
