"""The engine of a Ray cluster: items are made on this machine, in order, and processed by a pool of actors.

Ray Data streams with backpressure: the driver and the object store hold at most a few results for each actor. Ray
restarts an actor that dies, and repeats its items. When a machine dies, there may be no room for its actors, and Ray
Data would wait for them: the pool is made again on the machines that are left, for the items without results.
"""

import logging
import os
import pickle
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import text_metrics
from text_metrics.commands.jobs.batches import Engine, OpenWork
from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.shared.command import install

_CONNECT_SECONDS = 5
_SEEN_SECONDS = 60
# An actor is restarted this often, and then the pool is, unless it has brought no result: an item that kills its actors
# ends the job. So do the deaths of more machines than this without a result in between.
_RETRIES = 5
_CHECK_SECONDS = 1


class OnRay(Engine):
    """A connection to a Ray cluster.

    Parameters
    ----------
    address : "host:port" or "auto", of a cluster that this machine is part of; None starts a cluster here, which ends
        with the connection
    workers : number of actors; by default one for each GPU, or one for each processor core if there is no GPU
    quiet : whether to drop what workers print

    Raises a UsageError if Ray is missing, or no cluster answers.
    """

    def __init__(self, address: str | None, workers: int | None, quiet: bool) -> None:
        # Ray's threads may outlive a failed job, and would reconnect this process.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise UsageError(f"--engine ray needs Ray: {install('ray')} ({error}).") from None
        self._ray = ray
        if address is not None:
            _check_address(address)
        try:
            with tempfile.TemporaryDirectory() as folder:
                _copy_package(Path(folder))
                ray.init(
                    address or "local",
                    include_dashboard=False if address is None else None,
                    log_to_driver=not quiet,
                    logging_level=logging.WARNING,
                    runtime_env={"working_dir": folder},
                )
        except (ConnectionError, RuntimeError, ValueError) as error:
            failed = "no Ray could be started here" if address is None else f"--address {address} could not be joined"
            raise UsageError(f"--engine ray: {failed}: {error}") from None
        try:
            resources = ray.cluster_resources()
            self._gpus = int(resources.get("GPU", 0)) > 0
            self._workers = workers or max(1, int(resources.get("GPU" if self._gpus else "CPU", 1)))
            logging.getLogger("ray.data").setLevel(logging.WARNING)
            context = ray.data.DataContext.get_current()
            context.execution_options.preserve_order = True
            context.execution_options.verbose_progress = False
            context.enable_progress_bars = False
            context.print_on_execution_start = False
            # One item is one block and one call; by default, Ray joins blocks to 128 MB for each call.
            context.target_min_block_size = context.target_max_block_size = 1
        except BaseException:
            ray.shutdown()
            raise

    def __enter__(self) -> "OnRay":
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()

    def map(self, items: Callable[[], Iterator[Any]], open_work: OpenWork) -> Iterator[Any]:
        """Map over the items on the actors; a separate process of this machine makes the items."""
        ray = self._ray
        # The item and the number of its next result.
        position = (0, 0)
        # In succession, without a result.
        n_failures = 0
        while True:
            machines, start = self._machines(), position
            try:
                for item, number, result in self._results(partial(_numbered, items, start[0]), open_work, machines):
                    # Of an item that is repeated, some results may have come before.
                    if (item, number) >= position:
                        position = (item, number + 1)
                        yield result
                return
            except (ray.exceptions.RayError, ray.data.exceptions.ExecutionTimeoutError) as error:
                n_lost = len(machines - self._machines())
                n_failures = 0 if position > start else n_failures + 1
                is_death = n_lost or isinstance(error, ray.exceptions.RayActorError)
                if not is_death or n_failures > (_RETRIES if n_lost else 0):
                    raise
            cause = f"{n_lost} of {len(machines)} machines died" if n_lost else f"a worker died {_RETRIES + 1} times"
            print(f"The workers are started again, because {cause}.", file=sys.stderr)

    def _results(
        self, items: Callable[[], Iterator[Any]], open_work: OpenWork, machines: frozenset[str]
    ) -> Iterator[tuple[int, int, Any]]:
        """Yield results, each with the numbers of its item and of the result; raises if one of the machines dies."""
        ray = self._ray
        ray.data.DataContext.get_current().custom_execution_callback_classes = [_machine_check(machines)]
        source, here = _stream_class()(items), {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        rows = ray.data.read_datasource(source, override_num_blocks=1, num_cpus=0, label_selector=here)
        with warnings.catch_warnings():
            # Ray Data has no other way to set restarts and retries.
            warnings.filterwarnings("ignore", message="`ray_remote_args` is deprecated")
            done = rows.map_batches(
                _Worker,
                fn_constructor_args=(open_work,),
                batch_size=None,
                batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(size=self._workers),
                max_restarts=_RETRIES,
                # Until Ray knows that a machine is dead, it attempts a task there again and again.
                max_task_retries=-1,
                **({"num_gpus": 1} if self._gpus else {"num_cpus": 1}),
            )
        for table in done.iter_batches(batch_size=None, batch_format="pyarrow"):
            for payload in table.column("payload"):
                result = pickle.loads(payload.as_buffer())
                if isinstance(result, UsageError):
                    raise result
                yield result

    def _machines(self) -> frozenset[str]:
        """Return the ids of the machines that are not known to be dead."""
        return frozenset(node["NodeID"] for node in self._ray.nodes() if node["Alive"])

    def reads(self, path: Path) -> bool:
        """Say whether all machines see the same file."""
        ray = self._ray
        nodes = self._machines()
        if len(nodes) == 1:
            return True
        look = ray.remote(num_cpus=0)(_identify)
        seen = [look.options(label_selector={"ray.io/node-id": node}).remote(path) for node in nodes]
        try:
            return set(ray.get(seen, timeout=_SEEN_SECONDS)) == {_identify(path)}
        except ray.exceptions.RayError:
            return False

    def share(self, blocks: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Put arrays into the object store, from which a worker fetches each when it needs it."""
        return _Stored([self._ray.put(np.ascontiguousarray(block)) for block in blocks])


class _Worker:
    """An actor of the pool, which loads one model."""

    def __init__(self, open_work: OpenWork) -> None:
        self._open = open_work
        self._work: Callable[[Any], Iterable[Any]] | None = None

    def __call__(self, table: pa.Table) -> Iterator[pa.Table]:
        for payload in table.column("payload"):
            yield from _stream(partial(self._results, pickle.loads(payload.as_buffer())))

    def _results(self, numbered: Any) -> Iterator[tuple[int, int, Any]]:
        if isinstance(numbered, UsageError):
            raise numbered
        if self._work is None:
            self._work = self._open()
        item, value = numbered
        for number, result in enumerate(self._work(value)):
            yield item, number, result


class _Stored(Sequence[np.ndarray]):
    """Arrays in the object store."""

    def __init__(self, references: list[Any]) -> None:
        self._references = references

    def __len__(self) -> int:
        return len(self._references)

    def __getitem__(self, index: Any) -> Any:
        import ray

        return ray.get(self._references[index])


def _identify(path: Path) -> tuple[int, int] | None:
    """Return what two machines see alike of one file; None if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _numbered(items: Callable[[], Iterator[Any]], start: int) -> Iterator[tuple[int, Any]]:
    return islice(enumerate(items()), start, None)


def _machine_check(machines: frozenset[str]) -> Any:
    """Make the class of a callback that ends an execution when one of the machines is dead."""
    import ray
    from ray.data._internal.execution.execution_callback import ExecutionCallback

    class MachineCheck(ExecutionCallback):
        def before_execution_starts(self, executor: Any) -> None:
            self._checked = time.monotonic()

        def on_execution_step(self, executor: Any) -> None:
            if time.monotonic() - self._checked < _CHECK_SECONDS:
                return
            self._checked = time.monotonic()
            if machines - {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
                # Ray Data logs the traces of other errors.
                error = ray.data.exceptions.ExecutionTimeoutError("a machine of the cluster is dead")
                # The driver may wait for a result on that machine, which no actor that is left will make again.
                threading.Thread(target=executor.shutdown, args=(True, error), daemon=True).start()
                raise error

    return MachineCheck


def _pack(value: Any) -> pa.Table:
    payload = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return pa.table({"payload": pa.array([payload], pa.large_binary())})


def _stream(items: Callable[[], Iterator[Any]]) -> Iterator[pa.Table]:
    try:
        for item in items():
            yield _pack(item)
    except UsageError as error:
        yield _pack(error)


def _stream_class() -> Any:
    """Make the class of a source with one task, which yields its items one by one; it needs Ray, which is optional."""
    from ray.data import Datasource, ReadTask
    from ray.data.block import BlockMetadata

    class Stream(Datasource):
        def __init__(self, items: Callable[[], Iterator[Any]]) -> None:
            super().__init__()
            self._items = items

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, *args: Any, **kwargs: Any) -> list[ReadTask]:
            nothing_known = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
            return [ReadTask(partial(_stream, self._items), nothing_known)]

    return Stream


def _copy_package(folder: Path) -> None:
    """Copy `text_metrics` as an installation holds it: workers do not find the code of this machine."""
    unused = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(text_metrics.__file__).parent, folder / "text_metrics", ignore=unused)
    shutil.copytree(text_metrics.FOLDER, folder / "text_metrics" / "metrics", ignore=unused, dirs_exist_ok=True)


def _check_address(address: str) -> None:
    """Try to connect, because Ray itself retries a dead address for a long time."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise UsageError(
            f"--address must be host:port of a Ray cluster with this machine in it, or auto. Got {address}."
        )
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"--address {address}: no Ray cluster answers there: {error}") from None
