"""The event of a chosen file: its columns are listed, and those of the roles are guessed."""

from typing import Any

import gradio as gr

from .. import inputs
from ..show import panels
from .layout import Side
from .space import Space


def wire(space: Space, side: Side) -> None:
    """Offer the columns of a file as soon as it is chosen."""

    def look_into(path: str | None) -> list[Any]:
        hidden = [gr.update(visible=False) for _ in side.columns]
        if path is None:
            return [*hidden, "", gr.update(interactive=False)]
        try:
            if space.is_typed(path):
                inputs.read_text(path, space.limits)
                return [*hidden, panels.note(space.boxes[0].info), gr.update(interactive=True)]
            table = inputs.read_table(path, space.limits, space.suffixes())
        except inputs.InputError as error:
            return [*hidden, panels.note(str(error)), gr.update(interactive=False)]
        guesses = inputs.guess_columns(table, space.roles)
        updates = [_offer(table, role, column) for role, column in zip(space.roles, guesses, strict=True)]
        return [*updates, panels.note(f"{len(table.rows):,} rows."), gr.update(interactive=True)]

    outputs = [*side.columns, side.file_note, side.buttons[2]]
    side.file.change(look_into, side.file, outputs, queue=False, api_visibility="private")


def _offer(table: inputs.Table, role: inputs.Role, column: str | None) -> Any:
    names = [(name, name) for name in table.columns]
    choices = names if role.required else [("(none)", ""), *names]
    return gr.update(choices=choices, value=column or (None if role.required else ""), visible=True)
