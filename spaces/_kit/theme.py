"""The theme of all demos: colours, fonts, the style sheet and the script."""

from pathlib import Path

import gradio as gr
from gradio.themes.utils import colors
from gradio.themes.utils.fonts import Font, LocalFont

STYLE = Path(__file__).with_name("style.css")
SCRIPT = Path(__file__).with_name("page.js")
# In light and in dark mode.
_COLOURS = {
    "body_background_fill": ("#f7f7fb", "#0e1018"),
    "body_text_color": ("#1c2033", "#e9eaf2"),
    "body_text_color_subdued": ("#575d75", "#a5abc2"),
    "block_background_fill": ("#ffffff", "#171a26"),
    "block_title_text_color": ("#1c2033", "#e9eaf2"),
    "input_background_fill": ("#ffffff", "#10131d"),
    "input_border_color": ("#c9cddd", "#3a4059"),
    "input_placeholder_color": ("#646a83", "#959bb3"),
    "border_color_primary": ("#e3e5ee", "#2a2f42"),
    "button_primary_background_fill": ("#4f46e5", "#4f46e5"),
    "button_primary_background_fill_hover": ("#4338ca", "#6158ee"),
    "button_secondary_background_fill": ("#eef0f8", "#232838"),
    "button_secondary_background_fill_hover": ("#e0e3f1", "#2f3549"),
    "link_text_color": ("#4338ca", "#a5b4fc"),
}


def theme() -> gr.themes.Base:
    """Return the theme. Its fonts are part of Gradio, so no page contacts another host."""
    text: list[Font | str] = [LocalFont("IBM Plex Sans", weights=(400, 700)), "system-ui", "sans-serif"]
    code: list[Font | str] = [LocalFont("IBM Plex Mono", weights=(400, 600)), "ui-monospace", "monospace"]
    base = gr.themes.Base(
        primary_hue=colors.indigo, neutral_hue=colors.slate, font=text, font_mono=code, radius_size="lg"
    )
    values = {"block_title_text_weight": "700", "input_border_width": "1px"}
    for name, (light, dark) in _COLOURS.items():
        values[name] = light
        values[f"{name}_dark"] = dark
    return base.set(**values)
