"""Write metrics/probeval/probeval_antonyms.py: antonyms of WordNet 3.0, so that no score depends on its presence.

    python -m scripts.tooling.antonyms /usr/share/wordnet

They are pairs of single words that occur three times or more in WordNet's sense-tagged texts, and differ by more than a
negating prefix. They are kept in a module because `evaluate.load` copies no other files.
"""

import re
import textwrap
from collections import Counter
from pathlib import Path

from scripts import ROOT
from text_metrics.console import Parser, command
from text_metrics.metrics.probeval.probeval_opposites import PREFIXES

LEAST = 3
MODULE = '''"""Antonyms of WordNet 3.0, written by `python -m scripts.tooling.antonyms`: do not edit.

WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.
"""

PAIRS = """
{}
"""
'''


def render(folder: Path) -> str:
    """Return the module, from WordNet's folder."""
    uses = Counter[str]()
    pairs = set()
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        uses[line.split("%")[0]] += int(line.split()[-1])
    for path in folder.glob("data.*"):
        words = {}
        lines = path.read_text(encoding="utf-8").lower().splitlines()
        for line in lines:
            if not line.startswith(" "):
                # offset lex_filenum ss_type w_cnt [word lex_id...] p_cnt [symbol offset pos source/target...] | gloss
                offset, _, _, size, *fields = line.split()
                words[offset] = [re.sub(r"\(\w+\)$", "", word) for word in fields[: 2 * int(size, 16) : 2]]
        for line in lines:
            for target, *places in re.findall(r" ! (\d{8}) [a-z] (..)(..)", line.split(" | ")[0]):
                left, right = (words[key][int(i, 16) - 1] for key, i in zip((line[:8], target), places, strict=True))
                has_prefix = {f"{prefix}{left}" for prefix in PREFIXES} | {f"{prefix}{right}" for prefix in PREFIXES}
                if min(uses[left], uses[right]) >= LEAST and not {left, right} & has_prefix and "_" not in left + right:
                    pairs.add("/".join(sorted((left, right))))
    return MODULE.format(textwrap.fill(" ".join(sorted(pairs)), 118, break_on_hyphens=False))


@command
def main() -> None:
    """Write the module."""
    parser = Parser(__doc__)
    parser.add_argument("folder", type=Path, help="WordNet's dict folder, with data.noun and cntlist.rev")
    module = render(parser.parse_args().folder)
    (ROOT / "metrics" / "probeval" / "probeval_antonyms.py").write_text(module, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
