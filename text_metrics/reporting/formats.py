"""Numbers and names as every command writes them: in sentences, in pictures and in tables."""

import math
import re
from collections.abc import Iterable, Sequence
from statistics import median

NONE = "–"
# Names that are listed before the others are counted.
_LISTED = 4
_SPACE = "\u00a0"
_SMALLEST_P = 0.001
# Control characters and surrogates, and those that turn the direction of writing.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def decimals(values: Iterable[tuple[float | None, Sequence[float] | None]]) -> int:
    """Return the number of decimals to print for these intervals, 1 to 4; 3 without one.

    Half of the median interval then has about one significant digit.
    """
    widths = [ends[1] - ends[0] for _, ends in values if ends is not None]
    widths = [width for width in widths if width > 0]
    if not widths:
        return 3
    digits = math.ceil(-math.log10(median(widths) / 5))
    return min(max(digits, 1), 4)


def number(value: float | None, digits: int, signed: bool = False) -> str:
    """Format a number with some decimals and a minus sign (U+2212); a dash for None."""
    if value is None:
        return NONE
    sign = "+" if signed else ""
    return f"{value:{sign}z.{digits}f}".replace("-", "−")


def interval(ends: Sequence[float] | None, digits: int) -> str:
    """Format an interval, as in `[0.31, 0.42]`; the empty string for None."""
    return "" if ends is None else f"[{number(ends[0], digits)},{_SPACE}{number(ends[1], digits)}]"


def estimate(value: float | None, ends: Sequence[float] | None, digits: int) -> str:
    """Format a number with its interval, if it has one."""
    return f"{number(value, digits)} {interval(ends, digits)}".strip()


def p_value(value: float | None) -> str:
    """Format a p-value, as in `0.012` or `< 0.001`; a dash for None."""
    if value is None:
        return NONE
    return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}"


def with_p(value: float | None) -> str:
    """Format a p-value with its letter, as in `p = 0.012` or `p < 0.001`; a dash for None."""
    text = p_value(value)
    if value is None:
        return text
    sign = "" if text.startswith("<") else "= "
    return f"p {sign}{text}".replace(" ", _SPACE)


def percent(value: float | None) -> str:
    """Format a share as a percentage, as in `42 %`."""
    return NONE if value is None else f"{number(100 * value, 0)}{_SPACE}%"


def count(value: int, noun: str) -> str:
    """Format a number of things, as in `1 prompt` or `1,497 prompts`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def listed(names: Iterable[str], most: int = _LISTED) -> str:
    """Join names, as in `a, b and c`; of more than `most`, the first ones and the number of the other ones."""
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def printable(text: str) -> str:
    """Replace what XML does not allow, or what reorders the text after it, by `�`."""
    return _FORBIDDEN.sub("\ufffd", text)
