"""Runs of a metric: progress, warnings, cancellation, and a time limit."""

import contextlib
import io
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import tqdm
import tqdm.auto

from .inputs import InputError

RUN_SECONDS = 120

_step: ContextVar[Callable[[int, int | None], None] | None] = ContextVar("step", default=None)
_messages: ContextVar[list[str] | None] = ContextVar("messages", default=None)
_kinds: ContextVar[set[str] | None] = ContextVar("kinds", default=None)


class StoppedError(Exception):
    """The run was cancelled."""


class Stops:
    """The cancellation events of all sessions; a run checks its own at every step."""

    def __init__(self) -> None:
        self._running: dict[str, threading.Event] = {}

    def start(self, session: str | None) -> threading.Event:
        """Register a run, and cancel the previous run of the session."""
        self.stop(session)
        event = threading.Event()
        if session:
            self._running[session] = event
        return event

    def stop(self, session: str | None) -> None:
        """Cancel the run of a session."""
        event = self._running.pop(session or "", None)
        if event:
            event.set()

    def end(self, session: str | None, event: threading.Event) -> None:
        """Forget a run that has ended, unless another one of the session has begun."""
        if self._running.get(session or "") is event:
            del self._running[session or ""]


class _Bar(tqdm.tqdm):
    """A progress bar that reports to its run and prints nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._step = _step.get()
        if self._step is not None:
            kwargs |= {"disable": False, "file": io.StringIO()}
        super().__init__(*args, **kwargs)

    def update(self, n: float | None = 1) -> bool | None:
        """Advance the bar and report to the run."""
        moved = super().update(n)
        if self._step is not None:
            self._step(int(self.n), self.total)
        return moved


def _record(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    messages, kinds = _messages.get(), _kinds.get()
    if messages is not None and kinds is not None:
        messages.append(str(message))
        kinds.add(category.__name__)


def was_warned(kind: str) -> bool:
    """Return whether the metric has given a warning of this class, named because each metric has its own copy."""
    return kind in (_kinds.get() or ())


def install() -> None:
    """Route the progress bars and warnings of the metrics to their runs; called once in a process."""
    tqdm.auto.tqdm = _Bar
    # Always, not once in a process, so that each visitor is warned; and never to the log.
    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = _record


@contextlib.contextmanager
def running(step: Callable[[int, int | None], None], seconds: float = RUN_SECONDS) -> Iterator[list[str]]:
    """Run a metric; yields the list of its warnings.

    At each step, `step` receives the progress, done and total, and may raise. A run that takes longer than so many
    seconds ends with an InputError.
    """
    end = time.monotonic() + seconds

    def checked(done: int, total: int | None) -> None:
        if time.monotonic() > end:
            raise InputError(
                f"Stopped after {seconds:g} seconds, the limit here. Send fewer or shorter texts, "
                "or run the metric on your own machine."
            )
        step(done, total)

    messages: list[str] = []
    tokens = _step.set(checked), _messages.set(messages), _kinds.set(set())
    try:
        yield messages
    finally:
        _step.reset(tokens[0])
        _messages.reset(tokens[1])
        _kinds.reset(tokens[2])
