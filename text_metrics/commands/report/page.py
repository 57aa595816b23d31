"""The page of a report: one file of HTML with its pictures inside, and the same pictures and tables as files."""

import json
from pathlib import Path

from text_metrics.commands.report import tables
from text_metrics.commands.report.pictures import pictures
from text_metrics.commands.report.sentences import Report
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import count, integer, level, listed
from text_metrics.commands.shared.pages import render
from text_metrics.commands.shared.plots import system_mark
from text_metrics.commands.shared.tables import latex, markdown

_LATEX = """% Compile this file alone, or \\input it in a document with \\usepackage{booktabs,graphicx}.
\\expandafter\\ifx\\csname @nodocument\\endcsname\\relax
\\let\\reportend\\relax
\\else
\\documentclass{article}
\\usepackage[T1]{fontenc}
\\usepackage{booktabs,graphicx}
\\begin{document}
\\def\\reportend{\\end{document}}
\\fi
"""


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
    write_text(folder / "table.tex", f"{_LATEX}{body}\\reportend\n")
    n, n_all = report["prompts"]["n"], report["prompts"]["n_all"]
    prompts = count(n, "prompt") if n == n_all else f"{integer(n)} of {count(n_all, 'prompt')}, those common to all"
    n_texts = count(sum(source["n_texts"] for source in report["sources"]), "text")
    introduction = f"{count(len(report['systems']), 'system')}, {prompts}, {n_texts}. "
    if report["rarefied_to"] is not None:
        introduction += f"Scores are expected of {count(report['rarefied_to'], 'text')} of each set (rarefaction). "
    introduction += f"Brackets hold {level(report)} intervals. text-metrics {report['version']}."
    signatures = [(metric["title"], metric["signature"]) for metric in report["metrics"]]
    if report["likeness"] is not None:
        signatures.append(("Between systems", report["likeness"]["partition"]["signature"]))
    page = render(
        "report.html",
        title=f"Diversity of {listed(report['systems'])}",
        introduction=[introduction],
        report=report,
        texts=texts,
        pictures=drawn,
        scores=scores,
        tests=tables.tests_table(report),
        alike=alike,
        people=people,
        sources=tables.sources_table(report),
        marks={name: system_mark(i) for i, name in enumerate(report["systems"])},
        signatures=signatures,
        options=[
            (name, json.dumps(value, ensure_ascii=False))
            for name, value in report["command"].items()
            if value is not None
        ],
    )
    write_text(folder / "index.html", page)
