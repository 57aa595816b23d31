"""Rows written to one file in the format of its name."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.shared.files import to_line, to_plain, written_whole

Blocks = Iterator[list[dict[str, Any]]]


def write_rows(read: Callable[[], Blocks], schema: pa.Schema | None, path: Path) -> None:
    """Write blocks of rows; types of columns that have none are inferred from all of them."""
    if schema is None and path.suffix != ".jsonl":
        schema = _infer_schema(read())
    with written_whole(path) as temporary:
        if path.suffix == ".parquet":
            with pq.ParquetWriter(temporary, schema) as table:
                for rows in read():
                    table.write_table(_to_table(rows, schema))
            return
        with temporary.open("w", encoding="utf-8", newline="") as output:
            if path.suffix == ".csv":
                writer = csv.DictWriter(output, schema.names if schema else [])
                writer.writeheader()
                for rows in read():
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            else:
                for rows in read():
                    output.writelines(map(to_line, rows))


def _to_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    for row in rows:
        # A column of mixed types is one of strings.
        row |= {name: _as_text(row[name]) for name in texts if name in row}
    return pa.Table.from_pylist(rows, schema)


def _infer_schema(blocks: Iterable[list[dict[str, Any]]]) -> pa.Schema:
    """Infer the types of the columns of JSON rows; a column of mixed types is one of strings."""
    types: dict[str, pa.DataType] = {}
    for rows in blocks:
        for name in dict.fromkeys(name for row in rows for name in row):
            try:
                kind = pa.array([row.get(name) for row in rows]).type
                pair = [pa.schema([(name, kind)]) for kind in (types.get(name, kind), kind)]
                types[name] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except (pa.ArrowException, OverflowError):
                types[name] = pa.string()
    return pa.schema(list(types.items()))


def _as_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=to_plain)
    return to_plain(value) if isinstance(value, bytes) else value
