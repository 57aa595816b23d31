"""Rows written to one file in the format of its name."""

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.files.storage import to_json

Blocks = Iterator[list[dict[str, Any]]]


def write_rows(read: Callable[[], Blocks], schema: pa.Schema | None, path: Path, suffix: str) -> None:
    """Write blocks of rows to a file in the format of a suffix; the types of other columns are inferred."""
    if suffix == ".parquet":
        schema = _with_inferred(schema, read)
        with pq.ParquetWriter(path, schema) as table:
            texts = [field.name for field in schema if pa.types.is_string(field.type)]
            for rows in read():
                for row in rows:
                    # A column of mixed types is one of strings.
                    row |= {key: to_json(row[key]) for key in texts if not isinstance(row.get(key), (str, NoneType))}
                table.write_table(pa.Table.from_pylist(rows, schema))
        return
    with path.open("w", encoding="utf-8", newline="") as output:
        if suffix == ".csv":
            names: dict[str, None] = {}
            for rows in read():
                names.update(dict.fromkeys(chain.from_iterable(rows)))
            writer = csv.DictWriter(output, names)
            writer.writeheader()
            for rows in read():
                for row in rows:
                    writer.writerow({name: _cell(value) for name, value in row.items()})
        else:
            for rows in read():
                output.writelines(f"{to_json(row)}\n" for row in rows)


def _with_inferred(schema: pa.Schema | None, read: Callable[[], Blocks]) -> pa.Schema:
    """Return the columns of rows with their types; one that no type holds, in all blocks, is one of strings."""
    known = {field.name: field for field in schema or ()}
    types: dict[str, pa.DataType] = {}
    for rows in read():
        for name in dict.fromkeys(chain.from_iterable(rows)):
            with _as_strings(types, name):
                kind = known[name].type if name in known else pa.array([row.get(name) for row in rows]).type
                pair = [pa.schema([(name, kind)]) for kind in (types.get(name, kind), kind)]
                types[name] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
    for name in types.keys() - known.keys():
        kind = types[name]
        with _as_strings(types, name):
            # Not all types can be written: the type of {} cannot.
            pq.write_table(pa.schema([(name, kind)]).empty_table(), io.BytesIO())
            for rows in read() if not pa.types.is_string(kind) else ():
                pa.array([row.get(name) for row in rows], kind)
    fields = [known.get(name, pa.field(name, kind)) for name, kind in types.items()]
    return pa.schema(fields, None if schema is None else schema.metadata)


@contextmanager
def _as_strings(types: dict[str, pa.DataType], name: str) -> Iterator[None]:
    """Make a column one of strings if its values have no common type."""
    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError):
        types[name] = pa.string()


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return to_json(value)
    return msgspec.to_builtins(value) if isinstance(value, bytes) else value
