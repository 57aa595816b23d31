"""The page of a report: one file of HTML with its pictures inside, and the same pictures and tables as files."""

from pathlib import Path

from text_metrics.commands.report import tables
from text_metrics.commands.report.pictures import pictures
from text_metrics.commands.report.sentences import Report
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import listed
from text_metrics.commands.shared.pages import render
from text_metrics.commands.shared.plots import system_mark
from text_metrics.commands.shared.tables import latex, markdown

_LATEX = "% For \\input in a document with \\usepackage[T1]{fontenc} and \\usepackage{booktabs,graphicx}.\n"


def write_pages(report: Report, folder: Path, texts: bool) -> None:
    """Write `index.html`, `table.md`, `table.tex` and `figures/*.svg` into a folder, which is made if it is missing.

    Nothing is read but the report, as in `report.json`; `texts` says whether the page holds texts of the systems.
    """
    drawn = pictures(report)
    for picture in drawn:
        write_text(folder / "figures" / f"{picture.name}.svg", f"{picture.svg}\n")
    scores = {section: tables.scores_table(report, section) for section in ("diversity", "quality")}
    alike, people = tables.partition_table(report), tables.people_table(report)
    printed = [table for table in (*scores.values(), alike, people) if table is not None]
    write_text(folder / "table.md", "\n".join(f"{t.caption}\n\n{markdown(t.frame, t.marked)}" for t in printed))
    body = "\n".join(latex(table.frame, table.caption, table.marked) for table in printed)
    write_text(folder / "table.tex", _LATEX + body)
    page = render(
        "report.html",
        title=f"Diversity of {listed(report['systems'])}",
        report=report,
        texts=texts,
        pictures=drawn,
        scores=scores,
        tests=tables.tests_table(report),
        alike=alike,
        people=people,
        sources=tables.sources_table(report),
        marks={name: system_mark(i) for i, name in enumerate(report["systems"])},
    )
    write_text(folder / "index.html", page)
