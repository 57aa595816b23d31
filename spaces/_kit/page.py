"""The page of a demo: built from its description, a `Space`."""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gradio as gr
import pandas as pd

from . import inputs, panels, server

# Rows of a table that a page shows; the download has all.
_MOST_ROWS = 500
# A spreadsheet evaluates a cell that begins with one of these as a formula.
_FORMULA = tuple("=+-@|%\t\r\n＝＋－＠")
_PROGRESS = gr.Progress(track_tqdm=True)


class Box(NamedTuple):
    """A text box for the visitor's input."""

    label: str
    info: str
    placeholder: str
    lines: int = 11


class Example(NamedTuple):
    """Sample texts, one for each box."""

    name: str
    texts: tuple[str, ...]


class Picture(NamedTuple):
    """A panel below the answer; a wide one takes a full row.

    colours : of the labels of marked texts
    """

    title: str
    kind: Literal["figure", "html", "marked"] = "figure"
    is_wide: bool = False
    colours: dict[str, str] | None = None


class Drawn(NamedTuple):
    """The content of a panel, a Plotly figure, HTML, or pieces of text with labels, and its caption."""

    content: Any
    caption: str = ""


class Result(NamedTuple):
    """What a page shows after scoring.

    answer : HTML
    pictures : one for each panel; None hides it
    details : the table of details
    report : the content of the JSON download
    scores : the table of scores, if there are more than the answer shows
    choices, chosen : names of the items that the visitor can look at, and the indices of those shown
    """

    answer: str
    pictures: Sequence[Drawn | None]
    details: pd.DataFrame
    report: dict[str, Any]
    scores: pd.DataFrame | None = None
    choices: Sequence[str] = ()
    chosen: Sequence[int] = ()


class Space(NamedTuple):
    """The description of one demo.

    rows : converts the texts of the boxes to rows, which a file also consists of
    group : converts rows to the input of `score`
    score : returns a result for that input, the indices of the selected items, and the settings by name
    settings : components by their names, made outside of a page, and folded away
    choosers : labels of the lists that select what is shown
    sample : a sample file
    api : the public endpoint
    """

    name: str
    title: str
    lead: str
    limits: inputs.Limits
    boxes: Sequence[Box]
    examples: Sequence[Example]
    steps: Sequence[str]
    rows: Callable[..., list[inputs.Row]]
    group: Callable[[list[inputs.Row]], Any]
    score: Callable[..., Result]
    pictures: Sequence[Picture]
    api: Callable[..., dict[str, Any]]
    sample: Path
    settings: dict[str, Any]
    choosers: Sequence[str] = ()

    def endings(self) -> list[str]:
        """List the endings of the files that the demo reads; plain text is read as if it were typed."""
        return [*([inputs.PLAIN] if len(self.boxes) == 1 else []), *inputs.TABLES]


class _Shown(NamedTuple):
    """The components of a result; `source` holds the index of the source that was scored: the boxes or the file."""

    answer: gr.HTML
    column: gr.Column
    choosers: list[gr.Dropdown]
    scores: tuple[gr.Column, gr.Dataframe]
    pictures: list[tuple[gr.Column, gr.HTML, Any]]
    table: gr.Dataframe
    downloads: list[gr.DownloadButton]
    source: gr.State


def build(space: Space) -> server.Demo:
    """Build the page of a demo."""
    title = f"{space.name}: {space.title}"
    with server.Demo(title=title, analytics_enabled=False, fill_width=True, delete_cache=server.DELETE_CACHE) as demo:
        gr.HTML(panels.banner(space.title, space.lead, space.name), padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_classes="tm-input"):
                chips, boxes, file, buttons = _input_side(space)
            with gr.Column(scale=8, min_width=320):
                shown = _result_side(space)
        _wire(space, shown, chips, boxes, file, buttons)
        gr.api(server.readable(space.api), api_name="score", concurrency_id="model", concurrency_limit=1)
    return demo


def _input_side(space: Space) -> tuple[list[gr.Button], list[gr.Textbox], gr.File, list[gr.Button]]:
    """Render examples, the boxes, the file and the settings."""
    gr.HTML('<p class="tm-label">Try an example</p>', padding=False)
    with gr.Row(elem_classes="tm-examples"):
        chips = [gr.Button(example.name, size="sm") for example in space.examples]
    with gr.Tabs():
        with gr.Tab("Write"):
            boxes = [
                # A box that grows with a long text takes a browser many seconds to lay out.
                gr.Textbox(
                    label=box.label, info=box.info, placeholder=box.placeholder, lines=box.lines, max_lines=box.lines
                )
                for box in space.boxes
            ]
            buttons = [gr.Button("Score", variant="primary")]
        with gr.Tab("File"):
            endings = space.endings()
            file = gr.File(
                label=f"{', '.join(endings)}, up to {space.limits.file_bytes // 1000} kB", file_types=endings
            )
            text = "Columns “text” and “set”, as in the sample file; others are not read."
            gr.HTML(f'<p class="tm-read">{text}</p>', padding=False)
            gr.DownloadButton("Sample file", value=space.sample, size="sm")
            buttons.append(gr.Button("Score the file", variant="primary"))
    if space.settings:
        with gr.Accordion("More settings", open=False):
            for component in space.settings.values():
                component.render()
    return chips, boxes, file, buttons


def _result_side(space: Space) -> _Shown:
    """Render the answer, and below it the panels, the details and the downloads, hidden until there is a result."""
    answer = gr.HTML(panels.empty(space.steps), padding=False, elem_id="answer")
    with gr.Column(visible=False, elem_classes="tm-result") as column:
        with gr.Column(elem_classes="tm-picture", visible=False) as place_of_scores:
            gr.HTML(panels.heading("All scores"), padding=False)
            scores = _table("All scores")
        with gr.Row(elem_classes="tm-choosers"):
            choosers = [gr.Dropdown([], label=name, visible=False, interactive=True) for name in space.choosers]
        pictures = []
        with gr.Row(equal_height=True):
            for picture in space.pictures:
                with gr.Column(elem_classes=["tm-picture", *(["tm-wide"] if picture.is_wide else [])]) as place:
                    pictures.append((place, gr.HTML(panels.heading(picture.title), padding=False), _body(picture)))
        with gr.Column(elem_classes="tm-picture"):
            gr.HTML(panels.heading("Details", f"Up to {_MOST_ROWS} rows; the file has all."), padding=False)
            table = _table("Details")
            with gr.Row(elem_classes="tm-downloads"):
                downloads = [gr.DownloadButton(f"{name}", size="sm") for name in ("Details as CSV", "Result as JSON")]
    return _Shown(answer, column, choosers, (place_of_scores, scores), pictures, table, downloads, gr.State(None))


def _body(picture: Picture) -> Any:
    if picture.kind == "figure":
        return gr.Plot(container=False, show_label=False, label=picture.title)
    if picture.kind == "html":
        return gr.HTML(padding=False)
    return gr.HighlightedText(
        color_map=picture.colours,
        show_legend=True,
        show_inline_category=False,
        container=False,
        show_label=False,
        label=picture.title,
        elem_classes="tm-marked",
    )


def _table(label: str) -> gr.Dataframe:
    return gr.Dataframe(
        interactive=False,
        wrap=True,
        max_height=420,
        elem_classes="tm-table",
        label=label,
        show_label=False,
        buttons=["copy"],
    )


def _wire(
    space: Space,
    shown: _Shown,
    chips: list[gr.Button],
    boxes: list[gr.Textbox],
    file: gr.File,
    buttons: list[gr.Button],
) -> None:
    """Connect the two buttons, the examples, and a change of a setting or of what is looked at."""
    settings = list(space.settings.values())
    values = [shown.source, file, *boxes, *settings, *shown.choosers]
    event: dict[str, Any] = {
        "inputs": values,
        "outputs": _outputs(shown),
        "show_progress_on": shown.answer,
        "api_visibility": "private",
        "concurrency_id": "model",
        "concurrency_limit": 1,
    }
    for source, button in enumerate(buttons):
        button.click(_handler(space, shown, source), **event)
    for chip, example in zip(chips, space.examples, strict=True):
        texts = list(example.texts) if len(boxes) > 1 else example.texts[0]
        filled = chip.click(lambda texts=texts: texts, None, boxes, api_visibility="private")
        filled.then(_handler(space, shown, 0), **event)
    changes = [component.change for component in settings] + [chooser.input for chooser in shown.choosers]
    if changes:
        gr.on(changes, _handler(space, shown), trigger_mode="always_last", **event)


def _outputs(shown: _Shown) -> list[Any]:
    parts = [part for place in shown.pictures for part in place]
    return [
        shown.answer, shown.column, *shown.scores, *shown.choosers, *parts, shown.table, *shown.downloads, shown.source
    ]  # fmt: skip


def _handler(space: Space, shown: _Shown, source: int | None = None) -> Callable[..., Iterator[dict[Any, Any]]]:
    """Make the handler of an event that scores the boxes or the file; None for what was scored last."""

    @server.readable
    def score(source: int, path: str | None, values: Sequence[Any], chosen: Sequence[Any]) -> Result:
        texts, settings = values[: len(space.boxes)], dict(zip(space.settings, values[len(space.boxes) :], strict=True))
        rows = read_file(space, path) if source else _read_typed(space, texts)
        return space.score(space.group(rows), chosen, **settings)

    # Gradio forgets the files of a component that an event leaves out, so none leaves out the downloads.
    no_files = dict.fromkeys(shown.downloads)

    def handle(progress: gr.Progress = _PROGRESS, *given: Any) -> Iterator[dict[Any, Any]]:
        last, path, *values = given
        scored = last if source is None else source
        if scored is None:
            yield no_files
            return
        n_values = len(space.boxes) + len(space.settings)
        try:
            result = score(scored, path, values[:n_values], values[n_values:] if source is None else ())
        except gr.Error as error:
            hidden = {shown.column: gr.update(visible=False), shown.source: scored}
            yield {shown.answer: panels.error(error.message), **hidden, **no_files}
        else:
            # Gradio has its own copy of the files, and deletes it, when it has sent what is yielded.
            with tempfile.TemporaryDirectory() as folder:
                yield _changes(space, shown, scored, result, Path(folder))

    return handle


def _read_typed(space: Space, texts: Sequence[str | None]) -> list[inputs.Row]:
    typed = [text or "" for text in texts]
    inputs.check_typed(typed, space.limits)
    return space.rows(*typed)


def read_file(space: Space, path: str | None) -> list[inputs.Row]:
    """Read the rows of a file; raises an InputError if it is not one that the demo reads."""
    text, ending = inputs.read_file(path, space.limits), Path(path or "").suffix.lower()
    if ending not in space.endings():
        raise inputs.InputError(f"The file name must end in {', '.join(space.endings())}. Got {ending or 'no ending'}.")
    return _read_typed(space, [text]) if ending == inputs.PLAIN else inputs.parse_table(text, ending)


def _changes(space: Space, shown: _Shown, source: int, result: Result, folder: Path) -> dict[Any, Any]:
    """Return the updates that show a result."""
    table, report = folder / f"{space.name}.csv", folder / f"{space.name}.json"
    # Spreadsheets recognize UTF-8 by the byte order mark.
    harmless(result.details).to_csv(table, index=False, encoding="utf-8-sig", lineterminator="\r\n", quoting=1)
    report.write_text(json.dumps(result.report, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    changes: dict[Any, Any] = {
        shown.answer: result.answer,
        shown.column: gr.update(visible=True),
        shown.table: _filled(result.details),
        shown.downloads[0]: str(table),
        shown.downloads[1]: str(report),
        shown.source: source,
        shown.scores[0]: gr.update(visible=result.scores is not None),
    }
    if result.scores is not None:
        changes[shown.scores[1]] = _filled(result.scores)
    choices = [(name, i) for i, name in enumerate(result.choices)]
    for chooser, chosen in zip(shown.choosers, [*result.chosen, *[None] * len(shown.choosers)], strict=False):
        changes[chooser] = gr.update(choices=choices, value=chosen, visible=len(choices) > len(shown.choosers))
    for (place, head, body), drawn, picture in zip(shown.pictures, result.pictures, space.pictures, strict=True):
        changes[place] = gr.update(visible=drawn is not None)
        if drawn is not None:
            changes[body], changes[head] = drawn.content, panels.heading(picture.title, drawn.caption)
    return changes


def _filled(table: pd.DataFrame) -> Any:
    shown = table.head(_MOST_ROWS).round(4)
    shown = shown.astype(object).where(shown.notna(), "")
    # Each column has room for its longest word, and long texts share the rest.
    lengths = [max(len(name), *(len(str(cell)) for cell in shown[name])) for name in shown.columns]
    weights = [14 + min(length, 45) for length in lengths]
    return gr.update(value=shown, column_widths=[f"{100 * weight / sum(weights):.1f}%" for weight in weights])


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in whose cells no spreadsheet finds a formula."""
    return table.map(
        lambda cell: (
            f"'{cell}"
            if isinstance(cell, str) and (cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA))
            else cell
        )
    )


def launch(space: Space, demo: server.Demo) -> None:
    """Serve the page until the process ends."""
    server.serve(demo, space.limits.file_bytes)
