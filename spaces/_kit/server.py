"""The server of a demo: Gradio's, with a bound on requests, and errors that tell no visitor's text to the log."""

import functools
import logging
import os
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from .inputs import InputError
from .theme import SCRIPT, STYLE, theme

# How many visitors may wait; each waits at most 3 seconds for each of those before.
QUEUE = 40
# Connections, of which a visitor has several.
CONNECTIONS = 400
# How many visitors may have a result whose settings they can still change.
SESSIONS = 100
# Files of visitors are looked for so often, and deleted at this age, in seconds.
DELETE_CACHE = (60, 300)

logger = logging.getLogger("demo")


class Demo(gr.Blocks):
    """Blocks whose events raise a gr.Error only: Gradio would log others with parts of the input."""

    async def process_api(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Process one event."""
        try:
            return await super().process_api(*args, **kwargs)
        except Exception as error:
            raise shown_error(error) from None


def readable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function raise a gr.Error only: an input error as it is, and any other without its message."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise shown_error(error) from None

    return call


def shown_error(error: Exception) -> gr.Error:
    """Return what a visitor reads of an error; one of ours is logged by its type and its place in the code."""
    if isinstance(error, InputError):
        return gr.Error(str(error), print_exception=False)
    if isinstance(error, gr.Error):
        return gr.Error(error.message, print_exception=False)
    logger.error("%s", place_of(error))
    return gr.Error(
        f"Something went wrong on our side ({type(error).__name__}). Please try again.", print_exception=False
    )


def place_of(error: BaseException) -> str:
    """Return the type of an error and where it was raised, without its message, which may contain a visitor's text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"
    return f"{type(error).__name__} at {place}"


class PlaceFormatter(logging.Formatter):
    """Formats errors by their type and place."""

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Format an error."""
        return place_of(ei[1])


_LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"place": {"()": PlaceFormatter, "format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "place"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"uvicorn": {"level": "INFO"}},
}


def serve(demo: Demo, file_bytes: int) -> None:
    """Serve the page until the process ends."""
    # Those of a run are shown to its visitor; any other may contain a visitor's words.
    warnings.simplefilter("ignore", UserWarning)
    demo.queue(max_size=QUEUE, default_concurrency_limit=1, api_open=False)
    demo.state_session_capacity = SESSIONS
    app = FastAPI(openapi_url=None)
    # Texts in JSON may take twice the bytes of a file, and a form adds its headers.
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=2 * file_bytes + 100_000)
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        theme=theme(),
        css_paths=STYLE,
        head=f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>",
        footer_links=["api", "settings"],
        max_file_size=file_bytes,
        mcp_server=True,
        run_history=False,
        enable_monitoring=False,
        show_error=False,
        ssr_mode=False,
    )
    uvicorn.run(
        app,
        host=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        port=int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        access_log=False,
        log_config=_LOGGING,
    )
