"""Rows with their scores, in the formats of --out."""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from text_metrics.commands.jobs.batches import Engine
from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.row_files import MADE_BY, RowFiles, join_types, written_by_any
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.shared.files import to_plain, written_whole
from text_metrics.commands.shared.outputs import Folder

_PART = re.compile(r"part-\d{8}\.parquet")


def write_rows(store: Store, path: Path, engine: Engine | None = None) -> None:
    """Write all batches in order: to one file, batch by batch, or each to a part of a folder, which the engine sees."""
    ends = [state.position for state in store.states() if state.n_rows]
    schema = store.rows.schema
    if schema is None and path.suffix != ".jsonl":
        schema = join_types(state.types for state in store.states() if state.n_rows)
    if isinstance(path, Folder):
        assert schema is not None
        _write_parts(store, ends, schema, path, engine or Engine())
        return
    rows = store.rows
    with written_whole(path) as temporary:
        if path.suffix == ".jsonl":
            with temporary.open("wb") as file:
                for end in ends:
                    file.writelines(_lines(rows, end))
            return
        assert schema is not None
        if path.suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, schema.names)
                writer.writeheader()
                for end in ends:
                    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows.read(end))
            return
        with pq.ParquetWriter(temporary, schema) as parquet:
            for end in ends:
                parquet.write_table(rows.table(end, schema))


def _lines(rows: RowFiles, end: int) -> Iterator[bytes]:
    if rows.schema is None:
        yield rows.path(end).read_bytes()
    else:
        for row in rows.read(end):
            yield json.dumps(row, ensure_ascii=False, default=to_plain).encode() + b"\n"


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=to_plain)
    return to_plain(value) if isinstance(value, bytes) else value


def _write_parts(store: Store, ends: list[int], schema: pa.Schema, path: Folder, engine: Engine) -> None:
    """Write each batch to a part of a new folder, which is renamed once it is complete."""
    new, old = (store.folder.resolve() / name for name in ("new", "old"))
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    new.mkdir()
    parts = [(end, new / f"part-{i:08d}.parquet") for i, end in enumerate(ends)]
    files = store.rows._replace(folder=store.rows.folder.resolve())
    # Files of a known schema are parts already.
    writer = engine if files.schema is None else Engine()
    for _ in writer.map(partial(iter, parts), partial(_open_parts, files, schema.with_metadata(MADE_BY))):
        pass
    for left in new.glob("*.tmp"):
        left.unlink()
    check_folder(path)
    if path.exists():
        os.replace(path, old)
    os.replace(new, path)


def _open_parts(rows: RowFiles, schema: pa.Schema) -> Callable[[tuple[int, Path]], list[Path]]:
    def write(part: tuple[int, Path]) -> list[Path]:
        end, path = part
        if rows.schema is not None:
            _link(rows.path(end), path)
            return [path]
        with written_by_any(path) as temporary:
            pq.write_table(rows.table(end, schema), temporary)
        return [path]

    return write


def _link(file: Path, path: Path) -> None:
    try:
        os.link(file, path)
    except OSError:  # Not every file system has links.
        shutil.copyfile(file, path)


def check_folder(path: Path) -> None:
    """Raise a UsageError for an output folder that is a file, or holds what no job made; the message names it."""
    if not isinstance(path, Folder) or not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"--out {path}/ is a file, not a folder: choose another output.")
    names = sorted(os.listdir(path))
    other = next((name for name in names if not _PART.fullmatch(name)), None)
    if other is None and names and not _is_made(path / names[0]):
        other = names[0]
    if other is not None:
        raise UsageError(f"--out {path} is a folder that no job made, with {other!r} in it: choose another output.")


def _is_made(path: Path) -> bool:
    try:
        return MADE_BY.items() <= (pq.read_schema(path).metadata or {}).items()
    except pa.ArrowException:
        return False


def write_bad(store: Store, state: State, path: Path) -> None:
    """Write what was set aside, with the reasons; without any, remove the file of an earlier run."""
    if not state.n_bad:
        path.unlink(missing_ok=True)
        return
    lines = (dict(zip(("row", "error", "text"), row, strict=True)) for part in store.states() for row in part.bad)
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
