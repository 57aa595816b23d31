"""Numbers in an answer: digits or words, with their magnitude, ordinal, unit and bound.

Answers are in lower case and normalized: `probeval_words.fold`.
"""

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

_MOST_DIGITS = 100  # of a number: a longer one is a word

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"""
_TEN_ORDINALS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
_CARDINALS = {word: i for i, word in enumerate(_SMALL.split())}
_CARDINALS |= {word: 10 * i for i, word in enumerate(_TENS.split(), start=2)}
_ORDERED = {word: i for i, word in enumerate(_ORDINALS.split())}
_ORDERED |= {word: 10 * i for i, word in enumerate(_TEN_ORDINALS.split(), start=2)}
_MAGNITUDES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MULTIPLES = {"hundred": 100, "dozen": 12, **_MAGNITUDES}
_CENTURIES = (19, 20)  # of years: "nineteen ninety", "twenty twelve"
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
# Words after "once" where it is a number.
_PER = frozenset(["a", "an", "per", "every", "each", "daily", "weekly", "monthly", "yearly"])
_PAST = {("half", "past"): Fraction(1, 2), ("quarter", "past"): Fraction(1, 4), ("quarter", "to"): Fraction(-1, 4)}
# Words before "second" as a unit of time.
_BEFORE_SECOND = frozenset(["a", "per", "every", "each", "split"])
_ARTICLES = ("a", "an")
_LEAST_YEAR, _LEAST_TENS, _NOON = 10, 20, 12
_LOOK_AHEAD = 8  # parts, at most, from a place on that are compared with a phrase

# Units: names, separated by spaces, of a unit of a dimension, and its size. Dimensions do not compare.
_UNITS = """
time 1: second seconds sec secs
time 60: minute minutes min mins
time 3600: hour hours hr hrs h
time 86400: day days
time 604800: week weeks wk wks
calendar 1: month months
calendar 12: year years yr yrs
calendar 120: decade decades
calendar 1200: century centuries
length 1: mm millimeter millimeters millimetre millimetres
length 10: cm centimeter centimeters centimetre centimetres
length 1000: m meter meters metre metres
length 1000000: km kilometer kilometers kilometre kilometres
feet 1: inch inches
feet 12: foot feet ft
feet 36: yard yards yd yds
feet 63360: mile miles mi
mass 1: mg milligram milligrams
mass 1000: g gram grams
mass 1000000: kg kgs kilo kilos kilogram kilograms
ounces 1: ounce ounces oz
pounds 1: lb lbs pound pounds £
volume 1: ml milliliter milliliters millilitre millilitres
volume 1000: l liter liters litre litres
gallons 1: gallon gallons
mph 1: mph
kmh 1: kmh kph
degrees 1: ° degree degrees
celsius 1: celsius centigrade °c
fahrenheit 1: fahrenheit °f
percent 1: % percent
dollars 100: $ dollar dollars buck bucks
dollars 1: ¢ cent cents
euros 1: € euro euros
yen 1: ¥ yen
rupees 1: ₹ rupee rupees
"""
# Of time, which count without a number, too, where their names are not abbreviations.
TIME = ("time", "calendar")
_ABBREVIATIONS = "sec secs min mins hr hrs h wk wks yr yrs"
_SHORT = frozenset(_ABBREVIATIONS.split())
# Words before a unit in the singular, as in "once a day".
_BARE = frozenset(["a", "an", "all", "each", "every", "few", "last", "next", "per", "several", "this", "whole"])
_EVERY = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
DAY_PARTS = ("am", "pm")


class Unit(NamedTuple):
    """A unit: its dimension, and its size there."""

    dimension: str
    size: int


def _read_units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _UNITS.strip().splitlines():
        heading, names = line.split(": ")
        dimension, size = heading.split()
        units |= dict.fromkeys(names.split(), Unit(dimension, int(size)))
    return units


UNITS = _read_units()
# Phrases that bound the number after them, or the one before them.
_BOUNDS = {
    "<": "less than|fewer than|lower than|smaller than|younger than|under|below|<",
    ">": "more than|greater than|higher than|larger than|older than|over|above|>",
    "≤": "no more than|not more than|at most|up to|<=|≤",
    "≥": "no less than|no fewer than|not less than|at least|>=|≥",
    "±": "±",
    "+": "+",
}
_BOUNDS_AFTER = {
    "≥": "or more|or above|or over|or older|or higher|or longer|and more|and above|and over|and older|and up",
    "≤": "or less|or fewer|or below|or under|or younger|or lower|or shorter|and below|and under|and younger",
}


def _by_length(bounds: dict[str, str]) -> list[tuple[tuple[str, ...], str]]:
    phrases: list[tuple[tuple[str, ...], str]] = []
    for sign, joined in bounds.items():
        phrases += [(tuple(phrase.split()), sign) for phrase in joined.split("|")]
    return sorted(phrases, key=lambda pair: -len(pair[0]))


_BEFORE = _by_length(_BOUNDS)
_AFTER = _by_length(_BOUNDS_AFTER)
_AND_A_HALF = [(("and", "a", "half"), "half")]
# Temperatures in words: "5 degrees c".
_SCALES = {"c": "celsius", "celsius": "celsius", "centigrade": "celsius", "f": "fahrenheit", "fahrenheit": "fahrenheit"}

# A part of an answer; letters stand for combining marks. A minus differs from a hyphen: no word or number precedes it.
_PART = re.compile(
    r"(?P<minus>^-\s*(?=[$€£¥₹]?\.?\d)|(?<=[\s(\[<>=≤≥±])-(?=[$€£¥₹]?\.?\d))"
    r"|(?P<clock>\d{1,2}:\d{2}(?::\d{2})?(?![\d:]))"
    r"|(?P<fraction>(?<![\d/.,])(?:\d+ )?\d+/\d+(?![\d/]|[.,]\d))"
    r"|(?P<ordinal>\d+(?=(?:st|nd|rd|th)(?![^\W\d_])))(?:st|nd|rd|th)"
    r"|(?P<number>(?<!\d)\d{1,3}(?:,\d{3})+(?![,\d])(?:\.\d+)?|\d*\.\d+|\d+)"
    r"|(?P<word>[^\W\d_]+(?:['.][^\W\d_]+)*)"
    r"|(?P<symbol><=|>=|°[cf](?![^\W\d_])|[^\w\s])"
)
# A sign at the end of a word: "c++", "c#", and of a grade, "a-".
_SIGN = re.compile(r"(?:\+{1,2}|#|\*)(?![\w+#*])|(?<![^\W\d_].)-(?![^\W_])|(?<=[^\W\d_].)-(?=$|[,;/)])")
_NUMBERS = ("number", "ordinal", "fraction", "clock")
_SHORT_WORD = 2  # of letters that a minus may follow
# Punctuation that is not kept, except between digits. All other punctuation is a symbol.
_KEPT_PUNCTUATION = frozenset("#%&@§¶†‡‰‱")
_DROPPED_SYMBOLS = frozenset("|`^´¨")
_WORDS_FOR = {"&": "and", "~": "about", "≈": "about"}


class Part(NamedTuple):
    """A word, number or symbol of an answer.

    kind : "word", "number", "ordinal", "fraction", "clock", "minus", "symbol", or "sign" for one that ends a word
    text : the word, without "'s" and full stops, or what else it is
    value : of a number
    is_attached : whether it follows the part before it without a space
    """

    kind: str
    text: str
    value: Fraction = Fraction(0)
    is_attached: bool = False


def letters_for_marks(text: str) -> str:
    """Replace each combining mark by a letter, for regular expressions; the length does not change."""
    if text.isascii():
        return text
    return "".join("a" if unicodedata.category(char).startswith("M") else char for char in text)


def plain_word(word: str) -> str:
    """Return a word without the full stops of an abbreviation, and without the ending of the genitive."""
    return word.removesuffix("'s").replace(".", "")


def _read_parts(text: str) -> list[Part]:
    """Divide an answer into words, numbers, signs and symbols, without other punctuation."""
    parts: list[Part] = []
    shape = letters_for_marks(text)
    last = 0
    for match in _PART.finditer(shape):
        kind = str(match.lastgroup)
        start, end = match.span()
        said = text[start:end]
        is_attached = start == last and start > 0
        if kind in _NUMBERS:
            digits = text[slice(*match.span(kind))]
            if len(digits) > _MOST_DIGITS:
                parts.append(Part("word", digits, is_attached=is_attached))
            else:
                parts.append(Part(kind, digits, _value(kind, digits), is_attached))
        elif kind == "word":
            parts.append(Part(kind, plain_word(said), is_attached=is_attached))
        elif kind == "minus":
            parts.append(Part(kind, said.strip()))
        elif start < last:
            continue
        elif sign := _sign_after(parts, shape, start, last):
            parts.append(Part("sign", sign, is_attached=True))
            end = start + len(sign)
        elif symbol := _symbol(said, parts, shape[end:].lstrip()):
            kind = "word" if symbol.isalpha() else "symbol"
            parts.append(Part(kind, symbol, is_attached=is_attached))
        last = max(last, end)
    return parts


def _sign_after(parts: list[Part], shape: str, start: int, last: int) -> str:
    """Return the sign of the word or number that ends where a symbol starts, if the symbol is one."""
    if not parts or start != last or start == 0:
        return ""
    before = parts[-1]
    match = _SIGN.match(shape, start)
    if match is None or before.kind not in ("word", *_NUMBERS):
        return ""
    sign = match.group()
    # Emphasis: *word*.
    is_emphasis = sign == "*" and shape[:start].count("*") % 2 == 1
    is_dash = sign == "-" and (before.kind != "word" or len(before.text) > _SHORT_WORD)
    return "" if is_emphasis or is_dash else sign


def _symbol(said: str, parts: list[Part], rest: str) -> str:
    """Return the token of a symbol: a word, itself, or "" for punctuation that is not between digits."""
    if said in _WORDS_FOR:
        return _WORDS_FOR[said]
    follows_number = False
    if parts:
        before = parts[-1]
        follows_number = before.kind in _NUMBERS or before.text in UNITS or before.text in DAY_PARTS
    is_between_numbers = follows_number and rest[:1].isdigit()
    if said == "+" and parts and parts[-1].kind == "word" and rest[:1].isalpha():
        return "and"
    if said == "-":
        return "to" if is_between_numbers else ""
    is_punctuation = unicodedata.category(said[0]).startswith("P") and said not in _KEPT_PUNCTUATION
    if said in _DROPPED_SYMBOLS or (is_punctuation and not (is_between_numbers and said in ",/:")):
        return ""
    return said


def _value(kind: str, digits: str) -> Fraction:
    """Return the value of a number in digits, of a fraction, or of a time of day in hours."""
    if kind == "clock":
        return sum((Fraction(int(part), 60**power) for power, part in enumerate(digits.split(":"))), Fraction(0))
    if kind == "fraction":
        whole, _, fraction = digits.rpartition(" ")
        above, below = (int(part) for part in fraction.split("/"))
        # A division by zero has no value: one that no other number has.
        return int(whole or 0) + (Fraction(above, below) if below else Fraction(above, 10**_MOST_DIGITS + 1))
    return Fraction(digits.replace(",", ""))


class Quantity(NamedTuple):
    """A number with its unit, if it has one, and its bound: "<", ">", "≤", "≥", "±", "+" or ""."""

    value: Fraction
    unit: Unit | None = None
    bound: str = ""
    is_ordinal: bool = False

    def differs(self, other: "Quantity") -> bool:
        """Tell whether two quantities are different; a number without a unit may have any."""
        if self.bound != other.bound:
            return True
        if self.unit is None or other.unit is None:
            return self.value != other.value
        if self.unit.dimension != other.unit.dimension:
            return True
        return self.value * self.unit.size != other.value * other.unit.size

    def form(self) -> str:
        """Return the canonical form of a quantity."""
        dimension, size = self.unit or ("", 1)
        return f"{self.bound}{self.value * size}{'th' if self.is_ordinal else ''}{dimension}"


def read_numbers(text: str) -> tuple[list[Quantity | Part], set[Unit]]:
    """Read an answer as quantities and the parts that belong to none, from left to right.

    Returns the units of time without a number, too: "hours", "every day".
    """
    parts = _read_parts(text)
    n_parts = len(parts)
    # What is read after the last part, and before the first.
    parts += [Part("", "")] * _LOOK_AHEAD
    pieces: list[Quantity | Part] = []
    bare = set[Unit]()
    place = 0
    while place < n_parts:
        has_number = any(isinstance(piece, Quantity) for piece in pieces)
        quantity, end = _quantity(parts, place, has_number)
        if quantity is None:
            unit = _bare_unit(parts, place)
            if unit is not None:
                bare.add(unit)
            pieces.append(parts[place])
            place += 1
        else:
            pieces.append(quantity)
            place = end
    return pieces, bare


def _phrase(parts: list[Part], place: int, phrases: Sequence[tuple[tuple[str, ...], str]]) -> tuple[str, int]:
    """Find the longest known phrase at a place; returns its value and its end."""
    for phrase, sign in phrases:
        if all(parts[place + i].text == word for i, word in enumerate(phrase)):
            return sign, place + len(phrase)
    return "", place


def _quantity(parts: list[Part], place: int, has_number: bool) -> tuple[Quantity | None, int]:
    """Read a number with its bound, sign and unit: "less than 5 minutes", "-5 °C", "$5", "half past 3"."""
    bound, place = _phrase(parts, place, _BEFORE)
    more = _PAST.get((parts[place].text, parts[place + 1].text), Fraction(0))
    if more:
        place += 2
    is_negative = parts[place].kind == "minus" or parts[place].text in ("minus", "negative")
    if is_negative:
        place += 1
    unit = UNITS.get(parts[place].text) if parts[place].kind == "symbol" else None
    if unit:
        place += 1
    number = _number(parts, place, has_number)
    if number is None:
        return None, place
    end = number.end
    if unit is None and not number.is_ordinal:
        unit, end = _unit(parts, end)
    if _phrase(parts, end, _AND_A_HALF)[0]:
        more += Fraction(1, 2)
        end += 3
        if unit is None:
            unit, end = _unit(parts, end)
    value = number.value + more
    is_time_of_day = parts[place].kind == "clock" and unit is None
    if is_time_of_day or (unit and unit.dimension in DAY_PARTS):
        value, unit = _in_twelve_hours(value, unit)
    if not bound:
        bound, end = _phrase(parts, end, _AFTER)
    if not bound and parts[end].kind == "sign" and parts[end].text == "+":
        bound = "≥"
        end += 1
    return Quantity(-value if is_negative else value, unit, bound, number.is_ordinal), end


class _Number(NamedTuple):
    """A number without its unit, and its end in the list of parts."""

    value: Fraction
    end: int
    is_ordinal: bool = False


def _number(parts: list[Part], place: int, has_number: bool) -> _Number | None:
    """Read a number without its unit, in digits or words."""
    kind = parts[place].kind
    word = parts[place].text
    following = parts[place + 1].text
    if kind in _NUMBERS:
        value = parts[place].value
        if following == "k" and parts[place + 1].is_attached:
            return _Number(value * 1000, place + 2)
        if kind == "ordinal":
            return _Number(value, place + 1, is_ordinal=True)
        return _multiplied(value, parts, place + 1)
    if kind != "word":
        return None
    if word in _TIMES and following in _PER:
        return _Number(Fraction(_TIMES[word]), place + 1)
    if word == "half":
        # "half an hour", "half a million"
        end = place + 2 if following in _ARTICLES else place + 1
        is_of = parts[end].text in _MULTIPLES or parts[end].text in UNITS
        return _multiplied(Fraction(1, 2), parts, end if is_of else place + 1)
    if word in _ARTICLES and following in UNITS:
        # "3 times a day" has one number.
        is_one = UNITS[following].dimension in TIME and following not in _SHORT and not has_number
        return _Number(Fraction(1), place + 1) if is_one else None
    return _in_words(parts, place)


def _multiplied(value: Fraction, parts: list[Part], place: int) -> _Number:
    """Multiply a number by the magnitudes after it: "2 million"."""
    while parts[place].text in _MULTIPLES:
        value *= _MULTIPLES[parts[place].text]
        place += 1
    return _Number(value, place)


def _in_words(parts: list[Part], place: int) -> _Number | None:
    """Read a number in words: "two million", "a hundred and five", "three thousand two hundred"."""
    is_unit = parts[place].text == "second" and parts[place - 1].text in _BEFORE_SECOND
    group = None if is_unit else _below_thousand(parts, place)
    if group is None:
        return None
    total = Fraction(0)
    least = max(_MAGNITUDES.values()) + 1
    is_ordinal = False
    while group is not None and not is_ordinal:
        magnitude = _MAGNITUDES.get(parts[group.end].text, 1)
        if magnitude >= least:
            break
        total += group.value * magnitude
        place = group.end + (magnitude > 1)
        is_ordinal = group.is_ordinal
        least = magnitude
        start = place + 1 if parts[place].text == "and" else place
        group = _below_thousand(parts, start) if magnitude > 1 else None
    if parts[place].text == "dozen":
        return _Number(total * 12, place + 1)
    return _Number(total, place, is_ordinal)


def _below_thousand(parts: list[Part], place: int) -> _Number | None:
    """Read a number below a thousand, or a year: "twenty-one", "two hundred and five", "nineteen ninety"."""
    number = _below_hundred(parts, place)
    if number is None or number.is_ordinal:
        return number
    if parts[number.end].text == "hundred":
        start = number.end + 2 if parts[number.end + 1].text == "and" else number.end + 1
        rest = _below_hundred(parts, start)
        if rest is None:
            return _Number(number.value * 100, number.end + 1)
        return rest._replace(value=number.value * 100 + rest.value)
    rest = _below_hundred(parts, number.end) if number.value in _CENTURIES else None
    if rest is not None and not rest.is_ordinal and rest.value >= _LEAST_YEAR:
        return rest._replace(value=number.value * 100 + rest.value)
    return number


def _below_hundred(parts: list[Part], place: int) -> _Number | None:
    word = parts[place].text
    if word in _ARTICLES and parts[place + 1].text in _MULTIPLES:
        return _Number(Fraction(1), place + 1)
    if word in _ORDERED:
        return _Number(Fraction(_ORDERED[word]), place + 1, is_ordinal=True)
    if word not in _CARDINALS:
        return None
    value = _CARDINALS[word]
    following = parts[place + 1].text
    if value >= _LEAST_TENS and 0 < _ORDERED.get(following, 0) < _LEAST_YEAR:
        return _Number(Fraction(value + _ORDERED[following]), place + 2, is_ordinal=True)
    if value >= _LEAST_TENS and 0 < _CARDINALS.get(following, 0) < _LEAST_YEAR:
        return _Number(Fraction(value + _CARDINALS[following]), place + 2)
    return _Number(Fraction(value), place + 1)


def _unit(parts: list[Part], place: int) -> tuple[Unit | None, int]:
    """Read the unit at a place, and its end."""
    word = parts[place].text
    following = parts[place + 1].text
    if word in DAY_PARTS:
        return Unit(word, 1), place + 1
    if word in ("degree", "degrees") and following in _SCALES:
        return UNITS[_SCALES[following]], place + 2
    if (word, following) == ("per", "cent"):
        return UNITS["percent"], place + 2
    return (UNITS[word], place + 1) if word in UNITS else (None, place)


def _in_twelve_hours(hours: Fraction, unit: Unit | None) -> tuple[Fraction, Unit | None]:
    """Convert a time of day to twelve hours: 15:00 is 3 pm, 0:30 is 12:30 am."""
    if _NOON + 1 <= hours < 2 * _NOON:
        return hours - _NOON, unit or Unit("pm", 1)
    if hours < 1:
        return hours + _NOON, unit or Unit("am", 1)
    return hours, unit


def _bare_unit(parts: list[Part], place: int) -> Unit | None:
    """Find a unit of time without a number, in the plural, or after a word such as "every"."""
    word = parts[place].text
    if word in _EVERY:
        return UNITS[_EVERY[word]]
    unit = UNITS.get(word)
    if unit is None or unit.dimension not in TIME or word in _SHORT:
        return None
    is_plural = word.endswith("s")
    return unit if is_plural or parts[place - 1].text in _BARE else None
