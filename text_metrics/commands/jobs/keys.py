"""The keys of --group-key: how they are compared, and whether rows with one key are next to each other."""

import hashlib
import json
import math
import shlex
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.rows import Row, Source
from text_metrics.commands.shared.files import decompressed_name
from text_metrics.commands.shared.remote import parquet_files

# Number of runs at which repeated keys are first looked for, and then each time it has doubled.
_FIRST_LOOK = 2**16


def read_key(values: Mapping[str, Any] | None, name: str) -> str | None:
    """Read the key of a row as a text, so that 1, 1.0 and "1" are one key, as in CSV; None if it is missing or NaN."""
    value = None if values is None else values.get(name)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        value = int(value) if value.is_integer() else value
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def check_adjacent(source: Source, name: str, quiet: bool) -> None:
    """Read all keys, and check that rows with one key are next to each other; rows without a key do not count.

    Of each run of equal keys, a digest of 64 bits is kept in memory. Equal digests are a reason to compare the keys.
    Raises a UsageError if a key comes back after another; it names both rows, and says how to sort the file.
    """
    digests, look_at = array("Q"), _FIRST_LOOK
    for _, key in _runs(source, name, quiet):
        digests.append(_digest(key))
        if len(digests) == look_at:
            _check_digests(digests, source, name)
            look_at *= 2
    _check_digests(digests, source, name)


def _check_digests(digests: array, source: Source, name: str) -> None:
    values = np.frombuffer(digests, np.uint64)
    ordered = np.sort(values)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    for digest in dict.fromkeys(values[np.isin(values, repeated)].tolist() if len(repeated) else []):
        first: dict[str, Row] = {}
        for row, key in _runs(source, name, quiet=True):
            if _digest(key) != digest:
                continue
            if key in first:
                raise UsageError(
                    f"{source.path}: {name!r} is {key!r:.80} in row {first[key].number}, and again in row "
                    f"{row.number}, after other rows. The rows of a set must be next to each other. Sort the file "
                    f"first, for example by\n  python -c {shlex.quote(_sorting_code(source, name))}"
                )
            first[key] = row


def _runs(source: Source, name: str, quiet: bool) -> Iterator[tuple[Row, str]]:
    """Yield the first row of each run of equal keys, and the key."""
    last = None
    with tqdm(total=source.total, unit=source.unit, unit_scale=True, disable=quiet, desc="keys") as bar:
        for i, row in enumerate(source.rows(0, name)):
            if i % 1024 == 0:
                bar.update(source.done - bar.n)
            key = read_key(row.values, name)
            if key is not None and key != last:
                yield row, key
                last = key


def _sorting_code(source: Source, name: str) -> str:
    """Return Python code that sorts a file by a column, and changes no value."""
    plain = decompressed_name(source.path)
    path, ending = str(source.path), plain.suffix.lower()
    new = str(plain.with_name(f"{plain.stem}.sorted{ending}"))
    if parquet_files(source.path):
        parts = f"sorted(map(str, pathlib.Path({path!r}).glob('*.parquet')))"
        read = f"import datasets, pathlib; datasets.Dataset.from_parquet({parts})"
        return f"{read}.sort({name!r}).to_parquet({f'{path}.sorted.parquet'!r})"
    if source.path.is_dir():
        split = "" if source.split is None else f"[{source.split!r}]"
        return f"import datasets; datasets.load_from_disk({path!r}){split}.sort({name!r}).save_to_disk({new!r})"
    if ending == ".parquet":
        return f"import datasets; datasets.Dataset.from_parquet({path!r}).sort({name!r}).to_parquet({new!r})"
    if ending == ".csv":
        read = f"import pandas, pyarrow; table = pandas.read_csv(pyarrow.input_stream({path!r}), dtype=str"
        read += ", keep_default_na=False" + (")" if source.delimiter == "," else f", sep={source.delimiter!r})")
        return f"{read}; table.sort_values({name!r}, kind='stable').to_csv({new!r}, index=False)"
    read, row, write = r"[row for row in text.split('\n') if row.strip()]", "json.loads(row)", r"'\n'.join(rows)"
    if source.is_array:
        read, row, write = "json.loads(text)", "row", "json.dumps(rows)"
    return (
        f"import json, pyarrow; text = pyarrow.input_stream({path!r}).read().decode('utf-8-sig'); rows = {read}; "
        f"rows.sort(key=lambda row: str({row}.get({name!r}))); "
        f"file = open({new!r}, 'w', encoding='utf-8'); file.write({write}); file.close()"
    )


def _digest(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest())
