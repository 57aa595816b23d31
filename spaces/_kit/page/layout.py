"""The components of a page: input on one side, the answer on the other."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from ..show import downloads, panels
from .space import Result, Space

_EMPTY_ROWS = 5
# The least width of a table, as in style.css, and estimates of what a character and the rest of a cell take.
_TABLE_PIXELS, _CHARACTER_PIXELS, _CELL_PIXELS = 720, 9, 28
# In characters.
_LONGEST_WORD, _LONGEST_TEXT = 14, 60


class Side(NamedTuple):
    """The components for input; `buttons` score the boxes, the table and the file, in this order."""

    boxes: list[gr.Textbox]
    grid: gr.Dataframe
    file: gr.File
    columns: list[gr.Dropdown]
    file_note: gr.HTML
    buttons: list[gr.Button]
    chips: list[gr.Button]
    stop: gr.Button
    settings: dict[str, Any]


class Shown(NamedTuple):
    """The components of the result; `data` holds the input that was scored."""

    answer: gr.HTML
    column: gr.Column
    choosers: list[gr.Dropdown]
    scores: tuple[gr.Column, gr.Dataframe]
    pictures: list[tuple[gr.Column, gr.HTML, Any]]
    table: gr.Dataframe
    links: gr.HTML
    data: gr.State

    def outputs(self) -> list[Any]:
        """List all components that a result changes."""
        parts = [part for place in self.pictures for part in place]
        return [self.answer, self.column, *self.scores, *self.choosers, *parts, self.table, self.links, self.data]


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
                # Without a value Gradio shows no cell to type into.
                [[""] * len(space.roles) for _ in range(_EMPTY_ROWS)],
                headers=[role.label for role in space.roles],
                datatype="str",
                type="array",
                row_count=_EMPTY_ROWS,
                column_count=len(space.roles),
                interactive=True,
                wrap=True,
                label="Type, or paste from a spreadsheet",
                elem_classes="tm-table",
            )
            buttons.append(gr.Button("Score the table", variant="primary"))
        with gr.Tab("File"):
            file = gr.File(
                label=f"{', '.join(space.suffixes())}, up to {space.limits.file_bytes / 2**20:g} MB",
                file_types=list(space.suffixes()),
                height=150,
            )
            file_note = gr.HTML(padding=False)
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
    return Side(boxes, grid, file, columns, file_note, buttons, chips, stop, {**space.settings, **space.more_settings})


def result_side(space: Space) -> Shown:
    """Render the answer, and below it the panels, the details and the downloads, hidden until there is a result."""
    answer = gr.HTML(panels.empty(space.steps), padding=False, elem_id="answer")
    with gr.Column(visible=False, elem_classes="tm-result") as column:
        with gr.Column(elem_classes="tm-picture", visible=False) as place_of_scores:
            gr.HTML(panels.heading("All scores", "Click the head of a column to sort by it."), padding=False)
            scores = _table("All scores")
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
            table = _table("Details")
            links = gr.HTML(padding=False)
    data = gr.State(None, time_to_live=3600)
    return Shown(answer, column, choosers, (place_of_scores, scores), pictures, table, links, data)


def _table(label: str) -> gr.Dataframe:
    return gr.Dataframe(
        interactive=False,
        wrap=True,
        max_height=420,
        elem_classes="tm-table",
        label=label,
        show_label=False,
        buttons=[],
    )


def show_result(space: Space, shown: Shown, data: Any, result: Result, messages: Sequence[str]) -> dict[Any, Any]:
    """Return the updates that show a result, with the warnings of the metric beside the answer."""
    tables = {"Details": result.details}
    if result.scores is not None:
        tables["All scores"] = result.scores
    changes: dict[Any, Any] = {
        shown.answer: panels.add_notes(result.answer, dict.fromkeys(messages)),
        shown.column: gr.update(visible=True),
        shown.table: _filled(result.details),
        shown.links: downloads.links(space.name, tables, result.report),
        shown.data: data,
        shown.scores[0]: gr.update(visible=result.scores is not None),
    }
    if result.scores is not None:
        changes[shown.scores[1]] = _filled(result.scores)
    choices = [(name, i) for i, name in enumerate(result.choices)]
    for chooser, chosen in zip(shown.choosers, [*result.chosen, *[None] * len(shown.choosers)], strict=False):
        changes[chooser] = gr.update(choices=choices, value=chosen, visible=len(choices) > len(shown.choosers))
    for (place, head, body), given, picture in zip(shown.pictures, result.pictures, space.pictures, strict=True):
        changes[place] = gr.update(visible=given is not None)
        if given is not None:
            changes[body], caption = given
            changes[head] = panels.heading(picture.title, caption)
    return changes


def _filled(table: downloads.Table) -> dict[str, Any]:
    # The CSV file has the full precision.
    rows = [[round(cell, 4) if isinstance(cell, float) else cell for cell in row] for row in table.rows]
    return gr.update(value=rows, headers=list(table.headers), column_widths=column_widths(table.headers, rows))


def column_widths(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Divide the width of a table among its columns: each has room for its words, and long texts share the rest."""
    columns = [[header, *(str(row[i]) for row in rows)] for i, header in enumerate(headers)]
    words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    least = [_CELL_PIXELS + _CHARACTER_PIXELS * min(length, _LONGEST_WORD) for length in words]
    longer = [max(min(max(map(len, column)), _LONGEST_TEXT) - _LONGEST_WORD, 0) for column in columns]
    rest = max(_TABLE_PIXELS - sum(least), 0)
    parts = [more / sum(longer) if any(longer) else 1 / len(columns) for more in longer]
    widths = [width + rest * part for width, part in zip(least, parts, strict=True)]
    return [f"{100 * width / sum(widths):.2f}%" for width in widths]


def show_message(shown: Shown, html: str, data: Any) -> dict[Any, Any]:
    """Return the updates that show a message in place of a result; another setting scores the same input again."""
    return {shown.answer: html, shown.column: gr.update(visible=False), shown.data: data}
