"""Write metrics/probeval/probeval_antonyms.py: antonyms of WordNet 3.0, so that scores do not depend on its presence.

    python -m scripts.tooling.antonyms /usr/share/wordnet

A pair is kept if both are single words that occur at least three times in WordNet's sense-tagged texts, and do not
differ by a negating prefix alone. The pairs are a module because `evaluate.load` copies no other files.
"""

import re
import textwrap
from collections import Counter
from pathlib import Path

from scripts import ROOT
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.metrics.probeval.probeval_opposites import PREFIXES

_LEAST = 3
_MODULE = '''"""Antonyms of WordNet 3.0, written by `python -m scripts.tooling.antonyms`: do not edit.

WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.
"""

PAIRS = """
{}
"""
'''


def read_antonyms(folder: Path) -> set[tuple[str, str]]:
    """Read the pairs of antonyms from WordNet's data files, each in alphabetical order."""
    pairs = set()
    for part in ("noun", "verb", "adj", "adv"):
        words, pointers = {}, []
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                # offset lex_filenum ss_type w_cnt [word lex_id...] p_cnt [symbol offset pos source/target...] | gloss
                offset, _, _, size, *fields = line.split(" | ")[0].split()
                end = 2 * int(size, 16)
                for i, word in enumerate(fields[:end:2], 1):
                    words[offset, i] = re.sub(r"\(\w+\)$", "", word.lower())
                for symbol, target, _, places in zip(*(fields[end + 1 + i :: 4] for i in range(4)), strict=False):
                    if symbol == "!":
                        pointers.append(((offset, int(places[:2], 16)), (target, int(places[2:], 16))))
        pairs |= {(min(words[a], words[b]), max(words[a], words[b])) for a, b in pointers}
    return pairs


def render(folder: Path) -> str:
    """Return the module."""
    uses = Counter[str]()
    for line in (folder / "cntlist.rev").read_text(encoding="utf-8").splitlines():
        key, _, n = line.split()
        uses[key.split("%")[0]] += int(n)
    kept = []
    for pair in sorted(read_antonyms(folder)):
        shorter, longer = sorted(pair, key=len)
        is_known = longer.replace("-", "") in {f"{prefix}{shorter}" for prefix in PREFIXES}
        if min(uses[word] for word in pair) >= _LEAST and "_" not in "".join(pair) and not is_known:
            kept.append("/".join(pair))
    return _MODULE.format(textwrap.fill(" ".join(kept), 118, break_on_hyphens=False))


@command
def main() -> None:
    """Write the module."""
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="WordNet's dict folder, with data.noun and cntlist.rev")
    module = render(parser.parse_args().folder)
    (ROOT / "metrics" / "probeval" / "probeval_antonyms.py").write_text(module, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
