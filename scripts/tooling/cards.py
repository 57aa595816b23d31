"""Write the arguments and results of each metric card from the metric's help, or check that they agree.

The help, `_KWARGS_DESCRIPTION` in metrics/<name>/<name>.py, is the source. Its sections "Args" and "Returns" become the
lists of the card's sections "Inputs" and "Output Values", between the markers `<!-- help: Args -->` and
`<!-- /help -->`.

    python -m scripts.tooling.cards            write the cards
    python -m scripts.tooling.cards --check    change nothing; exit with 1 if a card differs from the help
"""

import ast
import re
import sys
from pathlib import Path

from scripts import ROOT
from text_metrics.commands.shared.command import make_parser

METRICS = ROOT / "metrics"
HELP = "_KWARGS_DESCRIPTION"
_MARKED = re.compile(r"(<!-- help: (\w+) -->\n).*?(<!-- /help -->)", flags=re.DOTALL)
_TYPE_OR_NAME = re.compile(r"\((?:[^()]|\([^()]*\))*\)|(\w+)")


def read_help(script: Path) -> str:
    """Return the help of a metric, read from its source without importing it."""
    for node in ast.parse(script.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == HELP for target in node.targets):
            return ast.literal_eval(node.value)
    raise ValueError(f"{script}: {HELP} is missing.")


def entries(help_text: str, section: str) -> list[str]:
    """Return the entries of a section such as "Args" as one line each."""
    match = re.search(rf"^{section}:\n(.*?)(?=^\S|\Z)", help_text, flags=re.MULTILINE | re.DOTALL)
    if match is None:
        raise ValueError(f"The help has no section {section!r}.")
    parts = re.split(r"^ {4}(?! )", match[1], flags=re.MULTILINE)
    return [" ".join(part.split()) for part in parts if part.strip()]


def to_markdown(entry: str) -> str:
    """Format `name (type): text` as a list item, with each name as code."""
    names, separator, text = entry.partition("): ")
    names = _TYPE_OR_NAME.sub(lambda match: f"`{match[1]}`" if match[1] else match[0], names + separator[:1])
    return f"- {names}: {text}"


def fill(card: str, help_text: str) -> str:
    """Return the card with its marked sections made from the help."""

    def section(match: re.Match[str]) -> str:
        return match[1] + "".join(f"{to_markdown(entry)}\n" for entry in entries(help_text, match[2])) + match[3]

    return _MARKED.sub(section, card)


def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a card differs")
    check = parser.parse_args().check
    different = 0
    for script in sorted(path for path in METRICS.glob("*/*.py") if path.stem == path.parent.name):
        path = script.with_name("README.md")
        card = path.read_text(encoding="utf-8")
        filled = fill(card, read_help(script))
        if filled == card:
            continue
        different += 1
        if check:
            print(f"{path} differs from the help of {script.name}: run `make cards`.", file=sys.stderr)
        else:
            path.write_text(filled, encoding="utf-8")
            print(f"{path.relative_to(METRICS.parent)}: written")
    return 1 if check and different else 0


if __name__ == "__main__":
    raise SystemExit(main())
