"""Rows of files: lines of JSON as `json` reads them, and pieces with the same rows as in one reading."""

import json
import math
import random
import re
from pathlib import Path

import fsspec
import pytest

from tests.files import compress, pipe_of, read_jsonl, write_data
from tests.fuzzing import cases, damage_bytes, damage_json, damage_lines
from tests.references.json_lines import parse_line
from text_metrics.commands.score.main import main
from text_metrics.commands.shared import files
from text_metrics.commands.shared.command import EXIT_USAGE
from text_metrics.commands.shared.keys import SHOWN, read_value
from text_metrics.commands.shared.rows import Source
from text_metrics.commands.shared.systems import named_files

LINES, NUMBERS, FILES = 1_500, 2_000, 150
ROWS = [
    {"id": 1, "text": "a café\n\u2028 by the sea", "q": 0.1, "more": [None, True, {"a": [1, "😀"]}]},
    {"id": "x", "text": ['one "text"', "another\t\\one"], "q": -1e-7, "more": {}},
]
WORDS = ["--metric", "self_bleu", "--text-key", "text", "--quiet"]
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
        parsed, problem = files.parse_json(raw), ""
    except ValueError as refused:
        parsed, problem = None, str(refused)
    # Of the form too: 1 is not 1.0, and -0.0 is not 0.0.
    assert (repr(parsed), problem) == (repr(value), error), raw[:200]
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


def test_damaged_files_have_the_rows_and_errors_of_their_lines(tmp_path):
    path = tmp_path / "data.jsonl"
    for _, draw in cases("json files", FILES):
        data = b"{}\n" + damage_lines(draw, ROWS * 3)
        path.write_bytes(data)
        lines = re.findall(rb"[^\n]*\n|[^\n]+", data)
        rows = {row.number: row for row in Source(path).rows()}
        for number, line in enumerate(lines, 1):
            value, error, is_blank = parse_line(1, line)
            is_good = not error and not is_blank and value is not None
            assert (number in rows) == (not is_blank)
            if not is_blank:
                assert repr(rows[number].values) == repr(value if is_good else None)
                assert error in rows[number].error
            if error:
                assert rows[number].raw == line.decode(errors="replace").rstrip("\n")[:SHOWN]


FORMS = {
    "data.tsv": ("id\ttext\n1\ta, b\n2\té\n", {}, [{"id": "1", "text": "a, b"}, {"id": "2", "text": "é"}]),
    "semicolons.csv": ("id;text\n1;a, b\n", {"delimiter": ";"}, [{"id": "1", "text": "a, b"}]),
    "cp1252.csv": ("id,text\n1,é€\n", {"encoding": "cp1252"}, [{"id": "1", "text": "é€"}]),
    "cp1252.jsonl": ('{"text": "é€"}\n\n["ü"]\n', {"encoding": "cp1252"}, [{"text": "é€"}, ["ü"]]),
    "array.json": (json.dumps([*ROWS, {"n": 2**70, "q": math.nan}]), {}, [*ROWS, {"n": 2**70, "q": None}]),
    "utf-16.json": ('[{"text": "é€"}]', {"encoding": "utf-16"}, [{"text": "é€"}]),
    "cp1252.txt": ("é\n\n ü \r\n", {"encoding": "cp1252"}, ["é", " ü "]),
    "lines.txt": ("\ufeffa b\n\n[1]\n  \nc", {}, ["a b", "[1]", "c"]),
    "lists.json": ('[["a", "b"], ["c"], 5]', {}, [["a", "b"], ["c"], 5]),
    "object.json": ('{\n"data": [{"a": 1}],\n"n": 2}', {"rows": "data"}, [{"a": 1}]),
    "deep.json": ('{"data": {"rows": [1, 2]}}', {"rows": "data.rows"}, [1, 2]),
    "one.json": ('{\n"a": 1\n}', {}, [{"a": 1}]),
    "lines.json": ('{"a": 1}\n{"a": 2}\n', {}, [{"a": 1}, {"a": 2}]),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_forms_of_files(tmp_path, name, suffix):
    text, form, expected = FORMS[name]
    path = tmp_path / name
    path.write_bytes(text.encode(form.get("encoding", "utf-8")))
    source = Source(compress(path, suffix) if suffix else path, **form)
    assert [row.values for row in source.rows()] == expected
    assert not any(row.error for row in source.rows())


@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data.csv", "data.txt", "data.jsonl.gz", "data.json.gz"])
def test_a_pipe_has_the_rows_of_its_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    # More than a pipe holds, compressed too.
    rows = [{"text": f"a text and {draw.getrandbits(128):x} more of it"} for _ in range(9000)]
    path = write_data(Path(name.removesuffix(".gz")), rows)
    path = compress(path, ".gz") if name.endswith(".gz") else path
    expected, content = [row.values for row in Source(path).rows()], path.read_bytes()
    path.unlink()
    with pipe_of(content, "fifo", name) as pipe:
        assert [row.values for row in Source(pipe).rows()] == expected


@pytest.mark.parametrize(
    ("name", "text", "hints"),
    [
        ("data.csv", "id;text\n1;a, b\n", ("--delimiter ';'",)),
        ("one.csv", "id;text\n1;a\n", ("--delimiter ';'",)),
        ("tabs.csv", "id\ttext\n1\ta\n", ("--delimiter '\\t'",)),
        ("cp1252.csv", "id,text\n1,é\n", ("0xe9", "--encoding")),
        ("header.csv", "id,téxt\n1,e\n", ("0xe9", "--encoding")),
        ("data.jsonl", '{"text": "é"}\n', ("0xe9", "--encoding")),
        ("data.txt", "é\n", ("0xe9", "--encoding")),
        ("data.json", '[{"text": "é"}]', ("0xe9", "--encoding")),
        ("object.json", '{"data": [1], "n": 2}', ("data", "--rows rows")),
    ],
)
def test_other_forms_are_named(tmp_path, capsys, name, text, hints):
    (tmp_path / name).write_bytes(text.encode("cp1252"))
    more = ["--rows", "rows"] if name == "object.json" else []
    assert main([str(tmp_path / name), *WORDS, *more]) == 2
    shown = capsys.readouterr().err
    assert all(hint in shown for hint in hints), shown


def test_files_of_a_folder_or_a_pattern_are_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in (("b", [{"t": 2}, {"t": 3}]), ("a", {"t": 1}), ("c", {"t": 4})):
        (tmp_path / f"{name}.json").write_text(json.dumps(value, indent=2))
    for path in (tmp_path, Path("*.json"), tmp_path / "[abc].json"):
        assert [(row.values["t"], row.number) for row in Source(path).rows()] == [(i, i) for i in range(1, 5)]
    with pytest.raises(ValueError, match="does not exist"):
        Source(tmp_path / "*.jsonl")


ROW = {"a.b": "plain", "a": {"b": ["x", "y"]}, "m": [{"c": "p"}, {"c": "q"}, {}], "my col": 1, "p-1": 2}
VALUES = {
    **{"a.b": "plain", "a.b[0]": "x", "my col": 1, "p-1": 2, "@": ROW, None: ROW, "nothing": None, "a.nothing": None},
    **{"m[": None, "m[-2].c": "q", "length(m)": 3},
    # Nulls stay, unless a filter leaves them out.
    **{"m[].c": ["p", "q", None], "m[*].c": ["p", "q", None], "m[?!d].c": ["p", "q", None], "m[?c].c": ["p", "q"]},
    **{"a.*.x": [None], "my.*": None, "a[].b": None},
}


@pytest.mark.parametrize("key", VALUES)
def test_a_key_is_a_column_or_an_expression(key):
    assert read_value(ROW, key) == VALUES[key]


def test_secrets_of_a_url_are_not_shown(tmp_path, capsys):
    url = "memory://me:hunter2@host/data.jsonl?token=hunter2"
    with pytest.raises(SystemExit):
        main([url, *WORDS])
    assert "hunter2" not in capsys.readouterr().err


def test_files_of_another_file_system(tmp_path, capsys):
    rows = [{"text": ["a dog", f"the sea {i}", "a dog runs"]} for i in range(50)]
    memory, outputs = fsspec.filesystem("memory"), []
    for kind in ("jsonl", "parquet"):
        data, url = write_data(tmp_path / f"data.{kind}", rows), f"memory://test/data.{kind}"
        memory.pipe(url, data.read_bytes())
        for place in (data, url):
            out = tmp_path / f"{len(outputs)}.jsonl"
            assert main([str(place), *WORDS, "--batch-size", "12", "--out", str(out)]) == 0
            outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
    capsys.readouterr()
    assert main(["memory://test/data.jsonl", *WORDS]) == EXIT_USAGE
    assert "--out" in capsys.readouterr().err
    for url in ("memory://test/none.jsonl", "nothing://data.jsonl"):
        with pytest.raises(SystemExit):
            main([url, *WORDS])
        assert url in capsys.readouterr().err
    # A file that has changed is read again.
    memory.pipe("memory://test/data.jsonl", b'{"text": ["a", "b"]}\n')
    assert main(["memory://test/data.jsonl", *WORDS, "--out", str(tmp_path / "new.jsonl")]) == 0
    assert len(read_jsonl(tmp_path / "new.jsonl")) == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["a/x.jsonl", "b/y.csv.gz"], ["x", "y"]),
        (["a/x.jsonl", "b/x.jsonl", "a/y.csv"], ["a/x", "b/x", "y"]),
        (["c/a/x.jsonl", "d/a/x.jsonl"], ["c/a/x", "d/a/x"]),
        (["one=a/*.jsonl", "2.5=b", "b"], ["one", "2.5", "b"]),
        (["a/[xz].jsonl", "b=d/a/x.jsonl"], ["x", "z", "b"]),
        (["llama-3.5", "a=b=c.jsonl"], ["llama-3.5", "a"]),
        (["a/x.jsonl", "x=b/x.jsonl"], None),
        (["a/x.jsonl", "a/x.jsonl"], None),
        (["./a/x.jsonl", "x=none/x.jsonl"], None),
    ],
)
def test_files_name_their_systems(tmp_path, monkeypatch, words, names):
    monkeypatch.chdir(tmp_path)
    for name in (
        "a/x.jsonl",
        "a/z.jsonl",
        "a/y.csv",
        "b/x.jsonl",
        "b/y.csv.gz",
        "c/a/x.jsonl",
        "d/a/x.jsonl",
        "b=c.jsonl",
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("llama-3.5").mkdir()
    if names is None:
        with pytest.raises(ValueError, match="name of its own"):
            named_files(words)
    else:
        assert list(named_files(words)) == names
