"""A link that opens the page with the visitor's texts: they are in the fragment, which browsers do not send."""

import gradio as gr

from .layout import Side

_SHARE = "(...texts) => window.demo.share(texts)"
_OPEN = "() => window.demo.shared()"


def wire(demo: gr.Blocks, side: Side) -> None:
    """Make the link on request, and fill the boxes when the page is opened by one."""
    boxes = side.sources[0].content
    side.share.click(None, boxes, side.link, js=_SHARE, api_visibility="private")
    demo.load(None, None, boxes, js=_OPEN, api_visibility="private")
