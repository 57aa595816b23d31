"""The pieces of a job on a Ray cluster: actors with one model each, on GPUs if there are any."""

import logging
import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.work import Job, Step, score_piece
from text_metrics.commands.shared.command import install

# A piece that ends so many actors ends the job.
_MOST_DEATHS = 5
_CONNECT_SECONDS = 5


class Worker:
    """An actor, which loads one model."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._step: Step | None = None

    def ready(self) -> None:
        """Return once the actor has its place on a machine."""

    def score(self, number: int) -> None:
        """Process a piece."""
        if self._step is None:
            self._step = self._job.open_step()
        score_piece(self._job, self._step, number)


class OnRay:
    """An engine that processes pieces on a cluster; what a dead actor held is done again by another.

    Parameters
    ----------
    address : "host:port" or "auto", of a cluster that this machine is part of; None starts a cluster here, which ends
        with the job
    workers : number of actors; by default one for each GPU, or one for each processor core if there is no GPU
    quiet : whether to drop what workers print

    Raises a UsageError if Ray is missing, or no cluster answers.
    """

    def __init__(self, address: str | None, workers: int | None, quiet: bool) -> None:
        # Ray's threads may outlive a failed job, and would reconnect this process.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        try:
            import ray
        except ImportError as error:
            raise UsageError(f"--engine ray needs Ray: {install('ray')} ({error}).") from None
        self._ray: Any = ray
        if address is not None:
            _check_address(address)
        try:
            ray.init(
                address or "local",
                include_dashboard=False if address is None else None,
                log_to_driver=not quiet,
                logging_level=logging.WARNING,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(f"--engine ray: no cluster answers at {address or 'this machine'}: {error}") from None
        resources = ray.cluster_resources()
        device = "GPU" if resources.get("GPU", 0) >= 1 else "CPU"
        self._workers = workers or max(1, int(resources.get(device, 1)))
        # A task on a machine that does not answer is tried again until Ray knows that the machine is dead.
        self._actor = self._ray.remote(**{f"num_{device.lower()}s": 1}, max_restarts=0, max_task_retries=-1)(Worker)

    def __enter__(self) -> "OnRay":
        return self

    def __exit__(self, *error: object) -> None:
        self._ray.shutdown()

    def __call__(self, job: Job, numbers: Sequence[int]) -> Iterator[int]:
        """Process pieces; yields the number of each that is done, in any order."""
        ray, left = self._ray, deque(numbers)
        n_left, n_machines = len(left), self._n_machines()
        sent = ray.put(job)
        # What is waited for, with the actor and its piece; None until the actor has a place on a machine.
        waiting: dict[Any, tuple[Any, int | None]] = {}
        idle: list[Any] = []
        number: int | None
        deaths: Counter[int | None] = Counter()

        def start_actor() -> None:
            actor = self._actor.remote(sent)
            waiting[actor.ready.remote()] = actor, None

        for _ in range(min(self._workers, n_left)):
            start_actor()
        while n_left:
            while idle and left:
                actor, number = idle.pop(), left.popleft()
                waiting[actor.score.remote(number)] = actor, number
            (result,), _ = ray.wait(list(waiting))
            actor, number = waiting.pop(result)
            try:
                ray.get(result)
            except ray.exceptions.RayActorError as error:
                deaths[number] += 1
                if deaths[number] > _MOST_DEATHS:
                    raise UsageError(
                        f"{_MOST_DEATHS + 1} workers died at one piece; others are saved: {error}"
                    ) from None
                n_dead = n_machines - self._n_machines()
                cause = f"{n_dead} of {n_machines} machines died" if n_dead else "a worker died"
                print(f"A piece is done again by another worker, because {cause}.", file=sys.stderr)
                left.extend([] if number is None else [number])
                start_actor()
                continue
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            idle.append(actor)
            if number is not None:
                if not job.parts.is_done(number):
                    raise UsageError(f"not all machines of the cluster see {job.parts.folder.parent}.")
                n_left -= 1
                yield number

    def _n_machines(self) -> int:
        return sum(node["Alive"] for node in self._ray.nodes())


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
