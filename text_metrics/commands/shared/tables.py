"""Tables as data frames whose cells are text, written as Markdown and LaTeX."""

import re

import pandas as pd

from text_metrics.commands.shared.formats import printable

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


def latex(frame: pd.DataFrame, caption: str) -> str:
    """Return a table as LaTeX, no wider than the line; it needs the packages booktabs and graphicx.

    The second lines of the cells of a row are a row of their own, in small type. Scripts that pdflatex does not set,
    such as Chinese, need lualatex and a font that has them.
    """
    rows = []
    for row in frame.itertuples(index=False, name=None):
        parts = [cell.partition("\n") for cell in row]
        # After a line break or a rule, TeX would read a bracket or an asterisk as an argument.
        first = latex_escaped(parts[0][0])
        first = f"{{}}{first}" if first.startswith(("[", "*")) else first
        rows.append([first, *(latex_escaped(line) for line, _, _ in parts[1:])])
        if any(below for _, _, below in parts):
            rows.append([rf"{{\scriptsize {latex_escaped(below)}}}" if below else "" for _, _, below in parts])
    cells = pd.DataFrame(rows, columns=list(map(latex_escaped, frame.columns)))
    tabular = cells.to_latex(index=False, escape=False, column_format="l" + "r" * (frame.shape[1] - 1))
    lines = (
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_escaped(caption)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"{tabular.strip()}}}",
        r"\end{table}",
    )
    return "\n".join(lines) + "\n"


def latex_escaped(text: str) -> str:
    """Escape what TeX would read as markup, and put the words on one line."""
    return _one_line(text).translate(_LATEX)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _escaped(text: str) -> str:
    """Escape what Markdown would read as markup, and put the words on one line."""
    return re.sub(r"[\\`*_<>#~&|]|\[(?=[^\]]*\]\()", r"\\\g<0>", _one_line(text))
