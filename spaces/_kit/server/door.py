"""The door of a demo's server: the routes that exist, and bounds on requests."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qsl

from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.requests import ClientDisconnect, Request
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import UNFIT, log_place

# Every route of Gradio that a demo needs; to all others it answers 404. A route is added here only after a look at what
# it stores and whom it serves: tests/test_spaces_hostile.py lists those that are refused.
ROUTES = {
    "/": "GET HEAD",
    "/config": "GET",
    "/config/": "GET",
    "/favicon.ico": "GET",
    "/robots.txt": "GET",
    "/theme.css": "GET",
    "/assets/{path:path}": "GET",
    "/static/{path:path}": "GET",
    "/gradio_api/theme.css": "GET",
    "/gradio_api/startup-events": "GET",
    "/gradio_api/app_id": "GET",
    "/gradio_api/info": "GET",
    "/gradio_api/info/": "GET",
    "/gradio_api/heartbeat/{session_hash}": "GET",
    "/gradio_api/queue/data": "GET",
    "/gradio_api/queue/join": "POST",
    "/gradio_api/run/{api_name}": "POST",
    "/gradio_api/cancel": "POST",
    "/gradio_api/reset": "POST",
    "/gradio_api/upload": "POST",
    "/gradio_api/call/{api_name}": "POST",
    "/gradio_api/call/v2/{api_name}": "POST",
    "/gradio_api/call/{api_name}/{event_id}": "GET",
    "/gradio_api/call/v2/{api_name}/{event_id}": "GET",
    "/gradio_api/mcp": "POST",
    "/gradio_api/mcp/": "POST",
    "/gradio_api/mcp/schema": "GET",
}
# Of these a bounded number is open: every POST, and the routes that answer until their client leaves.
_STREAMS = ("/gradio_api/heartbeat/", "/gradio_api/queue/data", "/gradio_api/call/")
REQUESTS = 600
BODY_SECONDS = 60

# How long a run, and its result, are there for a client who does not read.
UNREAD_SECONDS = 8
GONE = (
    "There is no such run. A run ends, and its result is deleted, if nobody reads it within "
    f"{UNREAD_SECONDS} seconds, and when it has been read. Please send the texts again."
)

_PATTERNS = [(compile_path(path)[0], methods.split()) for path, methods in ROUTES.items()]


class Door:
    """ASGI middleware that refuses unknown routes, large bodies and too many requests, and logs no error's message.

    Parameters
    ----------
    readers : for each session, the number of open requests that read its results
    has_event : maps the id of an event to whether its run is there, or its result
    """

    def __init__(self, app: ASGIApp, body_bytes: int, readers: Counter[str], has_event: Callable[[str], bool]) -> None:
        self.app, self.body_bytes, self.readers, self.has_event = app, body_bytes, readers, has_event
        self.n_open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            with contextlib.suppress(ClientDisconnect):
                await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        matches = [(match, methods) for pattern, methods in _PATTERNS if (match := pattern.match(path))]
        allowed = [match for match, methods in matches if method in methods]
        if not allowed:
            text = "The method is not allowed." if matches else "There is nothing at this address."
            await refusal(text, 405 if matches else 404)(scope, receive, send)
            return
        if method != "POST" and not path.startswith(_STREAMS):
            await self._pass_on(scope, receive, send)
            return
        event = allowed[0].groupdict().get("event_id")
        if event is not None and not self.has_event(event):
            # As Gradio's own errors of a run arrive.
            text = f"event: error\ndata: {json.dumps({'error': GONE})}\n\n"
            await PlainTextResponse(text, 404, media_type="text/event-stream")(scope, receive, send)
            return
        if self.n_open >= REQUESTS:
            text = f"Too many requests are open: the limit is {REQUESTS}."
            await refusal(text, 429)(scope, receive, send)
            return
        session = _session(scope, allowed[0].groupdict())
        self.n_open += 1
        self.readers[session] += method == "GET"
        try:
            if method == "POST":
                await self._pass_body_on(scope, receive, send)
            else:
                await self._pass_on(scope, receive, send)
        finally:
            self.n_open -= 1
            self.readers[session] -= method == "GET"
            if not self.readers[session]:
                del self.readers[session]

    async def _pass_body_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when all of its body is there, so that an aborted request does nothing."""
        try:
            body = await asyncio.wait_for(_read(scope, receive, self.body_bytes), BODY_SECONDS)
            if "/mcp" in scope["path"]:
                json.loads(body)
        except TimeoutError:
            text = f"The request took longer than {BODY_SECONDS} seconds."
            await refusal(text, 408)(scope, receive, send)
        except _TooLargeError:
            text = f"The request is too large: the limit is {self.body_bytes:,} bytes."
            await refusal(text, 413)(scope, receive, send)
        except (ValueError, RecursionError):
            await refusal(UNFIT, 400)(scope, receive, send)
        else:
            messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def replay() -> Message:
                return messages.pop() if messages else await receive()

            await self._pass_on(scope, replay, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the app."""
        is_begun = False

        async def send_noted(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self.app(scope, receive, send_noted)
        except Exception as error:
            log_place(error)
            if is_begun:
                # Gradio has written the error into the stream, and leaves it without an end.
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await refusal(UNFIT, 400)(scope, receive, send)


class _TooLargeError(Exception):
    """The body exceeds the limit."""


async def _read(scope: Scope, receive: Receive, most: int) -> bytes:
    body = bytearray()
    async for chunk in Request(scope, receive).stream():
        body += chunk
        if len(body) > most:
            raise _TooLargeError
    return bytes(body)


def _session(scope: Scope, names: dict[str, str]) -> str:
    names = dict(parse_qsl(scope["query_string"].decode("latin-1"))) | names
    return names.get("event_id") or names.get("session_hash", "")


def refusal(text: str, status: int, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a refusal with its reason, under both names that Gradio's clients read."""
    return JSONResponse({"error": text, "detail": text}, status, headers)
