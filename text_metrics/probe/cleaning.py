"""A model's raw output to the answer that it gives."""

import re

# Marks of the end of a text, or of a turn, in the vocabularies of common models.
_END = re.compile(
    r"<\|(?:endoftext|end_of_text|im_end|eot_id|end|eos)\|>|</s>|<eos>|<end_of_turn>|\[EOS\]", re.IGNORECASE
)
_LINES = re.compile(r"[\n\r\u0085\u2028\u2029]+")
# "A:", then "1. ", "2) ", "(3) ", "b) " and bullets, then an article.
_PREFIXES = (
    re.compile(r"(?:(?:answer|a)\s*:\s*)+", re.IGNORECASE),
    re.compile(r"(?:\(?\d{1,3}[.)]|\(?[a-z]\))\s+|[-–—•·](?:\s+|(?=[a-z]))", re.IGNORECASE),
    re.compile(r"(?:an?|the)\s+", re.IGNORECASE),
)
_ABBREVIATION = re.compile(r"(?:.*\s)?(?:[a-z]\.)+[a-z]", re.IGNORECASE)
_STOPS = ".,;:!… "
# Quotes and marks of emphasis are no part of an answer at either end, even if the other one was cut off.
_MARKS = '"“”„«»*_` '
_PAIRS = {"'": "'", "‘": "’", "(": ")", "[": "]"}


def clean(raw: str) -> str:
    """Return the answer in a model's raw output; empty if there is none.

    First comes the text before the first end-of-text mark, then its first line that is not blank, with single spaces.
    What is removed from it, until nothing is left to remove: quotes and emphasis around it, "A:" or a number before it,
    stops after it, a leading article. Cleaning the result again does not change it.
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
            if match := pattern.match(text):
                text = text[match.end() :]
        bare = text.rstrip(_STOPS)
        # The stop of "8 p.m." and of "U.S." belongs to the word.
        text = f"{bare}." if _ABBREVIATION.fullmatch(bare) else bare
    return text
