"""The settings of a metric, each declared once: type, default, check, help, and its scope.

The settings of a metric are a frozen dataclass, a subclass of `Settings` with fields made by `setting`. The signature
of `compute`, its checks and help, and what the package's questions and columns of files accept follow from the
declarations.
"""

import difflib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, Self

import numpy as np

from .core_inputs import TextSets, flatten, parse_probabilities
from .core_numbers import parse_count, parse_flag, parse_level

_SETS_OF_TEXTS = (
    "predictions (`list[list[str]]` or `list[str]`): sets of texts. A flat list is one set or, with `set_size`, "
    "consecutive sets."
)
# The scope of a setting: it has a value for the call, each scored item, or each text, or pair, of an item.
CALL, ITEM, TEXT, PAIR = "call", "item", "text", "pair of texts"
# What a setting that names a model of pairs begins with.
NLI, PAIRS = "nli:", "pairs:"


def is_pair_model(value: Any) -> bool:
    """Tell whether a value names a model of pairs: "nli:<model>" or "pairs:<model>"."""
    return isinstance(value, str) and value.startswith((NLI, PAIRS)) and value not in (NLI, PAIRS)


class Declared(NamedTuple):
    """The declaration of a setting, besides its name and type.

    default : its value if it is not passed
    check : function of any other value, and the name; returns the value in its canonical form, or raises a TypeError or
        ValueError
    given : its scope: CALL, ITEM, TEXT or PAIR
    numbers : the range of its values, if these are numbers or arrays; None for labels or texts
    help : "`type`: what it does", in which {item} is what the metric scores
    reader : function of the given values, the sets and the name, which returns what `take` takes; by default the items
        of a list
    is_optional : whether an item may have None
    are_shares : whether the values of the texts of a set sum to 1
    """

    default: Any
    check: Callable[..., Any]
    given: str = CALL
    numbers: tuple[float, float] | None = None
    help: str = ""
    reader: Callable[[Any, TextSets, str], Any] | None = None
    is_optional: bool = False
    are_shares: bool = False

    def is_given(self, value: Any) -> bool:
        """Tell whether a value is one for each item, text or pair; a model of pairs is one for the call."""
        return self.given != CALL and value is not None and not is_pair_model(value)

    def parse(self, values: Any, sets: TextSets, name: str) -> Any:
        """Read what is given for m sets of n texts: n values, by text, or m values or matrices."""
        if self.reader is not None:
            return self.reader(values, sets, name)
        if self.are_shares:
            return parse_probabilities(values, sets, name)
        return flatten(values, sets, name, "value") if self.given == TEXT else list(values)

    def take(self, values: Any, owners: np.ndarray, rows: np.ndarray, places: np.ndarray) -> Any:
        """Take the part of s subsets of k texts each from what `parse` returned, in the form that `compute` takes.

        owners : ndarray of shape (s,), the set of each subset
        rows, places : ndarrays of shape (s, k), the indices of its texts among all texts, and within the set
        """
        if self.given == ITEM:
            return [values[i] for i in owners.tolist()]
        if self.given == PAIR:
            return [values[i][np.ix_(part, part)] for i, part in zip(owners.tolist(), places, strict=True)]
        if self.are_shares:
            return scale_shares(values[rows])
        if isinstance(values, list):
            return [[values[i] for i in row] for row in rows.tolist()]
        return values[rows.ravel()]


def scale_shares(weights: np.ndarray) -> list[list[float]]:
    """Scale the weights of texts (s, k) to shares of their subsets, which sum to 1."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    return shares.tolist()


def setting(
    default: Any,
    check: Callable[..., Any] = lambda value, name: value,
    *,
    help: str,
    given: str = CALL,
    numbers: tuple[float, float] | None = None,
    reader: Callable[[Any, TextSets, str], Any] | None = None,
    is_optional: bool = False,
    are_shares: bool = False,
    **bounds: Any,
) -> Any:
    """Declare a setting, as a field; `bounds` are further arguments of the check."""
    declared = Declared(default, partial(check, **bounds), given, numbers, help, reader, is_optional, are_shares)
    return field(default=default, metadata={"declared": declared})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base class of the settings of a metric, with the settings that all have; defaults are not checked.

    Raises a TypeError or ValueError, which names it, if a setting is invalid, or cannot be combined with another.
    """

    confidence: float | None = setting(
        None,
        parse_level,
        help="`float`: level of the confidence interval of the mean over {item}s, such as 0.95, by Hall's method.",
    )
    confidence_by: Any = setting(
        None,
        given=ITEM,
        help="`list[str]` or `list[int]`: with `confidence`, a label for each {item}, such as its prompt. Equal labels "
        "are not independent.",
    )
    details: bool = setting(False, parse_flag, help="`bool`: also return the `details` of each {item}.")

    def __post_init__(self) -> None:
        declared = self.declared()
        for name, value in self.passed().items():
            object.__setattr__(self, name, declared[name].check(value, name))
        self.check()

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined; a metric overrides this."""

    def check_found(self) -> None:
        """Raise an error for a model or a device that cannot be found, without loading anything."""

    @classmethod
    def prepare(cls) -> None:
        """Bring data files of the settings beside the code of the metric at load; none by default."""

    @property
    def pooled_by(self) -> str | None:
        """Name of the setting that pools all items, so that scores of batches cannot be averaged; None if unset."""
        return None

    @classmethod
    @cache
    def declared(cls) -> dict[str, Declared]:
        """Return the declaration of each setting by its name; settings of the class itself come first."""
        names: dict[str, None] = {}
        for base in cls.__mro__:
            names.update(dict.fromkeys(inspect.get_annotations(base)))
        return {name: cls.__dataclass_fields__[name].metadata["declared"] for name in names}

    @classmethod
    def read(cls, given: Mapping[str, Any], metric: str) -> Self:
        """Read the settings that a caller passed to a metric of this name.

        Raises a TypeError if the metric has no such setting, and as the class does.
        """
        names = list(cls.declared())
        for name in given:
            if name not in names:
                raise TypeError(f"{metric} has no argument {name!r}{suggest(name, names)}")
        return cls(**given)

    def passed(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults."""
        passed = {}
        for name, declared in self.declared().items():
            value = getattr(self, name)
            default = declared.default
            # Arrays define a comparison of their own.
            if value is not default and (type(value) is not type(default) or value != default):
                passed[name] = value
        return passed

    def signed(self, *names: str) -> dict[str, Any]:
        """Return the signature entries of the named settings that were passed."""
        passed = self.passed()
        declared = self.declared()
        return {name: passed[name] if declared[name].given == CALL else "given" for name in names if name in passed}

    def signed_interval(self) -> dict[str, Any]:
        """Return the signature entries of the confidence interval; empty without one."""
        return {} if self.confidence is None else self.signed("confidence", "confidence_by")

    def check_exclusive(self, *names: str) -> None:
        """Raise a ValueError if more than one of the named settings differs from its default."""
        passed = list(self.signed(*names))
        if len(passed) > 1:
            raise ValueError(f"{passed[0]} and {passed[1]} cannot be combined: pass one of them.")


@dataclass(frozen=True, kw_only=True)
class SetSettings(Settings):
    """The settings of a metric that scores sets of texts."""

    set_size: int | None = setting(
        None,
        parse_count,
        help="`int`: number of texts in each set of a flat list, such as `num_return_sequences`.",
    )


def describe_settings(settings: type[Settings], item: str, *inputs: str, **more: str) -> str:
    """Format the Args of the help of a metric: its inputs, by default sets of texts, and its settings.

    `item` is what the metric scores: a "set", "text" or "question". `more` has, by the names of settings, what their
    help says of this metric only.
    """
    entries = list(inputs or (_SETS_OF_TEXTS,))
    for name, declared in settings.declared().items():
        kind, _, text = declared.help.replace("{item}", item).partition(": ")
        default = str(declared.default) if not isinstance(declared.default, str) else f'"{declared.default}"'
        kind += "" if declared.default is None else f", default `{default}`"
        entries.append(f"{name} ({kind}): {text} {more.pop(name, '')}".rstrip())
    assert not more, more
    return "\nArgs:\n" + "".join(map(wrap_entry, entries))


def wrap_entry(entry: str) -> str:
    """Wrap an entry of a help; all lines but the first are indented further."""
    lines = textwrap.wrap(
        entry, 80, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines) + "\n"


def suggest(name: str, names: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: a suggestion, or a full stop."""
    close = difflib.get_close_matches(name, names, n=1)
    return f": did you mean {close[0]!r}?" if close else "."
