"""The pieces of a job on a Ray cluster: actors with one model each, on GPUs if there are any."""

import logging
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from text_metrics.commands.jobs.options import Command

_CONNECT_SECONDS = 5
# A piece that ends more actors ends the job.
_MOST_DEATHS = 5


def score_on_ray(
    command: Command, worker: type[Any], arguments: tuple[Any, ...], numbers: Iterator[int]
) -> Iterator[int]:
    """Score pieces on the cluster of a command until the file ends; yields the number of each, in any order.

    Actors are made of the class of a worker, which has a method `score_piece`, and of its arguments. What an actor held
    that died is done again by another; on machines that are left, if its machine is dead.
    """
    ray = _connect(command)
    try:
        resources = ray.cluster_resources()
        device = "GPU" if resources.get("GPU", 0) >= 1 else "CPU"
        n_workers = command.workers or max(1, int(resources.get(device, 1)))
        # A task on a machine that does not answer is tried again until Ray knows that the machine is dead.
        actor_class = ray.remote(**{f"num_{device.lower()}s": 1}, max_restarts=0, max_task_retries=-1)(worker)
        yield from _score(ray, lambda: actor_class.remote(*arguments), n_workers, numbers)
    finally:
        ray.shutdown()


def _score(ray: Any, make_actor: Callable[[], Any], n_workers: int, numbers: Iterator[int]) -> Iterator[int]:
    n_machines = _count_machines(ray)
    deaths = Counter[int]()
    # Actors with the numbers of their next pieces.
    new = [(make_actor(), number) for number in islice(numbers, n_workers)]
    waiting: dict[Any, tuple[Any, int]] = {}
    while new or waiting:
        waiting |= {actor.score_piece.remote(number): (actor, number) for actor, number in new}
        new = []
        (result,), _ = ray.wait(list(waiting))
        actor, number = waiting.pop(result)
        try:
            is_piece = ray.get(result)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayActorError as error:
            deaths[number] += 1
            if deaths[number] > _MOST_DEATHS:
                died = f"{deaths[number]} workers died at one piece"
                raise ValueError(f"{died}; the others are saved: {error}") from None
            n_dead = n_machines - _count_machines(ray)
            cause = f"{n_dead} of {n_machines} machines died" if n_dead else "a worker died"
            print(f"A piece is done again by another worker, because {cause}.", file=sys.stderr)
            new = [(make_actor(), number)]
            continue
        if is_piece:
            yield number
            new = [(actor, next(numbers))]
        else:
            # On a smaller cluster, a new actor waits for its place.
            ray.kill(actor)


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
