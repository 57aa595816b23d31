"""The server of a demo: bounded requests, readable errors, and no text of a visitor in a log."""

import json
import os
from typing import Any

import gradio as gr
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .endpoint import log_place, public_error

# How many visitors may wait; the owner of a Space with more processors may raise it.
QUEUE = int(os.environ.get("SPACE_QUEUE", "40"))
RETRY_SECONDS = 30
BUSY = (
    f"The demo is busy: {QUEUE} others are waiting. Nothing was scored, and your texts are still here. "
    f"Please try again in {RETRY_SECONDS} seconds."
)
UNFIT = "The request does not fit the API of this demo. The link “Use via API” on the page describes it."


class Demo(gr.Blocks):
    """Blocks that complete the input of the endpoint with its defaults, and raise readable errors only."""

    async def process_api(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Process one event.

        Raises
        ------
        gr.Error
            For any error. It is not logged: Gradio would log the traceback, which may contain the input.
        """
        event = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        if event.api_name == "score":
            inputs = [*inputs, *(getattr(component, "value", None) for component in event.inputs[len(inputs) :])]
        try:
            return await super().process_api(event, inputs, *args, **kwargs)
        except Exception as error:
            raise gr.Error(public_error(error), print_exception=False) from None


class Door:
    """ASGI middleware that limits the size of a request, and answers an error without logging its message."""

    def __init__(self, app: ASGIApp, body_bytes: int) -> None:
        self.app, self.body_bytes = app, body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        read, is_begun = 0, False

        async def receive_limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.body_bytes:
                raise ValueError
            return message

        async def send_noted(message: Message) -> None:
            nonlocal is_begun
            # The app may answer the error above in its own way.
            if read <= self.body_bytes:
                is_begun = True
                await send(message)

        try:
            await self.app(scope, receive_limited, send_noted)
        except Exception as error:
            if read <= self.body_bytes:
                log_place(error)
                if not is_begun:
                    await _refusal(UNFIT, 400)(scope, receive, send)
        if read > self.body_bytes and not is_begun:
            text = f"The request is too large: the limit is {self.body_bytes:,} bytes."
            await _refusal(text, 413)(scope, receive, send)


def _refusal(text: str, status: int) -> JSONResponse:
    return JSONResponse({"error": text, "detail": text}, status)


async def _answer_http_error(request: Request, error: Any) -> JSONResponse:
    if error.status_code == 503:
        response = _refusal(BUSY, 503)
        response.headers["Retry-After"] = str(RETRY_SECONDS)
        return response
    return JSONResponse({"detail": error.detail}, error.status_code, getattr(error, "headers", None))


def app_settings(file_bytes: int) -> dict[str, Any]:
    """Return the settings of the FastAPI app below Gradio."""
    return {
        # Texts in JSON may take twice the bytes of a file, and a form adds its headers.
        "middleware": [Middleware(Door, body_bytes=2 * file_bytes + 100_000)],
        "exception_handlers": {HTTPException: _answer_http_error},
    }


def json_tool(demo: gr.Blocks) -> None:
    """Let the MCP tool return JSON; Gradio returns the `str` of a dict."""
    server: Any = demo.mcp_server_obj

    def as_json(data: Any, root_url: str) -> list[Any]:
        return [server.types.TextContent(type="text", text=json.dumps(value, ensure_ascii=False)) for value in data]

    server.postprocess_output_data = as_json


async def refuse_download(url: str, cache_dir: str) -> str:
    """Replace Gradio's download of a URL that a visitor sends in place of a file."""
    raise gr.Error("A URL is not a file. Upload the file itself.", print_exception=False)
