"""The events that score: three buttons, the examples, a change of a setting, and Stop."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import gradio as gr

from .. import inputs, work
from ..server import places
from ..server.errors import public_error
from ..show import panels
from .endpoint import AT_ONCE
from .layout import Shown, Side, show_message, show_result
from .space import Space

_PROGRESS = gr.Progress()

# Converts the values of components to the input of `score`, and the indices of the items to show.
Reader = Callable[..., tuple[Any, Sequence[int | None]]]


class Page(NamedTuple):
    """What the events of a page work on."""

    space: Space
    side: Side
    shown: Shown
    stops: work.Stops

    def settings(self) -> list[Any]:
        """List the components of the settings."""
        return list(self.side.settings.values())


def wire(page: Page, demo: gr.Blocks) -> None:
    """Connect all events that score, and those that end a run."""
    runs = [*_wire_buttons(page), *_wire_examples(page)]
    for run in runs:
        # On a phone the answer is below the input. A change of a setting leaves the visitor at the setting.
        run.then(None, None, None, js=_SCROLL)
    runs += _wire_changes(page)
    _wire_stop(page, runs)

    def leave(request: gr.Request) -> None:
        page.stops.stop(request.session_hash)

    demo.unload(leave)


def _event(page: Page) -> dict[str, Any]:
    return {
        "outputs": [page.side.stop, *page.shown.outputs()],
        "show_progress_on": page.shown.answer,
        "api_visibility": "private",
        "concurrency_id": "model",
        "concurrency_limit": AT_ONCE,
    }


def _wire_buttons(page: Page) -> list[Any]:
    space, side = page.space, page.side

    def from_grid(grid: Any) -> tuple[Any, list[None]]:
        inputs.check_typed((str(cell) for line in grid for cell in line), space.limits)
        return space.from_rows(inputs.rows_from_grid(grid, space.roles)), []

    def from_file(path: str | None, *columns: Any) -> tuple[Any, Sequence[int | None]]:
        if not path:
            raise inputs.InputError("Choose a file first.")
        if space.is_typed(path):
            return _from_boxes(space)(inputs.read_text(path, space.limits))
        table = inputs.read_table(path, space.limits, space.suffixes())
        return space.from_rows(inputs.pick_columns(table, space.roles, columns)), []

    sources: list[tuple[Reader, list[Any]]] = [
        (_from_boxes(space), side.boxes),
        (from_grid, [side.grid]),
        (from_file, [side.file, *side.columns]),
    ]
    return [
        # "multiple": a click right after Stop counts, although the stopped run has not yet ended.
        button.click(
            _handler(page, read, len(parts)), [*parts, *page.settings()], trigger_mode="multiple", **_event(page)
        )
        for button, (read, parts) in zip(side.buttons, sources, strict=True)
    ]


def _from_boxes(space: Space) -> Reader:
    def read(*texts: str) -> tuple[Any, list[None]]:
        inputs.check_typed(texts, space.limits)
        return space.from_boxes(*(text or "" for text in texts)), []

    return read


def _wire_examples(page: Page) -> list[Any]:
    boxes, runs = page.side.boxes, []
    handle = _handler(page, _from_boxes(page.space), len(boxes))
    for chip, example in zip(page.side.chips, page.space.examples, strict=True):
        filled = chip.click(
            lambda example=example: list(example.texts) if len(example.texts) > 1 else example.texts[0],
            None,
            boxes,
            api_visibility="private",
        )
        runs.append(filled.then(handle, [*boxes, *page.settings()], **_event(page)))
    return runs


def _wire_changes(page: Page) -> list[Any]:
    """Score the same input again when a setting, or what is looked at, changes."""
    choosers = page.shown.choosers
    triggers = [component.change for component in page.settings()] + [chooser.input for chooser in choosers]
    if not triggers:
        return []
    again = _handler(page, lambda data, *chosen: (data, chosen), 1 + len(choosers))
    parts = [page.shown.data, *choosers, *page.settings()]
    return [gr.on(triggers, again, parts, trigger_mode="always_last", **_event(page))]


def _wire_stop(page: Page, runs: list[Any]) -> None:
    def stop(request: gr.Request) -> dict[Any, Any]:
        page.stops.stop(request.session_hash)
        return {
            page.side.stop: gr.update(visible=False),
            page.shown.answer: panels.message("Stopped", "Nothing was scored. Edit the input, or score it again."),
            page.shown.column: gr.update(visible=False),
        }

    outputs = [page.side.stop, page.shown.answer, page.shown.column]
    page.side.stop.click(stop, None, outputs, cancels=runs, queue=False, api_visibility="private")


def _handler(page: Page, read: Reader, n_inputs: int) -> Callable[..., Iterator[dict[Any, Any]]]:
    """Make the handler of an event whose first `n_inputs` values go to `read`, and the rest are the settings."""
    space, side, shown = page.space, page.side, page.shown

    def handle(request: gr.Request, progress: gr.Progress = _PROGRESS, *values: Any) -> Iterator[dict[Any, Any]]:
        # Registered before the first yield, after which the Stop button is visible.
        ended = page.stops.start(request.session_hash)
        yield {side.stop: gr.update(visible=True)}

        def step(done: int, total: int | None) -> None:
            if ended.is_set() or not places.is_awaited():
                raise work.StoppedError
            progress((done, total), desc="Reading the texts", unit="texts")

        hidden = {side.stop: gr.update(visible=False)}
        data = None
        try:
            data, chosen = read(*values[:n_inputs])
            if data is None:
                yield hidden
                return
            with work.running(step) as messages:
                settings = dict(zip(side.settings, values[n_inputs:], strict=True))
                result = space.score(data, chosen, settings)
            yield hidden | show_result(space, shown, data, result, messages)
        except work.StoppedError:
            yield {}
        except Exception as error:
            yield hidden | show_message(shown, panels.error(public_error(error)), data)
        finally:
            page.stops.end(request.session_hash, ended)

    return handle


_SCROLL = """() => {
    if (window.innerWidth < 900) document.getElementById("answer").scrollIntoView({block: "start"});
}"""
