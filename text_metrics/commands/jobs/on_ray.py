"""The pieces of a job on a Ray cluster: actors with one model each, on GPUs if there are any."""

import logging
import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from text_metrics.commands.jobs.grouping import Unit
from text_metrics.commands.jobs.job import Job, Part, Pieces, Step, score_piece
from text_metrics.commands.jobs.options import Command

_CONNECT_SECONDS = 5
# A piece that ends more actors ends the job.
_MOST_DEATHS = 5


class Worker:
    """An actor, which loads one model."""

    def __init__(self, open_step: Callable[[], Step], folder: str) -> None:
        # Paths may be relative to the folder of the command.
        with suppress(OSError):
            os.chdir(folder)
        self._open_step = open_step
        self._step: Step | None = None

    def ready(self) -> None:
        """Return once the actor has its place on a machine."""

    def score(self, units: list[Unit]) -> Part:
        """Process a piece."""
        self._step = self._step or self._open_step()
        return score_piece(self._step, units)


def score_on_ray(job: Job, pieces: Pieces) -> Iterator[tuple[int, Part]]:
    """Process pieces on the cluster of the command; yields each that is done, in any order.

    What an actor held that died is done again by another; on machines that are left, if its machine is dead.
    """
    ray = _connect(job.command)
    try:
        resources = ray.cluster_resources()
        device = "num_gpus" if resources.get("GPU", 0) >= 1 else "num_cpus"
        n_workers = job.command.workers or max(1, int(resources.get("GPU" if device == "num_gpus" else "CPU", 1)))
        # A task on a machine that does not answer is tried again until Ray knows that the machine is dead.
        actor_class = ray.remote(**{device: 1}, max_restarts=0, max_task_retries=-1)(Worker)
        yield from _score(ray, job, pieces, actor_class, n_workers)
    finally:
        ray.shutdown()


def _score(ray: Any, job: Job, pieces: Pieces, actor_class: Any, n_workers: int) -> Iterator[tuple[int, Part]]:
    n_machines, step = _count_machines(ray), ray.put(job.open_step)
    left = deque(islice(pieces, n_workers))
    # What is waited for, with the actor and its piece; None until the actor has its place.
    waiting: dict[Any, tuple[Any, tuple[int, list[Unit]] | None]] = {}
    idle: list[Any] = []
    deaths: Counter[int | None] = Counter()
    n_new = len(left)
    while left or any(piece is not None for _, piece in waiting.values()):
        for _ in range(n_new):
            actor = actor_class.remote(step, os.getcwd())
            waiting[actor.ready.remote()] = actor, None
        n_new = 0
        while idle and left:
            actor, new = idle.pop(), left.popleft()
            waiting[actor.score.remote(new[1])] = actor, new
            left.extend(islice(pieces, 1))
        (result,), _ = ray.wait(list(waiting))
        actor, piece = waiting.pop(result)
        number = None if piece is None else piece[0]
        try:
            done = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayActorError as error:
            deaths[number] += 1
            if deaths[number] > _MOST_DEATHS:
                raise ValueError(f"{deaths[number]} workers died at one piece; the others are saved: {error}") from None
            n_dead = n_machines - _count_machines(ray)
            cause = f"{n_dead} of {n_machines} machines died" if n_dead else "a worker died"
            print(f"A piece is done again by another worker, because {cause}.", file=sys.stderr)
            left.extend([] if piece is None else [piece])
            n_new = 1
            continue
        idle.append(actor)
        if number is not None:
            yield number, done


def _count_machines(ray: Any) -> int:
    return sum(node["Alive"] for node in ray.nodes())


def _connect(command: Command) -> Any:
    """Connect to the cluster, or start one here; raises a ValueError if no cluster answers."""
    # Ray's threads may outlive a failed job, and would reconnect this process.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    import ray

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
        raise ValueError(f"--address {address}: no Ray cluster answers at host:port: {error}") from None
    return ray
