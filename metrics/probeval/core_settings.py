"""The settings of a metric, each declared once: type, default, check, and what it is given for.

The settings of a metric are a frozen dataclass, a subclass of `Settings` with fields made by `setting`. The signature
of `compute`, its checks, and what `for_trainer`, `for_rewards`, files and parts accept follow from the declarations.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self

from .core_numbers import describe, parse_choice, parse_count, parse_flag, parse_number, show

# What a setting has a value for: the call, or each set, text, pair of texts of a set, question or answer.
CALL, SET, TEXT, PAIR, QUESTION, ANSWER = "call", "set", "text", "pair of texts", "question", "answer"

Check = Callable[[Any, str], Any]


def _unchecked(value: Any, name: str) -> Any:
    return value


def _always(value: Any) -> bool:
    return True


def _no_conflict(settings: "Settings") -> None:
    pass


def never(value: Any) -> bool:
    """Return False: scores do not merge under any value of the setting but its default."""
    return False


class Declared(NamedTuple):
    """The declaration of a setting, besides its name, type and default.

    check : function of a value that is not the default, and the name; returns the value in its canonical form, or
        raises a TypeError or ValueError
    given : what it has a value for: CALL, or each SET, TEXT, PAIR, QUESTION or ANSWER
    numbers : the range of its values for items, if these are numbers or arrays; None if they are labels or texts
    concatenated : whether the values of all texts are in one list, not in a list for each set
    needs : the setting without which it has no effect; None if there is none
    conflicts : function of the settings of a call in which it is not the default; raises a ValueError if it cannot be
        combined with the others
    finer : whether it adds results that are not one number for each item
    of_mean : whether it concerns the mean over items or expected scores, and not the score of a single text
    merges_batches : function of a value: whether the score of all items follows from those of batches of items
    merges_parts : function of a value: whether the score of one set follows from statistics of its parts
    """

    check: Check
    given: str = CALL
    numbers: tuple[float, float] | None = None
    concatenated: bool = False
    needs: str | None = None
    conflicts: Callable[[Any], None] = _no_conflict
    finer: bool = False
    of_mean: bool = False
    merges_batches: Callable[[Any], bool] = _always
    merges_parts: Callable[[Any], bool] = _always


def setting(default: Any, check: Check = _unchecked, **declared: Any) -> Any:
    """Declare a setting, as a field of a subclass of `Settings`.

    Parameters
    ----------
    default : None, or a value in its canonical form
    **declared : the other fields of `Declared`. A setting that is given for items, or is finer, merges no parts by
        default.
    """
    if declared.get("given", CALL) != CALL or declared.get("finer"):
        declared.setdefault("merges_parts", never)
    return field(default=default, metadata={"declared": Declared(check, **declared)})


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
        If a setting is invalid, has no effect, or cannot be combined with another; the message names it.
    """

    def __post_init__(self) -> None:
        declared = self.declared()
        for name, value in self.passed().items():
            object.__setattr__(self, name, declared[name].check(value, name))
        for name in self.passed():
            declared[name].conflicts(self)
        self.check()
        for name in self.passed():
            needed = declared[name].needs
            if needed is not None and getattr(self, needed) is None:
                raise ValueError(f"{name} needs {needed}: pass both, or leave {name} out.")

    def check(self) -> None:
        """Raise a TypeError or ValueError for settings that cannot be combined; a metric overrides this."""

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
        for name in given:
            cls.check_name(name, metric)
        return cls(**given)

    @classmethod
    def check_name(cls, name: str, metric: str) -> None:
        """Raise a TypeError for a setting that the metric does not have."""
        names = list(cls.declared())
        if name not in names:
            raise TypeError(f"{metric} has no argument {name!r}{suggest(name, names)} It has {', '.join(names)}.")

    @classmethod
    def of_items(cls, name: str) -> str | None:
        """Return the reason why a setting cannot be given without its texts; None if it can."""
        declared = cls.declared()[name]
        if declared.given != CALL:
            return f"it has a value for each {declared.given}"
        if declared.needs is not None and (reason := cls.of_items(declared.needs)):
            return f"it needs {declared.needs}: {reason}"
        return None

    def passed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        values = {name: getattr(self, name) for name in self.declared()}
        return {name: value for name, value in values.items() if not _is_same(value, self.default(name))}

    def signed(self, *names: str) -> dict[str, Any]:
        """Return the signature entries of those of the named settings that differ from their defaults."""
        passed = self.passed()
        return {name: passed[name] for name in names if name in passed}

    def check_batches(self) -> None:
        """Raise a ValueError if the score of all items does not follow from the scores of batches."""
        for name, value in self.passed().items():
            if not self.declared()[name].merges_batches(value):
                raise ValueError(
                    f"{name}={show(value)} cannot be scored in batches: it pools all items, and their score does not "
                    "follow from the scores of batches."
                )

    def check_parts(self) -> None:
        """Raise a ValueError if the score of one set does not follow from statistics of its parts."""
        for name, value in self.passed().items():
            if not self.declared()[name].merges_parts(value):
                raise ValueError(f"{name} cannot be combined with scoring one set in parts. Got {describe(value)}.")


def suggest(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: a question for the most similar name, or a full stop."""
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else "."


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default; values of other types, such as arrays, may define their own comparison."""
    return value is default or (type(value) is type(default) and value == default)
