"""Rows of tables in files, Parquet and the Arrow files of `datasets`, whose schemas are joined."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.core_api import first_line
from text_metrics.files.listing import fixed_folder
from text_metrics.files.storage import file_format

FORMATS = {".parquet": "Parquet", ".arrow": "an Arrow stream"}
_ROWS = 1024
# Errors that pyarrow raises for a damaged file.
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)
# Hive's name for a value that is missing.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# The columns that the folders of a file give, such as `day=2024-05-06/`.
Partition = dict[str, str | int | None]


def partitions_of(path: Path, files: Sequence[Path]) -> dict[Path, Partition]:
    """Read the columns that the names of folders give to the tables below a folder, or a pattern, as Hive writes them.

    A column whose values are all written as integers is one of integers.
    """
    partitions: dict[Path, Partition] = {}
    for file in files:
        partition: Partition = {}
        if file != path and file_format(file) in FORMATS:
            root = path if path.is_dir() else fixed_folder(path)
            for folder in file.relative_to(root).parts[:-1]:
                name, equals, value = folder.partition("=")
                if equals and name:
                    partition[unquote(name)] = None if value == _NO_VALUE else unquote(value)
        partitions[file] = partition
    for name in dict.fromkeys(chain.from_iterable(partitions.values())):
        with_value = [partition for partition in partitions.values() if partition.get(name) is not None]
        texts = [str(partition[name]) for partition in with_value]
        if all(re.fullmatch(r"0|-?[1-9]\d{0,17}", text) for text in texts):
            for partition, text in zip(with_value, texts, strict=True):
                partition[name] = int(text)
    return partitions


def read_schema(path: Path) -> pa.Schema:
    """Read the columns of a table; raises a ValueError if the file is not a table, or is damaged."""
    try:
        with path.open("rb") as file:
            return pa.ipc.open_stream(file).schema if file_format(path) == ".arrow" else pq.read_schema(file)
    except _DAMAGE as error:
        raise ValueError(f"{path} is not {FORMATS[file_format(path)]}, or is damaged: {first_line(error)}") from None


def join_schemas(schemas: Mapping[Path, pa.Schema], partitions: Mapping[Path, Partition]) -> pa.Schema:
    """Join the columns of files, which may lack some, or have them in another order or of another, related type.

    Raises a ValueError that names a column whose types have nothing in common.
    """
    (first, joined), *others = schemas.items()
    for path, schema in others:
        fields = []
        for name in dict.fromkeys(joined.names + schema.names):
            field = _join_fields([each.field(name) for each in (joined, schema) if name in each.names])
            if field is None:
                types = f"{schema.field(name).type}, and {joined.field(name).type} in {first} or a file after it"
                raise ValueError(f"{path}: the column {name!r} is of type {types}: it must have one type.")
            fields.append(field)
        joined = pa.schema(fields, joined.metadata)
    for name in dict.fromkeys(chain.from_iterable(partitions.values())):
        if name not in joined.names:
            values = [partition.get(name) for partition in partitions.values()]
            joined = joined.append(pa.field(name, pa.array(values).type))
    return joined


def _join_fields(fields: Sequence[pa.Field]) -> pa.Field | None:
    """Join a column of two schemas, or one that only one of them has; None if the types have nothing in common."""
    if len(fields) == 1:
        return fields[0].with_nullable(True)
    for each in (fields, list(map(_plain, fields))):
        schemas = [pa.schema([field]) for field in each]
        with suppress(pa.ArrowException, ValueError):
            return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    return None


def _plain(field: pa.Field) -> pa.Field:
    """Convert a column of categories, or of string views, to a plain column."""
    if pa.types.is_dictionary(field.type):
        return field.with_type(field.type.value_type)
    return field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field


def table_rows(
    path: Path, schema: pa.Schema | None, partition: Mapping[str, Any], columns: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    """Read the rows of a file with the joined `schema`, if there is one; only some columns, if named."""
    number = 0
    if schema is not None and columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    try:
        for batch in _batches(path, columns):
            rows = batch if schema is None else _joined(batch, schema, partition)
            for values in rows.to_pylist():
                number += 1
                yield values if schema is not None else values | partition
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged after row {number}: {first_line(error)}") from None


def _batches(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    with path.open("rb") as file:
        if file_format(path) == ".arrow":
            yield from pa.ipc.open_stream(file)
            return
        table = pq.ParquetFile(file)
        selected = None if columns is None else [name for name in columns if name in table.schema_arrow.names]
        # One group after another, so that the rows before a damaged one are read.
        for group in range(table.num_row_groups):
            yield from table.iter_batches(_ROWS, [group], selected)


def _joined(batch: pa.RecordBatch, schema: pa.Schema, partition: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch with the columns of a schema: those that it lacks have the value of its folders, or null."""
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        if field.name in batch.schema.names:
            arrays.append(batch.column(field.name).cast(field.type))
        else:
            value = pa.scalar(partition.get(field.name), field.type)
            arrays.append(pa.repeat(value, batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
