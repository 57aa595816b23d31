"""Connections to a demo's server: idle ones are closed, after a time and when there are many."""

import asyncio

import uvicorn.config
from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS = 20
CONNECTIONS = 1_000


class Connection(H11Protocol):
    """A connection that is closed when it has had no request in progress for a while."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection; if there are too many, close the idle one that is the oldest."""
        super().connection_made(transport)
        self.opened = self.loop.time()
        self.loop.call_later(IDLE_SECONDS, self._close_if_idle, self.cycle)
        if len(self.connections) > CONNECTIONS:
            idle = (other for other in self.connections if isinstance(other, Connection) and other.is_idle())
            min(idle, key=lambda other: other.opened).transport.close()

    def is_idle(self) -> bool:
        """Return whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self, last: object) -> None:
        if self.transport.is_closing():
            return
        if self.is_idle() and self.cycle is last:
            self.transport.close()
        else:
            self.loop.call_later(IDLE_SECONDS, self._close_if_idle, self.cycle)


def install() -> None:
    """Let uvicorn use these connections; Gradio has no option for it."""
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:Connection"
