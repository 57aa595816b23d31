"""Copy the tables of EVIDENCE.md into the README, the pages of docs/ and the metric cards, between their markers.

    python -m scripts.tooling.fill_evidence            write them
    python -m scripts.tooling.fill_evidence --check    exit with 1 if a table differs

A page shows a table where it has `<!-- evidence:NAME -->`, and below it `<!-- /evidence -->`. EVIDENCE.md has the same
markers around each table; `make meta-eval` writes it.
"""

import re
from pathlib import Path

from scripts import ROOT
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_text, write_text

_BLOCK = re.compile(r"<!-- evidence:([a-z-]+) -->\n(.*?)<!-- /evidence -->", flags=re.DOTALL)


def wrap(name: str, text: str) -> str:
    """Put a text between the markers of a block."""
    return f"<!-- evidence:{name} -->\n{text}\n<!-- /evidence -->"


def read_blocks(text: str) -> dict[str, str]:
    """Return the blocks of a page, by name: the text between the markers."""
    return dict(_BLOCK.findall(text))


def fill(path: Path, blocks: dict[str, str]) -> str:
    """Return the text of a page with its blocks filled."""
    text = path.read_text(encoding="utf-8")
    names = [name for name, _ in _BLOCK.findall(text)]
    if len(names) != text.count("<!-- evidence:"):
        raise ValueError(f"{path}: a marker '<!-- evidence:NAME -->' has no '<!-- /evidence -->' after it.")
    unknown = sorted(set(names) - set(blocks))
    if unknown:
        raise ValueError(f"{path}: there is no block {unknown[0]!r}. There are: {', '.join(sorted(blocks)) or 'none'}.")
    return _BLOCK.sub(lambda match: f"<!-- evidence:{match[1]} -->\n{blocks[match[1]]}<!-- /evidence -->", text)


def write(root: Path, check: bool = False) -> int:
    """Fill the tables of all pages, or only compare them; return the number of pages that differed."""
    pages = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("metrics/*/README.md"))]
    blocks = read_blocks(read_text(root / "EVIDENCE.md"))
    n_differing = 0
    for page in pages:
        filled = fill(page, blocks)
        if filled == page.read_text(encoding="utf-8"):
            continue
        n_differing += 1
        if not check:
            write_text(page, filled)
        print(f"{page}: {'differs from EVIDENCE.md; run `make evidence`' if check else 'written'}.")
    return n_differing


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a table differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of EVIDENCE.md, README.md, docs and metrics")
    arguments = parser.parse_args()
    n_differing = write(arguments.root, arguments.check)
    return 1 if arguments.check and n_differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
