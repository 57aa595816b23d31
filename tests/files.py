"""Files of JSON lines, as tests write and read them."""

import json


def write_jsonl(path, values):
    """Write a value on each line; returns the path."""
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")
    return path


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
