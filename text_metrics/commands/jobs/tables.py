"""Rows of all pieces of a job, joined to one file in the format of its name."""

import csv
import json
import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.parts import Parts
from text_metrics.commands.shared.files import to_plain, written_whole

# Rows read at a time.
_ROWS = 2**14


def join(parts: Parts, n_parts: int, path: Path) -> None:
    """Write the rows of all pieces, in order; types of rows that have none are inferred from all of them."""
    files = [parts.path(number) for number in range(n_parts)]
    is_typed, schema = parts.schema is not None, parts.schema
    with written_whole(path) as temporary:
        if path.suffix == ".jsonl" and not is_typed:
            with temporary.open("wb") as output:
                for file in files:
                    with file.open("rb") as part:
                        shutil.copyfileobj(part, output)
            return
        if path.suffix != ".jsonl" and schema is None:
            schema = _infer_schema(rows for file in files for rows in _read(file, is_typed))
        if path.suffix == ".parquet":
            with pq.ParquetWriter(temporary, schema) as table:
                for file in files:
                    _copy(file, table, is_typed)
            return
        with temporary.open("w", encoding="utf-8", newline="") as output:
            blocks = (rows for file in files for rows in _read(file, is_typed))
            if path.suffix == ".csv":
                writer = csv.DictWriter(output, schema.names if schema else [])
                writer.writeheader()
                for rows in blocks:
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
            else:
                for rows in blocks:
                    output.writelines(json.dumps(row, ensure_ascii=False, default=to_plain) + "\n" for row in rows)


def _read(file: Path, is_typed: bool) -> Iterator[list[dict[str, Any]]]:
    """Yield blocks of the rows of a piece."""
    if is_typed:
        yield from (batch.to_pylist() for batch in pq.ParquetFile(file).iter_batches(_ROWS))
        return
    with file.open(encoding="utf-8", newline="\n") as lines:
        while rows := list(map(json.loads, islice(lines, _ROWS))):
            yield rows


def _copy(file: Path, table: pq.ParquetWriter, is_typed: bool) -> None:
    """Write the rows of a piece to Parquet."""
    if is_typed:
        for batch in pq.ParquetFile(file).iter_batches(_ROWS):
            table.write_table(pa.Table.from_batches([batch]).cast(table.schema))
        return
    texts = {field.name for field in table.schema if pa.types.is_string(field.type)}
    for rows in _read(file, is_typed):
        # A column of mixed types is one of strings.
        plain = [{name: _as_text(value) if name in texts else value for name, value in row.items()} for row in rows]
        table.write_table(pa.Table.from_pylist(plain, table.schema))


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
