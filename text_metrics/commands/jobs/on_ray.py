"""The pieces of a job on a Ray cluster: actors with one model each, on GPUs if there are any."""

import logging
import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from text_metrics.commands.jobs.job import Job, Step, score_piece
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.shared.command import install

_CONNECT_SECONDS = 5
# A piece that ends more actors ends the job.
_MOST_DEATHS = 5


class Worker:
    """An actor, which loads one model."""

    def __init__(self, job: Job, folder: str) -> None:
        # Paths may be relative to the folder of the command.
        with suppress(OSError):
            os.chdir(folder)
        self._job = job
        self._step: Step | None = None

    def ready(self) -> None:
        """Return once the actor has its place on a machine."""

    def score(self, number: int) -> None:
        """Process a piece."""
        self._step = self._step or self._job.open_step()
        score_piece(self._job, self._step, number)


def do_on_ray(job: Job, numbers: Sequence[int]) -> Iterator[int]:
    """Process pieces on the cluster of the command; yields the number of each that is done, in any order.

    What an actor held that died is done again by another; on machines that are left, if its machine is dead.
    """
    ray = _connect(job.command)
    try:
        resources = ray.cluster_resources()
        device = "num_gpus" if resources.get("GPU", 0) >= 1 else "num_cpus"
        n_workers = job.command.workers or max(1, int(resources.get("GPU" if device == "num_gpus" else "CPU", 1)))
        # A task on a machine that does not answer is tried again until Ray knows that the machine is dead.
        actor_class = ray.remote(**{device: 1}, max_restarts=0, max_task_retries=-1)(Worker)
        yield from _do(ray, job, deque(numbers), actor_class, n_workers)
    finally:
        ray.shutdown()


def _do(ray: Any, job: Job, left: deque[int], actor_class: Any, n_workers: int) -> Iterator[int]:
    n_left, n_machines, sent = len(left), _count_machines(ray), ray.put(job)
    # What is waited for, with the actor and its piece; None until the actor has its place.
    waiting: dict[Any, tuple[Any, int | None]] = {}
    idle: list[Any] = []
    deaths: Counter[int | None] = Counter()
    n_new = min(n_workers, n_left)
    while n_left:
        for _ in range(n_new):
            actor = actor_class.remote(sent, os.getcwd())
            waiting[actor.ready.remote()] = actor, None
        n_new = 0
        while idle and left:
            actor, number = idle.pop(), left.popleft()
            waiting[actor.score.remote(number)] = actor, number
        (result,), _ = ray.wait(list(waiting))
        actor, done = waiting.pop(result)
        try:
            ray.get(result)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayActorError as error:
            deaths[done] += 1
            if deaths[done] > _MOST_DEATHS:
                raise UsageError(f"{deaths[done]} workers died at one piece; the others are saved: {error}") from None
            n_dead = n_machines - _count_machines(ray)
            cause = f"{n_dead} of {n_machines} machines died" if n_dead else "a worker died"
            print(f"A piece is done again by another worker, because {cause}.", file=sys.stderr)
            left.extend([] if done is None else [done])
            n_new = 1
            continue
        idle.append(actor)
        if done is not None:
            if not job.parts.is_done(done):
                raise UsageError(f"not all machines of the cluster see {job.folder.parent}.")
            n_left -= 1
            yield done


def _count_machines(ray: Any) -> int:
    return sum(node["Alive"] for node in ray.nodes())


def _connect(command: Command) -> Any:
    """Connect to the cluster, or start one here; raises a UsageError if Ray is missing, or no cluster answers."""
    # Ray's threads may outlive a failed job, and would reconnect this process.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--engine ray needs Ray: {install('ray')} ({error}).") from None
    address = command.address
    try:
        if address not in (None, "auto"):
            # Ray itself retries a dead address for a long time.
            host, _, port = str(address).rpartition(":")
            socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
        ray.init(
            address or "local",
            include_dashboard=False if address is None else None,
            log_to_driver=not command.quiet,
            logging_level=logging.WARNING,
        )
    except (OSError, RuntimeError, ValueError, OverflowError) as error:
        raise UsageError(f"--address {address}: no Ray cluster answers at host:port: {error}") from None
    return ray
