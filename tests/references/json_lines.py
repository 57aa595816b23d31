"""Lines of JSON as `json` of Python's standard library reads them, one by one."""

import json


def parse_line(number, raw):
    """Parse a line; returns its value, its error and whether it is blank."""
    value, error, text = None, "", "?"
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        if text.strip():
            value = json.loads(text, parse_constant=lambda _: None)
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        value, error = None, "it is nested too deeply"
    except ValueError as problem:
        value, error = None, str(problem)
    return value, error, not text.strip()
