"""The options that name columns, and columns with the values of arguments that are given for sets or texts."""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from text_metrics.commands.shared.files import parse_cell
from text_metrics.commands.shared.keys import missing, read_key, read_value
from text_metrics.commands.shared.rows import add_form
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import SETS, TEXTS, UNBOUNDED
from text_metrics.metrics._core.core_settings import CALL, ITEM, PAIR, TEXT, Settings

# The options that name the column of an argument, besides --column.
_OPTIONS = {"confidence_by": "--cluster-key", "contexts": "--context-key", "references": "--reference-key"}


def is_missing(value: Any) -> bool:
    """Whether a cell has no value; in CSV, that is an empty one."""
    return value is None or value == ""


class Column(NamedTuple):
    """A column with the values of an argument, as plain data that can be sent to other processes.

    argument, name : of the argument, and the key of the column
    per_text : whether each text has a value; otherwise each row, and the rows of a set share it
    numbers : the range of its numbers; None for labels and texts
    concatenated : whether the argument is one list over all sets
    scale : what its numbers are divided by
    """

    argument: str
    name: str
    per_text: bool = False
    numbers: tuple[float, float] | None = None
    concatenated: bool = False
    scale: float = 1

    def read(self, row: Any, n_texts: int | None) -> Any:
        """Read the value of a row, or a list with one for each of its texts; `n_texts` is None for a row of one text.

        Raises a ValueError that names the column if it has no value, too few or too many of them, or a wrong one.
        """
        value = read_value(row, self.name)
        if self.argument == "confidence_by":
            value = read_key(row, self.name)
        if is_missing(value):
            if self.argument == "contexts":
                return None
            raise ValueError(missing(self.name, row))
        if self.argument == "references":
            # A bare text is one answer.
            return [value] if isinstance(value, str) else value
        if not self.per_text or n_texts is None:
            value = self._checked(value, "")
            return [value] if self.per_text else value
        if not isinstance(value, list) or len(value) != n_texts:
            got = f"{len(value)} of them" if isinstance(value, list) else describe(value)
            expected = f"a list of {n_texts} values, one for each text, for {self.argument}"
            raise ValueError(f"{self.name!r} must be {expected}. Got {got}")
        return [self._checked(entry, f" of text {i}") for i, entry in enumerate(value)]

    def _checked(self, value: Any, where: str) -> Any:
        if self.numbers is None:
            if isinstance(value, (str, int)) and not isinstance(value, bool) and not is_missing(value):
                return value
            expected = "a string or an integer"
        else:
            low, high = self.numbers
            # The metric checks vectors.
            if isinstance(value, list):
                return value
            number = parse_cell(value)
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if is_number and low * self.scale <= number <= high * self.scale:
                return number if self.scale == 1 else number / self.scale
            expected = "a number" if self.numbers == UNBOUNDED else f"a number in [{low:g}, {high:g}]"
            likely = next((n for n in (5, 10, 100) if is_number and number <= n), None)
            if likely and self.argument == "quality" and (low, high) == (0, 1) and number > self.scale:
                expected += f": divide by {likely} with --quality-scale {likely}"
        raise ValueError(f"{self.name!r}{where} must be {expected}, for {self.argument}. Got {describe(value)}")


def add_keys(parser: argparse.ArgumentParser, renamed: str = "--id-key", clusters: bool = True) -> None:
    """Add the options that all commands on files of texts have: the vocabulary of columns, and the form of files.

    `renamed` is what was --group-key in earlier versions.
    """
    parser.add_argument(
        "--text-key",
        metavar="KEY",
        help="the text, or the list of texts: a column, or a JMESPath expression; by default the row itself",
    )
    parser.add_argument("--system-key", metavar="KEY", help="which system a row is from; with --id-key")
    parser.add_argument("--context-key", metavar="KEY", help="the prompt's text: what its texts answer")
    if clusters:
        parser.add_argument("--cluster-key", metavar="KEY", help="sets with one value here are not independent")
    add_form(parser)
    parser.add_argument("--group-key", type=partial(_refuse, renamed), help=argparse.SUPPRESS)


def _refuse(renamed: str, _: str) -> None:
    raise argparse.ArgumentTypeError(f"is now {renamed}.")


def add_columns(
    parser: argparse.ArgumentParser, arguments: str = "an argument that is given for sets or texts"
) -> None:
    """Add --column, which may be given many times, and --quality-scale."""
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ARGUMENT=KEY",
        help=f"take {arguments} from a column: a row of a set has a list, a row of one text a value",
    )
    parser.add_argument(
        "--quality-scale", type=float, default=1, metavar="N", help="divide quality by this, such as 10 or 100"
    )


def parse_pairs(pairs: Sequence[str], option: str = "--column") -> dict[str, str]:
    """Read the NAME=VALUE pairs of an option that may be given many times; of a name, the last one counts."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{option} must be NAME=VALUE. Got {pair!r}.")
        values[name] = value
    return values


def parse_columns(options: argparse.Namespace) -> dict[str, str]:
    """Return the keys of all columns of arguments, by argument: those of --column, and of options of their own."""
    columns = parse_pairs(options.column)
    for argument, option in _OPTIONS.items():
        if argument in columns:
            raise ValueError(f"--column {argument} is now {option} {columns[argument]}.")
        if key := getattr(options, option[2:].replace("-", "_"), None):
            columns[argument] = key
    if not options.quality_scale > 0:
        raise ValueError(f"--quality-scale must be positive. Got {options.quality_scale}.")
    return columns


def columns_of(metric: Any, columns: Mapping[str, str], scale: float = 1) -> list[Column]:
    """Return the columns of arguments of a metric; raises a ValueError if one is unknown, or is not given for items.

    `scale` is what quality is divided by. The rows of a set share their context, cluster and reference.
    """
    settings: type[Settings] | None = getattr(metric, "settings", None)
    items = getattr(metric, "items", None)
    declared = settings.declared() if settings else {}
    given = {name: setting for name, setting in declared.items() if setting.given != CALL}
    of_columns = []
    for argument, name in columns.items():
        if argument == "references" and items in (SETS, TEXTS):
            raise ValueError(f"--reference-key: {metric.name} takes no references.")
        if argument in ("references", "confidence_by"):
            of_columns.append(Column(argument, name))
            continue
        if argument not in given:
            option = _OPTIONS.get(argument, f"--column {argument}")
            raise ValueError(
                f"{option}: a column may give {metric.name} {', '.join(given) or 'no argument'}; what is "
                "given once for a call is a --setting."
            )
        kind, of_texts = given[argument].given, items == TEXTS
        per_text = kind in (TEXT, PAIR) or (kind == ITEM and of_texts)
        divisor = scale if argument == "quality" else 1
        of_columns.append(Column(argument, name, per_text, given[argument].numbers, per_text and of_texts, divisor))
    return of_columns


def to_arguments(columns: Sequence[Column], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Make arguments of `compute` from the values of each item, by argument."""
    given = {}
    for column in columns:
        of_items = [of_item[column.argument] for of_item in values]
        given[column.argument] = list(chain.from_iterable(of_items)) if column.concatenated else of_items
    return given
