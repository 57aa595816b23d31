"""The three ways to enter texts: boxes, a pasted table and a file. Each is described before it is scored."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from .. import inputs
from ..show import panels
from .layout import Side, Source
from .space import Space


class Read(NamedTuple):
    """The input of `score`, and remarks on what was taken and what was left out."""

    data: Any
    remarks: Sequence[str] = ()


# Converts the values of the components of a source.
Reader = Callable[..., Read]
# Parses a table; the last argument says whether it has a header, None to guess.
Opener = Callable[[Space, str, bool | None], inputs.Table]


def readers(space: Space) -> list[Reader]:
    """Return what reads the boxes, the table and the file, in this order."""

    def read_boxes(*texts: str | None) -> Read:
        typed = [text or "" for text in texts]
        inputs.check_typed(typed, space.limits)
        return Read(space.from_boxes(*typed))

    def read_rows(open_table: Opener, content: str, *values: Any) -> Read:
        *columns, has_header = values
        table = open_table(space, content, has_header)
        rows = inputs.pick_columns(table, space.roles, columns)
        return Read(space.from_rows(rows), inputs.table_remarks(table, columns, len(rows)))

    def read_table(text: str | None, *values: Any) -> Read:
        if not text or not text.strip():
            raise inputs.InputError("There is no table yet. Paste rows from a spreadsheet.")
        return read_rows(_open_pasted, text, *values)

    def read_file(path: str | None, *values: Any) -> Read:
        if not path:
            raise inputs.InputError("Choose a file first.")
        if not Path(path).is_file():
            raise inputs.InputError("The file is no longer here, because files are soon deleted. Choose it again.")
        if space.is_typed(path):
            return read_boxes(inputs.read_text(path, space.limits))
        return read_rows(_open_file, path, *values)

    return [read_boxes, read_table, read_file]


def _open_pasted(space: Space, text: str, has_header: bool | None) -> inputs.Table:
    inputs.check_typed([text], space.limits)
    return inputs.parse_csv(text, space.limits, space.roles, has_header)


def _open_file(space: Space, path: str, has_header: bool | None) -> inputs.Table:
    return inputs.read_table(path, space.limits, space.roles, space.suffixes(), has_header)


def preview(space: Space, read: Reader, *values: Any) -> str:
    """Return a note that says what is read, or why it cannot be; "" if there is nothing."""
    if not any(values):
        return ""
    try:
        data, remarks = read(*values)
        return panels.preview(" ".join([f"Read: {space.preview(data)}", *remarks])) if data else ""
    except inputs.InputError as error:
        return panels.note(str(error))


def wire(space: Space, side: Side) -> None:
    """Describe each source as soon as it changes, and offer the columns of a table."""
    boxes, table, file = side.sources
    read_boxes, read_table, read_file = readers(space)

    def preview_boxes(*texts: str | None) -> str:
        return preview(space, read_boxes, *texts)

    _on([box.change for box in boxes.content], preview_boxes, boxes.content, boxes.note)
    _wire_columns(space, table, read_table, _open_pasted)
    _wire_columns(space, file, read_file, _open_file)


def _wire_columns(space: Space, source: Source, read: Reader, open_table: Opener) -> None:
    def offer(content: str | None, has_header: bool | None = None) -> list[Any]:
        hidden = [gr.update(visible=False) for _ in source.columns]
        if not content or not content.strip():
            return [*hidden, "", gr.update(interactive=False)]
        if source.is_file and space.is_typed(content):
            return [*hidden, preview(space, read, content), gr.update(interactive=True)]
        try:
            table = open_table(space, content, has_header)
        except inputs.InputError as error:
            return [*hidden, panels.note(str(error)), gr.update(interactive=False)]
        columns = inputs.guess_columns(table, space.roles)
        header = gr.update(value=bool(table.has_header), visible=table.has_header is not None)
        offers = [_offer(table, role, column) for role, column in zip(space.roles, columns, strict=True)]
        note = preview(space, read, content, *(offered["value"] for offered in offers), table.has_header)
        return [*offers, header, note, gr.update(interactive=True)]

    def preview_columns(content: str | None, *columns: Any) -> str:
        return preview(space, read, content, *columns) if content else ""

    (content,), (*columns, header) = source.content, source.columns
    outputs = [*source.columns, source.note, source.button]
    _on([content.change], offer, [content], outputs)
    _on([header.input], offer, [content, header], outputs)
    _on([column.input for column in columns], preview_columns, [content, *source.columns], source.note)


def _on(triggers: list[Any], function: Callable[..., Any], values: list[Any], outputs: Any) -> None:
    gr.on(
        triggers,
        function,
        values,
        outputs,
        queue=False,
        trigger_mode="always_last",
        show_progress="hidden",
        api_visibility="private",
    )


def _offer(table: inputs.Table, role: inputs.Role, column: str | None) -> Any:
    names = [(name, name) for name in table.columns]
    choices = names if role.required else [("(none)", ""), *names]
    return gr.update(choices=choices, value=column or (None if role.required else ""), visible=True)
