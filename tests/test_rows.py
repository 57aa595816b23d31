"""Rows of files: lines of JSON as `json` reads them, and pieces with the same rows as in one reading."""

import csv
import json
import re

import datasets
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files import compress, write_jsonl
from tests.fuzzing import cases, damage_bytes, damage_json, damage_lines
from tests.references.json_lines import parse_line
from text_metrics.commands.jobs.pieces import cut
from text_metrics.commands.jobs.rows import SHOWN, Source
from text_metrics.commands.score import main as score
from text_metrics.commands.shared import files
from text_metrics.commands.shared.remote import parse_path

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
    *(b"\xff", b"null", b"nul", b"{}{}", b"{}\0", b"\0", b"\xef\xbb\xbf{}", b"{}\x0c", b"{}\xc2\xa0", b"// a\n{}"),
    *(b"[" * 100_000, b"[" * 800 + b"]" * 800, b'{"a":' * 5_000 + b"1" + b"}" * 5_000),
]  # fmt: skip


def check(raw):
    value, error, _ = parse_line(1, raw)
    try:
        found, problem = files.parse_line(raw), ""
    except ValueError as refused:
        found, problem = None, str(refused)
    # Of the form too: 1 is not 1.0, and -0.0 is not 0.0.
    assert (repr(found), problem) == (repr(value), error), raw[:200]
    return not error


def test_a_line_is_read_as_json_reads_it():
    for raw in EXACT:
        for line in (raw, raw + b"\n", b'{"text": ' + raw + b"}\r\n", b"[" + raw + b", 1]"):
            check(line)


def test_damaged_lines_are_read_as_json_reads_them():
    n_good = 0
    for _, draw in cases("json lines", LINES):
        row = draw.choice(ROWS)
        values = damage_json(draw, row) if draw.random() < 0.5 else row
        raw = json.dumps(values, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")
        raw = damage_bytes(draw, raw) if draw.random() < 0.7 else raw
        n_good += not raw.strip() or check(raw)
    assert LINES / 5 < n_good < LINES * 4 / 5


def test_numbers_are_the_same_to_the_last_bit():
    for _, draw in cases("json numbers", NUMBERS):
        digits = str(draw.getrandbits(draw.choice((4, 30, 64, 65, 200))))
        fraction = f".{draw.getrandbits(draw.choice((4, 53, 90)))}" * draw.randrange(2)
        exponent = f"e{draw.randint(-340, 320)}" * draw.randrange(2)
        check(f"{'-' * draw.randrange(2)}{digits}{fraction}{exponent}".encode())


@pytest.mark.parametrize("any_value", [False, True])
def test_damaged_files_have_the_rows_and_errors_of_their_lines(tmp_path, any_value):
    path = tmp_path / "data.jsonl"
    for _, draw in cases("json files", FILES):
        data = b"{}\n" + damage_lines(draw, ROWS * 3)
        path.write_bytes(data)
        lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
        source = Source(path, None, any_value)
        rows = list(source.rows())
        assert [row.number for row in rows] == list(range(1, len(lines) + 1))
        assert (source.at, source.n_lines) == (len(data), len(lines))
        for row, line in zip(rows, lines, strict=True):
            value, error, is_blank = parse_line(1, line)
            is_good = not error and not is_blank and (isinstance(value, dict) or (any_value and value is not None))
            assert repr(row.values) == repr(value if is_good else None)
            if error:
                assert error in row.error
                assert row.raw == line.decode(errors="replace").rstrip("\n")[:SHOWN]


def test_one_array_is_read_as_its_lines(tmp_path):
    values = [*ROWS, {"text": "x", "n": 2**70, "q": float("nan")}]
    path = tmp_path / "data.json"
    path.write_text(json.dumps(values))
    assert [row.values for row in Source(path, None).rows()] == [*ROWS, {**values[2], "q": None}]


# Pieces.

TEXTS = [{"key": i // 3, "text": f"text {i} é"} for i in range(37)]
LAYOUTS = [({}, 5), ({"set_size": 4}, 5), ({"set_size": 3}, 1), ({"set_size": 50}, 4)]


def check_pieces(path, layout, size):
    """Check that the pieces of a file hold its rows, and whole sets; returns their number."""
    source = Source(path, None)
    rows = list(source.rows())
    pieces = cut(source, size, **layout)
    parts = [list(source.rows(piece)) for piece in pieces]
    assert [row for part in parts for row in part] == rows
    for part in parts[:-1]:
        n_rows = sum(not row.is_blank for row in part)
        assert n_rows >= size
        assert n_rows % layout.get("set_size", 1) == 0
    if "group_key" in layout:
        keys = [{row.values["key"] for row in part if row.values} for part in parts]
        assert sum(map(len, keys)) == len(set().union(*keys))
    return len(pieces)


@pytest.mark.parametrize(("layout", "size"), LAYOUTS)
def test_damaged_lines_in_pieces(tmp_path, layout, size):
    path, odd = tmp_path / "data.jsonl", b"\n \n\xc2\xa0\n{}\xff\n[1]\n\x0b\r\n"
    n_pieces = []
    for _, draw in cases("pieces", 15):
        start = draw.choice([b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n"])
        data = b"{}\n" + damage_lines(draw, TEXTS)
        place = draw.randrange(len(data))
        data = data[:place] + odd * draw.randrange(2) + data[place:].rstrip() + b"\n" * draw.randrange(3)
        path.write_bytes(start + data)
        n_pieces.append(check_pieces(path, layout, size))
    assert max(n_pieces) > 4 or layout == {"set_size": 50}


@pytest.mark.parametrize(("layout", "size"), [*LAYOUTS, ({"group_key": "key"}, 5)])
def test_other_files_in_pieces(tmp_path, layout, size):
    table = pa.Table.from_pylist(TEXTS)
    several = layout != {"set_size": 50}
    for group in (1, 7, 100):
        pq.write_table(table, tmp_path / "data.parquet", row_group_size=group)
        assert (check_pieces(tmp_path / "data.parquet", layout, size) > 1) == (group < 100 and several)
    datasets.Dataset(table).save_to_disk(tmp_path / "data")
    check_pieces(tmp_path / "data", layout, size)
    with (tmp_path / "data.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, ["key", "text"], delimiter=";")
        writer.writeheader()
        writer.writerows({**row, "text": f'two\nlines; "{i}"'} for i, row in enumerate(TEXTS))
        file.write('13;"open\n\n14;two;many\n')
    check_pieces(tmp_path / "data.csv", {} if "set_size" in layout else layout, size)
    assert check_pieces(write_jsonl(tmp_path / "data.jsonl", TEXTS), layout, size) > several


@pytest.mark.parametrize("kind", ["json", "jsonl.gz", "csv.zst"])
def test_files_that_are_read_from_their_start_are_unpacked(tmp_path, kind):
    rows = [{"key": str(row["key"]), "text": row["text"]} for row in TEXTS]
    path = write_jsonl(tmp_path / "data.jsonl", rows)
    if kind == "json":
        path = tmp_path / "data.json"
        path.write_text(json.dumps(rows))
    elif kind == "csv.zst":
        path = tmp_path / "data.csv"
        path.write_text("key,text\n" + "".join(f"{row['key']},{row['text']}\n" for row in rows), encoding="utf-8")
    path = path if kind == "json" else compress(path, f".{kind.split('.')[1]}")
    source = Source(path, None)
    (tmp_path / "parts").mkdir()
    unpacked = source.unpack(tmp_path / "parts")
    assert list(unpacked.rows()) == list(source.rows())
    assert [row.values for row in unpacked.rows()] == rows
    assert check_pieces(unpacked.file, {"group_key": "key"}, 6) > 1


def test_files_of_another_file_system(tmp_path, capsys):
    rows = [{"text": ["a dog", f"the sea {i}", "a dog runs"]} for i in range(50)]
    plain = write_jsonl(tmp_path / "data.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet", row_group_size=9)
    outputs = []
    for kind in ("jsonl", "parquet"):
        data, url = plain.with_suffix(f".{kind}"), f"memory://test/data.{kind}"
        fsspec.filesystem("memory").pipe(url, data.read_bytes())
        for place in (str(data), url):
            out = tmp_path / f"{len(outputs)}.jsonl"
            more = ["--metric", "self_bleu", "--text-key", "text", "--batch-size", "12", "--out", str(out), "--quiet"]
            assert score.main([place, *more]) == 0
            outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
    assert check_pieces(parse_path("memory://test/data.jsonl"), {}, 5) == 10
    capsys.readouterr()
    words = ["--metric", "self_bleu", "--text-key", "text"]
    for name, message in (("data.jsonl", "--out is needed"), ("none.jsonl", "memory://test/none.jsonl does not exist")):
        assert score.main([f"memory://test/{name}", *words]) == score.EXIT_USAGE
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        score.main(["nothing://data.jsonl", *words])
    assert "nothing://data.jsonl" in capsys.readouterr().err
