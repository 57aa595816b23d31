"""Rows with their scores, in the formats of --out."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.shared.files import to_plain, written_whole


def infer_schema(batches: Iterator[list[dict[str, Any]]]) -> pa.Schema:
    """Infer types for the columns of JSON rows; a column of mixed types is written as strings of JSON."""
    types: dict[str, pa.DataType] = {}
    for rows in batches:
        for name in dict.fromkeys(name for row in rows for name in row):
            try:
                inferred = pa.array([row.get(name) for row in rows]).type
                old = types.get(name, inferred)
                pair = [pa.schema([(name, kind)]) for kind in (old, inferred)]
                types[name] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except (pa.ArrowException, OverflowError):
                types[name] = pa.string()
    return pa.schema(list(types.items()))


def write_rows(store: Store, path: Path) -> None:
    """Write all batches to one file, batch by batch."""
    with written_whole(path) as temporary:
        if path.suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as file:
                for _, rows in store.batches():
                    file.writelines(json.dumps(row, ensure_ascii=False, default=to_plain) + "\n" for row in rows)
            return
        schema = store.schema or infer_schema(rows for _, rows in store.batches())
        if path.suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, schema.names)
                writer.writeheader()
                for _, rows in store.batches():
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            return
        with pq.ParquetWriter(temporary, schema) as parquet:
            for _, rows in store.batches():
                fitted = _fit(rows, schema) if store.schema is None else rows
                parquet.write_table(pa.Table.from_pylist(fitted, schema))


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=to_plain)
    return to_plain(value) if isinstance(value, bytes) else value


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


def write_bad(store: Store, state: State, path: Path) -> None:
    """Write what was set aside, with the reasons; without any, remove the file of an earlier run."""
    if not state.n_bad:
        path.unlink(missing_ok=True)
        return
    lines = (dict(zip(("row", "error", "text"), row, strict=True)) for part, _ in store.batches() for row in part.bad)
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
