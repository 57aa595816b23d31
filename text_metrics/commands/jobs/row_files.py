"""The rows of a job as files, one for each batch, written by the process that made them."""

import base64
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.shared.files import written_whole

# In the schema of a Parquet file, so that no folder is replaced but one that a job made.
MADE_BY = {b"made_by": b"text-metrics"}


class RowFiles(NamedTuple):
    """Files with the rows of batches, in a folder that all processes of a job see; plain data that can be sent.

    schema : of the rows, which are then kept as Parquet; None keeps them as JSON lines
    """

    folder: Path
    schema: pa.Schema | None

    def save(self, end: int, rows: list[dict[str, Any]]) -> str:
        """Write the rows of the batch that ends after so many rows of the input; returns the types of their columns.

        The types are for `join_types`; they are empty if the schema is known.
        """
        with written_by_any(self.path(end)) as temporary:
            if self.schema is not None:
                pq.write_table(pa.Table.from_pylist(rows, schema=self.schema.with_metadata(MADE_BY)), temporary)
                return ""
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
            temporary.write_text("".join(lines), encoding="utf-8")
        return base64.b64encode(_infer_types(rows).serialize().to_pybytes()).decode()

    def path(self, end: int) -> Path:
        """Return the file of a batch."""
        return self.folder / f"rows-{end:012d}"

    def read(self, end: int) -> list[dict[str, Any]]:
        """Read the rows of a batch."""
        if self.schema is not None:
            return self.table(end, self.schema).to_pylist()
        return list(map(json.loads, self.path(end).read_text(encoding="utf-8").split("\n")[:-1]))

    def table(self, end: int, schema: pa.Schema) -> pa.Table:
        """Read the rows of a batch as a table of some schema: the one of all batches."""
        if self.schema is not None:
            return pq.read_table(self.path(end), partitioning=None).replace_schema_metadata(schema.metadata)
        return pa.Table.from_pylist(_fit(self.read(end), schema), schema)


def written_by_any(path: Path) -> Any:
    """Yield a name to write a file under, as `written_whole` does, which no other process that writes it has."""
    return written_whole(path, path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp"))


def _infer_types(rows: list[dict[str, Any]]) -> pa.Schema:
    """Infer types for the columns of JSON rows; a column of mixed types is written as strings of JSON."""
    types: dict[str, pa.DataType] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            types[name] = pa.array([row.get(name) for row in rows]).type
        except (pa.ArrowException, OverflowError):
            types[name] = pa.string()
    return pa.schema(list(types.items()))


def join_types(of_batches: Iterable[str]) -> pa.Schema:
    """Join the types of the columns of batches; a column whose types differ is one of strings."""
    types: dict[str, pa.DataType] = {}
    for serialized in dict.fromkeys(of_batches):
        for field in pa.ipc.read_schema(pa.py_buffer(base64.b64decode(serialized))):
            pair = [pa.schema([(field.name, kind)]) for kind in (types.get(field.name, field.type), field.type)]
            try:
                types[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except pa.ArrowException:
                types[field.name] = pa.string()
    return pa.schema(list(types.items()))


def _fit(rows: list[dict[str, Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    """Write as JSON the values that are not strings in columns of strings."""
    texts = {field.name for field in schema if pa.types.is_string(field.type)}
    return [
        {
            name: json.dumps(value, ensure_ascii=False)
            if name in texts and value is not None and not isinstance(value, str)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]
