"""The server of a demo: Gradio's, behind a door, with readable errors and nothing that grows."""

import asyncio
import contextlib
import json
import os
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import gradio as gr
from fastapi.responses import JSONResponse
from gradio import http_server, processing_utils, queueing, routes
from gradio.exceptions import ServerFailedToStartError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request

from . import places, uploads
from .door import Door, refusal
from .errors import UNFIT, public_error

# How many visitors may wait; the owner of a Space with more processors may raise it.
QUEUE = int(os.environ.get("SPACE_QUEUE", "40"))
# A Space has two processors: more concurrent runs would slow each other down. Further runs wait in the queue.
AT_ONCE = 3
RETRY_SECONDS = 30
BUSY = (
    f"The demo is busy: {QUEUE} others are waiting. Nothing was scored, and your texts are still here. "
    f"Please try again in {RETRY_SECONDS} seconds."
)
# How many visitors may have a result whose settings they can still change.
SESSIONS = 50
SWEEP_SECONDS = 5


class Demo(gr.Blocks):
    """Blocks that complete the input of the endpoint with its defaults, and raise readable errors only."""

    async def process_api(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Process one event; any error becomes a gr.Error, because Gradio would log others with parts of the input."""
        event = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        try:
            if len(inputs) > len(event.inputs):
                text = f"Too many arguments: the limit is {len(event.inputs)}. Got {len(inputs)}."
                raise gr.Error(text, print_exception=False)
            if event.api_name == "score":
                inputs = [*inputs, *(getattr(component, "value", None) for component in event.inputs[len(inputs) :])]
            return await super().process_api(event, inputs, *args, **kwargs)
        except Exception as error:
            raise gr.Error(public_error(error), print_exception=False) from None

    async def preprocess_data(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Convert the input of an event; raises a gr.Error if it is not of the form that the page sends."""
        try:
            return await super().preprocess_data(*args, **kwargs)
        except gr.Error:
            raise
        except Exception:
            raise gr.Error(UNFIT, print_exception=False) from None


def prepare(name: str) -> None:
    """Put parts of ours in place of Gradio's where it has no option; called before the page is built."""
    uploads.use_folder(name)
    queueing.Queue = places.Queue  # type: ignore[misc]
    routes.upload_fn = uploads.receive  # type: ignore[assignment]
    gr.File._process_single_file = uploads.path_of  # type: ignore[method-assign, assignment]
    processing_utils.async_ssrf_protected_download = _refuse_download
    http_server.Server.run_in_thread = start_in_thread  # type: ignore[method-assign]


def start_in_thread(server: Any) -> None:
    """Start a server, in place of Gradio's method, which gives up after five seconds: a busy machine takes longer."""
    server.thread = threading.Thread(target=server.run, daemon=True)
    if server.reloader:
        server.watch_thread = threading.Thread(target=server.watch, daemon=True)
        server.watch_thread.start()
    server.thread.start()
    while not server.started:
        if not server.thread.is_alive():
            raise ServerFailedToStartError("The server ended at its start. Is its port taken?")
        time.sleep(0.01)


async def _answer_http_error(request: Request, error: Any) -> JSONResponse:
    if error.status_code == 503:
        return refusal(BUSY, 503, {"Retry-After": str(RETRY_SECONDS)})
    return refusal(error.detail, error.status_code, getattr(error, "headers", None))


def app_settings(demo: gr.Blocks, file_bytes: int) -> dict[str, Any]:
    """Return the settings of the FastAPI app below Gradio."""
    queue = cast(places.Queue, demo._queue)
    # Texts in JSON may take twice the bytes of a file, and a form adds its headers.
    body_bytes = 2 * file_bytes + 100_000
    return {
        "middleware": [Middleware(Door, body_bytes=body_bytes, readers=queue.readers, has_event=queue.has_event)],
        "exception_handlers": {HTTPException: _answer_http_error},
        "lifespan": _swept,
    }


@contextlib.asynccontextmanager
async def _swept(app: Any) -> AsyncIterator[None]:
    """Sweep regularly as long as the server runs, and delete all files at its end."""
    task = asyncio.create_task(_sweep(app))
    try:
        yield
    finally:
        task.cancel()
        uploads.sweep(app, 0)


async def _sweep(app: Any) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        for session in app.get_blocks()._queue.sweep():
            # A program that has sent no name of a session has that of its event, and never comes back.
            if len(session) == 32:
                app.state_holder.session_data.pop(session, None)
                app.state_holder.time_last_used.pop(session, None)
        await asyncio.to_thread(uploads.sweep, app)


def json_tool(demo: gr.Blocks) -> None:
    """Let the MCP tool return JSON; Gradio returns the `str` of a dict."""
    server: Any = demo.mcp_server_obj

    def as_json(data: Any, root_url: str) -> list[Any]:
        return [server.types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False)) for value in data]

    server.postprocess_output_data = as_json


async def _refuse_download(url: str, cache_dir: str) -> str:
    """Replace Gradio's download of a URL that a visitor sends in place of a file."""
    raise gr.Error("A URL is not a file. Upload the file itself.", print_exception=False)
