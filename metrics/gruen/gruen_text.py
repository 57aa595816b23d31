"""Texts to sentences, by markdown-it-py and sentencex, without changes to the words.

Markdown, HTML and line breaks become blocks of plain text, and each begins and ends a sentence. Headings, list
items, table cells, quotes and paragraphs are blocks; links and emphasis give their words; code blocks and images are
left out. Sentences inside quotation marks and brackets are sentences.
"""

import html
import itertools
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from .gruen_redundancy import FUNCTION_WORDS

MARKUPS = ("auto", "markdown", "plain")
# Without one of these characters, and without a numbered line, a text is not Markdown.
# Space within a line only: across lines, each of many empty ones would search all that follow it.
_MARKS = re.compile(r"[#*_`~>|\[+-]|^[^\S\n]*\d+[.)]|^=+[^\S\n]*$", re.MULTILINE)
# Each of these shows by itself that a text is Markdown; dashes of a dialogue and asterisks for a tone do not.
_EVIDENCE = frozenset({"heading_open", "fence", "table_open", "blockquote_open", "strong_open", "link_open"})
# Set at commit 30f16773, without data. Lower: a line that begins with a dash makes a text Markdown.
_LEAST_ITEMS = 2
_CODE = frozenset({"fence", "code_block"})
_BREAKS = {"softbreak": "\n", "hardbreak": "\n\n"}
_TEXT_TOKENS = frozenset({"text", "code_inline", "text_special", "html_inline", "html_block", *_BREAKS})
# HTML: elements that are blocks, those within a line, and a line break that was escaped twice. <newline>, <nl> and <n>
# are line breaks of data sets of stories and summaries.
_BLOCK_TAG = re.compile(
    r"</?(?:br|p|li|ul|ol|div|h[1-6]|tr|td|th|table|blockquote|hr|newline|nl|n)\b[^<>]*>", re.IGNORECASE
)
_INLINE_TAG = re.compile(r"</?(?:a|b|i|u|em|strong|span|font|sup|sub|code|html|body)\b[^<>]*>", re.IGNORECASE)
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n(?![a-z])")
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？]['\"”’)\]*_]*\s*$")
_ITEM = re.compile(r"[•‣▪◦·*–—-]|\d+[.)]\s")
# A line this long, and this close to the longest line, is wrapped. Set at commit 30f16773, without data.
# Higher: wrapped lines become sentences.
_WIDE, _LEAST_WIDTH = 0.75, 40
# A mark that may be inside an address, a file name or code, as in "ASP.NET"; an ellipsis is not.
_MARK_IN_TOKEN = re.compile(r"(?<![.!?…])[.!?]$")
_CAPITALIZED = re.compile(r"(?:[AI]|[A-Z][a-z]+)(?=[\s,'’])")
# Quoted or in brackets, by the innermost pair. An apostrophe opens nothing that is longer.
_ENCLOSED = re.compile(
    r"\"[^\"]+\"|“[^“”]+”|‘[^‘’]+’|«[^«»]+»|`[^`]+`|(?<!\w)'.{1,999}?'(?!\w)|\([^()]+\)|\[[^\[\]]+\]|\{[^{}]+\}"
)
# Words of both of two sentences that a pair encloses. Set at commit 3a700ce7, without data. Lower: quoted titles divide
# sentences.
_LEAST_ENCLOSED = 3
# Marks that join clauses, which are sentences if each has this many words. Set at commit 3a700ce7, without data. Lower:
# items of an enumeration become sentences.
_JOINT = re.compile(r"(?<=[;|…])\s+")
_LEAST_CLAUSE = 4
# A block of at most this many words without a final mark is a fragment. Set at commit 3a700ce7, without
# data. Lower: long headings are judged as sentences.
_FRAGMENT_WORDS = 8
_NUMBER = re.compile(r"\(?(?:\d+|[A-Za-z])[.)]")
# Before a colon, these make a sentence and no name: "The answer is simple: ...".
_CLAUSE_WORDS = """
am is are was were be been has have had do does did will would can could shall should may might must
here there how what when where why
"""
_NO_NAMES = frozenset(_CLAUSE_WORDS.split())
_LABEL_WORDS = """
advice caution conclusion danger definition disclaimer example explanation fact hint important info information key
lesson moral motto note notice observation problem proof reason recommendation reminder remark result rule solution
spoiler step summary tip title update verdict warning
"""
_LABELS = frozenset(_LABEL_WORDS.split())
_SPEAKER = re.compile(r"(?:\*\*)?([A-Z#][\w .'’#-]{0,24}?)(?:\*\*)?:(?:\*\*)?\s+(?=\S)")
# Also "Woman in red, to her friend:".
_VOICE = re.compile(r"(?:\*\*)?([A-Z#\d][^:.!?\n]{0,60}?)(?:\*\*)?:\s")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Control and format characters but those that are space or join parts of a sign.
_CONTROLS = {
    i: None
    for i in (*range(0x2070), 0xFEFF)
    if unicodedata.category(chr(i)) in ("Cc", "Cf") and not chr(i).isspace() and i not in (0x200C, 0x200D)
}


class Text(NamedTuple):
    """Pieces of a text that are scored: pieces of two words or more.

    pieces : sentences and fragments, in order
    is_fragment : whether each is a heading, a list item or a table cell that is not a sentence
    lines : the number of the line, list item or table cell that each is in
    n_code : the number of code blocks left out
    is_dialogue : whether its blocks are the turns of speakers
    """

    pieces: list[str]
    is_fragment: list[bool]
    lines: list[int]
    n_code: int = 0
    is_dialogue: bool = False

    @property
    def places(self) -> list[int]:
        """The positions of the sentences among the pieces."""
        return [i for i, is_fragment in enumerate(self.is_fragment) if not is_fragment]

    @property
    def sentences(self) -> list[str]:
        """The pieces that are sentences."""
        return [self.pieces[i] for i in self.places]


def split(text: str, markup: str = "auto") -> Text:
    """Split a text into sentences and fragments; `markup` as in `read_blocks`."""
    blocks, n_code = read_blocks(text.translate(_CONTROLS), markup)
    is_dialogue = _is_dialogue(blocks)
    pieces: list[str] = []
    is_fragment: list[bool] = []
    lines: list[int] = []
    line = 0
    for block in blocks:
        words = _SPEAKER.sub("", block, count=1) if is_dialogue else block
        is_whole = not _ENDS_SENTENCE.search(words) and len(words.split()) <= _FRAGMENT_WORDS
        line += 1
        for piece in split_block(words):
            if is_of_two_words(piece):
                pieces.append(piece)
                is_fragment.append(is_whole)
                lines.append(line)
            line += bool(_NUMBER.fullmatch(piece))
    # Where they are most of the text, such as verse, all pieces are judged.
    out = sum(len(piece.split()) for piece, is_out in zip(pieces, is_fragment, strict=True) if is_out)
    if 2 * out > sum(len(piece.split()) for piece in pieces):
        is_fragment = [False] * len(pieces)
    return Text(pieces, is_fragment, lines, n_code, is_dialogue)


def _is_dialogue(blocks: list[str]) -> bool:
    """Tell whether half of the blocks are turns of two or more speakers, and one of them speaks twice.

    The names in a list stand there once, and a label such as "Warning" alone.
    """
    speakers = Counter(_names(_SPEAKER, blocks))
    voices = {*speakers, *_names(_VOICE, blocks)}
    return len(voices) > 1 and len(speakers) < speakers.total() >= len(blocks) / 2


def _names(pattern: re.Pattern[str], blocks: list[str]) -> list[str]:
    """List the names of speakers that begin blocks, without sentences and labels before a colon."""
    names = []
    for match in filter(None, map(pattern.match, blocks)):
        words = match[1].lower().split()
        if _NO_NAMES.isdisjoint(words) and words[-1] not in _LABELS:
            names.append(match[1])
    return names


def read_blocks(text: str, markup: str = "auto") -> tuple[list[str], int]:
    """Cut a text into blocks of plain text, and count the code blocks left out; `markup` is one of MARKUPS.

    `"auto"` reads Markdown if the text has a heading, a code block, a table, a quote, bold type, a link or a list of
    two items; it and `"markdown"` read tags of HTML.
    """
    if markup == "plain":
        return _paragraphs(text), 0
    text = _ESCAPED_BREAK.sub("\n\n", text)
    if markup == "auto" and not _MARKS.search(text):
        return _paragraphs(_without_tags(text)), 0
    tokens = _parser(markup == "markdown").parse(text)
    kinds = []
    for token in tokens:
        kinds.append(token.type)
        kinds += [part.type for part in token.children or ()]
    if markup == "auto" and kinds.count("list_item_open") < _LEAST_ITEMS and _EVIDENCE.isdisjoint(kinds):
        return _paragraphs(_without_tags(text)), 0
    blocks = []
    for token in tokens:
        if token.type in ("inline", "html_block"):
            line = token.children or (token,)
            plain = "".join(_BREAKS.get(part.type, part.content) for part in line if part.type in _TEXT_TOKENS)
            blocks += _paragraphs(_without_tags(plain))
    n_code = sum(token.type in _CODE for token in tokens)
    return blocks, n_code


def _without_tags(text: str) -> str:
    """Replace block tags by line breaks, and remove other tags."""
    return _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n\n", html.unescape(text)))


@cache
def _parser(has_indented_code: bool) -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # In a text that may be plain, indented lines are verse or a letter.
    return parser if has_indented_code else parser.disable("code")


def _paragraphs(text: str) -> list[str]:
    """Split plain text at its line breaks, except where lines are only wrapped.

    A break keeps a line short if the line does not end a sentence, the next one is not a list item, neither comes
    twice, and either the next one begins with a lowercase letter or the line is nearly as long as the longest one.
    """
    lines = [line.strip() for line in text.splitlines()]
    width = max(map(len, lines), default=0)
    blocks: list[list[str]] = []
    previous = ""
    count = Counter(lines)
    for line in lines:
        comes_twice = max(count[previous], count[line]) > 1
        is_apart = comes_twice or _ENDS_SENTENCE.search(previous) or _ITEM.match(line)
        is_wide = len(previous) >= max(_LEAST_WIDTH, _WIDE * width)
        if previous and line and not is_apart and (line[0].islower() or is_wide):
            blocks[-1].append(line)
        elif line:
            blocks.append([line])
        previous = line
    return [" ".join(block) for block in blocks]


def split_block(block: str) -> list[str]:
    """Split a block at the boundaries of sentencex that are not inside an address, a file name, code or a citation.

    Words and marks are not changed, and space becomes a single space. A single mark without a space after it ends a
    sentence only if the next word is a capitalized function word: "It fell.Nobody knew", but not "typing.Optional".
    Clauses of four words that a semicolon, a bar or an ellipsis joins are sentences, and so are those in quotes and
    brackets.
    """
    parts: list[str] = []
    for part in _segment(" ".join(block.split())):
        if parts and _is_in_token(parts[-1], part):
            parts[-1] += part
        else:
            parts.append(part)
    return [clause.strip() for clause in itertools.chain.from_iterable(map(_clauses, parts))]


def _segment(text: str) -> list[str]:
    """Split a text into parts, which together are the text; also inside of what is quoted or in brackets."""
    import sentencex

    parts = []
    for part in sentencex.segment("en", text):
        start = 0
        for enclosed in _ENCLOSED.finditer(part):
            inner = _segment(enclosed.group()[1:-1])
            end = enclosed.start() + 1
            for before, after in itertools.pairwise(inner):
                end += len(before)
                if min(len(before.split()), len(after.split())) >= _LEAST_ENCLOSED:
                    parts.append(part[start:end])
                    start = end
        parts.append(part[start:])
    return parts


def _clauses(sentence: str) -> Iterator[str]:
    """Cut a sentence where a mark joins two clauses of four words or more."""
    first, *clauses = _JOINT.split(sentence)
    parts = [first]
    n_words = len(first.split())
    for clause in clauses:
        n = len(clause.split())
        if min(n_words, n) >= _LEAST_CLAUSE:
            yield " ".join(parts)
            parts = []
            n_words = 0
        parts.append(clause)
        n_words += n
    yield " ".join(parts)


def _is_in_token(before: str, after: str) -> bool:
    if before.endswith("]") and after.lstrip()[:1].islower():
        return True
    if after[:1].isspace() or not _MARK_IN_TOKEN.search(before):
        return False
    word = _CAPITALIZED.match(after)
    return word is None or word.group().lower() not in FUNCTION_WORDS


def is_of_two_words(piece: str) -> bool:
    """Tell whether a piece is scored: it has two words or more."""
    return len(piece.translate(_NO_PUNCTUATION).split()) > 1
