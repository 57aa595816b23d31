"""The page of a report: one file of HTML with its pictures inside, and the same pictures and tables as files."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from text_metrics.commands.report import tables
from text_metrics.commands.report.pictures import pictures
from text_metrics.commands.report.sentences import Report
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import listed, printable
from text_metrics.commands.shared.plots import COLORS, themed
from text_metrics.commands.shared.tables import latex, markdown

_TEMPLATES = Path(__file__).parent / "templates"
_LATEX = "% For \\input in a document with \\usepackage[T1]{fontenc} and \\usepackage{booktabs,graphicx}.\n"


def write_pages(report: Report, folder: Path) -> None:
    """Write `index.html`, `table.md`, `table.tex` and `figures/*.svg` into a folder, which is made if it is missing.

    Nothing is read but the report, as in `report.json`.
    """
    drawn = pictures(report)
    for picture in drawn:
        write_text(folder / "figures" / f"{picture.section}.svg", f"{picture.svg}\n")
    shown = {
        "diversity": tables.scores_table(report, "diversity"),
        "quality": tables.scores_table(report, "quality"),
        "likeness": tables.partition_table(report),
        "people": tables.people_table(report),
    }
    printed = [table for table in shown.values() if table is not None]
    write_text(folder / "table.md", "\n".join(f"{table.caption}\n\n{markdown(table.frame)}" for table in printed))
    write_text(folder / "table.tex", _LATEX + "\n".join(latex(table.frame, table.caption) for table in printed))
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.loader = FileSystemLoader(_TEMPLATES)
    page = environment.get_template("report.html").render(
        title=f"Diversity of {listed(report['systems'])}",
        report=report,
        colors=COLORS,
        pictures={picture.section: picture._replace(svg=themed(picture.svg)) for picture in drawn},
        tables=shown,
        tests=tables.tests_table(report),
        sources=tables.sources_table(report),
    )
    write_text(folder / "index.html", printable(page))
