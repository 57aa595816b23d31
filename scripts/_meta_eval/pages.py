"""The report as Markdown, and as a page with its pictures inside."""

import base64
import html as markup
import os
from pathlib import Path
from typing import Any

from scripts._files import write_text
from scripts._meta_eval.blocks import wrap
from scripts._meta_eval.pictures import pictures
from scripts._meta_eval.report import MARK, NOTE, TRAINING, WORSE, Table, sections

TITLE = "Which diversity metric to believe"
INTRODUCTION = (
    "Each metric is an annotator who says which of two sets of texts is the more diverse, and is held against a judge, "
    "against people, and against trivial rules (data: arXiv 2506.00514). Written by scripts/meta_eval.py."
)


def markdown(report: dict[str, Any], path: Path, folder: Path | None) -> str:
    """Write the report as Markdown.

    Parameters
    ----------
    path : where it will stand, so that its links lead to the pictures
    folder : where to write the pictures; None for none
    """
    drawn = pictures(report) if folder else {}
    lines = [f"# {TITLE}", "", INTRODUCTION, "", TRAINING]
    for section in sections(report):
        lines += ["", f"## {section.title}", "", section.text]
        if folder and section.picture in drawn:
            write_text(folder / f"{section.picture}.svg", drawn[section.picture])
            link = os.path.relpath(folder / f"{section.picture}.svg", path.parent)
            lines += ["", f"![{section.title}]({Path(link).as_posix()})"]
        for i, (caption, table) in enumerate(section.tables):
            block = "\n".join([*_table(table), *_notes(table)])
            lines += ["", caption] if caption else []
            lines += ["", wrap(section.block, block) if section.block and i == 0 else block]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in table]
    head = [f"| {' | '.join(cells[0])} |", "|---" * len(cells[0]) + "|"]
    return head + [f"| {' | '.join(row)} |" for row in cells[1:]]


def _notes(table: Table) -> list[str]:
    """Explain the marks that a table bears."""
    marks = [cell for row in table[1:] for cell in row]
    notes = [NOTE] if any(cell.endswith(f" {MARK}") for cell in marks) else []
    if any("* [" in cell for cell in marks):
        notes.append(WORSE)
    return ["", " ".join(notes)] if notes else []


_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8885; white-space: nowrap }
td.long { white-space: normal; overflow-wrap: anywhere }
img { max-width: 100%; background: white }
"""


def html(report: dict[str, Any]) -> str:
    """Write the report as a page with its pictures inside."""
    drawn = pictures(report)
    parts = []
    for section in sections(report):
        parts.append(f"<h2>{markup.escape(section.title)}</h2><p>{markup.escape(section.text)}</p>")
        if section.picture in drawn:
            data = base64.b64encode(drawn[section.picture].encode()).decode()
            parts.append(f'<img alt="{markup.escape(section.title)}" src="data:image/svg+xml;base64,{data}">')
        for caption, table in section.tables:
            head = "".join(f"<th>{markup.escape(cell)}</th>" for cell in table[0])
            rows = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in table[1:])
            note = "".join(f"<p>{markup.escape(line)}</p>" for line in _notes(table) if line)
            line = f"<p>{markup.escape(caption)}</p>" if caption else ""
            parts.append(f'{line}<div class="wide"><table><tr>{head}</tr>{rows}</table></div>{note}')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body><h1>{TITLE}</h1><p>{INTRODUCTION}</p><p>{TRAINING}</p>{''.join(parts)}</body></html>\n"
    )


def _cell(text: str) -> str:
    return f"<td{' class=long' if len(text) > 60 else ''}>{markup.escape(text)}</td>"
