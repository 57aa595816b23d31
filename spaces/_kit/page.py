"""The page of a demo: built from its description, a `Space`."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr
import pandas as pd

from . import inputs, panels, scoring, server

# Rows of a table that a page shows; the download has all.
_MOST_ROWS = 500
# A spreadsheet evaluates a cell that begins with one of these as a formula.
_FORMULA = re.compile(r"\s*[=+\-@|%＝＋－＠]|[\t\r\n]")


class Picture(NamedTuple):
    """A panel below the answer; a wide one takes a full row."""

    title: str
    is_html: bool = False
    is_wide: bool = False


class Drawn(NamedTuple):
    """The content of a panel, a Plotly figure or HTML, and its caption."""

    content: Any
    caption: str = ""


class Result(NamedTuple):
    """The content of a page after scoring.

    scored : the run
    texts : the texts as arguments of `compute`, for the JSON download
    pictures : one for each panel; None hides it
    details : the table of details
    cards, ranking, verdict, notes : the answer
    """

    scored: scoring.Scored
    texts: dict[str, Any]
    pictures: Sequence[Drawn | None]
    details: pd.DataFrame
    cards: Sequence[panels.Card]
    ranking: Sequence[panels.Ranked] = ()
    verdict: str = ""
    notes: Sequence[str] = ()


class Space(NamedTuple):
    """The description of one demo.

    metric : as it is loaded
    boxes : for the visitor's texts, made outside of a page; those of one line are shown among the settings
    rows : converts the texts of the boxes to rows, which a file also consists of
    score : returns a result for rows, and the settings by name
    settings : components by their names, made outside of a page
    api : the public endpoint
    """

    metric: Any
    title: str
    lead: str
    limits: inputs.Limits
    boxes: Sequence[gr.Textbox]
    rows: Callable[..., list[inputs.Row]]
    score: Callable[..., Result]
    pictures: Sequence[Picture]
    api: Callable[..., dict[str, Any]]
    settings: Mapping[str, Any] = {}


def build(space: Space) -> server.Demo:
    """Build the page of a demo."""
    title = f"{space.metric.name}: {space.title}"
    with server.Demo(title=title, analytics_enabled=False, fill_width=True, delete_cache=server.DELETE_CACHE) as demo:
        card = server.README.read_text(encoding="utf-8")
        links = server.links(space.metric.name, space.metric.reference_urls, card)
        gr.HTML(panels.render("banner", space.metric.name, space.title, space.lead, links), padding=False)
        with gr.Row(equal_height=False):
            with gr.Column(scale=4, min_width=320, elem_classes="tm-input"):
                chips, file, buttons = _input_side(space)
            with gr.Column(scale=8, min_width=320):
                outputs = _result_side(space)
        _wire(demo, space, outputs, chips, file, buttons)
        # The tool of the MCP server has the name of the function.
        space.api.__name__ = space.metric.name
        gr.api(space.api, api_name="score", concurrency_id="model", concurrency_limit=1)
    return demo


def _input_side(space: Space) -> tuple[list[tuple[gr.Button, list[str]]], gr.File, list[gr.Button]]:
    """Render examples, the boxes, the file and the settings."""
    gr.HTML('<p class="tm-label">Try an example</p>', padding=False)
    with gr.Row(elem_classes="tm-examples"):
        examples = json.loads(_data("examples.json"))
        chips = [(gr.Button(example["name"], size="sm"), example["texts"]) for example in examples]
    folded = [box for box in space.boxes if box.lines == 1] + list(space.settings.values())
    with gr.Tabs():
        with gr.Tab("Write"):
            for box in space.boxes:
                if box.lines > 1:
                    box.render()
            buttons = [gr.Button("Score", variant="primary", elem_classes="tm-score")]
        with gr.Tab("File"):
            label = f"{', '.join(inputs.ENDINGS)}, up to {space.limits.file_bytes // 1000} kB"
            file = gr.File(label=label, file_types=list(inputs.ENDINGS))
            text = "Columns “text” and “set”, as in the sample file; others are not read."
            gr.HTML(f'<p class="tm-read">{text}</p>', padding=False)
            sample = ("Sample file", "sample.csv", panels.data_url(_data("sample.csv"), "text/csv"))
            gr.HTML(panels.render("downloads", [sample]), padding=False)
            buttons.append(gr.Button("Score the file", variant="primary"))
    if folded:
        with gr.Accordion("More settings", open=False):
            for component in folded:
                component.render()
    return chips, file, buttons


def text_box(label: str, placeholder: str, lines: int, info: str | None = None) -> gr.Textbox:
    """Make a text box."""
    # A box that grows with a long text takes a browser many seconds to lay out.
    return gr.Textbox(label=label, placeholder=placeholder, lines=lines, max_lines=lines, info=info)


def _data(name: str) -> bytes:
    """Read a file of the demo, or else the one of the kit."""
    own = server.README.with_name(name)
    return (own if own.exists() else Path(__file__).with_name(name)).read_bytes()


def _result_side(space: Space) -> list[Any]:
    """Render the answer, and a column, hidden until there is a result, of the downloads, the details and the panels.

    Returns them in this order; of each panel the place, the heading and the content.
    """
    answer = gr.HTML(panels.render("empty"), padding=False, elem_id="answer")
    places: list[Any] = []
    with gr.Column(visible=False, elem_classes="tm-result") as column:
        with gr.Row(equal_height=True):
            for picture in space.pictures:
                classes = ["tm-picture", "tm-wide"] if picture.is_wide else ["tm-picture"]
                with gr.Column(elem_classes=classes) as place:
                    heading = gr.HTML(padding=False)
                    body = gr.HTML(padding=False) if picture.is_html else gr.Plot(container=False, show_label=False)
                places += [place, heading, body]
        downloads = gr.HTML(padding=False)
        with gr.Accordion("Details", open=False):
            look: dict[str, Any] = {"wrap": True, "max_height": 420, "elem_classes": "tm-table", "buttons": ["copy"]}
            table = gr.Dataframe(interactive=False, label="Details", show_label=False, **look)
    return [answer, column, downloads, table, *places]


def _wire(
    demo: server.Demo,
    space: Space,
    outputs: list[Any],
    chips: list[tuple[gr.Button, list[str]]],
    file: gr.File,
    buttons: list[gr.Button],
) -> None:
    """Connect the two buttons, the examples, the opening of the page, and a change of its input.

    The script of the page compares the input with what was scored, and keeps it in the fragment of the address.
    """
    boxes = list(space.boxes)
    settings = list(space.settings.values())
    typed = boxes + settings
    # The scored input, as the script writes it: it comes with a run, and goes back with its result.
    token = gr.Textbox(visible=False)
    handle = _handler(space, len(outputs))

    def run(source: str) -> dict[str, Any]:
        """Return the arguments of an event that scores; `source` is the place of the input, as the script writes it."""
        return {
            "fn": handle,
            "inputs": [token, file, *typed],
            "outputs": outputs,
            "show_progress_on": outputs[0],
            "api_visibility": "private",
            "concurrency_id": "model",
            "concurrency_limit": 1,
            "trigger_mode": "always_last",
            "js": f"(...values) => tm.run({len(boxes)}, {len(settings)}, {source}, values)",
        }

    for source, button in enumerate(buttons):
        button.click(**run(f"'{source}'"))
    for chip, texts in chips:
        filled = chip.click(None, None, boxes, js=f"() => {json.dumps(texts)}", api_visibility="private")
        filled.then(**run("'0'"))
    if settings:
        # A text box is read when it is submitted, and any other setting when it changes.
        triggers = [
            component.submit if isinstance(component, gr.Textbox) else component.change for component in settings
        ]
        gr.on(triggers, **run("null"))
    changed = f"(...values) => tm.changed({len(boxes)}, values)"
    changes = [component.change for component in (file, *typed)]
    gr.on(changes, None, [file, *typed], None, js=changed, api_visibility="private")
    # A visitor first sees a result: of what the address holds, or of the first example.
    opened = f"(...values) => tm.restored({json.dumps(chips[0][1])}, values)"
    filled = demo.load(None, typed, typed, js=opened, api_visibility="private")
    filled.then(**run("'first'"))


def _handler(space: Space, n_outputs: int) -> Callable[..., Any]:
    """Make the handler of the events that score the boxes or the file."""

    def handle(token: str, path: str | None, *values: Any) -> Any:
        if not token:
            return gr.skip()
        n = len(space.boxes)
        try:
            if token.startswith("1"):
                rows = inputs.read_table(path, space.limits)
            else:
                typed = [text or "" for text in values[:n]]
                # Before anything parses it. Counts, blank lines and spaces are not part of the texts.
                inputs.check_total(typed, space.limits, times=2)
                rows = space.rows(*typed)
            settings = dict(zip(space.settings, values[n:], strict=True))
            return _shown(space, token, space.score(rows, **settings))
        except Exception as error:
            message = panels.render("error", server.shown_error(error).message, token)
            return [message, gr.update(visible=False)] + [gr.skip()] * (n_outputs - 2)

    return handle


def _shown(space: Space, token: str, result: Result) -> list[Any]:
    """Return the values of all outputs that show a result."""
    run = result.scored
    notes = run.result["warnings"] + list(result.notes)
    answer = (result.cards, result.ranking, result.verdict, notes, run.result["signature"], run.code, token)
    downloads = panels.render("downloads", downloads_of(space.metric.name, result))
    values = [panels.render("answer", *answer), gr.update(visible=True), downloads, shown_table(result.details)]
    for drawn, picture in zip(result.pictures, space.pictures, strict=True):
        values.append(gr.update(visible=drawn is not None))
        if drawn is None:
            values += [gr.skip(), gr.skip()]
        else:
            values += [panels.render("heading", picture.title, drawn.caption), drawn.content]
    return values


def downloads_of(name: str, result: Result) -> list[tuple[str, str, str]]:
    """Return label, file name and link of each download: the page holds it, so the server keeps no file."""
    table = harmless(result.details).to_csv(index=False, lineterminator="\r\n", quoting=1)
    report = {"metric": name} | result.scored.result | result.texts
    whole = json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)
    # Spreadsheets recognize UTF-8 by the byte order mark.
    files = (("Details as CSV", "csv", table.encode("utf-8-sig")), ("Result as JSON", "json", whole.encode()))
    return [(label, f"{name}.{ending}", panels.data_url(content, f"text/{ending}")) for label, ending, content in files]


def shown_table(table: pd.DataFrame) -> Any:
    """Return the update of the table of details."""
    shown = table.head(_MOST_ROWS).round(4)
    shown = shown.astype(object).where(shown.notna(), "")
    # Each column has room for its longest word, and long texts share the rest.
    longest = [max(map(len, [name, *shown[name].astype(str)])) for name in shown.columns]
    weights = [14 + min(length, 45) for length in longest]
    return gr.update(value=shown, column_widths=[f"{100 * weight / sum(weights):.1f}%" for weight in weights])


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """Escape the cells of a table that a spreadsheet would evaluate as formulas."""
    return table.map(lambda cell: f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell)
