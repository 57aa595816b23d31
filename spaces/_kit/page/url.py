"""Links that open the page as it is set: with its settings, and on request with the visitor's texts."""

import json
from typing import Any

import gradio as gr

from .layout import Side

# Of a number of steps of a slider.
_ROUNDING = 1e-6
_SHARE = "(...texts) => window.demo.share(texts)"
_OPEN = "() => window.demo.shared()"


def wire(demo: gr.Blocks, side: Side) -> None:
    """Read the settings from the URL when the page opens, and write each change into it; make links with texts.

    The texts are in the fragment of such a link, which browsers do not send, and fill the boxes when it is opened.
    """
    settings, boxes = list(side.settings.values()), side.sources[0].content

    def from_url(request: gr.Request) -> dict[Any, Any]:
        query = dict(request.query_params)
        return {component: setting_from_query(component, query.get(name)) for name, component in side.settings.items()}

    demo.load(from_url, None, settings, queue=False, api_visibility="private")
    gr.on([component.change for component in settings], None, settings, None, js=_write_script(list(side.settings)))
    side.share.click(None, boxes, side.link, js=_SHARE, api_visibility="private")
    demo.load(None, None, boxes, js=_OPEN, api_visibility="private")


def setting_from_query(component: Any, text: str | None) -> Any:
    """Return the value of a setting in a query if the component allows it, else `gr.skip()`."""
    if text is None:
        return gr.skip()
    if isinstance(component, gr.Checkbox):
        return {"true": True, "false": False}.get(text, gr.skip())
    if isinstance(component, gr.CheckboxGroup):
        names = text.split(",")
        return names if all(name in [value for _, value in component.choices] for name in names) else gr.skip()
    if isinstance(component, gr.Slider):
        try:
            number = float(text)
        except ValueError:
            return gr.skip()
        steps = (number - component.minimum) / component.step
        if not (component.minimum <= number <= component.maximum and abs(steps - round(steps)) < _ROUNDING):
            return gr.skip()
        return int(number) if isinstance(component.step, int) else number
    for _, value in component.choices:
        if str(value) == text:
            return value
    return gr.skip()


def _write_script(names: list[str]) -> str:
    # A Space runs in a frame of the Hub's page, which shows the query in its own URL.
    return f"""(...values) => {{
        const url = new URL(window.location);
        {json.dumps(names)}.forEach((name, i) => url.searchParams.set(name, values[i]));
        window.history.replaceState(null, "", url);
        if (window.parent !== window)
            window.parent.postMessage({{queryString: url.searchParams.toString()}}, "https://huggingface.co");
    }}"""
