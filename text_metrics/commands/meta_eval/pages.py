"""The report as Markdown, and as a page with its pictures inside."""

import os
from pathlib import Path
from typing import Any

from text_metrics.commands.meta_eval.report import MARK, NO_CLAIMS, NOTE, TRAINING, WORSE, Claims, sections
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.pages import Table, html_page, html_sections, markdown_table

# The pictures that a report can have.
PICTURES = ("qualities", "people", "agreement", "kappa", "labels")
TITLE = "Evaluation of diversity metrics"
INTRODUCTION = (
    "Each metric is an annotator that says which of two sets of texts is more diverse. It is compared with a judge, "
    "with people and with trivial rules."
)


def markdown(report: dict[str, Any], path: Path, folder: Path | None, claims: Claims = NO_CLAIMS) -> str:
    """Write the report as Markdown, for `path`, with links to the pictures that are written to a folder, if any."""
    drawn = _pictures(report) if folder else {}
    introduction, training = _preface(claims)
    lines = [f"# {TITLE}", "", introduction, "", training]
    for section in sections(report, claims):
        lines += ["", f"## {section.title}", "", section.text]
        if folder and section.picture in drawn:
            write_text(folder / f"{section.picture}.svg", drawn[section.picture])
            link = os.path.relpath(folder / f"{section.picture}.svg", path.parent)
            lines += ["", f"![{section.title}]({Path(link).as_posix()})"]
        for i, (caption, table) in enumerate(section.tables):
            notes = _notes(table)
            block = "\n".join([*markdown_table(table), *(["", notes] if notes else [])])
            lines += ["", caption] if caption else []
            lines += ["", claims.mark(section.block, block) if section.block and i == 0 else block]
    return "\n".join(lines) + "\n"


def _preface(claims: Claims) -> list[str]:
    return [f"{INTRODUCTION} {claims.source}".strip(), f"{TRAINING} {claims.training}".strip()]


def _pictures(report: dict[str, Any]) -> dict[str, str]:
    # matplotlib is an extra.
    from text_metrics.commands.meta_eval.pictures import pictures

    return pictures(report)


def _notes(table: Table) -> str:
    """Explain the marks that a table bears."""
    marks = [cell for row in table[1:] for cell in row]
    notes = [NOTE] if any(cell.endswith(f" {MARK}") for cell in marks) else []
    return " ".join([*notes, WORSE] if any("* [" in cell for cell in marks) else notes)


def html(report: dict[str, Any], claims: Claims = NO_CLAIMS) -> str:
    """Write the report as a page with its pictures inside."""
    return html_page(TITLE, _preface(claims), html_sections(sections(report, claims), _pictures(report), _notes))
