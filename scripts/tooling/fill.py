"""Fill the marked blocks of README, docs and cards, or check that they are filled.

`<!-- table:NAME -->` ... `<!-- /table -->` holds results/NAME.csv as a table, and `<!-- table:NAME | A | B -->` its
first column and those named A and B. `<!-- help:Args -->` ... `<!-- /help -->` of a card holds a section of the help.

    python -m scripts.tooling.fill            write them
    python -m scripts.tooling.fill --check    change nothing; exit with 1 if a block differs
"""

import csv
import importlib
import re
import sys
from pathlib import Path

from scripts import ROOT
from text_metrics.console import Parser, command

_BLOCK = re.compile(r"(<!-- (table|help):([\w-]+)((?: \| [\w ]+?)*) -->\n)(.*?)(<!-- /\2 -->)", flags=re.DOTALL)
_TYPE_OR_NAME = re.compile(r"\((?:[^()]|\([^()]*\))*\)|(\w+)")


def read_help(metric: str) -> str:
    """Return the help of a metric."""
    return importlib.import_module(f"text_metrics.metrics.{metric}.{metric}")._KWARGS_DESCRIPTION


def help_list(help_text: str, section: str) -> str:
    """Format the entries `name (type): text` of a section such as "Args" as a list, with each name as code."""
    match = re.search(rf"^{section}:\n(.*?)(?=^\S|\Z)", help_text, flags=re.MULTILINE | re.DOTALL)
    if match is None:
        raise ValueError(f"The help has no section {section!r}.")
    lines = []
    for part in filter(str.strip, re.split(r"^ {4}(?! )", match[1], flags=re.MULTILINE)):
        names, separator, text = " ".join(part.split()).partition("): ")
        names = _TYPE_OR_NAME.sub(lambda found: f"`{found[1]}`" if found[1] else found[0], names + separator[:1])
        lines.append(f"- {names}: {text}\n")
    return "".join(lines)


def table(path: Path, names: list[str]) -> str:
    """Format a CSV file as a table: all columns, or if names are given the first one and those."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    columns = [0, *map(header.index, names)] if names else range(len(header))
    lines = []
    for row in (header, *rows):
        lines.append([row[column].replace("|", "\\|") for column in columns])
    lines.insert(1, ["---"] * len(columns))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def fill(page: Path, root: Path) -> str:
    """Return the text of a page with its blocks filled."""

    def content(match: re.Match[str]) -> str:
        start, kind, name, columns, _, end = match.groups()
        if kind == "help":
            return start + help_list(read_help(page.parent.name), name) + end
        source = root / "results" / f"{name}.csv"
        if not source.is_file():
            raise ValueError(f"{page}: {source} is missing for the block {name!r}.")
        return start + table(source, columns.split(" | ")[1:]) + end

    return _BLOCK.sub(content, page.read_text(encoding="utf-8"))


def pages(root: Path) -> list[Path]:
    """List the pages that may have blocks."""
    found = []
    for pattern in ("*.md", "docs/**/*.md", "metrics/*/*.md"):
        found += sorted(root.glob(pattern))
    return found


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a block differs")
    check = parser.parse_args().check
    n_differing = 0
    for page in pages(ROOT):
        filled = fill(page, ROOT)
        if filled == page.read_text(encoding="utf-8"):
            continue
        n_differing += 1
        if check:
            print(f"{page.relative_to(ROOT)} differs from its sources: run `make vendor`.", file=sys.stderr)
        else:
            page.write_text(filled, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: written")
    return 1 if check and n_differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
