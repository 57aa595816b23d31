"""The public endpoint of a demo, and the errors that its callers and visitors see."""

import functools
import logging
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.context import LocalContext

from .. import inputs, work

logger = logging.getLogger("demo")

# A Space has two processors: more concurrent runs would slow each other down. Further runs wait in the queue.
AT_ONCE = 3
_OURS = (inputs.InputError, ValueError, ImportError)


def public_error(error: BaseException) -> str:
    """Return a message for the visitor; it is never empty.

    The messages of input errors are shown. Any other error is logged by its type and its place in the code, without its
    message, which may contain a visitor's text.
    """
    if isinstance(error, gr.Error):
        message = str(error.message)
    elif isinstance(error, _OURS) and not isinstance(error, UnicodeError) and "/gradio/" not in _place(error):
        message = str(error)
    else:
        message = ""
    if message.strip():
        return message
    log_place(error)
    return f"Something went wrong on our side ({type(error).__name__}). Please try again."


def log_place(error: BaseException) -> None:
    """Log the type of an error and the place in the code where it was raised."""
    logger.error("%s at %s", type(error).__name__, _place(error))


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).as_posix()}:{frames[-1].lineno}" if frames else "an unknown place"


def for_programs(function: Callable[..., dict[str, Any]], name: str) -> Callable[..., dict[str, Any]]:
    """Wrap an endpoint: its caller receives warnings and readable errors, which are not logged, and may disconnect."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        with work.running(_check_caller) as messages:
            result = function(*args, **kwargs)
        return {**result, "warnings": list(dict.fromkeys(messages))}

    # Gradio names the MCP tool after the function, with the name of the Space before it if it runs on one.
    call.__name__ = "score" if os.environ.get("SPACE_ID") else f"{name}_score"
    return call


def _check_caller(done: int, total: int | None) -> None:
    """Raise an error if the caller has disconnected."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
    if event is not None and not event.alive:
        raise inputs.InputError("Stopped: the caller disconnected.")
