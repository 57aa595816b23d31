"""Tables between markers: written in EVIDENCE.md by the report, and copied from there into other pages."""

import re
from pathlib import Path

_BLOCK = re.compile(r"<!-- evidence:([a-z-]+) -->\n(.*?)<!-- /evidence -->", flags=re.DOTALL)
_OPENING = re.compile(r"<!-- evidence:")


def wrap(name: str, text: str) -> str:
    """Put a text between the markers of a block."""
    return f"<!-- evidence:{name} -->\n{text}\n<!-- /evidence -->"


def read_blocks(text: str) -> dict[str, str]:
    """Return the blocks of a page, by name: the text between the markers."""
    return dict(_BLOCK.findall(text))


def fill(path: Path, blocks: dict[str, str]) -> str:
    """Return the text of a page with its blocks filled.

    Raises
    ------
    ValueError
        If a marker is not closed, or names an unknown block.
    """
    text = path.read_text(encoding="utf-8")
    names = [match[0] for match in _BLOCK.findall(text)]
    if len(names) != len(_OPENING.findall(text)):
        raise ValueError(f"{path}: a marker '<!-- evidence:NAME -->' has no '<!-- /evidence -->' after it.")
    unknown = sorted(set(names) - set(blocks))
    if unknown:
        raise ValueError(f"{path}: there is no block {unknown[0]!r}. There are: {', '.join(sorted(blocks)) or 'none'}.")
    return _BLOCK.sub(lambda match: f"<!-- evidence:{match[1]} -->\n{blocks[match[1]]}<!-- /evidence -->", text)
