"""Numbers and names as every command writes them: in sentences, in pictures and in tables."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

NONE = "–"
# So many names are listed; more are counted.
_LISTED = 4
_SPACE = "\u00a0"
_MINUS = "−"
_SMALLEST_P = 0.001
# Control characters and surrogates, and those that turn the direction of writing.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")


def decimals(values: Iterable[tuple[float | None, Sequence[float] | None]], least: int = 1) -> int:
    """Return the decimals that numbers with such intervals deserve, from `least` to 4; 3 if there is no interval.

    Half of the median interval then has about one significant digit.

    Parameters
    ----------
    values : pairs of a number and its interval
    """
    widths = [(interval[1] - interval[0]) / 2 for _, interval in values if interval is not None]
    widths = [width for width in widths if width > 0]
    return min(max(math.ceil(-math.log10(median(widths) / 2.5)), least), 4) if widths else 3


def number(value: float | None, digits: int, signed: bool = False) -> str:
    """Format a number with so many decimals and a true minus sign; a dash for None."""
    if value is None:
        return NONE
    # `+ 0.0` turns -0.0 into 0.0, which has no sign.
    rounded = round(value, digits) + 0.0
    text = f"{rounded:{'+' if signed and rounded else ''}.{digits}f}"
    return text.replace("-", _MINUS)


def significant(value: float) -> str:
    """Format a size with three significant digits, so that a small one is not 0."""
    return f"{value:.3g}"


def interval(ends: Sequence[float] | None, digits: int) -> str:
    """Format an interval, as in `[0.31, 0.42]`; the empty string for None."""
    return "" if ends is None else f"[{number(ends[0], digits)},{_SPACE}{number(ends[1], digits)}]"


def estimate(value: float | None, ends: Sequence[float] | None, digits: int) -> str:
    """Format a number with its interval, if it has one."""
    return f"{number(value, digits)} {interval(ends, digits)}".strip()


def p_value(value: float | None, least: float | None = None) -> str:
    """Format a p-value with three decimals, as in `0.012` or `< 0.001`; as `≤ 0.040` if it is the least possible."""
    if value is None:
        return NONE
    if least is not None and value <= least:
        return f"≤ {max(value, _SMALLEST_P):.3f}"
    return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.3f}"


def with_p(value: float | None, least: float | None = None) -> str:
    """Format a p-value with its letter, as in `p = 0.012` or `p < 0.001`; see `p_value`."""
    text = p_value(value, least)
    return (f"p {text}" if text.startswith(("<", "≤")) else f"p = {text}").replace(" ", _SPACE)


def percent(value: float | None, digits: int = 0) -> str:
    """Format a share as a percentage, as in `42 %`."""
    return NONE if value is None else f"{number(100 * value, digits)}{_SPACE}%"


def percent_interval(ends: Sequence[float] | None, digits: int = 0) -> str:
    """Format an interval of shares, as in `[31, 42] %`; the empty string for None."""
    return "" if ends is None else f"{interval([100 * end for end in ends], digits)}{_SPACE}%"


def count(value: int, noun: str, plural: str = "") -> str:
    """Format a number of things, as in `1 prompt` or `1 497 prompts`."""
    return f"{integer(value)} {noun if value == 1 else plural or f'{noun}s'}"


def integer(value: int) -> str:
    """Format an integer with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f") if abs(value) >= 1_000 else str(value)


def listed(names: Iterable[str], noun: str = "system") -> str:
    """Join names, as in `a, b and c`; of more than four, three and the number of the other ones."""
    names = list(names)
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], count(len(names) - _LISTED + 1, f"other {noun}")]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def printable(text: str) -> str:
    """Replace what XML does not allow, or what reorders the text after it, by `�`."""
    return _FORBIDDEN.sub("\ufffd", text)


def shortened(text: str, n: int) -> str:
    """Return a text on one line, cut to n characters."""
    line = " ".join(text[: n + 1].split())
    return line if len(text) <= n else f"{line[: n - 1]}…"


def level(report: Mapping[str, Any]) -> str:
    """Format the level of confidence of a report, as in `95 %`."""
    return f"{100 * report['confidence']:g}{_SPACE}%"
