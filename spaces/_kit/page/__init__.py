"""The page of a demo: built from a `Space`, and served."""

import os

import gradio as gr

from .. import server, work
from ..server.errors import log_places
from ..show import look, panels
from . import layout, scoring, sources, url
from .endpoint import AT_ONCE, for_programs
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
        url.wire(demo, side)
        url.wire_texts(demo, side)
        api = for_programs(space.api, space.name)
        gr.api(api, api_name="score", concurrency_id="model", concurrency_limit=AT_ONCE)
    demo.queue(max_size=server.QUEUE, default_concurrency_limit=AT_ONCE, api_open=False)
    return demo


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
