"""Tables as data frames whose cells are text, written as Markdown and LaTeX."""

import re

import pandas as pd

from text_metrics.reporting.formats import printable

# What TeX reads as markup, and what pdflatex does not have.
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$"}
    | {"×": r"$\times$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "†": r"$\dagger$"}
)


def markdown(frame: pd.DataFrame) -> str:
    """Return a table as Markdown, without its index."""
    lines = [frame.columns, ["---"] * frame.shape[1], *frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def latex(
    frame: pd.DataFrame,
    caption: str,
    label: str = "",
    below: pd.DataFrame | None = None,
    wide: bool = False,
) -> str:
    """Return a table, and another one below it, as a float of LaTeX that needs the packages booktabs and graphicx.

    Each is no wider than the line, which is that of the whole page if `wide`. Scripts that pdflatex does not set, such
    as Chinese, need lualatex and a font that has them.
    """
    environment = "table*" if wide else "table"
    lines = [
        rf"\begin{{{environment}}}",
        r"\centering",
        rf"\caption{{{latex_escaped(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
    ]
    for each in (frame, below):
        if each is not None:
            lines += [
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                r"\setlength{\tabcolsep}{4pt}%",
                f"{_tabular(each)}}}",
            ]
        if each is frame and below is not None:
            lines.append(r"\par\medskip")
    lines.append(rf"\end{{{environment}}}")
    return "\n".join(lines) + "\n"


def _tabular(frame: pd.DataFrame) -> str:
    """Return a table as LaTeX; the second lines of the cells of a row are a row of their own, in small type."""
    rows = []
    for row in frame.itertuples(index=False, name=None):
        parts = [cell.partition("\n") for cell in row]
        rows.append([_beginning(parts[0][0]), *(latex_escaped(line) for line, _, _ in parts[1:])])
        if any(below for _, _, below in parts):
            rows.append([rf"{{\scriptsize {latex_escaped(below)}}}" if below else "" for _, _, below in parts])
    # A word a line, so that a column is no wider than its numbers.
    titles = [r"\\".join(map(_beginning, name.split(" "))) for name in frame.columns]
    titles = [rf"\shortstack[r]{{{title}}}" if r"\\" in title else title for title in titles]
    cells = pd.DataFrame(rows, columns=titles)
    column_format = "@{}l" + "r" * (frame.shape[1] - 1) + "@{}"
    return cells.to_latex(index=False, escape=False, column_format=column_format).strip()


def _beginning(text: str) -> str:
    """Escape what begins a line, where TeX would read a bracket or an asterisk as an argument."""
    text = latex_escaped(text)
    return f"{{}}{text}" if text.startswith(("[", "*")) else text


def latex_escaped(text: str) -> str:
    """Escape what TeX would read as markup, and put the words on one line."""
    return one_line(text).translate(_LATEX)


def one_line(text: str) -> str:
    """Put the words of a text on one line."""
    return " ".join(printable(text).split())


def _escaped(text: str) -> str:
    """Escape what Markdown would read as markup, and put the words on one line."""
    return re.sub(r"[\\`*_<>#~&|]|\[(?=[^\]]*\]\()", r"\\\g<0>", one_line(text))
