"""Tables as data frames whose cells are text, written as Markdown and LaTeX."""

import re

import pandas as pd

from text_metrics.commands.shared.formats import printable

# What pdflatex does not have, and pandas does not escape.
_SYMBOLS = str.maketrans({"−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"})


def markdown(frame: pd.DataFrame) -> str:
    """Return a table as Markdown, without its index."""
    lines = [frame.columns, ["---"] * frame.shape[1], *frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def latex(frame: pd.DataFrame, caption: str) -> str:
    """Return a table as LaTeX, no wider than the line; it needs the packages booktabs and graphicx.

    Scripts that pdflatex does not set, such as Chinese, need lualatex and a font that has them.
    """
    styler = frame.map(_one_line).style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    tabular = styler.to_latex(hrules=True, column_format="l" + "r" * (frame.shape[1] - 1))
    words = re.sub(r"([&%$#_{}])", r"\\\1", _one_line(caption))
    lines = (
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{words}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"{tabular.strip()}}}",
        r"\end{table}",
    )
    return "\n".join(lines).translate(_SYMBOLS) + "\n"


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _escaped(text: str) -> str:
    """Escape what Markdown would read as markup, and put the words on one line."""
    return re.sub(r"[\\`*_<>#~&|]|\[(?=[^\]]*\]\()", r"\\\g<0>", _one_line(text))
