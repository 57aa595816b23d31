"""Find, count and strip what is not the answer in a text: reasoning, special tokens, an echoed prompt.

- `reasoning` is a block such as `<think>…</think>`, and what comes before a closing tag whose opening tag stood in the
  prompt. A block that is not closed, as of a generation that was cut, is not followed by an answer.
- `special` are special tokens and chat markers, such as `<|eot_id|>`, `[SEP]` and `<|im_start|>assistant`, and the
  turns of others than the assistant beside an answer. `<s>` and `</s>` around a part of a text are HTML, and stay.
- `prompt` is the context of a text that the text begins with.

Code in backticks is not a mark, nor is a tag in quotes. Only the standard library is imported here, because the demos
have a copy.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

REASONING = "reasoning"
SPECIAL = "special"
PROMPT = "prompt"
KINDS = (REASONING, SPECIAL, PROMPT)
# How a count of texts goes on.
_HELD = {REASONING: "hold reasoning", SPECIAL: "hold special tokens", PROMPT: "begin with their prompt"}

# The start and the end of a removed part, and the mark that shows it.
Part = tuple[int, int, str]

# Fenced blocks, spans of one line, and nothing but a tag in quotes.
_CODE = (
    r"^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n(?s:.*?)^[ \t]*(?P=fence)[`~]*[ \t]*\r?$"
    r"|(?P<ticks>`+)(?!`)[^`\n]+(?P=ticks)(?!`)"
    r"""|(?P<quote>["'])[<\[◁][^<>\[\]"'\n]{1,40}[>\]▷](?P=quote)"""
)

_CODES = re.compile(_CODE, re.MULTILINE)

# <think> of DeepSeek, Qwen, GLM, Hunyuan, …; <thought> of EXAONE; <seed:think> of Seed; and tags that prompts ask for.
_TAG = r"(?i:(?:\w{1,12}:)?(?:think|thinking|thoughts?|reasoning|scratchpad))"
# Kimi-VL; Magistral; Command A, OpenThinker, Apertus, Solar; Gemma 4.
_OPENING = (
    rf"<{_TAG}>|◁think▷|\[THINK\]"
    r"|<\|(?:START_THINKING|begin_of_thought|inner_prefix|think:start|think)\|>"
    r"|<\|channel>[ \t]*thought\b"
)
_CLOSING = (
    rf"</{_TAG}>|◁/think▷|\[/THINK\]"
    r"|<\|(?:END_THINKING|end_of_thought|inner_suffix|think:end|/think)\|>"
    r"|<channel\|>"
)
_TAGS = re.compile(rf"(?P<open>{_OPENING})|(?P<close>{_CLOSING})")
_TAGS_OR_CODE = re.compile(rf"(?P<code>{_CODE})|(?P<open>{_OPENING})|(?P<close>{_CLOSING})", re.MULTILINE)
# Blocks that do not end with a tag of their own.
_BLOCKS = re.compile(
    # The channels of harmony (gpt-oss) other than the final one.
    r"(?:<\|start\|>[ \t]*assistant[ \t]*)?<\|channel\|>[ \t]*(?:analysis|commentary)\b"
    r"(?s:.*?)(?:<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|start\|>|<\|channel\|>)|\Z)"
    # The same, decoded without special tokens.
    r"|\A\s*analysis(?=\S)(?s:.*)assistantfinal"
    # Granite 3.2.
    r"|\A\s*Here(?: is|'s) my thought process:(?s:.*?)Here(?: is|'s) my response:"
)
# Markers that some models write around the answer after their reasoning.
_WRAPPER = re.compile(r"\s*<(answer|response|solution)>")

_ASSISTANT = r"assistant|model|chatbot|bot|ai"
_OTHER = r"user|human|system|developer|tool|tools|ipython|function|environment|observation|prompter"
_ROLE = rf"(?:(?P<{{0}}assistant>{_ASSISTANT})|(?P<{{0}}other>{_OTHER}))"
# The beginnings of turns, with their roles.
_HEADERS = (
    # Llama 3 and 4, ChatML, Granite, harmony: "<|start_header_id|>assistant<|end_header_id|>".
    r"<\|(?:im_start|start|start_of_role|start_header_id|header_start)\|>\s*"
    rf"{_ROLE.format('named_')}\b(?:[ \t]*(?:[\w.=:-]{{1,60}})?[ \t]*"
    r"(?:<\|channel\|>[ \t]*\w*[^<\n]{0,60})?<\|(?:end_header_id|header_end|end_of_role|im_sep|message)\|>)?"
    # Gemma.
    rf"|(?:<start_of_turn>|<\|turn>)\s*{_ROLE.format('gemma_')}\b"
    # "<|assistant|>", also with the wide bars of DeepSeek, "<|CHATBOT_TOKEN|>", "[|assistant|]", and Kimi's
    # "<|im_user|>user<|im_middle|>".
    rf"|[<\[][|｜](?i:im_)?(?i:{_ROLE.format('token_')}(?:_TOKEN|_start)?)[|｜][>\]](?:\s*\w+<\|im_middle\|>)?"
    r"|(?P<inst_other>\[INST\]|\[SYSTEM_PROMPT\])|(?P<inst_assistant>\[/INST\])"
)
_TOKENS = (
    # <|endoftext|>, <|im_end|>, and whatever else has this form, also with wide bars.
    r"<\|channel\|>[ \t]*final[^<\n]{0,60}<\|message\|>"
    r"|<[|｜][A-Za-z/_▁][^<>|｜\n]{1,60}[|｜]>|\[\|[a-z_]{2,20}\|\]"
    r"|<\|(?:turn|channel|tool_call|tool_response|tool|image|audio)>"
    r"|<(?:turn|channel|tool_call|tool_response|tool|image|audio)\|>"
    r"|<(?:pad|unk|bos|eos|eot|eod|eop|sop|sep|cls|mask|PAD|UNK|BOS|EOS|EOT|SEP|CLS|MASK)>"
    r"|<(?:BOS|EOS|PAD|UNK|CLS|SEP|MASK)_TOKEN>"
    r"|<(?:start_of_turn|end_of_turn|begin_of_text|end_of_text|endoftext|end_of_utterance)>"
    r"|<(?:extra_id_|unused|reserved_|special_?|SPECIAL_)\d{1,4}>"
    r"|</?seed:(?:bos|eos|pad)>"
    r"|\[(?:CLS|SEP|PAD|MASK|UNK|BOS|EOS|EOT|EOD|X_SEP|gMASK|sMASK|@BOS@)\]"
    r"|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS)\]|\[(?:TOOL_CALLS|TOOL_CONTENT|IMG_BREAK|IMG_END)\]"
    r"|\[(?:unused|UNUSED_TOKEN_)\d{1,4}\]|<</?SYS>>"
)
_MARKS = re.compile(
    rf"(?P<code>{_CODE})|{_HEADERS}|{_TOKENS}|(?P<sequence></?s>|<s\s[^<>]{{1,200}}>)",
    re.MULTILINE,
)
_SHORT_MARK = re.compile(
    r"\s*(?:<\|start\|>[ \t]*assistant[ \t]*(?=<\|channel))?"
    r"(<\|channel\|>\s*\w+|<[^<>\n]{1,60}>|\[[^\]\n]{1,60}\]|◁\w+▷|analysis|Here(?: is|'s) my thought process)"
)
# A search at each place where a mark can begin takes a third of the time of a search for all.
_FIRST_CHARACTERS = re.compile(r"[<\[◁]")
_ANY = re.compile(rf"{_OPENING}|{_CLOSING}|{_HEADERS}|{_TOKENS}|</?s>|<s\s")
_LEAD = re.compile(rf"(?:\s|{_HEADERS}|{_TOKENS}|<s>)*")
# After these, too, a word that a mark stood before is apart.
_STOPS = frozenset(".,;:!?…)")

# Of a context with fewer words, a text that begins with it may be an answer: "Hello" to "Hello".
_FEWEST_WORDS = 3
_FEWEST_UNSPACED = 6
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]")


def parse_kinds(value: Any, name: str = "strip") -> list[str]:
    """Read kinds of `KINDS`, as a list or with commas between them: a list in the order of `KINDS`, empty for None.

    Raises a TypeError or ValueError that calls them `name`.
    """
    if value is None:
        return []
    kinds = value.split(",") if isinstance(value, str) else value
    if not isinstance(kinds, Iterable) or isinstance(kinds, (bytes, dict)):
        raise TypeError(f"{name} must be kinds of {', '.join(KINDS)}. Got {value!r:.80}.")
    kinds = [kind.strip() if isinstance(kind, str) else kind for kind in kinds]
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"{name} must be of {', '.join(KINDS)}, with commas between them. Got {kind!r:.80}.")
    return [kind for kind in KINDS if kind in kinds]


def to_signature(kinds: Iterable[str]) -> dict[str, str]:
    """Return the signature entry of the stripped kinds; empty without kinds."""
    joined = "+".join(kinds)
    return {"strip": joined} if joined else {}


def strip(text: str, kinds: Iterable[str] = KINDS, context: str | None = None) -> str:
    """Remove some kinds of what is not the answer; a text without them is returned unchanged.

    context : the prompt of the text, which `prompt` needs

    Stripping the result again does not change it. It is empty if nothing is an answer.
    """
    return _stripped(text, frozenset(kinds), context)[0]


def find(text: str, context: str | None = None) -> dict[str, str]:
    """Return the kinds that a text holds, each with its first mark, such as `{"reasoning": "<think>"}`."""
    held: dict[str, str] = {}
    for kind in KINDS:
        # One kind at a time: some marks of a kind are found only after another kind is removed.
        _, marks = _stripped(text, frozenset([kind]), context)
        held |= marks
    return held


@dataclass
class Marks:
    """Counts of texts that hold more than the answer; the counts of parts of the data add up.

    n_texts : all texts that were looked at
    removed, left : for each kind, the texts from which it was removed, and those that still hold it
    shown : for each kind, the mark that was seen first
    n_empty : texts that are empty only because of what was removed
    """

    n_texts: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    shown: dict[str, str] = field(default_factory=dict)
    n_empty: int = 0

    def __add__(self, other: "Marks") -> "Marks":
        return Marks(
            self.n_texts + other.n_texts,
            self.removed + other.removed,
            self.left + other.left,
            other.shown | self.shown,
            self.n_empty + other.n_empty,
        )

    def counts(self, kinds: Iterable[str]) -> dict[str, int]:
        """Return the number of texts from which each of some kinds was removed, and `empty`, of those without more."""
        return {**{kind: self.removed[kind] for kind in kinds}, "empty": self.n_empty}

    def warning(self, option: str = "--strip {}", kinds: Sequence[str] = KINDS, what: str = "texts") -> str:
        """Say how many texts hold more than the answer, and how to strip it; empty if none does.

        option : what removes the kinds in braces
        kinds : those that are counted
        """
        held = [kind for kind in kinds if self.left[kind]]
        if not held:
            return ""
        parts = []
        for kind in held:
            example = "" if kind == PROMPT else f" ({self.shown[kind]})"
            parts.append(f"{self.left[kind]:,} of {self.n_texts:,} {what} {_HELD[kind]}{example}")
        return f"{'; '.join(parts)}. It counts as part of the answer: {option.format(','.join(held))} removes it."

    def emptied(self, what: str = "texts") -> str:
        """Say how many texts are empty because of what was removed; empty if none is."""
        if not self.n_empty:
            return ""
        kinds = ", ".join(kind for kind in KINDS if self.removed[kind])
        return f"{self.n_empty:,} of {self.n_texts:,} {what} are empty without what was stripped ({kinds})."


def clean(
    texts: Sequence[str], kinds: Sequence[str] = (), contexts: str | Sequence[str | None] | None = None
) -> tuple[list[str], Marks]:
    """Strip some kinds from texts, and count all.

    contexts : the prompt that all texts answer, or one for each text; None if they are unknown

    Returns the n texts, in order, and the counts.
    """
    by_text = [contexts] * len(texts) if contexts is None or isinstance(contexts, str) else contexts
    stripped = []
    marks = Marks(len(texts))
    for text, context in zip(texts, by_text, strict=True):
        held = find(text, context)
        answer = text
        removed: dict[str, str] = {}
        if held and kinds:
            answer, removed = _stripped(text, frozenset(kinds), context)
        stripped.append(answer)
        marks.removed.update(removed.keys())
        marks.left.update(held.keys() - removed.keys())
        for kind, mark in held.items():
            marks.shown.setdefault(kind, mark)
        marks.n_empty += bool(text.strip()) and not answer.strip()
    return stripped, marks


def _stripped(text: str, kinds: frozenset[str], context: str | None) -> tuple[str, dict[str, str]]:
    """Strip a text until nothing is left to strip; also return the first mark of each kind that was removed."""
    marks: dict[str, str] = {}
    before = None
    while text != before and text:
        before = text
        may_hold_marks = _may_hold_marks(text)
        if REASONING in kinds and may_hold_marks:
            text = _apply(text, REASONING, _with_wrappers(text, _reasoning(text)), marks)
        if SPECIAL in kinds and may_hold_marks:
            text = _apply(text, SPECIAL, _special(text), marks)
        if PROMPT in kinds and context is not None:
            text = _apply(text, PROMPT, _echo(text, context), marks)
        elif context is not None:
            text = _strip_after_echo(text, kinds, context, marks)
    return text, marks


def _strip_after_echo(text: str, kinds: frozenset[str], context: str, marks: dict[str, str]) -> str:
    """Strip what follows an echoed prompt that stays: reasoning begins there, as at the beginning of an answer."""
    for _, end, _ in _echo(text, context):
        rest = text[end:]
        answer, removed = _stripped(rest, kinds, context)
        if removed:
            space = rest[: len(rest) - len(rest.lstrip())]
            for kind, mark in removed.items():
                marks.setdefault(kind, mark)
            return (text[:end] + space + answer).strip()
    return text


def _may_hold_marks(text: str) -> bool:
    """Tell whether a text has anything like a mark, even in code, so that most texts need no further search."""
    if text.lstrip()[:8].startswith(("analysis", "Here")):
        return True
    return any(_ANY.match(text, each.start()) for each in _FIRST_CHARACTERS.finditer(text))


def _apply(text: str, kind: str, found: Iterable[Part], marks: dict[str, str]) -> str:
    """Remove parts, which may overlap, from a text; words on both sides stay apart."""
    parts = list(found)
    if not parts:
        return text
    marks.setdefault(kind, parts[0][2])
    answer = ""
    end = 0
    for start, next_end, _ in [*sorted(parts), (len(text), len(text), "")]:
        kept = text[end:start]
        if answer[-1:].isspace() or not answer:
            kept = kept.lstrip(" \t") if answer else kept.lstrip()
        elif end and _are_words_apart(answer[-1:], kept[:1]):
            answer += " "
        answer += kept
        end = max(end, next_end)
    return answer.strip()


def _are_words_apart(left: str, right: str) -> bool:
    """Tell whether a space is between two characters, the last and the first of two parts of a text."""
    is_unspaced = _UNSPACED.match(left) or _UNSPACED.match(right)
    return (left.isalnum() or left in _STOPS) and right.isalnum() and not is_unspaced


def _reasoning(text: str) -> list[Part]:
    """Find the blocks of reasoning, in order."""
    if blocks := list(_BLOCKS.finditer(text)):
        code = [(each.start(), each.end(), "") for each in _CODES.finditer(text)]
        if outside := [each for each in blocks if not _is_in(each.start(), code)]:
            return [(each.start(), each.end(), _mark(each[0])) for each in outside]
    tags = [(each.start(), each.end(), each["open"] is not None) for each in _TAGS.finditer(text)]
    last_close = max((start for start, _, opens in tags if not opens), default=-1)
    parts: list[Part] = []
    place = 0
    while match := _TAGS_OR_CODE.search(text, place):
        place = match.end()
        if match["close"]:
            # The prompt opened the block: all before it is reasoning.
            parts = [(0, place, match[0])]
        elif match["open"]:
            end = None
            if match.start() < last_close:
                end = _block_end(tags, bisect_left(tags, (match.start(),)))
            elif _begins_line(text, match.start()):
                end = len(text)
            if end is not None:
                parts.append((match.start(), end, _mark(match[0])))
                place = end
    return parts


def _block_end(tags: Sequence[tuple[int, int, bool]], first: int) -> int:
    """Find the end of the block that a tag opens, by its index; a closing tag follows it.

    Blocks may be nested. If there are fewer closing tags than opening ones, the last one closes the block.
    """
    depth = 0
    last = 0
    for i in range(first, len(tags)):
        _, end, opens = tags[i]
        depth += 1 if opens else -1
        if not opens:
            last = end
        if depth == 0:
            break
    return last


def _begins_line(text: str, start: int) -> bool:
    """Tell whether only special tokens are before a place in its line."""
    return _LEAD.fullmatch(text, text.rfind("\n", 0, start) + 1, start) is not None


def _with_wrappers(text: str, blocks: Sequence[Part]) -> Iterator[Part]:
    """Yield blocks of reasoning, with the tags that some models put around the answer after them."""
    for start, end, mark in blocks:
        opening = _WRAPPER.match(text, end)
        if opening is None:
            yield start, end, mark
            continue
        yield start, opening.end(), mark
        closing = f"</{opening[1]}>"
        place = text.find(closing, opening.end())
        if place >= 0:
            yield place, place + len(closing), closing


def _special(text: str) -> Iterator[Part]:
    """Find special tokens outside of reasoning, and turns of others than the assistant, in order."""
    blocks = _reasoning(text)
    found = [each for each in _MARKS.finditer(text) if not each["code"] and not _is_in(each.start(), blocks)]
    if "</mask>" in text:
        # SVG.
        found = [each for each in found if each[0] != "<mask>"]
    found = _without_html(text, found)
    # The place of an open turn of another role, if an answer stands beside it. Alone, turns of users are the texts.
    turn: int | None = None
    has_answer = any(_role(each) == "assistant" for each in found)
    first, _ = _answer_span(text, found)
    for match in found:
        role = _role(match)
        if turn is None:
            yield match.start(), match.end(), _mark(match[0])
            has_answer = has_answer or first < match.start()
            turn = match.end() if role == "other" and has_answer else None
        elif role == "assistant":
            yield turn, match.end(), _mark(match[0])
            turn = None
    if turn is not None:
        yield turn, len(text), ""


def _role(match: re.Match[str]) -> str:
    """Return the role of a turn that begins, "assistant" or "other"; a token without a role has neither."""
    return (match.lastgroup or "").rpartition("_")[2]


def _is_in(place: int, parts: Sequence[Part]) -> bool:
    """Tell whether a place is in one of some parts, which are in order."""
    after = bisect_right(parts, place, key=itemgetter(0))
    return after > 0 and place < parts[after - 1][1]


def _without_html(text: str, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """Leave out `<s>` and `</s>` that are a pair of HTML: one that is not around the whole text."""
    first, last = _answer_span(text, found)
    opened: list[re.Match[str]] = []
    html: set[int] = set()
    for match in found:
        tag = match["sequence"]
        if tag == "</s>" and opened:
            start = opened.pop()
            if start[0] != "<s>" or not start.start() <= first <= last <= match.start():
                html |= {start.start(), match.start()}
        elif tag:
            opened += [match] if tag != "</s>" else []
            # An opening tag with attributes is HTML.
            html |= {match.start()} if tag not in ("<s>", "</s>") else set()
    return [each for each in found if each.start() not in html]


def _answer_span(text: str, found: Sequence[re.Match[str]]) -> tuple[int, int]:
    """Find where the text begins and ends without spaces and marks; without any, these are its end and its begin."""
    pieces = []
    end = 0
    for match in found:
        pieces += [text[end : match.start()], " " * len(match[0])]
        end = match.end()
    blank = "".join(pieces) + text[end:]
    return len(blank) - len(blank.lstrip()), len(blank.rstrip())


def _echo(text: str, context: str) -> list[Part]:
    """Find the prompt at the beginning of a text, after special tokens; spaces and line breaks are equal."""
    pattern = _pattern_of(context)
    if pattern is None:
        return []
    lead = _LEAD.match(text)
    match = pattern.match(text, 0 if lead is None else lead.end())
    return [] if match is None else [(0, match.end(), match[0][:40])]


@lru_cache(4096)
def _pattern_of(context: str) -> re.Pattern[str] | None:
    """Compile the pattern of an echoed prompt; None if it is so short that an answer may begin with it, too."""
    words = context.split()
    n_words = len(words) + (bool(words) and not context.rstrip()[-1:].isalnum())
    is_long = len(words) > 1 and n_words >= _FEWEST_WORDS
    if not is_long and len(_UNSPACED.findall(context)) < _FEWEST_UNSPACED:
        return None
    end = r"(?!\w)" if words[-1][-1].isalnum() and not _UNSPACED.match(words[-1][-1]) else ""
    return re.compile(r"\s+".join(map(re.escape, words)) + end)


def _mark(text: str) -> str:
    """Shorten a mark, such as a whole block, to its first tag or words."""
    match = _SHORT_MARK.match(text)
    return text[:24] if match is None else match[1]
