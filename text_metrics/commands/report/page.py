"""What a report is written as: a page with its pictures inside, tables, figures, and a paragraph for a paper.

Nothing is read but the report, as in `report.json`.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from text_metrics.commands.report.model import MEASURES, Report
from text_metrics.commands.report.pictures import pictures
from text_metrics.commands.report.tables import scores, tables
from text_metrics.commands.shared.cli import load_metric
from text_metrics.commands.shared.files import write_text, written_whole
from text_metrics.commands.shared.formats import listed, printable
from text_metrics.commands.shared.plots import COLORS, themed
from text_metrics.commands.shared.tables import latex, latex_escaped, markdown
from text_metrics.metrics._core.core_numbers import parse_choice
from text_metrics.metrics._core.core_results import Signature

_FOLDER = Path(__file__).parent / "templates"
_ENVIRONMENT = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)
_LATEX = "% For \\input in a document with \\usepackage[T1]{fontenc} and \\usepackage{booktabs,graphicx}.\n"
_PRINTED = ("diversity", "quality", "likeness", "similarity", "people")


def write_pages(report: Report, folder: Path, columns: Sequence[str] = ()) -> None:
    """Write all files of a report into a folder; raises a ValueError if a column of `table.tex` is no metric."""
    by_name = {metric.name: metric for metric in report.metrics}
    chosen = [by_name[name] for name in columns if parse_choice(name, "columns", tuple(MEASURES)) in by_name]
    shown, drawn = tables(report), pictures(report)
    printed = for_paper = [shown[name] for name in _PRINTED if name in shown]
    if chosen:
        for_paper = [scores(report, chosen, "Diversity and quality" if report.section("quality") else "Diversity")]
    for section, picture in drawn.items():
        write_text(folder / "figures" / f"{section}.svg", f"{picture.svg}\n")
        with written_whole(folder / "figures" / f"{section}.pdf") as path:
            path.write_bytes(picture.pdf)
    page = _ENVIRONMENT.get_template("report.html").render(
        title=f"Diversity of {listed(report.systems)}",
        report=report,
        colors=COLORS,
        pictures={section: picture._replace(svg=themed(picture.svg)) for section, picture in drawn.items()},
        tables=shown,
    )
    files = {
        "report.json": report.to_json(),
        "table.md": "\n".join(f"{table.caption}\n\n{markdown(table.frame)}" for table in printed),
        "table.tex": _LATEX + "\n".join(latex(table.frame, table.caption) for table in for_paper),
        "methods.tex": methods(report),
        "refs.bib": references(report),
        "index.html": printable(page),
    }
    for name, text in files.items():
        write_text(folder / name, text)


def to_notebook(report: Report) -> str:
    """Return the summary and the tables of scores as HTML for a notebook."""
    return printable(_ENVIRONMENT.get_template("notebook.html").render(report=report, tables=tables(report)))


def methods(report: Report) -> str:
    """Return the paragraph that says how the numbers were computed, with citations of `references`."""
    by_name = {metric.name: metric for metric in report.metrics}
    signatures = [metric.signature for metric in report.metrics]
    if report.likeness is not None:
        signatures += [report.likeness.partition.signature, report.likeness.similarity_signature]
    return _ENVIRONMENT.get_template("methods.tex").render(
        report=report,
        escape=latex_escaped,
        metrics=by_name,
        contexts="contexts" in Signature.parse(report.metrics[0].signature).entries,
        # Each is one long word, which TeX may break after its separators.
        signatures=[re.sub(r"([|:])", r"\1\\allowbreak{}", latex_escaped(each)) for each in dict.fromkeys(signatures)],
    )


def references(report: Report) -> str:
    """Return what `methods` cites, in BibTeX."""
    cited = set(re.findall(r"[\w-]+", " ".join(re.findall(r"\\cite\{([^}]*)\}", methods(report)))))
    entries = (_FOLDER / "refs.bib").read_text(encoding="utf-8").split("\n\n")
    for name in ("vendi_embed", "chamfer_diversity", "semantic_entropy", "self_bleu", "gruen"):
        entries += load_metric(name).citation.strip().split("\n\n")
    keys = {entry.partition("{")[2].partition(",")[0]: entry.strip() for entry in entries}
    return "\n\n".join(keys[key] for key in sorted(cited)) + "\n"
