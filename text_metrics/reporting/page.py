"""Write the files of a report: a page with its pictures inside, tables, figures, and a paragraph for a paper.

Nothing is read but the report, as in `report.json`. Cells of tables are text, whose second line is small.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader

from text_metrics.core_api import Signature, parse_choice
from text_metrics.files.storage import write_text, written_whole
from text_metrics.loading import load_metric
from text_metrics.reporting.formats import (
    count,
    decimals,
    interval,
    listed,
    number,
    p_value,
    percent,
    printable,
    with_p,
)
from text_metrics.reporting.markup import latex, latex_escaped, markdown, one_line
from text_metrics.reporting.pictures import pictures
from text_metrics.reporting.plots import COLORS, themed
from text_metrics.reporting.results import MEASURES, Likeness, Metric, Partition, People, Report, Similarity
from text_metrics.reporting.sentences import COMPACT

_FOLDER = Path(__file__).parent / "templates"
_ENVIRONMENT = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)
_LATEX = "% For \\input in a document with \\usepackage[T1]{fontenc} and \\usepackage{booktabs,graphicx}.\n"
# Metrics of table.tex, which fit into one of two columns.
_FOR_PAPER = ("vendi_embed", "n_classes", "quality")
_ARROWS = {"higher": "\u00a0↑", "lower": "\u00a0↓", None: ""}
BEST, UNRELIABLE = "*", "†"
# Rows of a float of LaTeX, each of two lines, that fit on a page.
_MOST_ROWS = 18
_PRINTED = ("diversity", "same_length", "quality", "tests", "likeness", "similarity", "people")


class Table(NamedTuple):
    """A table with its caption."""

    caption: str
    frame: pd.DataFrame


def write_pages(report: Report, folder: Path, columns: Sequence[str] = ()) -> None:
    """Write all files of a report into a folder; raises a ValueError if a column of `table.tex` is not a metric."""
    names = [parse_choice(name, "columns", tuple(MEASURES)) for name in columns or _FOR_PAPER]
    by_name = {metric.name: metric for metric in report.metrics}
    chosen = [by_name[name] for name in names if name in by_name] or report.metrics[:1]
    shown = tables(report)
    drawn = pictures(report)
    markdown_tables: list[str] = []
    latex_tables: list[str] = []
    for name in _PRINTED:
        if name in shown:
            markdown_tables.append(f"{shown[name].caption}\n\n{markdown(shown[name].frame)}")
            latex_tables += _for_appendix(name, shown[name])
    page = _ENVIRONMENT.get_template("report.html").render(
        title=f"Diversity of {listed(report.systems)}",
        report=report,
        colors=COLORS,
        pictures={section: picture._replace(svg=themed(picture.svg)) for section, picture in drawn.items()},
        tables=shown,
    )
    # The first one shows that the folder holds a report, so that the next run may replace what a kill left.
    files = {
        "report.json": report.to_json(),
        "table.md": "\n".join(markdown_tables),
        "table.tex": _LATEX + _engine(report) + _for_paper(report, chosen),
        "tables.tex": _LATEX + _engine(report) + "\n".join(latex_tables),
    }
    files |= methods(report)
    files["index.html"] = printable(page)
    for name, text in files.items():
        write_text(folder / name, text)
    for section, picture in drawn.items():
        write_text(folder / "figures" / f"{section}.svg", f"{picture.svg}\n")
        with written_whole(folder / "figures" / f"{section}.pdf") as path:
            path.write_bytes(picture.pdf)


def _for_paper(report: Report, metrics: Sequence[Metric]) -> str:
    """Return the table of a paper as LaTeX: the scores of some metrics, and below them the paired tests."""
    sections = [section.capitalize() for section in dict.fromkeys(metric.section for metric in metrics)]
    table = scores(report, metrics, " and ".join([sections[0], *map(str.lower, sections[1:])]))
    n = len(report.systems)
    below = paired_tests(report, metrics)
    if n + len(below.frame) > _MOST_ROWS:
        below = paired_tests(report, metrics, report.metrics[0].order[0])
    if n == 1 or n + len(below.frame) > _MOST_ROWS:
        return latex(table.frame, table.caption, "tab:scores")
    return latex(table.frame, f"{table.caption} {below.caption}", "tab:scores", below.frame)


def _for_appendix(name: str, table: Table) -> list[str]:
    """Return a table as LaTeX, in as many floats as pages are needed."""
    floats = [latex(table.frame[:_MOST_ROWS], table.caption, f"tab:{name}", wide=True)]
    for start in range(_MOST_ROWS, len(table.frame), _MOST_ROWS):
        rows = table.frame[start : start + _MOST_ROWS]
        floats.append(latex(rows, f"{table.caption} (continued)", wide=True))
    return floats


def _engine(report: Report) -> str:
    """Say in a comment which names pdflatex does not set."""
    names = [name for name in report.systems if re.search(r"[^\0-\u017f\u2010-\u2026\u2212]", name)]
    if not names:
        return ""
    return f"% For {', '.join(map(one_line, names))}, use lualatex or xelatex, with a font that has these characters.\n"


def methods(report: Report) -> dict[str, str]:
    """Return the paragraph on how the numbers were computed, the signatures, and references in BibTeX, by file."""
    by_name = {metric.name: metric for metric in report.metrics}
    signatures = [metric.signature for metric in report.metrics]
    if report.likeness is not None:
        signatures += [report.likeness.partition.signature, report.likeness.similarity_signature]
    entries_of = {name: Signature.parse(metric.signature).entries for name, metric in by_name.items()}
    paragraph = _ENVIRONMENT.get_template("methods.tex").render(
        report=report,
        escape=latex_escaped,
        metrics=by_name,
        entries=entries_of,
        partition=report.likeness and Signature.parse(report.likeness.partition.signature).entries,
        range=_range,
    )
    # Each is one long word, which TeX may break after its separators.
    signed = [re.sub(r"([|:])", r"\1\\allowbreak{}", latex_escaped(each)) for each in dict.fromkeys(signatures)]
    lines = [f"{{\\ttfamily {signature}}}\\par" for signature in signed]
    appendix = "\n".join(["% For \\input in an appendix.", r"{\footnotesize\raggedright\noindent", *lines, "}"])
    cited = set(re.findall(r"[\w-]+", " ".join(re.findall(r"\\citep\{([^}]*)\}", paragraph))))
    references = _ENVIRONMENT.get_template("refs.bib").render(report=report)
    entries = references.split("\n\n")
    for name in ("vendi_embed", "chamfer_diversity", "semantic_entropy", "self_bleu", "gruen"):
        entries += load_metric(name).citation.strip().split("\n\n")
    keys = {entry.partition("{")[2].partition(",")[0]: entry.strip() for entry in entries}
    return {
        "methods.tex": _engine(report) + paragraph,
        "signatures.tex": f"{appendix}\n",
        "refs.bib": "\n\n".join(keys[key] for key in sorted(cited)) + "\n",
    }


def notebook(report: Report) -> str:
    """Return the head of a report, and its first table, as HTML for a notebook."""
    table = tables(report)["diversity"]
    return _ENVIRONMENT.get_template("notebook.html").render(report=report, table_of_scores=table)


def tables(report: Report) -> dict[str, Table]:
    """Return the tables of a report by name, without those that would be empty."""
    shown = {}
    for section in ("diversity", "quality"):
        if metrics := report.section(section):
            shown[section] = scores(report, metrics, section.capitalize())
    if report.same_length is not None:
        title = f"Cut to {_range(report.same_length.n_words)}, as many as the shortest text of a prompt has"
        shown["same_length"] = scores(report, report.same_length.metrics, title)
    if report.likeness is not None:
        shown["tests"] = paired_tests(report, report.metrics)
        shown["likeness"] = _partition(report.likeness, report.systems)
        shown["similarity"] = _similarity(report.likeness.similarity, report.systems, report.order)
    if report.people is not None:
        shown["people"] = _people(report.people, report.systems)
    shown["sources"] = _sources(report)
    if report.stripped:
        shown["stripped"] = _stripped(report)
    return shown


def _range(numbers: Sequence[int], noun: str = "word") -> str:
    """Return a range of numbers of things: "7 words", or "3 to 9 words"."""
    least = min(numbers)
    most = max(numbers)
    return count(most, noun) if least == most else f"{least} to {count(most, noun)}"


def scores(report: Report, metrics: Sequence[Metric], title: str) -> Table:
    """Return the means of some metrics, in the order of the report."""
    order = report.order
    columns = {"System": [report.systems[i] for i in order]}
    for metric in metrics:
        marks = ["" if value.is_reliable else UNRELIABLE for value in metric.values]
        if metric.best is not None:
            marks[metric.best] = BEST
        cells = _cells([(value.mean, value.interval) for value in metric.values], marks)
        columns[metric.title + _ARROWS[metric.better]] = [cells[i] for i in order]
    n_prompts = count(len(report.prompts), "prompt")
    caption = (
        f"{title}: means over {n_prompts} with {100 * report.confidence:g} % intervals. ↑ higher, ↓ lower is better."
    )
    if any(metric.best is not None for metric in metrics):
        caption += f" {BEST} beats every other system in paired tests (p < {1 - report.confidence:.2g}, Holm)."
    if not all(metric.is_reliable for metric in metrics):
        caption += f" {UNRELIABLE} says nothing about this system, most of whose texts the metric cannot measure."
    if any(metric.title == MEASURES["quality"].title for metric in metrics):
        caption += f" {COMPACT}"
    return Table(caption, pd.DataFrame(columns))


def paired_tests(report: Report, metrics: Sequence[Metric], system: int | None = None) -> Table:
    """Return the paired tests of some metrics, a row for each pair of systems, or for each pair with one system."""
    names = report.systems
    rows = [i for i, test in enumerate(metrics[0].tests) if system is None or system in (test.a, test.b)]
    pairs = [metrics[0].tests[i] for i in rows]
    columns = {"Pair": [f"{names[test.a]}\n− {names[test.b]}" for test in pairs]}
    for metric in metrics:
        digits = decimals((test.difference, test.interval) for test in metric.tests)
        cells = [f"{number(test.difference, digits, signed=True)}\n{with_p(test.p_holm)}" for test in metric.tests]
        columns[metric.title] = [cells[i] for i in rows]
    caption = "Mean differences, with p of the paired tests after Holm's adjustment."
    if system is not None:
        caption = f"{caption[:-1]} for all pairs, of which those with {names[system]} are shown."
    return Table(caption, pd.DataFrame(columns))


def _partition(likeness: Likeness, names: list[str]) -> Table:
    """Return the partition of diversity, the most different pair first."""
    whole = likeness.partition
    parts = [whole, *likeness.pairs]
    betas = [(part.between, part.between_interval) for part in parts]
    digits = decimals(betas)
    columns = {
        "Systems": ["all systems", *(f"{names[pair.a]} and {names[pair.b]}" for pair in likeness.pairs)],
        "Effective systems (beta)": _cells(betas),
        "by chance": [number(part.between_expected, digits) for part in parts],
        "Share beyond chance,\u00a0%": _shares(parts),
        "Equal texts": [percent(part.equal_share) for part in parts],
        "p": list(map(p_value, [whole.p, *(pair.p_holm for pair in likeness.pairs)])),
    }
    alpha, gamma = (number(value, digits) for value in (whole.within, whole.pooled))
    caption = f"Different texts on a prompt: {alpha} of one system (alpha), {gamma} of all (gamma)."
    return Table(caption, pd.DataFrame(columns))


def _similarity(means: Sequence[Similarity], names: list[str], order: list[int]) -> Table:
    """Return the mean cosines of two texts by their systems, as the lower half of a matrix."""
    cells = _cells([(each.mean, each.interval) for each in means])
    places = {(each.a, each.b): cell for each, cell in zip(means, cells, strict=True)}
    rows = []
    for n, i in enumerate(order):
        cells_of_row = [places[min(i, j), max(i, j)] for j in order[: n + 1]]
        above_diagonal = [""] * (len(order) - n - 1)
        rows.append([names[i], *cells_of_row, *above_diagonal])
    caption = "Mean cosine of two texts on one prompt: of one system on the diagonal, of two systems below it."
    return Table(caption, pd.DataFrame(rows, columns=["Cosine", *(names[i] for i in order)]))


def _people(people: People, names: list[str]) -> Table:
    """Return how near systems are to people, the nearest first."""
    # Where people are halved, the last row is their other half.
    sides = [*names, "half of the people"]
    rows = sorted(zip(people.rows, sides, strict=False), key=lambda row: row[0].between)
    columns = {
        "Beside people": [name for _, name in rows],
        "Effective sides (beta)\u00a0↓": _cells([(part.between, part.between_interval) for part, _ in rows]),
        "Share beyond chance,\u00a0%": _shares([part for part, _ in rows]),
        "p": [p_value(part.p) for part, _ in rows],
    }
    divided = ", with people divided at random" if len(rows) > len(names) else ""
    caption = (
        f"{count(people.n_texts, 'text')} of each side on {count(people.n_prompts, 'prompt')}{divided}; p unadjusted."
    )
    return Table(caption, pd.DataFrame(columns))


def _sources(report: Report) -> Table:
    columns = {"System": report.systems}
    if any(source.file for source in report.sources):
        columns["File"] = [source.file for source in report.sources]
    keys = {"n_rows": "Rows", "n_bad": "Skipped", "n_prompts": "Prompts", "n_texts": "Texts"}
    for key, title in keys.items():
        columns[title] = [f"{getattr(source, key):,}" for source in report.sources]
    return Table("What was read.", pd.DataFrame(columns))


def _stripped(report: Report) -> Table:
    """Return from how many texts what is not the answer was removed."""
    titles = {"reasoning": "Reasoning", "special": "Special tokens", "prompt": "Prompt", "empty": "Empty without it"}
    counts = list(report.stripped.values())
    columns = {"Texts of": list(report.stripped)}
    for kind in counts[0]:
        columns[titles[kind]] = [f"{each[kind]:,}" for each in counts]
    return Table("Texts from which what is not the answer was removed.", pd.DataFrame(columns))


def _cells(values: Sequence[tuple[float | None, Sequence[float] | None]], marks: Sequence[str] = ()) -> list[str]:
    """Format numbers, with a mark each, above their intervals, with as many decimals as these deserve."""
    digits = decimals(values)
    marked = zip(values, marks or [""] * len(values), strict=True)
    return [f"{number(value, digits)}{mark}\n{interval(ends, digits)}".strip() for (value, ends), mark in marked]


def _shares(parts: Sequence[Partition]) -> list[str]:
    """Format shares beyond chance and their intervals, in percent."""
    cells = []
    for part in parts:
        value = None if part.share is None else 100 * part.share
        ends = part.share_interval and [100 * end for end in part.share_interval]
        cells.append(f"{number(value, 1)}\n{interval(ends, 1)}".strip())
    return cells
