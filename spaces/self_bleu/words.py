"""What the scores are called in words: of one set, and of two."""

import re
from collections.abc import Sequence
from typing import Any

# Scripts without spaces between words: Thai to Myanmar, Khmer, and Chinese and Japanese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_LETTERS = re.compile(r"[^\W\d_]")

# The lower bound of each interpretation.
WORDS = (
    (0.8, "They nearly copy each other."),
    (0.5, "They repeat each other's {phrases} a lot."),
    (0.2, "They repeat each other's {phrases} here and there."),
    (0.02, "They repeat few of each other's {phrases}."),
    (0.0, "They share hardly any {longest}."),
)
# Smaller differences are not named.
_EQUAL = 0.005


def meaning(value: float, order: int, unit: str) -> str:
    """Return the interpretation of a score."""
    words = next(words for least, words in WORDS if value >= least)
    return words.format(phrases=phrases_of(order, unit), longest=f"phrase of {order} {unit}s" if order > 1 else unit)


def phrases_of(order: int, unit: str) -> str:
    """Name what a score of this order compares."""
    return f"phrases of up to {order} {unit}s" if order > 1 else f"{unit}s"


def two_sets(details: list[dict[str, Any]], order: int, unit: str) -> str:
    """Say which of two sets repeats more phrases, and which more single tokens if that differs."""
    longest, single = (details[0][f"self_bleu_{n}"] - details[1][f"self_bleu_{n}"] for n in (order, 1))
    more, more_single = (0 if abs(gap) < _EQUAL else 1 if gap > 0 else 2 for gap in (longest, single))
    what = phrases_of(order, unit)
    first = f"Set {more} repeats more {what} than set {3 - more}" if more else f"Both sets repeat {what} equally"
    if more == more_single:
        return f"{first}."
    return f"{first}, but " + (
        f"set {more_single} repeats more single {unit}s." if more_single else f"both repeat single {unit}s equally."
    )


def facts_of(scores: dict[str, float], unit: str, longest: int) -> list[tuple[str, str, str]]:
    """Return Distinct-1, Distinct-2 and Entropy-1.

    longest : number of tokens of the longest text
    """
    if "distinct_2" not in scores:
        pairs = ("–", "needs order 2 or more.")
    elif longest < 2:
        pairs = ("–", f"there are no pairs of {unit}s.")
    else:
        pairs = (f"{scores['distinct_2']:.0%}", f"of the pairs of {unit}s are distinct.")
    return [
        (f"{scores['distinct_1']:.0%}", "Distinct-1", f"of the {unit}s are distinct."),
        (pairs[0], "Distinct-2", pairs[1]),
        (f"{scores['entropy_1']:.2f}", "Entropy-1", f"nats: evenness of the {unit} counts."),
    ]


def compared(written: float, shuffled: float) -> str:
    """Compare the diversity of shuffled texts with that of the texts; both are self-BLEU."""
    if abs(written - shuffled) < _EQUAL:
        return "equally diverse"
    return "more diverse" if shuffled < written else "less diverse"


def is_unspaced(texts: Sequence[str]) -> bool:
    """Return whether most letters are of scripts without spaces between words."""
    text = " ".join(texts)
    return 2 * len(_UNSPACED.findall(text)) > len(_LETTERS.findall(text))


def variants(tokens: Sequence[str]) -> int:
    """Count the distinct tokens that differ from another one only in capitals or punctuation."""
    distinct = set(tokens)
    plain = {re.sub(r"^\W+|\W+$", "", token.casefold()) or token for token in distinct}
    return len(distinct) - len(plain)
