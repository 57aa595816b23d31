"""Texts to sentences: as the original reads them, and by markdown-it-py and sentencex without changes to the words.

Markdown and line breaks become blocks of plain text, each of which begins and ends a sentence. Headings, list items,
table cells, quotes and paragraphs are blocks; links and emphasis give their words; code blocks, images and HTML are
left out.
"""

import re
import string
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from .gruen_redundancy import FUNCTION_WORDS

MARKUPS = ("auto", "markdown", "plain")
# Without one of these characters, and without a numbered line, a text is not Markdown.
# Space within a line only: across lines, each of many empty ones would search all that follow it.
_MARKS = re.compile(r"[#*_`~>|\[+-]|^[^\S\n]*\d+[.)]|^=+[^\S\n]*$", re.MULTILINE)
# Each of these shows by itself that a text is Markdown; dashes of a dialogue and asterisks for a tone do not.
_EVIDENCE = frozenset({"heading_open", "fence", "table_open", "blockquote_open", "strong_open", "link_open"})
_LEAST_ITEMS = 2
_CODE = frozenset({"fence", "code_block"})
_BREAKS = {"softbreak": "\n", "hardbreak": "\n\n"}
_KEPT = frozenset({"text", "code_inline", "text_special", *_BREAKS})
_ENDS_SENTENCE = re.compile(r"[.!?…:;。！？]['\"”’)\]*_]*\s*$")
_ITEM = re.compile(r"[•‣▪◦·*–—-]|\d+[.)]\s")
# A line this near to the longest, and this long, was broken for its width.
_WIDE, _LEAST_WIDTH = 0.75, 40
# A mark that may be inside an address, a file name or code, as in "ASP.NET"; an ellipsis is not.
_MARK_IN_TOKEN = re.compile(r"(?<![.!?…])[.!?]$")
_CAPITALIZED = re.compile(r"(?:[AI]|[A-Z][a-z]+)(?=[\s,'’])")
_BROKEN_DECIMAL = re.compile(r"\d+\. \d+")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
# All control characters but those that are space.
_CONTROLS = dict.fromkeys(i for i in range(160) if unicodedata.category(chr(i)) == "Cc" and not chr(i).isspace())


class Sentences(NamedTuple):
    """The sentences of m texts that are scored, those of two words or more.

    by_text : list of m lists of str
    unique : the different sentences, in order of occurrence
    n_code : list of m ints, the number of code blocks left out of each text
    """

    by_text: list[list[str]]
    unique: list[str]
    n_code: list[int]

    @property
    def sizes(self) -> list[int]:
        """The number of sentences of each text."""
        return list(map(len, self.by_text))


def split(texts: list[str], parity: bool, markup: str = "auto") -> Sentences:
    """Split texts into sentences.

    Parameters
    ----------
    parity : normalize and split as the original does, with NLTK's Punkt; else with sentencex, each block of a text by
        itself, and without control characters
    markup : how `read_blocks` reads a text; the original reads none

    Raises
    ------
    LookupError
        If Punkt's data is missing; the message says how to get it.
    """
    by_text, n_code = [], [0] * len(texts)
    if parity:
        tokenizer = _punkt()
        by_text = [of_two_words(tokenizer.tokenize(normalize(text))) for text in texts]
    else:
        for i, text in enumerate(texts):
            blocks, n_code[i] = read_blocks(text.translate(_CONTROLS), markup)
            by_text.append(of_two_words([part for block in blocks for part in split_block(block)]))
    return Sentences(by_text, list(dict.fromkeys(one for members in by_text for one in members)), n_code)


def read_blocks(text: str, markup: str = "auto") -> tuple[list[str], int]:
    """Cut a text into blocks of plain text, and count the code blocks left out.

    Parameters
    ----------
    markup : `"markdown"`; `"plain"`; or `"auto"`: Markdown if the text has a heading, a code block, a table, a quote,
        bold type, a link or a list of two items
    """
    if markup == "plain" or (markup == "auto" and not _MARKS.search(text)):
        return _paragraphs(text), 0
    tokens = _parser(markup == "markdown").parse(text)
    kinds = [one.type for token in tokens for one in (token, *(token.children or ()))]
    if markup == "auto" and kinds.count("list_item_open") < _LEAST_ITEMS and _EVIDENCE.isdisjoint(kinds):
        return _paragraphs(text), 0
    inlines = (token.children or () for token in tokens if token.type == "inline")
    plain = ("".join(_BREAKS.get(one.type, one.content) for one in own if one.type in _KEPT) for own in inlines)
    return [block for words in plain for block in _paragraphs(words)], sum(token.type in _CODE for token in tokens)


@cache
def _parser(has_indented_code: bool) -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # In a text that may be plain, indented lines are verse or a letter.
    return parser if has_indented_code else parser.disable("code")


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


def split_block(block: str) -> list[str]:
    """Split a block at the boundaries of sentencex that are not inside an address, a file name or code.

    Words and marks are not changed, and space becomes a single space. A single mark without a space after it ends a
    sentence only if the next word is a capitalized function word: "It fell.Nobody knew", but not "typing.Optional".
    """
    import sentencex

    sentences: list[list[str]] = []
    previous = ""
    for part in sentencex.segment("en", " ".join(block.split())):
        if sentences and _is_in_token(previous, part):
            sentences[-1].append(part)
        else:
            sentences.append([part])
        previous = part
    return ["".join(parts).strip() for parts in sentences]


def _is_in_token(before: str, after: str) -> bool:
    if after[:1].isspace() or not _MARK_IN_TOKEN.search(before):
        return False
    word = _CAPITALIZED.match(after)
    return word is None or word.group().lower() not in FUNCTION_WORDS


def normalize(text: str) -> str:
    """Bring a text to one line, with a space after each full stop, as GRUEN's code does; only for parity.

    A number with a decimal point becomes "UNK". The steps and their order are those of the original, for they show:
    "U.S." becomes "U. S.", and an ellipsis one full stop.
    """
    text = text.strip().replace("\n\n", ". ").replace("\n", ". ")
    text = text.replace("..", ".").replace(".", ". ").replace(". . ", ". ").replace(".  . ", ". ")
    while "  " in text:
        text = text.replace("  ", " ")
    while decimal := _BROKEN_DECIMAL.search(text):
        text = text.replace(decimal.group(), "UNK")
    return text.strip()


def of_two_words(sentences: list[str]) -> list[str]:
    """Return the sentences that are scored: those of two words or more."""
    return [sentence for sentence in sentences if len(sentence.translate(_NO_PUNCTUATION).split()) > 1]


def _punkt() -> Any:
    from nltk.tokenize import PunktTokenizer

    try:
        return PunktTokenizer("english")
    except LookupError:
        raise LookupError(
            "parity=True splits sentences with NLTK's Punkt, whose data is not installed. Get it with: python -m "
            "nltk.downloader punkt_tab, or set NLTK_DATA to the folder that holds tokenizers/punkt_tab."
        ) from None
