"""The public endpoint of a demo."""

import functools
import os
from collections.abc import Callable
from typing import Any

from .. import inputs, work
from ..server import places

# A Space has two processors: more concurrent runs would slow each other down. Further runs wait in the queue.
AT_ONCE = 3


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
    """Raise an error if nobody waits for the result."""
    if not places.is_awaited():
        raise inputs.InputError("Stopped: nobody was waiting for the result.")
