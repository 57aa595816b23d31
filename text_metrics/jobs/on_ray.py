"""The pieces of a job on a Ray cluster: actors with one model each, on GPUs if there are any."""

import logging
import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from text_metrics.options import Options

_CONNECT_SECONDS = 5
# A worker that dies more often, such as at too large a piece, ends the job.
MOST_DEATHS = 5


class _Actor:
    """A worker on a machine of the cluster, which is loaded at its first piece."""

    def __init__(self, folder: str, pickled: bytes) -> None:
        self._folder = folder
        self._pickled = pickled
        self._worker: Any = None

    def score_piece(self, number: int) -> bool:
        """Score a piece of the file; returns False if the file has fewer pieces."""
        if self._worker is None:
            # Paths may be relative to the folder of the command.
            with suppress(OSError):
                os.chdir(self._folder)
            self._worker = pickle.loads(self._pickled)
        return self._worker.score_piece(number)


def score_on_ray(options: Options, worker: Any, numbers: Iterator[int]) -> Iterator[int]:
    """Score pieces on the cluster of a command until the file ends; yields the number of each, in any order.

    Ray starts an actor that died again, where there is room, and it does its piece again.
    """
    ray = _connect(options)
    try:
        resources = ray.cluster_resources()
        device = "GPU" if resources.get("GPU", 0) >= 1 else "CPU"
        n_workers = options.workers or max(1, int(resources.get(device, 1)))
        # A task on a machine that does not answer is tried again until Ray knows that the machine is dead.
        needs = {f"num_{device.lower()}s": 1, "max_restarts": MOST_DEATHS, "max_task_retries": -1}
        actor_class = ray.remote(**needs)(_Actor)
        pickled = pickle.dumps(worker)
        actors = [actor_class.remote(os.getcwd(), pickled) for _ in range(n_workers)]
        pairs = zip(actors, numbers, strict=False)
        waiting = {actor.score_piece.remote(number): (actor, number) for actor, number in pairs}
        while waiting:
            (result,), _ = ray.wait(list(waiting))
            actor, number = waiting.pop(result)
            if ray.get(result):
                yield number
                number = next(numbers)
                waiting[actor.score_piece.remote(number)] = actor, number
            else:
                # On a smaller cluster, another actor waits for its place.
                ray.kill(actor)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        raise ValueError(f"a worker died {MOST_DEATHS + 1} times; the other pieces are saved: {error}") from None
    finally:
        ray.shutdown()


def _connect(options: Options) -> Any:
    """Connect to the cluster, or start one here; raises a ValueError if no cluster answers."""
    # Ray's threads may outlive a failed job, and would reconnect this process.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    import ray

    address = options.address
    try:
        if address not in (None, "auto"):
            # Ray itself retries a dead address for a long time.
            host, _, port = str(address).rpartition(":")
            socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
        ray.init(
            address or "local",
            include_dashboard=False if address is None else None,
            log_to_driver=not options.quiet,
            logging_level=logging.WARNING,
        )
    except (OSError, RuntimeError, ValueError, OverflowError) as error:
        raise ValueError(f"--address {address}: no Ray cluster answers at host:port: {error}") from None
    return ray
