"""Extract the answer from a raw output."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

# Marks of the end of a text, or of a turn, in the vocabularies of common models.
_END = re.compile(
    r"<\|(?:endoftext|end_of_text|im_end|eot_id|end|eos)\|>|</s>|<eos>|<end_of_turn>|\[EOS\]", re.IGNORECASE
)
_LINES = re.compile(r"[\n\r\u0085\u2028\u2029]+")
# "A:", then "1. ", "2) ", "(3) ", "b) " and bullets, then an article.
_MARKER = re.compile(r"(?:\(?\d{1,3}[.)]|\(?[a-z]\))\s+|[-–—•·](?:\s+|(?=[a-z]))", re.IGNORECASE)
_PREFIXES = (
    re.compile(r"(?:(?:answer|a)\s*:\s*)+", re.IGNORECASE),
    _MARKER,
    re.compile(r"(?:an?|the)\s+", re.IGNORECASE),
)
_ABBREVIATION = re.compile(r"(?:.*\s)?(?:[a-z]\.)+[a-z]", re.IGNORECASE)
_STOPS = ".,;:!… "
# Quotes and marks of emphasis do not belong to an answer at either end, even if the other one was cut off.
_MARKS = '"“”„«»*_` '
_PAIRS = {"'": "'", "‘": "’", "(": ")", "[": "]"}


def clean(raw: str, keeps_markers: bool = False) -> str:
    """Return the answer in a raw output, or an empty string.

    First comes the text before the first end-of-text mark, then its first line that is not blank, with single spaces.
    Removed from it, until nothing is left to remove: quotes and emphasis around it, "A:" or a number before it,
    stops after it, a leading article. `keeps_markers` keeps numbers and bullets before it. Cleaning the result again
    does not change it.
    """
    text = _END.split(raw, maxsplit=1)[0]
    lines = [" ".join(line.split()) for line in _LINES.split(text)]
    text = next((line for line in lines if line), "")
    before = None
    while text != before:
        before = text
        text = text.strip(_MARKS)
        if len(text) > 1 and _PAIRS.get(text[0]) == text[-1] and not {text[0], text[-1]} & set(text[1:-1]):
            text = text[1:-1].strip()
        for pattern in _PREFIXES:
            match = None if keeps_markers and pattern is _MARKER else pattern.match(text)
            if match:
                text = text[match.end() :]
        bare = text.rstrip(_STOPS)
        # The stop of "8 p.m." and of "U.S." belongs to the word.
        text = f"{bare}." if _ABBREVIATION.fullmatch(bare) else bare
    return text


def cleaner(people: Iterable[dict[str, Any]]) -> Callable[[str], str]:
    """Return a function that cleans the answers to a question on both sides.

    `people` are people's answers with their clusters. People do not number their answers: where one of theirs begins
    with a number or a bullet, such as "12. December", both sides keep them. An answer that would be blank, or equal in
    different clusters, stays as people gave it.
    """
    clusters: dict[str, set[str]] = defaultdict(set)
    for answer in people:
        clusters[answer["text"]].add(answer["cluster"])
    keeps_markers = any(_MARKER.match(text.strip()) for text in clusters)
    cleaned = {text: clean(text, keeps_markers) for text in clusters}
    joined: dict[str, set[frozenset[str]]] = defaultdict(set)
    for text, labels in clusters.items():
        joined[cleaned[text]].add(frozenset(labels))
    retained = {text for text, answer in cleaned.items() if not answer or len(joined[answer]) > 1}

    def clean_answer(text: str) -> str:
        return text if text in retained else clean(text, keeps_markers)

    return clean_answer
