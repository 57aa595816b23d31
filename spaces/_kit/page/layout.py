"""The components of a page: input on one side, the answer on the other."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from .. import inputs
from ..show import downloads, panels
from .space import Result, Space


class Side(NamedTuple):
    """The components for input; `buttons` score the boxes, the table and the file, in this order."""

    boxes: list[gr.Textbox]
    grid: gr.Dataframe
    file: gr.File
    columns: list[gr.Dropdown]
    found: gr.HTML
    buttons: list[gr.Button]
    chips: list[gr.Button]
    stop: gr.Button
    settings: dict[str, Any]


class Shown(NamedTuple):
    """The components of the result; `data` holds the input that was scored."""

    answer: gr.HTML
    column: gr.Column
    choosers: list[gr.Dropdown]
    pictures: list[tuple[gr.Column, gr.HTML, Any]]
    table: gr.Dataframe
    links: gr.HTML
    data: gr.State

    def outputs(self) -> list[Any]:
        """List all components that a result changes."""
        parts = [part for place in self.pictures for part in place]
        return [self.answer, self.column, *self.choosers, *parts, self.table, self.links, self.data]


def input_side(space: Space) -> Side:
    """Render examples, the three ways to enter texts, and settings."""
    gr.HTML('<p class="tm-label">Try an example</p>', padding=False)
    with gr.Row(elem_classes="tm-examples"):
        chips = [gr.Button(example.name, size="sm") for example in space.examples]
    buttons = []
    with gr.Tabs():
        with gr.Tab("Write"):
            boxes = [
                # A box that grows with a long text takes a browser many seconds to lay out.
                gr.Textbox(
                    label=box.label, info=box.info, placeholder=box.placeholder, lines=box.lines, max_lines=box.lines
                )
                for box in space.boxes
            ]
            buttons.append(gr.Button("Score", variant="primary"))
        with gr.Tab("Table"):
            grid = gr.Dataframe(
                headers=[role.label for role in space.roles],
                datatype="str",
                type="array",
                row_count=5,
                column_count=len(space.roles),
                interactive=True,
                wrap=True,
                label="Type, or paste from a spreadsheet",
                elem_classes="tm-table",
            )
            buttons.append(gr.Button("Score the table", variant="primary"))
        with gr.Tab("File"):
            file = gr.File(
                label=f"{', '.join(inputs.SUFFIXES)}, up to {space.limits.file_bytes / 1e6:g} MB",
                file_types=list(inputs.SUFFIXES),
                height=150,
            )
            found = gr.HTML(padding=False)
            columns = [
                gr.Dropdown([], label=f"{role.label}: which column?", visible=False, interactive=True)
                for role in space.roles
            ]
            buttons.append(gr.Button("Score the file", variant="primary", interactive=False))
    stop = gr.Button("Stop", variant="stop", visible=False)
    for component in space.settings.values():
        component.render()
    if space.more_settings:
        with gr.Accordion("More settings", open=False):
            for component in space.more_settings.values():
                component.render()
    return Side(boxes, grid, file, columns, found, buttons, chips, stop, {**space.settings, **space.more_settings})


def result_side(space: Space) -> Shown:
    """Render the answer, and below it the panels, the details and the downloads, hidden until there is a result."""
    answer = gr.HTML(panels.empty(space.steps), padding=False, elem_id="answer")
    with gr.Column(visible=False) as column:
        with gr.Row(elem_classes="tm-choosers"):
            choosers = [gr.Dropdown([], label=name, visible=False, interactive=True) for name in space.choosers]
        pictures = []
        with gr.Row(equal_height=True):
            for picture in space.pictures:
                classes = ["tm-picture", "tm-wide"] if picture.is_wide else ["tm-picture"]
                with gr.Column(elem_classes=classes) as place:
                    head = gr.HTML(panels.heading(picture.title), padding=False)
                    body = (
                        gr.Plot(container=False, show_label=False, label=picture.title)
                        if picture.is_figure
                        else (gr.HTML(padding=False))
                    )
                pictures.append((place, head, body))
        with gr.Column(elem_classes="tm-picture"):
            gr.HTML(panels.heading("Details", "Click the head of a column to sort by it."), padding=False)
            table = gr.Dataframe(
                interactive=False,
                wrap=True,
                max_height=420,
                elem_classes="tm-table",
                label="Details",
                show_label=False,
                buttons=[],
            )
            links = gr.HTML(padding=False)
    return Shown(answer, column, choosers, pictures, table, links, gr.State(None, time_to_live=3600))


def show_result(space: Space, shown: Shown, data: Any, result: Result, heard: Sequence[str]) -> dict[Any, Any]:
    """Return the updates that show a result, with the warnings of the metric beside the answer."""
    changes: dict[Any, Any] = {
        shown.answer: result.answer + "".join(map(panels.note, dict.fromkeys(heard))),
        shown.column: gr.update(visible=True),
        shown.table: gr.update(value=[list(row) for row in result.rows], headers=list(result.headers)),
        shown.links: downloads.links(space.name, result.headers, result.rows, result.report),
        shown.data: data,
    }
    choices = [(name, i) for i, name in enumerate(result.choices)]
    for chooser, chosen in zip(shown.choosers, [*result.chosen, *[None] * len(shown.choosers)], strict=False):
        changes[chooser] = gr.update(choices=choices, value=chosen, visible=len(choices) > len(shown.choosers))
    for (place, head, body), given, picture in zip(shown.pictures, result.pictures, space.pictures, strict=True):
        changes[place] = gr.update(visible=given is not None)
        if given is not None:
            changes[body], caption = given
            changes[head] = panels.heading(picture.title, caption)
    return changes


def show_message(shown: Shown, html: str) -> dict[Any, Any]:
    """Return the updates that show a message in place of a result."""
    return {shown.answer: html, shown.column: gr.update(visible=False), shown.data: None}
