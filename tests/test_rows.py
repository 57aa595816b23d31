"""Lines of JSON, which one library reads fast and another says what is wrong with: each is as `json` reads it."""

import json
import re

import pytest

from tests.fuzzing import cases, damage_bytes, damage_json, damage_lines
from tests.references.json_lines import parse_line
from text_metrics.commands.jobs.rows import SHOWN, Source
from text_metrics.commands.shared.files import parse_json, parse_lines

LINES, NUMBERS, FILES = 1_500, 2_000, 150
ROWS = [
    {"id": 1, "text": "a café\n\u2028 by the sea", "q": 0.1, "more": [None, True, {"a": [1, "😀"]}]},
    {"id": "x", "text": ['one "text"', "another\t\\one"], "q": -1e-7, "more": {}},
]
EXACT = [
    *(b"NaN", b"-Infinity", b"1e999", b"-1e400", b"1E+2", b"-0", b"-0.0", b"01", b"1.", b".5", b"+1", b"1e", b"0x1"),
    *(str(sign * 2**power + shift).encode() for sign in (1, -1) for power in (53, 63, 64, 70) for shift in (-1, 0, 1)),
    *(b"9" * 4300, b"9" * 4301, b"-" + b"9" * 5000, b"9" * 400 + b".5", b"4.9e-324", b"2.4703282292062327e-324"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\x80"'),
    *(b'"a\tb"', b'"\x7f"', b'"\\u0000"', b'"\\x"', b'"a', b"'a'", b'{"a":1,"a":2}', b'{"a":NaN,"a":2}', b"[1,]"),
    *(b"", b" ", b"\r\n", b"\x0b", b"\xc2\xa0", b"\xe3\x80\x80\n", b"\xff", b"null", b"nul", b"{}{}", b"{}\0", b"\0"),
    *(b"\xef\xbb\xbf{}", b"\xef\xbb\xbf", b" \xef\xbb\xbf{}", b"{}\x0c", b"{}\xc2\xa0", b"// a\n{}"),
    *(b"[" * 100_000, b"[" * 800 + b"]" * 800, b'{"a":' * 5_000 + b"1" + b"}" * 5_000),
]  # fmt: skip


def read(number, raw):
    """Read a line at a place in a file."""
    *_, line = parse_lines([b"{}"] * (number - 1) + [raw])
    return line.value, line.error, line.is_blank


def check(number, raw):
    # Of the form too: 1 is not 1.0, and -0.0 is not 0.0.
    assert repr(read(number, raw)) == repr(parse_line(number, raw)), raw[:200]


@pytest.mark.parametrize("number", [1, 2])
def test_a_line_is_read_as_json_reads_it(number):
    for raw in EXACT:
        for line in (raw, raw + b"\n", b'{"text": ' + raw + b"}\r\n", b"[" + raw + b", 1]"):
            check(number, line)


def test_damaged_lines_are_read_as_json_reads_them():
    n_good = n_bad = 0
    for _, draw in cases("json lines", LINES):
        row = draw.choice(ROWS)
        values = damage_json(draw, row) if draw.random() < 0.5 else row
        raw = json.dumps(values, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")
        raw = damage_bytes(draw, raw) if draw.random() < 0.7 else raw
        check(draw.choice((1, 2)), raw)
        is_bad = bool(parse_line(2, raw)[1])
        n_good, n_bad = n_good + (not is_bad), n_bad + is_bad
    assert min(n_good, n_bad) > LINES / 5


def test_numbers_are_the_same_to_the_last_bit():
    for _, draw in cases("json numbers", NUMBERS):
        digits = str(draw.getrandbits(draw.choice((4, 30, 64, 65, 200))))
        fraction = f".{draw.getrandbits(draw.choice((4, 53, 90)))}" * draw.randrange(2)
        exponent = f"e{draw.randint(-340, 320)}" * draw.randrange(2)
        raw = f"{'-' * draw.randrange(2)}{digits}{fraction}{exponent}".encode()
        check(2, raw)
        assert repr(parse_json(raw.decode())) == repr(parse_line(2, raw)[0])


@pytest.mark.parametrize("any_value", [False, True])
def test_damaged_files_have_the_rows_and_errors_of_their_lines(tmp_path, any_value):
    path = tmp_path / "data.jsonl"
    for _, draw in cases("json files", FILES):
        # A first line that ends with a line feed decides that only line feeds end lines.
        data = b"{}\n" + damage_lines(draw, ROWS * 3)
        path.write_bytes(data)
        lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
        source = Source(path, None, any_value)
        for start in (0, 3):
            rows = list(source.rows(start))
            assert [row.number for row in rows] == list(range(start + 1, len(lines) + 1))
            assert source.done == len(data)
            for row in rows:
                value, error, is_blank = parse_line(row.number, lines[row.number - 1])
                is_good = not error and not is_blank and (isinstance(value, dict) or (any_value and value is not None))
                assert repr(row.values) == repr(value if is_good else None)
                assert row.is_blank == is_blank
                if error:
                    assert row.error == f"is not valid JSON: {error}"
                    assert row.raw == lines[row.number - 1].decode(errors="replace").rstrip("\n")[:SHOWN]


def test_one_array_is_read_as_its_lines(tmp_path):
    values = [*ROWS, {"text": "x", "n": 2**70, "q": float("nan")}]
    path = tmp_path / "data.json"
    path.write_text(json.dumps(values))
    assert [row.values for row in Source(path, None).rows(0)] == [*ROWS, {**values[2], "q": None}]
