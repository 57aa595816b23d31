"""Reports as Markdown and as pages of HTML with pictures in SVG."""

import base64
import html as markup
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from text_metrics.commands.shared.files import write_text, written_whole
from text_metrics.commands.shared.formats import printable, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """Return a page from a template of the folder templates/, with every text escaped; a page runs no script.

    `sections.html` takes `title`, `introduction`, a list of paragraphs, and `sections`: each has a `title`, a `text`,
    `tables`, pairs of a caption and a data frame whose cells are text, and `pictures`, SVGs of `plots.to_svg`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from text_metrics.commands.shared.plots import COLORS, themed

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    environment.filters.update(themed=themed, shortened=shortened)
    return environment.get_template(template).render(colors=COLORS, **values)


# The first row is the header.
Table = list[list[str]]


class Section(NamedTuple):
    """A part of a report.

    tables : each with the line above it
    picture : the name of a picture; "" for none
    block : the name under which other pages may show the first table; "" for none
    """

    title: str
    text: str
    tables: list[tuple[str, Table]]
    picture: str = ""
    block: str = ""


_LONG = 60
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8885; white-space: nowrap }
td.long { white-space: normal; overflow-wrap: anywhere }
img { max-width: 100%; background: white }
.skip:not(:focus) { position: absolute; left: -100vw }
"""


def markdown_table(table: Table) -> list[str]:
    """Format a table as lines of Markdown."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in table]
    head = [f"| {' | '.join(cells[0])} |", "|---" * len(cells[0]) + "|"]
    return head + [f"| {' | '.join(row)} |" for row in cells[1:]]


def html_table(table: Table) -> str:
    """Format a table as HTML; cells are escaped."""
    head = "".join(f"<th>{markup.escape(cell)}</th>" for cell in table[0])
    rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table[1:])
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def html_sections(
    sections: Iterable[Section], pictures: Mapping[str, str] | None = None, notes: Callable[[Table], str] = lambda _: ""
) -> str:
    """Format parts of a report as HTML, with pictures by name, as SVG, and what `notes` says below each table."""
    parts = []
    for section in sections:
        parts.append(f"<h2>{markup.escape(section.title)}</h2><p>{markup.escape(section.text)}</p>")
        if section.picture in (pictures or {}):
            parts.append(html_picture(section.title, (pictures or {})[section.picture]))
        for caption, table in section.tables:
            above, below = (f"<p>{markup.escape(line)}</p>" if line else "" for line in (caption, notes(table)))
            parts.append(f"{above}{html_table(table)}{below}")
    return "".join(parts)


def html_picture(title: str, svg: str) -> str:
    """Format a picture as HTML that holds the picture itself."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{markup.escape(title)}" src="data:image/svg+xml;base64,{data}">'


def html_page(title: str, introduction: Sequence[str], body: str, style: str = _STYLE) -> str:
    """Format a page with a title, some paragraphs and a body of HTML; it runs no script and loads no other file."""
    opening = "".join(f"<p>{paragraph}</p>" for paragraph in introduction)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<style>{style}</style></head><body><a class="skip" href="#main">Skip to the content</a>'
        f'<header><h1>{title}</h1>{opening}</header><main id="main" tabindex="-1">{body}</main></body></html>\n'
    )


def _cell(text: str) -> str:
    return f"<td{' class=long' if len(text) > _LONG else ''}>{markup.escape(text)}</td>"


def to_svg(figure: "Figure") -> str:
    """Draw a figure as SVG without a date; set `svg.hashsalt` for identifiers that do not vary."""
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    # Without the declaration, the text can stand in a page too.
    return file.getvalue()[file.getvalue().index("<svg") :]


def save_figure(figure: "Figure", path: Path, **options: Any) -> None:
    """Write a figure to a file, atomically, in the format of its extension; `options` are those of `savefig`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:] or None, **options)


def picture_files(folder: Path | None, names: Iterable[str]) -> list[Path]:
    """List the files that a report's pictures are written to; none without a folder."""
    return [folder / f"{name}.svg" for name in names] if folder else []


def put_between(path: Path, name: str, written: str) -> None:
    """Put a text between the markers `<!-- name: start -->` and `<!-- name: end -->` of a page."""
    start, end = (f"<!-- {name}: {what} -->" for what in ("start", "end"))
    page = path.read_text(encoding="utf-8")
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"{path} must hold {start} and {end}, once each.")
    before, rest = page.split(start)
    after = rest.split(end)[1]
    write_text(path, f"{before}{start}\n{written}{end}{after}")
