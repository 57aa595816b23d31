"""The page of a demo: built from a `Space`, and served."""

import os
from typing import Any

import gradio as gr
from gradio import processing_utils

from .. import work
from ..show import look, panels
from . import files, layout, scoring, url
from .endpoint import AT_ONCE, for_programs
from .space import Box, Example, Picture, Result, Space

__all__ = ["Box", "Example", "Picture", "Result", "Space", "build", "launch"]

QUEUE = 40
_MCP_SWITCH = "SPACE_MCP"


def build(space: Space) -> gr.Blocks:
    """Build the page of a demo."""
    work.install()
    # Gradio would download a URL that a visitor sends in place of a file.
    processing_utils.async_ssrf_protected_download = _refuse_download
    with gr.Blocks(
        title=f"{space.name}: {space.title}", analytics_enabled=False, delete_cache=(600, 600), fill_width=True
    ) as demo:
        gr.HTML(panels.banner(space.title, space.lead, space.name), padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_classes="tm-input"):
                side = layout.input_side(space)
            with gr.Column(scale=8, min_width=320):
                shown = layout.result_side(space)
        scoring.wire(scoring.Page(space, side, shown, work.Stops()), demo)
        files.wire(space, side)
        url.wire(demo, side)
        gr.api(for_programs(space.api), api_name="score", concurrency_id="model", concurrency_limit=AT_ONCE)
    demo.queue(max_size=QUEUE, default_concurrency_limit=AT_ONCE, api_open=True)
    return demo


def launch(demo: gr.Blocks, space: Space, **settings: Any) -> Any:
    """Serve the page."""
    return demo.launch(
        theme=look.theme(),
        css_paths=look.STYLE,
        ssr_mode=False,
        max_file_size=space.limits.file_bytes,
        mcp_server=os.environ.get(_MCP_SWITCH) == "1",
        footer_links=["api", "settings"],
        show_error=False,
        **settings,
    )


async def _refuse_download(url: str, cache_dir: str) -> str:
    raise gr.Error("A URL is not a file. Upload the file itself.", print_exception=False)
