"""Text as models write it: Markdown and line breaks become blocks of plain text, each of which ends its sentences.

Markdown is read by markdown-it-py: https://markdown-it-py.readthedocs.io. Headings, list items, table cells, quotes
and paragraphs are blocks; links and emphasis give their words; code blocks, images and HTML are left out.
"""

import importlib.metadata
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKUPS = ("auto", "markdown", "plain")
# Without one of these characters, and without a numbered line, a text is not Markdown.
# Space within a line only: across lines, each of many empty ones would search all that follow it.
_MARKS = re.compile(r"[#*_`~>|\[+-]|^[^\S\n]*\d+[.)]|^=+[^\S\n]*$", re.MULTILINE)
# Each of these shows by itself that a text is Markdown; dashes of a dialogue and asterisks for a tone do not.
_EVIDENCE = frozenset({"heading_open", "fence", "table_open", "blockquote_open", "strong_open", "link_open"})
_LEAST_ITEMS = 2
_CODE = frozenset({"fence", "code_block"})
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？]['\"”’)\]*_]*\s*$")
_ITEM = re.compile(r"[•‣▪◦·*–—-]|\d+[.)]\s")
# A line this near to the longest, and this long, was broken for its width.
_WIDE, _LEAST_WIDTH = 0.75, 40


class Blocks(NamedTuple):
    """A text's blocks of plain text, each of which begins and ends a sentence, and how many code blocks it had."""

    texts: list[str]
    n_code: int


def read_blocks(text: str, markup: str = "auto") -> Blocks:
    """Cut a text into blocks.

    Parameters
    ----------
    markup : `"markdown"`; `"plain"`; or `"auto"`: Markdown if the text has a heading, a code block, a table, a quote,
        bold type, a link or a list of two items
    """
    if markup == "plain" or (markup == "auto" and not _MARKS.search(text)):
        return Blocks(_paragraphs(text), 0)
    tokens = _parser(markup == "markdown").parse(text)
    if markup == "auto" and not _is_markdown(tokens):
        return Blocks(_paragraphs(text), 0)
    blocks = [block for token in tokens if token.type == "inline" for block in _paragraphs(_words(token))]
    return Blocks(blocks, sum(token.type in _CODE for token in tokens))


def markup_identity(markup: str) -> str:
    """Name how markup is read, for the signature."""
    return markup if markup == "plain" else f"{markup}-markdown-it-{importlib.metadata.version('markdown-it-py')}"


@cache
def _parser(has_indented_code: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # In a text that may be plain, indented lines are verse or a letter.
    return parser if has_indented_code else parser.disable("code")


def _is_markdown(tokens: list["Token"]) -> bool:
    n_items = sum(token.type == "list_item_open" for token in tokens)
    return n_items >= _LEAST_ITEMS or any(token.type in _EVIDENCE for token in _all(tokens))


def _all(tokens: list["Token"]) -> Iterator["Token"]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _words(inline: "Token") -> str:
    """Return the words of a block; a hard line break becomes an empty line."""
    pieces = []
    for token in inline.children or ():
        if token.type in ("text", "code_inline", "text_special"):
            pieces.append(token.content)
        elif token.type == "softbreak":
            pieces.append("\n")
        elif token.type == "hardbreak":
            pieces.append("\n\n")
    return "".join(pieces)


def _paragraphs(text: str) -> list[str]:
    """Cut plain text at its line breaks, but for those that only keep lines short.

    A break keeps a line short if the line does not end a sentence, the next one is not a list item, and either the next
    one begins with a lowercase letter or the line is nearly as long as the longest of the text.
    """
    lines = [line.strip() for line in text.splitlines()]
    width = max(map(len, lines), default=0)
    blocks: list[list[str]] = []
    previous = ""
    for line in lines:
        is_wrapped = bool(previous and line) and not (_ENDS_SENTENCE.search(previous) or _ITEM.match(line))
        is_wide = len(previous) >= max(_LEAST_WIDTH, _WIDE * width)
        if is_wrapped and (line[0].islower() or is_wide):
            blocks[-1].append(line)
        elif line:
            blocks.append([line])
        previous = line
    return [" ".join(block) for block in blocks]
