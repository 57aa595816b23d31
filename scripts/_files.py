"""Files of JSON lines, as all commands read and write them; errors name the file and the line."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def read_jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    """Read a file of JSON lines; blank lines are skipped.

    Yields
    ------
    where : the file and the line, counted from 1, for errors about it
    value : the parsed line

    Raises
    ------
    ValueError
        If the file cannot be read, a line is not JSON, or all lines are blank.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    found = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = True
        where = f"{path}, line {number}"
        try:
            value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except ValueError as error:
            raise ValueError(f"{where} is no JSON: {error}.") from None
        yield where, value
    if not found:
        raise ValueError(f"{path} is empty.")


def read_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read a file of JSON lines, each of them an object, as `read_jsonl` does."""
    for where, value in read_jsonl(path):
        if not isinstance(value, dict):
            raise ValueError(f"{where} must hold an object. Got {type(value).__name__}.")
        yield where, value


def read_texts(record: dict[str, Any], key: str, where: str) -> list[str]:
    """Read a non-empty list of strings from an object."""
    if key not in record:
        raise ValueError(f"{where} has no {key!r}.")
    texts = record[key]
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{where}: {key!r} must be a list of strings, at least one. Got {texts!r:.80}.")
    return texts


def read_topic(record: dict[str, Any]) -> str:
    """Read the topic of an object from its `src`, a string or a list of strings; empty if there is none."""
    topic = record.get("src") or ""
    return ", ".join(map(str, topic)) if isinstance(topic, list) else str(topic)


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Write a file of JSON lines atomically."""
    write_text(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
