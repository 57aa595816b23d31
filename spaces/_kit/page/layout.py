"""The components of a page: input on one side, the answer on the other."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gradio as gr

from .. import inputs
from ..show import downloads, panels
from .space import Result, Space

# Rows of a table that a page shows; the downloads have all.
_MOST_ROWS = 500
_TABLE_LINES = 9
# The least width of a table, as in style.css, and estimates of what a character and the rest of a cell take.
_TABLE_PIXELS, _CHARACTER_PIXELS, _CELL_PIXELS = 720, 9, 28
# In characters.
_LONGEST_WORD, _LONGEST_TEXT = 14, 60


class Source(NamedTuple):
    """The components of one way to enter texts.

    content : the boxes, the pasted table, or the file
    columns : the column of each role, and whether the table has a header
    note : what was read
    button : scores the source
    """

    content: list[Any]
    columns: list[Any]
    note: gr.HTML
    button: gr.Button
    is_file: bool = False

    def parts(self) -> list[Any]:
        """List the components that are read."""
        return [*self.content, *self.columns]


class Side(NamedTuple):
    """The components for input; `sources` are the boxes, the table and the file, in this order."""

    sources: list[Source]
    chips: list[gr.Button]
    stop: gr.Button
    settings: dict[str, Any]


class Shown(NamedTuple):
    """The components of the result; `source` holds the index of the source that was scored."""

    answer: gr.HTML
    column: gr.Column
    choosers: list[gr.Dropdown]
    scores: tuple[gr.Column, gr.Dataframe]
    pictures: list[tuple[gr.Column, gr.HTML, Any]]
    table: gr.Dataframe
    links: gr.HTML
    source: gr.State

    def outputs(self) -> list[Any]:
        """List all components that a result changes."""
        parts = [part for place in self.pictures for part in place]
        return [self.answer, self.column, *self.scores, *self.choosers, *parts, self.table, self.links, self.source]


def input_side(space: Space) -> Side:
    """Render examples, the three ways to enter texts, whose ids page.js reads, and settings."""
    gr.HTML('<p class="tm-label">Try an example</p>', padding=False)
    with gr.Row(elem_classes="tm-examples"):
        chips = [gr.Button(example.name, size="sm") for example in space.examples]
    with gr.Tabs():
        with gr.Tab("Write", elem_id="source-0"):
            boxes = [
                # A box that grows with a long text takes a browser many seconds to lay out.
                gr.Textbox(
                    label=box.label, info=box.info, placeholder=box.placeholder, lines=box.lines, max_lines=box.lines
                )
                for box in space.boxes
            ]
            note = gr.HTML(padding=False)
            written = Source(boxes, [], note, gr.Button("Score", variant="primary"))
        with gr.Tab("Table", elem_id="source-1"):
            table = gr.Textbox(
                label="Paste from a spreadsheet, or from a CSV file",
                info=f"A row a line. Columns: {', '.join(role.label for role in space.roles)}.",
                lines=_TABLE_LINES,
                max_lines=_TABLE_LINES,
            )
            pasted = _with_columns(space, table, "Score the table")
        with gr.Tab("File", elem_id="source-2"):
            file = gr.File(
                label=f"{', '.join(space.suffixes())}, up to {space.limits.file_bytes / 2**20:g} MB",
                file_types=list(space.suffixes()),
                height=150,
            )
            sample = space.examples[0].texts
            rows = space.to_rows(space.from_boxes(*sample))
            typed = sample[0] if inputs.PLAIN in space.suffixes() else ""
            gr.HTML(downloads.samples(space.name, rows, typed), padding=False)
            uploaded = _with_columns(space, file, "Score the file")._replace(is_file=True)
    stop = gr.Button("Stop", variant="stop", visible=False)
    for component in space.settings.values():
        component.render()
    if space.more_settings:
        with gr.Accordion("More settings", open=False):
            for component in space.more_settings.values():
                component.render()
    return Side([written, pasted, uploaded], chips, stop, {**space.settings, **space.more_settings})


def _with_columns(space: Space, content: Any, name: str) -> Source:
    """Render what a table needs beside its content; the columns are hidden until there is one."""
    header = gr.Checkbox(label="The first row names the columns", visible=False, interactive=True)
    columns = [
        gr.Dropdown([], label=f"{role.label}: which column?", visible=False, interactive=True) for role in space.roles
    ]
    note = gr.HTML(padding=False)
    return Source([content], [*columns, header], note, gr.Button(name, variant="primary", interactive=False))


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
    source = gr.State(None)
    return Shown(answer, column, choosers, (place_of_scores, scores), pictures, table, links, source)


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


def show_result(space: Space, shown: Shown, source: int, result: Result, messages: Sequence[str]) -> dict[Any, Any]:
    """Return the updates that show a result, with the warnings of the metric beside the answer."""
    tables = {"Details": result.details}
    if result.scores is not None:
        tables["All scores"] = result.scores
    changes: dict[Any, Any] = {
        shown.answer: panels.add_notes(result.answer, dict.fromkeys(messages)),
        shown.column: gr.update(visible=True),
        shown.table: _filled(result.details),
        shown.links: _remark(result.details) + downloads.links(space.name, tables, result.report),
        shown.source: source,
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


def _remark(table: downloads.Table) -> str:
    n_rows = len(table.rows)
    return panels.note(f"The first {_MOST_ROWS} of {n_rows:,} rows are shown.") if n_rows > _MOST_ROWS else ""


def _filled(table: downloads.Table) -> dict[str, Any]:
    # The CSV file has the full precision.
    rows = [[round(cell, 4) if isinstance(cell, float) else cell for cell in row] for row in table.rows[:_MOST_ROWS]]
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


def show_message(shown: Shown, html: str, source: int) -> dict[Any, Any]:
    """Return the updates that show a message in place of a result; another setting scores the same source again."""
    return {shown.answer: html, shown.column: gr.update(visible=False), shown.source: source}
