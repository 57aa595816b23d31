"""The page of a report: one file of HTML with its pictures inside, and the same pictures and tables as files."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from text_metrics.commands.report import tables
from text_metrics.commands.report.drawing import escape, mark, standalone
from text_metrics.commands.report.figures import Picture, pictures
from text_metrics.commands.report.latex import latex
from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.report.style import STYLE
from text_metrics.commands.report.tables import Cell, Table
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.formats import count, integer, level, listed, number
from text_metrics.commands.shared.pages import html_page

# Longer texts are folded after this number of characters.
_LONG, _SEEN = 320, 160
# In rows: a longer table scrolls in its box.
_TALL = 24
QUESTIONS = {
    "diversity": "Which says more?",
    "quality": "At what quality?",
    "likeness": "How alike are they?",
    "people": "How close to people?",
    "collapse": "Where does it collapse?",
    "caveats": "What could mislead?",
}


def write_pages(report: Report, folder: Path, texts: bool) -> None:
    """Write `index.html`, `table.md`, `table.tex` and `figures/*.svg` into a folder, which is made if it is missing.

    Nothing is read but the report, as in `report.json`; `texts` says whether the page holds texts of the systems.
    """
    drawn = pictures(report)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for picture in drawn:
        write_text(folder / "figures" / f"{picture.name}.svg", standalone(picture.svg))
    printed = tables.main_tables(report)
    write_text(folder / "table.md", tables.markdown(printed))
    write_text(folder / "table.tex", latex(printed))
    write_text(folder / "index.html", page(report, drawn, texts))


def page(report: Report, drawn: Sequence[Picture], texts: bool) -> str:
    """Return the page as HTML."""
    bodies = {
        "diversity": _scores(report, "diversity"),
        "quality": _scores(report, "quality"),
        "likeness": _tables(tables.partition_table(report), tables.pairs_table(report)),
        "people": _tables(tables.people_table(report)),
        "collapse": _collapse(report, texts),
        "caveats": _caveats(report),
    }
    links = "".join(f'<li><a href="#{key}">{question}</a></li>' for key, question in QUESTIONS.items())
    key = "".join(f"<li>{_named(name, i)}</li>" for i, name in enumerate(report["systems"]))
    parts = [
        f'<ul class="key" aria-label="Systems">{key}</ul>',
        f'<nav aria-label="Questions"><ol>{links}</ol></nav>',
    ]
    for key, question in QUESTIONS.items():
        figures = "".join(_figure(picture) for picture in drawn if picture.section == key)
        figures = f'<div class="figures">{figures}</div>' if figures else ""
        parts.append(
            f'<section id="{key}"><h2>{question}</h2><p class="answer">{escape(report["sentences"][key])}</p>'
            f"{figures}{bodies[key]}</section>"
        )
    return html_page(f"Diversity of {escape(listed(report['systems']))}", _introduction(report), "".join(parts), STYLE)


def _introduction(report: Report) -> list[str]:
    n, n_all = report["prompts"]["n"], report["prompts"]["n_all"]
    texts = sum(source["n_texts"] for source in report["sources"])
    prompts = count(n, "prompt") if n == n_all else f"{integer(n)} of {count(n_all, 'prompt')}, those common to all"
    parts = [f"{count(len(report['systems']), 'system')}, {prompts}, {count(texts, 'text')}."]
    if report["rarefied_to"] is not None:
        parts.append(f"Scores are those expected of {count(report['rarefied_to'], 'text')} of each set (rarefaction).")
    parts.append(f"Brackets hold {level(report)} confidence intervals. text-metrics {escape(report['version'])}.")
    return [" ".join(parts)]


def _named(name: str, system: int | None) -> str:
    """Return a name beside the mark of its system."""
    if system is None:
        return f"<bdi>{escape(name)}</bdi>"
    sign = (
        f'<svg class="mark" viewBox="-7 -7 14 14" width="12" height="12" aria-hidden="true">{mark(system, 0, 0)}</svg>'
    )
    return f'<span class="name">{sign}<bdi>{escape(name)}</bdi></span>'


def _figure(picture: Picture) -> str:
    """Format a picture with its caption, in a box that scrolls; those that may be wider than a phone get the focus."""
    focus = f' tabindex="0" role="region" aria-label="{escape(picture.caption)}"' if picture.wide else ""
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>"
    return f'<figure class="{picture.name}"><div class="wide"{focus}>{picture.svg}</div>{caption}</figure>'


def _tables(*shown: Table | None) -> str:
    return "".join(_table(table) for table in shown if table is not None)


def _table(table: Table) -> str:
    """Format a table, with its caption, in a box that scrolls."""
    words = [any(row[k].words for row in table.rows) for k in range(len(table.heads))]
    heads = "".join(
        f"<th scope=col{' class=words' if left else ''}>{_named(head.text, head.system)}{_below(head.below)}</th>"
        for head, left in zip(table.heads, words, strict=True)
    )
    rows = "".join(
        f'<tr><th scope="row">{_text(head.text) if head.words else _named(head.text, head.system)}'
        f"{_below(head.below)}</th>{''.join(map(_cell, cells))}</tr>"
        for head, *cells in table.rows
    )
    label = f"caption-{escape(table.name)}"
    tall = " tall" if len(table.rows) > _TALL else ""
    named = f'aria-labelledby="{label}"'
    return (
        f'<p class="caption" id="{label}">{escape(f"{table.caption} {table.legend}".strip())}</p>'
        f'<div class="wide{tall}" tabindex="0" role="region" {named}><table {named}>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(cell: Cell) -> str:
    words = _text(cell.text) if cell.words else escape(cell.text)
    kinds = " ".join(kind for kind in ("marked", "words") if getattr(cell, kind))
    attribute = f' class="{kinds}"' if kinds else ""
    return f"<td{attribute}>{f'<strong>{words}</strong>' if cell.marked else words}{_below(cell.below)}</td>"


def _below(words: str) -> str:
    return f"<small>{escape(words)}</small>" if words else ""


def _scores(report: Report, section: str) -> str:
    parts = [_tables(tables.scores_table(report, section))]
    folded = []
    for metric in in_section(report, section):
        table = tables.matrix_of_tests(report, metric)
        if table is not None:
            shown = sum(cell.marked for row in table.rows for cell in row) // 2
            of = f"<small>a difference is shown for {shown} of {count(len(metric['tests']), 'pair')}</small>"
            folded.append(f"<details><summary>{escape(metric['title'])} {of}</summary>{_table(table)}</details>")
    if folded:
        parts.append(f"<h3>All paired tests</h3>{''.join(folded)}")
    return "".join(parts)


def _collapse(report: Report, texts: bool) -> str:
    collapsed = _tables(tables.least_table(report), tables.differ_table(report))
    if not texts:
        return collapsed
    names, collapse = report["systems"], report["collapse"]
    parts = [collapsed, "<h3>Texts of the least diverse prompts</h3>"]
    for i, prompts in enumerate(collapse["least"]):
        articles = "".join(
            f"<article><h4>{_text(prompt['prompt'])}</h4>{_texts(prompt['texts'], prompt['closest'])}</article>"
            for prompt in prompts
        )
        parts.append(f"<details><summary>{_named(names[i], i)}</summary>{articles}</details>")
    if collapse["differ"]:
        parts.append("<h3>Texts of the prompts on which systems differ most</h3>")
    for prompt in collapse["differ"]:
        articles = "".join(
            f"<article><h4>{_named(names[i], i)}</h4>{_texts(listed_texts, None)}</article>"
            for i, listed_texts in enumerate(prompt["texts"])
        )
        summary = escape(_start(prompt["prompt"], _SEEN))
        whole = "" if len(prompt["prompt"]) <= _SEEN else f"<p>{escape(prompt['prompt'])}</p>"
        parts.append(f"<details><summary><bdi>{summary}</bdi></summary>{whole}{articles}</details>")
    return "".join(parts)


def _texts(texts: Sequence[str], closest: Sequence[float] | None) -> str:
    """Format the texts of a set; the two that are most alike say so."""
    items = []
    for i, text in enumerate(texts):
        alike = closest is not None and i in closest[:2]
        sign = f'<span class="closest">most alike, cosine {number(closest[2], 2)}</span>' if closest and alike else ""
        items.append(f'<li dir="auto">{_text(text) or "<em>empty</em>"}{sign}</li>')
    return f'<ol class="texts">{"".join(items)}</ol>'


def _text(text: str) -> str:
    """Escape a text, and fold it if it is long."""
    if len(text) <= _LONG:
        return f"<bdi>{escape(text)}</bdi>"
    summary = f"{escape(_start(text, _SEEN))} <small>({count(len(text), 'character')})</small>"
    return f"<details><summary><bdi>{summary}</bdi></summary><bdi>{escape(text)}</bdi></details>"


def _start(text: str, n: int) -> str:
    line = " ".join(text[: n + 1].split())
    return line if len(text) <= n else f"{line[: n - 1]}…"


def _caveats(report: Report) -> str:
    items = "".join(f"<li>{escape(caveat['sentence'])}</li>" for caveat in report["caveats"])
    parts = [f'<ul class="caveats">{items}</ul>' if items else ""]
    parts.append(_tables(tables.power_table(report), tables.sources_table(report), tables.missing_table(report)))
    signed = [(metric["title"], metric["signature"]) for metric in report["metrics"]]
    if report["likeness"] is not None:
        signed.append(("Between systems", report["likeness"]["partition"]["signature"]))
    parts.append(f"<h3>Signatures</h3>{_definitions(signed)}")
    options = [
        (option, json.dumps(value, ensure_ascii=False))
        for option, value in report["command"].items()
        if value is not None
    ]
    parts.append(f"<h3>Options</h3>{_definitions(options)}")
    return "".join(parts)


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Format names with code."""
    items = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(code)}</code></dd>" for name, code in pairs)
    return f"<dl>{items}</dl>"
