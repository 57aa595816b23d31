"""Rows of files: of every form, compressed, of pipes and other file systems, with the errors of their lines."""

import json
import math
import random
import re
from pathlib import Path

import fsspec
import pytest

from tests.files import compress, pipe_of, read_jsonl, write_data
from tests.fuzzing import cases, damage_lines
from text_metrics.commands.score import main
from text_metrics.console import EXIT_USAGE
from text_metrics.files.columns import SHOWN, read_value
from text_metrics.files.listing import named_files
from text_metrics.files.rows import Source

ROWS = [
    {"id": 1, "text": "a café\n\u2028 by the sea", "q": 0.1, "more": [None, True, {"a": [1, "😀"]}]},
    {"id": "x", "text": ['one "text"', "another\t\\one"], "q": -1e-7, "more": {}},
]
WORDS = ["--metric", "self_bleu", "--text-key", "text", "--quiet"]
# Values of lines, as they are read, or None if the line is bad.
LINES = {b"NaN": None, b'{"a": NaN}': {"a": None}, b"1E+2": 100.0, b"-0": 0, b"-0.0": -0.0, b"4.9e-324": 5e-324}
LINES |= {str(number).encode(): number for number in (2**53 + 1, 2**63, -(2**70), 0.1, 1e22)}
LINES |= {b'"\\ud83d\\ude00"': "😀", b'"\\u0000"': "\0", b'"\x7f"': "\x7f", b'\xef\xbb\xbf{"a":1,"a":2}': {"a": 2}}
NO_VALUES = [b"null", b"nul", b"{}{}", b"{}\0", b"01", b"1.", b".5", b"+1", b"0x1", b"[1,]", b"'a'", b"// a"]
NO_VALUES += [b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\x80"', b'"a\tb"', b"9" * 4301]
NO_VALUES += [b"[" * 100_000, b"[" * 800 + b"]" * 800, b'{"a":' * 5_000 + b"1" + b"}" * 5_000]
LINES |= dict.fromkeys(NO_VALUES)


def test_lines_of_json(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(LINES))
    for row, (line, value) in zip(Source(path).rows(), LINES.items(), strict=True):
        # Of the form too: 1 is not 1.0, and -0.0 is not 0.0.
        assert repr(row.values) == repr(value), line[:200]
        assert bool(row.error) == (value is None), line[:200]


def test_damaged_files_have_the_rows_and_errors_of_their_lines(tmp_path):
    path = tmp_path / "data.jsonl"
    for _, draw in cases("json files", 150):
        path.write_bytes(b"{}\n" + damage_lines(draw, ROWS * 3))
        lines = re.findall(rb"[^\n]*\n|[^\n]+", path.read_bytes())
        rows = {row.number: row for row in Source(path).rows()}
        assert list(rows) == [i for i, line in enumerate(lines, 1) if line.strip(b" \t\r\n\xef\xbb\xbf")]
        for number, row in rows.items():
            if row.error:
                assert row.raw == lines[number - 1].decode(errors="replace").rstrip("\n")[:SHOWN]
            else:
                assert row.values == json.loads(lines[number - 1], parse_constant=lambda _: None)


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
    expected = [row.values for row in Source(path).rows()]
    content = path.read_bytes()
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
        ("object.json --rows rows", '{"data": [1], "n": 2}', ("data", "--rows rows")),
        # Bytes that are UTF-8, and half of the last character.
        ("ascii.csv --encoding ascii", "id,text\n1,Ã©\n", ("row 2", "0xc3", "--encoding")),
        ("utf-16.csv --encoding utf-16", "ÿþi\0d\0\n\x001", ("utf-16.csv", "0x31")),
    ],
)
def test_other_forms_are_named(tmp_path, capsys, name, text, hints):
    name, *more = name.split()
    (tmp_path / name).write_bytes(text.encode("cp1252"))
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
VALUES = {"a.b": "plain", "a.b[0]": "x", "my col": 1, "p-1": 2, "@": ROW, None: ROW, "nothing": None, "a.nothing": None}
VALUES |= {"m[": None, "m[-2].c": "q", "length(m)": 3, "my.*": None, "a[].b": None, "no || ''": ""}
# Nulls stay, unless a filter leaves them out.
VALUES |= {"m[].c": ["p", "q", None], "m[*].c": ["p", "q", None], "m[?!d].c": ["p", "q", None], "m[?c].c": ["p", "q"]}


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
    memory = fsspec.filesystem("memory")
    outputs = []
    for kind in ("jsonl", "parquet"):
        data = write_data(tmp_path / f"data.{kind}", rows)
        url = f"memory://test/data.{kind}"
        memory.pipe(url, data.read_bytes())
        for place in (data, url):
            out = tmp_path / f"{len(outputs)}.jsonl"
            assert main([str(place), *WORDS, "--batch-size", "12", "--out", str(out)]) == 0
            outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
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
    files = "a/x.jsonl a/z.jsonl a/y.csv b/x.jsonl b/y.csv.gz c/a/x.jsonl d/a/x.jsonl b=c.jsonl"
    for name in files.split():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("llama-3.5").mkdir()
    if names is None:
        with pytest.raises(ValueError, match="name of its own"):
            named_files(words)
    else:
        assert list(named_files(words)) == names
