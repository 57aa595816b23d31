"""The events that score: three buttons, the examples, a change of a setting, and Stop."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gradio as gr

from .. import work
from ..server import AT_ONCE, places
from ..server.errors import public_error
from ..show import panels
from .layout import Shown, Side, show_message, show_result
from .sources import readers
from .space import Space

_PROGRESS = gr.Progress()


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
    runs = []
    for i, source in enumerate(page.side.sources):
        handle, values = _handler(page, i), [*source.parts(), *page.settings()]
        # "multiple": a click right after Stop counts, although the stopped run has not yet ended.
        runs.append(source.button.click(handle, values, trigger_mode="multiple", **_event(page)))
        source.button.click(None, None, None, js=_scores(i))
        changes = [column.input for column in source.columns]
        if source.is_file:
            changes.append(source.content[0].change)
        if changes:
            gr.on(changes, None, None, None, js=f"() => window.demo.edits({i})")
    return runs


def _wire_examples(page: Page) -> list[Any]:
    boxes, runs = page.side.sources[0].content, []
    for chip, example in zip(page.side.chips, page.space.examples, strict=True):
        filled = chip.click(
            lambda example=example: list(example.texts) if len(example.texts) > 1 else example.texts[0],
            None,
            boxes,
            api_visibility="private",
        )
        runs.append(filled.then(_handler(page, 0), [*boxes, *page.settings()], **_event(page)))
        chip.click(None, None, None, js=_scores(0))
    return runs


def _wire_changes(page: Page) -> list[Any]:
    """Score the last source again, as it is now, when a setting, or what is looked at, changes."""
    choosers, parts = page.shown.choosers, [source.parts() for source in page.side.sources]
    triggers = [component.change for component in page.settings()] + [chooser.input for chooser in choosers]
    ends = list(itertools.accumulate(map(len, parts), initial=len(choosers)))

    def again(
        request: gr.Request, progress: gr.Progress = _PROGRESS, source: int | None = None, *values: Any
    ) -> Iterator[dict[Any, Any]]:
        if source is None:
            yield {page.side.stop: gr.update(visible=False)}
            return
        content = values[ends[source] : ends[source + 1]]
        handle = _handler(page, source, values[: len(choosers)])
        yield from handle(request, progress, *content, *values[ends[-1] :])

    inputs = [page.shown.source, *choosers, *itertools.chain(*parts), *page.settings()]
    gr.on(triggers, None, None, None, js=_scores())
    return [gr.on(triggers, again, inputs, trigger_mode="always_last", **_event(page))]


def _scores(source: int | None = None) -> str:
    """Return a script that takes note that a source is scored; None for the last one."""
    return f"() => window.demo.scores({'' if source is None else source})"


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


def _handler(page: Page, source: int, chosen: tuple[int | None, ...] = ()) -> Callable[..., Iterator[dict[Any, Any]]]:
    """Make the handler of an event that scores a source; its values are those of the source, then the settings."""
    space, side, shown = page.space, page.side, page.shown
    read, n_parts = readers(space)[source], len(side.sources[source].parts())

    def handle(request: gr.Request, progress: gr.Progress = _PROGRESS, *values: Any) -> Iterator[dict[Any, Any]]:
        # Registered before the first yield, after which the Stop button is visible.
        ended = page.stops.start(request.session_hash)
        yield {side.stop: gr.update(visible=True)}

        def step(done: int, total: int | None) -> None:
            if ended.is_set() or not places.is_awaited():
                raise work.StoppedError
            progress((done, total), desc="Reading the texts", unit="texts")

        hidden = {side.stop: gr.update(visible=False)}
        try:
            data = read(*values[:n_parts]).data
            with work.running(step) as messages:
                settings = dict(zip(side.settings, values[n_parts:], strict=True))
                result = space.score(data, chosen, settings)
            yield hidden | show_result(space, shown, source, result, messages)
        except work.StoppedError:
            yield {}
        except Exception as error:
            yield hidden | show_message(shown, panels.error(public_error(error)), source)
        finally:
            page.stops.end(request.session_hash, ended)

    return handle


_SCROLL = """() => {
    if (window.innerWidth < 900) document.getElementById("answer").scrollIntoView({block: "start"});
}"""
