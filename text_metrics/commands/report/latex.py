"""Tables of a report as LaTeX, with the rules of booktabs."""

import re
import unicodedata
from collections.abc import Sequence

from text_metrics.commands.report.tables import Cell, Table

# In the body of a document, where the file is an input, LaTeX has forgotten \@nodocument.
_START = r"""% Compile this file alone, or \input it in a document with \usepackage{booktabs,graphicx}.
\expandafter\ifx\csname @nodocument\endcsname\relax
\let\reportend\relax
\else
\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
\def\reportend{\end{document}}
\fi
"""
_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{char: f"\\{char}" for char in "{}$&#%_"},
    "^": r"\^{}",
    "~": r"\~{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\`{}",
    # After the end of a row, a bracket or an asterisk would be its argument.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "²": "$^2$",
    "≤": r"$\leq$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    '"': r"{\char34}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "\u00a0": "~",
    "\u202f": r"\,",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
}
_ACCENTS = {
    "\u0300": "\\`",
    "\u0301": "\\'",
    "\u0302": "\\^",
    "\u0303": "\\~",
    "\u0304": "\\=",
    "\u0306": "\\u",
    "\u0307": "\\.",
    "\u0308": '\\"',
    "\u030a": "\\r",
    "\u030b": "\\H",
    "\u030c": "\\v",
    "\u0327": "\\c",
}


def latex(tables: Sequence[Table]) -> str:
    """Return tables as LaTeX in ASCII, for pdflatex: to compile as it stands, or for `input` in a document."""
    return "\n".join([_START, *(_table(table) for table in tables), "\\reportend", ""])


def escape(words: str) -> str:
    """Return a text as LaTeX in ASCII: on one line, a character that pdflatex does not have as `<U+901A>`."""
    line = unicodedata.normalize("NFC", re.sub(r"[^\S\u00a0\u202f]+", " ", words).strip())
    # Two hyphens or two apostrophes would become one character.
    return re.sub(r"([-'])(?=\1)", r"\1{}", "".join(map(_character, line)))


def _character(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    if char.isascii() and char.isprintable():
        return char
    letter, accent = unicodedata.normalize("NFD", char)[0], unicodedata.normalize("NFD", char)[1:]
    if letter.isascii() and letter.isalpha() and accent in _ACCENTS:
        return f"{_ACCENTS[accent]}{{{letter}}}"
    return rf"\textless{{}}U+{ord(char):04X}\textgreater{{}}"


def _table(table: Table) -> str:
    heads = [f"{escape(head.text)}{_arrow(head.direction)}" for head in table.heads]
    units = [f"{head.text}: {head.unit}" for head in table.heads if head.unit]
    caption = " ".join([table.caption, *([f"{'; '.join(units)}."] if units else []), table.legend])
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption.strip())}}}",
        r"\smallskip",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        _row(heads),
        r"\midrule",
    ]
    for row in table.rows:
        lines.append(_row([_bold(cell) for cell in row]))
        if any(cell.below for cell in row):
            lines.append(_row([rf"{{\scriptsize {escape(cell.below)}}}" if cell.below else "" for cell in row]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""])


def _bold(cell: Cell) -> str:
    words = escape(cell.text)
    return rf"\textbf{{{words}}}" if cell.marked else words


def _arrow(direction: str) -> str:
    return {"higher": r" $\uparrow$", "lower": r" $\downarrow$"}.get(direction.partition(" ")[0], "")


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"
