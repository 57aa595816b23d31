"""The queue of a demo, without the runs and results that nobody waits for."""

import time
from collections import Counter
from typing import Any

from gradio import queueing
from gradio.context import LocalContext

from .door import UNREAD_SECONDS


class Queue(queueing.Queue):
    """Gradio's queue, that ends and forgets what nobody reads.

    `readers` counts, for each session, the open requests that read its results.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Gradio summarizes all of these after each run.
        self.ANALYTICS_MAX_EVENTS = 1
        # Gradio looks for a run every millisecond, which takes 4% of a processor while nobody is there.
        self.sleep_when_free = 0.02
        self.readers: Counter[str] = Counter()
        # Until when each session may have no reader, by the clock of `time.monotonic`.
        self.deadlines: dict[str, float] = {}

    def is_awaited(self, session: str) -> bool:
        """Return whether somebody reads the results of a session, or may still come to read them."""
        if time.monotonic() < self.deadlines.get(session, 0):
            return True
        # A program reads by the event, the page by the session.
        return any(self.readers[key] for key in (session, *self.pending_event_ids_session.get(session, ())))

    def has_event(self, event: str) -> bool:
        """Return whether the run of an event is there, or a result of it that nobody has read."""
        return event in self.event_ids_to_events or any(event in ids for ids in self.pending_event_ids_session.values())

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Add an event to the queue; its result is kept a few seconds for a reader."""
        answer = await super().push(body, request, username)
        if body.session_hash:
            self.deadlines[body.session_hash] = time.monotonic() + UNREAD_SECONDS
        return answer

    def sweep(self) -> list[str]:
        """Forget the waiting runs and the results that nobody reads; return the sessions that have ended."""
        for waiting in self.event_queue_per_concurrency_id.values():
            for event in [event for event in waiting.queue if not self.is_awaited(event.session_hash)]:
                waiting.queue.remove(event)
                self.event_ids_to_events.pop(event._id, None)
        running = {event.session_hash for job in self.active_jobs for event in job or ()}
        ended = [session for session in self.deadlines if not self.is_awaited(session) and session not in running]
        for session in ended:
            del self.deadlines[session]
            self.pending_messages_per_session.pop(session, None)
            self.pending_event_ids_session.pop(session, None)
        return ended


def is_awaited() -> bool:
    """Return whether somebody waits for the result of the run in this context."""
    blocks: Any = LocalContext.blocks.get(None)
    event_id = LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
    return event is None or (event.alive and blocks._queue.is_awaited(event.session_hash))
