"""Copy the tables of EVIDENCE.md into the README and the metric cards, between their markers.

    python -m scripts.tooling.fill_evidence            write them
    python -m scripts.tooling.fill_evidence --check    fail where one differs

A page shows a table where it has `<!-- evidence:NAME -->`, and below it `<!-- /evidence -->`. EVIDENCE.md has the same
markers around the tables that there are; text-metrics meta-eval writes it.
"""

import argparse
from pathlib import Path

from scripts import ROOT
from text_metrics.commands.meta_eval.blocks import fill, read_blocks
from text_metrics.commands.shared.command import command
from text_metrics.commands.shared.files import read_text, write_text


@command
def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a table differs")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of EVIDENCE.md, README.md and metrics")
    arguments = parser.parse_args()
    pages = [arguments.root / "README.md", *sorted(arguments.root.glob("metrics/*/README.md"))]
    differing = []
    blocks = read_blocks(read_text(arguments.root / "EVIDENCE.md"))
    for page in pages:
        filled = fill(page, blocks)
        if filled != page.read_text(encoding="utf-8"):
            differing.append(page)
            if not arguments.check:
                write_text(page, filled)
    for page in differing:
        print(f"{page}: {'differs from EVIDENCE.md; run `make evidence`' if arguments.check else 'written'}.")
    return 1 if arguments.check and differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
