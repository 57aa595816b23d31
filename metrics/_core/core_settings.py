"""The settings of a metric, each declared once: type, default, check, and what it is given for.

The settings of a metric are a frozen dataclass, a subclass of `Settings` with fields made by `setting`. The signature
of `compute`, its checks, and what the package's questions and columns of files accept follow from the declarations.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self

from .core_numbers import parse_choice, parse_count, parse_flag, parse_number

# What a setting has a value for: the call, or each set, text, pair of texts of a set, question or answer.
CALL, SET, TEXT, PAIR, QUESTION, ANSWER = "call", "set", "text", "pair of texts", "question", "answer"

Check = Callable[[Any, str], Any]


def _unchecked(value: Any, name: str) -> Any:
    return value


class Declared(NamedTuple):
    """The declaration of a setting, besides its name, type and default.

    check : function of a value that is not the default, and the name; returns the value in its canonical form, or
        raises a TypeError or ValueError
    given : what it has a value for: CALL, or each SET, TEXT, PAIR, QUESTION or ANSWER
    numbers : the range of its values for items, if these are numbers or arrays; None if they are labels or texts
    """

    check: Check
    given: str = CALL
    numbers: tuple[float, float] | None = None


def setting(
    default: Any, check: Check = _unchecked, *, given: str = CALL, numbers: tuple[float, float] | None = None
) -> Any:
    """Declare a setting, as a field of a subclass of `Settings`; the arguments are those of `Declared`."""
    return field(default=default, metadata={"declared": Declared(check, given, numbers)})


# Checks.


flag: Check = parse_flag


def number(low: float, high: float) -> Check:
    """Return the check of a number in [low, high]."""
    return lambda value, name: parse_number(value, name, low, high)


def count(low: int = 1, **bounds: int) -> Check:
    """Return the check of an integer of at least `low`, and at most `high` if that is given."""
    return lambda value, name: parse_count(value, name, low, **bounds)


def choice(*names: str) -> Check:
    """Return the check of one of a few names."""
    return lambda value, name: parse_choice(value, name, names)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of the settings of a metric. A setting that has its default is not checked.

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid, or cannot be combined with another; the message names it.
    """

    def __post_init__(self) -> None:
        declared = self.declared()
        for name, value in self.passed().items():
            object.__setattr__(self, name, declared[name].check(value, name))
        self.check()

    def check(self) -> None:
        """Raise a TypeError or ValueError for settings that cannot be combined; a metric overrides this."""

    def check_batches(self) -> None:
        """Raise a ValueError if the score of all items does not follow from those of batches; a metric overrides it."""

    def check_found(self) -> None:
        """Raise an error for a model or a device that cannot be found, without loading anything."""

    @classmethod
    @cache
    def declared(cls) -> dict[str, Declared]:
        """Return the declaration of each setting by its name: those of a class before those of its bases."""
        names = dict.fromkeys(name for base in cls.__mro__ for name in inspect.get_annotations(base))
        return {name: cls.__dataclass_fields__[name].metadata["declared"] for name in names}

    @classmethod
    def default(cls, name: str) -> Any:
        """Return the default of a setting."""
        return cls.__dataclass_fields__[name].default

    @classmethod
    def read(cls, given: Mapping[str, Any], metric: str) -> Self:
        """Read the settings that a caller passed to a metric of this name.

        Raises
        ------
        TypeError, ValueError
            If the metric has no such setting, and for the reasons of the class.
        """
        names = list(cls.declared())
        for name in given:
            if name not in names:
                raise TypeError(f"{metric} has no argument {name!r}{suggest(name, names)} It has {', '.join(names)}.")
        return cls(**given)

    def passed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        values = {name: getattr(self, name) for name in self.declared()}
        return {name: value for name, value in values.items() if not _is_same(value, self.default(name))}

    def signed(self, *names: str) -> dict[str, Any]:
        """Return the signature entries of those of the named settings that differ from their defaults."""
        passed = self.passed()
        return {name: passed[name] for name in names if name in passed}


def suggest(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: a question for the most similar name, or a full stop."""
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else "."


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default; values of other types, such as arrays, may define their own comparison."""
    return value is default or (type(value) is type(default) and value == default)
