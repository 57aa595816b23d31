"""The settings of a metric, each declared once: type, default, check, and what it is given for.

A metric's settings are a frozen dataclass, a subclass of `Settings` whose fields are made by `setting`. All else
follows from it: the signature of `compute`, its checks, and what `for_trainer`, `for_rewards`, files and parts accept.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Self

from .core_numbers import describe, parse_choice, parse_count, parse_flag, parse_number

# What a setting is given for: the call, or each of its items of a kind.
CALL, SET, TEXT, QUESTION, ANSWER = "call", "set", "text", "question", "answer"

Check = Callable[[Any, str], Any]


def _always(value: Any) -> bool:
    return True


def never(value: Any) -> bool:
    """Tell that no value of a setting merges."""
    return False


class Declared(NamedTuple):
    """What is declared of a setting beside its name, type and default.

    check : called with a value other than the default, and the name; returns the value in its canonical form
    given : what it is given for: CALL, or each SET, TEXT, QUESTION or ANSWER
    needs : the setting without which it has no effect; None for none
    finer : whether it asks for results finer than a number for each item
    merges_batches : of a value: whether the score of all items follows from those of batches of them
    merges_parts : of a value: whether the score of one set follows from statistics of parts of it
    """

    check: Check
    given: str = CALL
    needs: str | None = None
    finer: bool = False
    merges_batches: Callable[[Any], bool] = _always
    merges_parts: Callable[[Any], bool] = _always


def setting(default: Any, check: Check = lambda value, name: value, **declared: Any) -> Any:
    """Declare a setting, as a field of a subclass of `Settings`; the arguments are the fields of `Declared`."""
    if declared.get("given", CALL) != CALL or declared.get("finer"):
        declared.setdefault("merges_parts", never)
    return field(default=default, metadata={"declared": Declared(check, **declared)})


# Checks.


def flag(value: Any, name: str) -> bool:
    """Read True or False, also as 1 and 0."""
    return parse_flag(value, name)


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
    """Base of the settings of a metric. Those that are not passed are not looked at.

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid, or has no effect; the message names it.
    """

    def __post_init__(self) -> None:
        for name, declared in self.declared().items():
            value = getattr(self, name)
            if value is not self.default(name):
                object.__setattr__(self, name, declared.check(value, name))
        for name in self.passed():
            needed = self.declared()[name].needs
            if needed is not None and getattr(self, needed) is None:
                raise ValueError(f"{name} needs {needed}: pass both, or leave {name} out.")
        self.check()

    def check(self) -> None:
        """Raise an error for settings that do not go together."""

    def check_found(self) -> None:
        """Raise an error for a model or a device that cannot be found; nothing is loaded."""

    @classmethod
    @cache
    def declared(cls) -> dict[str, Declared]:
        """Return what is declared of each setting, by its name: those of a class before those of its bases."""
        names = dict.fromkeys(name for base in cls.__mro__ for name in inspect.get_annotations(base))
        return {name: cls.__dataclass_fields__[name].metadata["declared"] for name in names}

    @classmethod
    def default(cls, name: str) -> Any:
        """Return the default of a setting."""
        return cls.__dataclass_fields__[name].default

    @classmethod
    def read(cls, given: Mapping[str, Any], metric: str) -> Self:
        """Read the settings that a caller passed.

        Raises
        ------
        TypeError, ValueError
            If there is no such setting, or as the class does.
        """
        for name in given:
            cls.check_name(name, metric)
        return cls(**given)

    @classmethod
    def check_name(cls, name: str, metric: str) -> None:
        """Raise a TypeError for a setting that the metric does not have."""
        if name not in cls.declared():
            raise TypeError(f"{metric} has no argument {name!r}: it has {', '.join(cls.declared())}.")

    @classmethod
    def of_items(cls, name: str) -> str | None:
        """Say why a setting cannot be known before the texts are; None if it can."""
        declared = cls.declared()[name]
        if declared.given != CALL:
            return f"it has a value for each {declared.given}"
        if declared.needs is not None and (reason := cls.of_items(declared.needs)):
            return f"it needs {declared.needs}: {reason}"
        return None

    def passed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        return {name: value for name in self.declared() if (value := getattr(self, name)) is not self.default(name)}

    def signed(self, *names: str) -> dict[str, Any]:
        """Return the entries of a signature for those of some settings that differ from their defaults."""
        passed = self.passed()
        return {name: passed[name] for name in names if name in passed}

    def check_batches(self) -> None:
        """Raise a ValueError for a setting under which scores of batches do not determine that of all items."""
        for name, value in self.passed().items():
            if not self.declared()[name].merges_batches(value):
                raise ValueError(
                    f"{name}={value!r} pools all items: the scores of batches of them do not determine that of all."
                )

    def check_parts(self) -> None:
        """Raise a ValueError for a setting under which one set cannot be scored from statistics of its parts."""
        for name, value in self.passed().items():
            if not self.declared()[name].merges_parts(value):
                raise ValueError(f"{name} is not for one set in a file, which is read in parts. Got {describe(value)}.")
