"""The systems of a report from a pandas DataFrame or a `datasets.Dataset`, whose rows are read as those of a file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from text_metrics.core_api import describe
from text_metrics.files.columns import column_of, missing
from text_metrics.files.rows import Row
from text_metrics.options import Options
from text_metrics.reporting.inputs import Inputs, read_inputs
from text_metrics.texts import PROMPT


class Table:
    """A DataFrame or a `datasets.Dataset`, whose rows are read as those of a `Source`."""

    schema = None

    def __init__(self, frame: Any, name: str) -> None:
        self.path = Path(name)
        self._frame = frame
        self._names = column_names(frame) or []
        # A name may be a number.
        self._columns = list(map(str, self._names))
        if not self._columns:
            raise TypeError(f"{name} must be a DataFrame or a Dataset. Got {describe(frame)}.")
        if len(set(self._columns)) < len(self._columns):
            raise ValueError(f"{name} must have columns of different names. Got {self._columns}.")

    def check_columns(self, keys: Mapping[str, str | None]) -> None:
        """Raise a ValueError for a key whose column the table does not have."""
        for key in keys.values():
            if key and column_of(key, self._columns) not in (None, *self._columns):
                raise ValueError(f"{self.path} {missing(key, dict.fromkeys(self._columns))}.")

    def rows(self, *_: str) -> Iterator[Row]:
        """Read the rows."""
        columns = [_as_list(self._frame[name]) for name in self._names]
        for number, values in enumerate(zip(*columns, strict=True), 1):
            yield Row(number, dict(zip(self._columns, map(_as_list, values), strict=True)), place=number)


def column_names(frame: Any) -> list[str] | None:
    """List the columns of a DataFrame or a `datasets.Dataset`; None for anything else."""
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if isinstance(names, Mapping):
        raise TypeError(f"a DatasetDict has no rows: pass one of its splits, {list(names)}.")
    return None if names is None else list(names)


def _as_list(value: Any) -> Any:
    """Return an array, or a number of numpy, as Python has it."""
    return value.tolist() if hasattr(value, "tolist") else value


def read_frame(frame: Any, people: Any, strip: Sequence[str], **keys: str | None) -> Inputs:
    """Read the systems of a DataFrame or a `datasets.Dataset`, whose rows hold a text or a list of texts each.

    people : a table with the same columns of texts and prompts, or None
    keys : the columns of `text`, `id`, `system`, `quality`, `context` and `classes`, or None

    Raises a TypeError or ValueError that names the column, or the row, that is invalid.
    """
    if PROMPT in strip and keys["context"] is None:
        raise ValueError("strip: 'prompt' requires contexts, the column of the prompts that the texts answer.")
    tables = {
        Path(name): Table(each, name) for name, each in (("table", frame), ("people", people)) if each is not None
    }
    options = Options(
        files={"table": Path("table")},
        people=None if people is None else Path("people"),
        quality_scale=1,
        one_system=False,
        strip=strip,
        **{f"{name}_key": key for name, key in keys.items()},
        **dict.fromkeys(("rows", "delimiter", "encoding")),
    )
    try:
        inputs = read_inputs(options, tables)
    except ValueError as error:
        raise ValueError(_with_arguments(str(error))) from None
    for row in inputs.bad:
        raise ValueError(f"{row['file']}, row {row['row']}: {row['error']}.")
    sources = [replace(source, file="") for source in inputs.sources]
    return inputs._replace(sources=sources, repeats=list(map(_with_arguments, inputs.repeats)))


def _with_arguments(text: str) -> str:
    """Name arguments instead of options of the command."""
    text = text.replace("--system-key ", "system=").replace("--system-key", "system").replace(", or --one-system", "")
    return text.replace("--context-key", "contexts")
