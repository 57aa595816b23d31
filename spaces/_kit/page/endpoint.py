"""The public endpoint of a demo, and the errors that its callers and visitors see."""

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any

import gradio as gr

from .. import inputs, work

logger = logging.getLogger("demo")

# A Space has two processors: more runs at once would only slow each other down. The others wait in the queue.
AT_ONCE = 3


def public_error(error: Exception) -> str:
    """Return the message of an input error; any other error is logged by its place in the code, without its text."""
    if isinstance(error, (inputs.InputError, ValueError, TypeError, ImportError)):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
    return f"Something went wrong here, not with your texts ({type(error).__name__}). Please try again."


def for_programs(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Wrap an endpoint: its caller receives warnings and readable errors, and neither is logged."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            with work.running(lambda done, total: None) as heard:
                result = function(*args, **kwargs)
        except Exception as error:
            raise gr.Error(public_error(error), print_exception=False) from None
        return {**result, "warnings": heard}

    return call
