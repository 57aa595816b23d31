"""The page of a demo: built from a `Space`, and served."""

import functools
import os
from collections.abc import Callable
from typing import Any

import gradio as gr

from .. import inputs, server, work
from ..server import places
from ..server.errors import log_places
from ..show import look, panels
from . import layout, scoring, sources
from .space import Box, Example, Picture, Result, Space

__all__ = ["Box", "Example", "Picture", "Result", "Space", "build", "launch"]

_MCP_SWITCH = "SPACE_MCP"


def build(space: Space) -> server.Demo:
    """Build the page of a demo."""
    work.install()
    server.prepare(space.name)
    with server.Demo(title=f"{space.name}: {space.title}", analytics_enabled=False, fill_width=True) as demo:
        gr.HTML(panels.banner(space.title, space.lead, space.name), padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_classes="tm-input"):
                side = layout.input_side(space)
            with gr.Column(scale=8, min_width=320):
                shown = layout.result_side(space)
        scoring.wire(scoring.Page(space, side, shown, work.Stops()), demo)
        sources.wire(space, side)
        api = _for_programs(space.api, space.name)
        gr.api(api, api_name="score", concurrency_id="model", concurrency_limit=server.AT_ONCE)
    demo.queue(max_size=server.QUEUE, default_concurrency_limit=server.AT_ONCE, api_open=False)
    return demo


def _for_programs(function: Callable[..., dict[str, Any]], name: str) -> Callable[..., dict[str, Any]]:
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
    if not places.is_awaited():
        raise inputs.InputError("Stopped: nobody was waiting for the result.")


def launch(demo: server.Demo, space: Space) -> None:
    """Serve the page until the process ends."""
    demo.launch(
        theme=look.theme(),
        css_paths=look.STYLE,
        head=f"<script>{look.SCRIPT.read_text(encoding='utf-8')}</script>",
        ssr_mode=False,
        max_file_size=space.limits.file_bytes,
        mcp_server=os.environ.get(_MCP_SWITCH) == "1",
        footer_links=["api", "settings"],
        show_error=False,
        app_kwargs=server.app_settings(demo, space.limits.file_bytes),
        state_session_capacity=server.SESSIONS,
        prevent_thread_lock=True,
        # Else Gradio asks its own page, and ends the process if a busy machine does not answer in three seconds.
        _frontend=False,
    )
    log_places()
    if demo.mcp_server_obj:
        server.json_tool(demo)
    demo.block_thread()
