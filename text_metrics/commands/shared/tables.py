"""Tables as data frames whose cells are text, written as Markdown and LaTeX; `frame.to_csv(index=False)` writes CSV."""

import re
from collections.abc import Collection

import pandas as pd

from text_metrics.commands.shared.formats import printable

# What pdflatex does not have, and pandas does not escape.
_SYMBOLS = str.maketrans(
    {"−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"}
    | {"\u00a0": "~", "\u202f": r"\,"}
)
# Cells, each by its row and column, from 0.
Places = Collection[tuple[int, int]]


def markdown(frame: pd.DataFrame, marked: Places = ()) -> str:
    """Return a table as Markdown, without its index; `marked` cells are bold."""
    rows = [
        [f"**{_plain(cell)}**" if (i, j) in marked else _plain(cell) for j, cell in enumerate(row)]
        for i, row in enumerate(frame.itertuples(index=False))
    ]
    lines = [[_plain(name) for name in frame.columns], ["---"] * frame.shape[1], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def latex(frame: pd.DataFrame, caption: str, marked: Places = ()) -> str:
    """Return a table as LaTeX, no wider than the line; `marked` cells are bold.

    It needs the packages booktabs, graphicx and, for `<` and `>`, fontenc with T1. Scripts that pdflatex does not set,
    such as Chinese, need lualatex and a font that has them.
    """
    bold = [["textbf:--rwrap;" * ((i, j) in marked) for j in range(frame.shape[1])] for i in range(len(frame))]
    styler = frame.map(_one_line).style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
    styler = styler.apply(lambda _: pd.DataFrame(bold, index=frame.index, columns=frame.columns), axis=None)
    tabular = styler.to_latex(hrules=True, column_format="l" + "r" * (frame.shape[1] - 1)).strip()
    # After the end of a row, a bracket or an asterisk would be its argument.
    tabular = re.sub(r"(?m)^(?=[\[*])", "{}", tabular)
    words = re.sub(r"([&%$#_{}])", r"\\\1", _one_line(caption))
    lines = (
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{words}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"{tabular}}}",
        r"\end{table}",
    )
    return "\n".join(lines).translate(_SYMBOLS) + "\n"


def _one_line(text: str) -> str:
    return " ".join(re.split(r"[ \t\r\n\f\v\u2028\u2029]+", printable(text))).strip()


def _plain(text: str) -> str:
    """Escape what Markdown would read as markup, and put the words on one line."""
    return re.sub(r"[\\`*_<>#~&|]|\[(?=[^\]]*\]\()", r"\\\g<0>", _one_line(text))
