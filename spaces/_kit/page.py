"""The page of a demo: input on one side, the answer first on the other, and the events between them."""

import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import gradio as gr
from gradio import processing_utils

from . import downloads, inputs, look, panels, work

logger = logging.getLogger("demo")

# One run for each processor at most: more would only make each other slow. Others wait in the queue.
AT_ONCE = 3
QUEUE = 40
_PROGRESS = gr.Progress()
_MCP_SWITCH = "SPACE_MCP"


class Box(NamedTuple):
    """A text box that the visitor writes into."""

    label: str
    info: str
    placeholder: str
    lines: int = 11


class Picture(NamedTuple):
    """A place for a picture: a figure, or a panel of HTML; a wide one has a row of its own."""

    title: str
    is_figure: bool = True
    is_wide: bool = False


class Example(NamedTuple):
    """Texts for the boxes, one click away."""

    name: str
    texts: tuple[str, ...]


class Result(NamedTuple):
    """What a demo shows.

    answer : HTML
    pictures : for each place its figure or HTML, and what is to be seen in it; None hides the place
    headers, rows : the details
    report : what the JSON download holds
    choices : what the visitor can choose to look at; `chosen` are the indices of those that are shown
    """

    answer: str
    pictures: Sequence[tuple[Any, str] | None]
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    report: dict[str, Any]
    choices: Sequence[str] = ()
    chosen: Sequence[int] = ()


class Space(NamedTuple):
    """What one demo is.

    from_boxes, from_rows : from what was written, or the rows of a table, to what `score` takes
    score : from that, what was chosen to look at, and the settings by name, to a result
    settings, more_settings : components not yet rendered, in view and folded, by the names they have in the URL
    choosers : labels of the lists that choose what is looked at
    api : the function that programs call
    """

    name: str
    title: str
    lead: str
    limits: inputs.Limits
    boxes: Sequence[Box]
    roles: Sequence[inputs.Role]
    from_boxes: Callable[..., Any]
    from_rows: Callable[[list[dict[str, Any]]], Any]
    examples: Sequence[Example]
    settings: dict[str, Any]
    more_settings: dict[str, Any]
    choosers: Sequence[str]
    pictures: Sequence[Picture]
    score: Callable[[Any, Sequence[int | None], dict[str, Any]], Result]
    api: Callable[..., dict[str, Any]]
    steps: Sequence[str]


def public_error(error: Exception) -> str:
    """Say to the visitor what went wrong; what is not the visitor's doing is logged by its place, without its text."""
    if isinstance(error, (inputs.InputError, ValueError, TypeError, ImportError)):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
    return f"Something went wrong here, not with your texts ({type(error).__name__}). Please try again."


def for_programs(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Make the errors of an endpoint such that its caller reads them, and the log does not."""
    import functools

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            with work.running(lambda done, total: None) as heard:
                result = function(*args, **kwargs)
        except Exception as error:
            raise gr.Error(public_error(error), print_exception=False) from None
        return {**result, "warnings": heard}

    return call


def build(space: Space) -> gr.Blocks:
    """Make the page."""
    work.install()
    # Gradio would fetch a URL that a visitor sends in place of a file.
    processing_utils.async_ssrf_protected_download = _refuse_download
    with gr.Blocks(
        title=f"{space.name}: {space.title}", analytics_enabled=False, delete_cache=(600, 600), fill_width=True
    ) as demo:
        gr.HTML(panels.banner(space.title, space.lead, space.name), padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_classes="tm-input"):
                side = _input_side(space)
            with gr.Column(scale=8, min_width=320):
                shown = _result_side(space)
        _wire(space, demo, side, shown)
        gr.api(for_programs(space.api), api_name="score", concurrency_id="model", concurrency_limit=AT_ONCE)
    demo.queue(max_size=QUEUE, default_concurrency_limit=AT_ONCE, api_open=True)
    return demo


def launch(demo: gr.Blocks, space: Space, **settings: Any) -> Any:
    """Serve the page."""
    return demo.launch(
        theme=look.theme(),
        css_paths=look.STYLE,
        ssr_mode=False,
        max_file_size=space.limits.file_bytes,
        mcp_server=os.environ.get(_MCP_SWITCH) == "1",
        footer_links=["api", "settings"],
        show_error=False,
        **settings,
    )


class _Side(NamedTuple):
    boxes: list[gr.Textbox]
    grid: gr.Dataframe
    file: gr.File
    columns: list[gr.Dropdown]
    found: gr.HTML
    buttons: list[gr.Button]
    chips: list[gr.Button]
    stop: gr.Button
    settings: dict[str, Any]


class _Shown(NamedTuple):
    answer: gr.HTML
    column: gr.Column
    choosers: list[gr.Dropdown]
    pictures: list[tuple[gr.Column, gr.HTML, Any]]
    table: gr.Dataframe
    links: gr.HTML
    data: gr.State


def _input_side(space: Space) -> _Side:
    gr.HTML('<p class="tm-label">Try an example</p>', padding=False)
    with gr.Row(elem_classes="tm-examples"):
        chips = [gr.Button(example.name, size="sm") for example in space.examples]
    buttons = []
    with gr.Tabs():
        with gr.Tab("Write"):
            boxes = [
                # A box that grows takes a browser many seconds to lay out where the text is long.
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
    return _Side(boxes, grid, file, columns, found, buttons, chips, stop, {**space.settings, **space.more_settings})


def _result_side(space: Space) -> _Shown:
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
    return _Shown(answer, column, choosers, pictures, table, links, gr.State(None, time_to_live=3600))


def _wire(space: Space, demo: gr.Blocks, side: _Side, shown: _Shown) -> None:
    stops = work.Stops()
    settings = list(side.settings.values())
    outputs = [
        side.stop, shown.answer, shown.column, *shown.choosers,
        *(part for place in shown.pictures for part in place), shown.table, shown.links, shown.data,
    ]  # fmt: skip

    def handler(read: Callable[..., Any], n_inputs: int) -> Callable[..., Iterator[dict[Any, Any]]]:
        def handle(request: gr.Request, progress: gr.Progress = _PROGRESS, *values: Any) -> Iterator[dict[Any, Any]]:
            # Begun before the first yield: Stop is in view after it.
            ended = stops.start(request.session_hash)
            yield {side.stop: gr.update(visible=True)}

            def step(done: int, total: int | None) -> None:
                if ended.is_set():
                    raise work.StoppedError
                progress((done, total), desc="Reading the texts", unit="texts")

            try:
                data, chosen = read(*values[:n_inputs])
                if data is None:
                    yield {side.stop: gr.update(visible=False)}
                    return
                with work.running(step) as heard:
                    named = dict(zip(side.settings, values[n_inputs:], strict=True))
                    result = space.score(data, chosen, named)
                yield _show(space, side, shown, data, result, heard)
            except work.StoppedError:
                yield {}
            except Exception as error:
                yield {
                    side.stop: gr.update(visible=False),
                    shown.answer: panels.error(public_error(error)),
                    shown.column: gr.update(visible=False),
                    shown.data: None,
                }

        return handle

    def from_file(path: str | None, *columns: Any) -> tuple[Any, list[None]]:
        if not path:
            raise inputs.InputError("Choose a file first.")
        table = inputs.read_table(path, space.limits)
        return space.from_rows(inputs.pick_columns(table, space.roles, columns)), []

    sources: list[tuple[Callable[..., Any], list[Any]]] = [
        (lambda *texts: (space.from_boxes(*texts), []), side.boxes),
        (lambda grid: (space.from_rows(inputs.rows_from_grid(grid, space.roles)), []), [side.grid]),
        (from_file, [side.file, *side.columns]),
    ]
    common: dict[str, Any] = {
        "outputs": outputs,
        "show_progress_on": shown.answer,
        "api_visibility": "private",
        "concurrency_id": "model",
        "concurrency_limit": AT_ONCE,
    }
    runs: list[Any] = []
    for button, (read, parts) in zip(side.buttons, sources, strict=True):
        # "multiple": a click right after Stop, before the stopped run has ended, is to count.
        runs.append(button.click(handler(read, len(parts)), [*parts, *settings], trigger_mode="multiple", **common))
    for chip, example in zip(side.chips, space.examples, strict=True):
        filled = chip.click(
            lambda example=example: list(example.texts) if len(example.texts) > 1 else example.texts[0],
            None,
            side.boxes,
            api_visibility="private",
        )
        runs.append(filled.then(handler(sources[0][0], len(side.boxes)), [*side.boxes, *settings], **common))

    again = handler(lambda data, *chosen: (data, chosen), 1 + len(shown.choosers))
    triggers = [component.change for component in settings] + [chooser.input for chooser in shown.choosers]
    if triggers:
        parts = [shown.data, *shown.choosers, *settings]
        runs.append(gr.on(triggers, again, parts, trigger_mode="always_last", **common))

    def stop(request: gr.Request) -> dict[Any, Any]:
        stops.stop(request.session_hash)
        return {
            side.stop: gr.update(visible=False),
            shown.answer: panels.message("Stopped", "Nothing was scored. Change what you like, and score again."),
            shown.column: gr.update(visible=False),
        }

    # On a phone the answer lies below the input.
    shown.answer.change(None, None, None, js=_SCROLL)
    side.stop.click(
        stop, None, [side.stop, shown.answer, shown.column], cancels=runs, queue=False, api_visibility="private"
    )
    demo.unload(lambda request: stops.stop(request.session_hash) if request else None)

    def look_into(path: str | None) -> list[Any]:
        button = gr.update(interactive=path is not None)
        if path is None:
            return [gr.update(visible=False) for _ in side.columns] + ["", button]
        try:
            table = inputs.read_table(path, space.limits)
        except inputs.InputError as error:
            return [gr.update(visible=False) for _ in side.columns] + [
                panels.note(str(error)),
                gr.update(interactive=False),
            ]
        updates: list[Any] = []
        for role, column in zip(space.roles, inputs.guess_columns(table, space.roles), strict=True):
            names = [(name, name) for name in table.columns]
            choices = names if role.required else [("(none)", ""), *names]
            updates.append(gr.update(choices=choices, value=column or (None if role.required else ""), visible=True))
        return [*updates, panels.note(f"{len(table.rows):,} rows."), button]

    side.file.change(
        look_into, side.file, [*side.columns, side.found, side.buttons[2]], queue=False, api_visibility="private"
    )

    if settings:

        def from_url(request: gr.Request) -> dict[Any, Any]:
            asked = dict(request.query_params)
            return {component: _from_query(component, asked.get(name)) for name, component in side.settings.items()}

        demo.load(from_url, None, settings, queue=False, api_visibility="private")
        gr.on([component.change for component in settings], None, settings, None, js=_url_script(list(side.settings)))


def _show(space: Space, side: _Side, shown: _Shown, data: Any, result: Result, heard: Sequence[str]) -> dict[Any, Any]:
    changes: dict[Any, Any] = {
        side.stop: gr.update(visible=False),
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


def _from_query(component: Any, asked: str | None) -> Any:
    """Take a setting from the URL if it is one that the visitor could have made here."""
    if asked is None:
        return gr.skip()
    if isinstance(component, gr.Checkbox):
        return {"true": True, "false": False}.get(asked, gr.skip())
    if isinstance(component, gr.CheckboxGroup):
        names = asked.split(",")
        return names if all(name in [value for _, value in component.choices] for name in names) else gr.skip()
    if isinstance(component, gr.Slider):
        try:
            number = float(asked)
        except ValueError:
            return gr.skip()
        return number if component.minimum <= number <= component.maximum else gr.skip()
    for _, value in component.choices:
        if str(value) == asked:
            return value
    return gr.skip()


_SCROLL = """() => {
    if (window.innerWidth < 900) document.getElementById("answer").scrollIntoView({block: "start"});
}"""


def _url_script(names: list[str]) -> str:
    """Write settings into the URL; where the page lies in a frame of the Hub, into the Hub's."""
    return f"""(...values) => {{
        const url = new URL(window.location);
        {json.dumps(names)}.forEach((name, i) => url.searchParams.set(name, values[i]));
        window.history.replaceState(null, "", url);
        if (window.parent !== window)
            window.parent.postMessage({{queryString: url.searchParams.toString()}}, "https://huggingface.co");
    }}"""


async def _refuse_download(url: str, cache_dir: str) -> str:
    raise gr.Error("A URL is no file. Upload the file itself.", print_exception=False)
