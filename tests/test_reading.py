"""What commands read of a folder or pattern, and what they leave: their own files, other formats, hidden files."""

import csv
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chat_server import serve
from tests.files import compress, read_data, write_data, write_jsonl
from text_metrics.files.listing import data_files, named_files
from text_metrics.files.rows import Source
from text_metrics.files.written import find_writer

ROWS = [{"id": f"p{i}", "text": f"the {word} is {i}"} for i in range(4) for word in ("dog", "old cat", "red sea")]
BLEU = ("--metric", "self_bleu", "--setting", "max_order=2")
BY_ID = ("--id-key", "id", "--text-key", "text")
BLEU_BY_ID = BLEU + BY_ID


@pytest.fixture
def run(run):
    """Run commands in a folder with a/data.jsonl."""
    Path("a").mkdir()
    write_jsonl(Path("a/data.jsonl"), ROWS)
    return run


def pairs_of(folder):
    pair = {"set1": ["a dog", "a cat"], "set2": ["the sea", "rain"], "llm_diversity": 0, "src": "x"}
    return write_jsonl(folder / "pairs.jsonl", [{**pair, "set2": ["the sea", f"rain {i}"]} for i in range(4)])


def scored(out, *more):
    return lambda run: run("score", "a/data.jsonl", *BLEU_BY_ID, "--out", f"a/{out}", *more)


def scored_with_bad_rows(run):
    write_jsonl(Path("x.jsonl"), [*ROWS, {"id": "p9", "text": 5}])
    return run("score", "x.jsonl", *BLEU_BY_ID, "--out", "a/out.jsonl")


def compared(run):
    return run("compare", "a/data.jsonl", "a/data.jsonl", *BLEU_BY_ID, "--out", "a/compared.json")


def rated(run):
    with serve(lambda question, number: "Yes") as server:
        chat = ("--model", "m", "--base-url", server.url)
        return run("rate-quality", "a/data.jsonl", "--out", "a/rated.jsonl", *chat)


def asked(run):
    write_jsonl(Path("questions.jsonl"), [{"id": "q", "question": "Name a pet."}])
    with serve(lambda question, number: "a dog") as server:
        chat = ("--model", "m", "--base-url", server.url, "--samples", "2")
        return run("probe", "ask", "questions.jsonl", "--out", "a/asked.jsonl", *chat)


def killed(run):
    """A job that was killed before its summary."""
    code = run("score", "a/data.jsonl", *BLEU_BY_ID, "--out", "a/out.jsonl")
    Path("a/out.jsonl.parts").mkdir()
    command = json.loads(Path("a/out.jsonl.summary.json").read_text())["command"]
    Path("a/out.jsonl.parts/job.json").write_text(json.dumps({"command": command}))
    Path("a/out.jsonl.summary.json").unlink()
    return code


def evaluated(run):
    return run("meta-eval", pairs_of(Path()), "--no-gruen", "--out", "a")


def chosen(run):
    return run("choose", "a/data.jsonl", *BY_ID, "--keep", "2", "--out", "a/chosen.jsonl")


# What writes into the folder `a`, and the names of what it writes.
WRITERS = {
    "score, JSON lines": (scored("out.jsonl"), {"out.jsonl", "out.jsonl.summary.json"}),
    "score, CSV": (scored("out.csv"), {"out.csv", "out.csv.summary.json"}),
    "score, Parquet": (scored("out.parquet"), {"out.parquet", "out.parquet.summary.json"}),
    "score, bad rows": (scored_with_bad_rows, {"out.jsonl", "out.jsonl.summary.json", "out.jsonl.bad.jsonl"}),
    "score, killed": (killed, {"out.jsonl"}),
    "compare": (compared, {"compared.json"}),
    "rate-quality": (rated, {"rated.jsonl"}),
    "probe ask": (asked, {"asked.jsonl"}),
    "choose": (chosen, {"chosen.jsonl", "chosen.jsonl.summary.json"}),
    "meta-eval": (evaluated, {"agreement.csv", "signatures.csv"}),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_commands_wrote_is_no_data_of_a_folder_or_pattern(run, name):
    write, names = WRITERS[name]
    code, _, shown = write(run)
    assert code in (0, 3), shown
    assert names <= {path.name for path in Path("a").iterdir()}
    if name == "rate-quality":
        # Who names it reads it.
        rated_rows = [row.values for row in Source(Path("a/rated.jsonl")).rows()]
        assert [row["quality"] for row in rated_rows] == [1.0] * len(ROWS)
    for path in (Path("a"), Path("a/*.*"), Path("*/*")):
        assert data_files(path) == [Path("a/data.jsonl")]
    assert list(named_files(["a/*.json*"])) == ["data"]
    # A file of that name that somebody else wrote is data.
    for each in names:
        Path("b").mkdir(exist_ok=True)
        write_data(Path("b") / each, ROWS)
        assert find_writer(Path("b") / each) is None
        assert data_files(Path(f"b/{each}"[:-1] + "?")) == [Path("b") / each]


def test_scores_beside_the_data_change_no_number(run):
    """Of any command that reads the folder or the pattern; and the line that says what was read names them."""
    shutil.copytree("a", "clean")
    write_jsonl(Path("a/other.jsonl"), [{**row, "text": f"{row['text']} and more"} for row in ROWS])
    shutil.copy("a/other.jsonl", "clean")
    code, _, shown = run("score", "a/data.jsonl", "--metric", "self_bleu", *BY_ID)
    assert code == 0, shown
    numbers = {}
    for path in ("clean/*.jsonl", "a/*.jsonl", "a"):
        code, out, shown = run("score", path, *BLEU_BY_ID, "--out", f"{Path(path).parts[0]}.jsonl", "--restart")
        assert code == 0, shown
        numbers[path] = {name: value for name, value in json.loads(out).items() if name != "command"}
        assert "2 files, 24 rows" in shown
        assert ("data.jsonl.self_bleu.jsonl" in shown) == (path != "clean/*.jsonl")
    assert numbers["clean/*.jsonl"] == numbers["a/*.jsonl"] == numbers["a"]
    # A shell writes out a pattern: the scores of a file are no other system.
    names = sorted(map(str, Path("a").iterdir()))
    assert len(names) == 4
    assert list(named_files(names)) == list(named_files(["a/*.jsonl"])) == ["data", "other"]


def test_what_a_user_names_is_read(run):
    """Scores and chosen texts are data for who names them; a summary and skipped rows never are."""
    scored("out.jsonl")(run)
    words = ("compare", "a/data.jsonl", "a/out.jsonl", *BLEU_BY_ID)
    code, out, shown = run(*words)
    assert (code, "equal 4 times" in out) == (0, True), shown
    assert "a/out.jsonl was written by text-metrics score" in shown
    code, _, shown = run("score", "a/out.jsonl.summary.json", *BLEU)
    assert (code, "a/out.jsonl.summary.json" in shown) == (2, True)
    Path("a/data.jsonl").unlink()
    code, _, shown = run("score", "a/*.jsonl", *BLEU)
    assert (code, "out.jsonl" in shown) == (2, True)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a/*.jsonl", "a/all.jsonl.self_bleu.jsonl"),
        ("a/d*", "a/d.self_bleu.jsonl"),
        ("*/data.jsonl", "data.jsonl.self_bleu.jsonl"),
        ("a/[a-z]*_1.csv", "a/1.csv.self_bleu.csv"),
        ("run-*/x_?.jsonl.gz", "run-x.jsonl.self_bleu.jsonl"),
    ],
)
def test_the_output_of_a_pattern_has_a_name_of_its_own(run, pattern, name):
    if not list(Path().glob(pattern)):
        path = Path(pattern.replace("*", "z").replace("?", "z").replace("[a-z]", "z").removesuffix(".gz"))
        path.parent.mkdir(exist_ok=True)
        write_data(path, ROWS)
        if pattern.endswith(".gz"):
            compress(path, ".gz")
    code, _, shown = run("score", pattern, *BLEU_BY_ID)
    assert code == 0, shown
    assert Path(name).is_file(), shown
    assert not [path for path in Path().rglob("*") if "*" in path.name]
    # It reads the same files again.
    before = Path(name).stat().st_mtime_ns
    assert run("score", pattern, *BLEU_BY_ID)[0] == 0
    assert Path(name).stat().st_mtime_ns == before


def test_a_file_of_a_pattern_is_never_replaced(run):
    before = Path("a/data.jsonl").read_bytes()
    code, _, shown = run("score", "a/*.jsonl", *BLEU_BY_ID, "--out", "a/data.jsonl", "--restart")
    assert (code, "which is read" in shown) == (2, True)
    assert Path("a/data.jsonl").read_bytes() == before


def test_every_command_says_what_it_read(run):
    """In one line, with the number of files and rows, and what is ignored."""
    write_jsonl(Path("a/more.jsonl"), ROWS[:3])
    Path("a/.hidden.jsonl").write_text("{}")
    pairs = pairs_of(Path())
    write_jsonl(Path("people.jsonl"), [{"id": "q", "answers": ["dog", "cat"]}])
    for words, expected in {
        ("score", "a", *BLEU_BY_ID): ("2 files, 15 rows", ".hidden.jsonl"),
        ("choose", "a/*.jsonl", *BY_ID, "--keep", "1"): ("2 files, 15 rows",),
        ("compare", "a/data.jsonl", "a/data.jsonl", *BLEU_BY_ID): ("a/data.jsonl, 12 rows",),
        ("report", "a/data.jsonl", *BY_ID, "--quality", "none"): ("a/data.jsonl, 12 rows",),
        ("meta-eval", pairs, "--no-gruen"): ("pairs.jsonl, 4 rows",),
        ("probe", "annotators", "people.jsonl"): ("people.jsonl, 1 row.",),
    }.items():
        code, _, shown = run(*words)
        assert code == 0, shown
        lines = [line for line in shown.splitlines() if line.startswith("Read ")]
        assert len(lines) == 1, shown
        assert all(part in lines[0] for part in expected), shown


def test_a_folder_of_several_formats_names_what_it_leaves(run):
    write_data(Path("a/more.csv"), ROWS)
    Path("a/.hidden.jsonl").write_text('{"id": 1, "text": "x"}\n')
    Path("a/sub").mkdir()
    write_jsonl(Path("a/sub/b.jsonl"), ROWS)
    code, _, shown = run("score", "a", *BLEU_BY_ID)
    assert code == 0, shown
    (line,) = (line for line in shown.splitlines() if line.startswith("Read "))
    assert "a/data.jsonl, 12 rows" in line
    assert all(name in line for name in ("more.csv", ".hidden.jsonl", "sub/"))
    Path("a/data.jsonl").unlink()
    assert data_files(Path("a")) == [Path("a/more.csv")]


def test_each_file_of_a_pattern_is_parsed_by_its_own_format(run):
    """A text of JSON lines that is a JSON list is a text; in CSV it is a list, if the first cell of its file is."""
    odd = '["a", "b"]'
    Path("m").mkdir()
    write_jsonl(Path("m/a.jsonl"), [{"id": 1, "text": odd}, {"id": 1, "text": "c d"}])
    for name, cells in (("b.csv", [odd, "a text", '["c", "d"]']), ("c.csv", ["a text", odd])):
        with Path("m", name).open("w", newline="") as file:
            csv.writer(file).writerows([("id", "text"), *((name, cell) for cell in cells)])
    write_data(Path("m/d.parquet"), [{"id": "p", "text": "e"}, {"id": "p", "text": odd}])
    code, _, shown = run("score", "m/*", *BLEU_BY_ID, "--out", "out.jsonl", "--restart")
    assert code == 0, shown
    assert "4 files, 9 rows" in shown
    n_texts = json.loads(Path("out.jsonl.summary.json").read_text())["n_texts"]
    # Two of JSON lines, five of the first CSV file, two of the second, two of Parquet.
    assert n_texts == 11


def test_folders_that_hive_wrote_are_read_with_their_columns(run):
    for day, model in (("2024-05-06", "7"), ("2024-05-07", "8"), ("__HIVE_DEFAULT_PARTITION__", "8")):
        folder = Path("hive", f"day={day}", f"model={model}")
        folder.mkdir(parents=True)
        write_data(folder / "part.parquet", ROWS[:3])
        (folder / "_metadata.parquet").write_bytes(b"none")
        (folder / ".hidden.parquet").write_bytes(b"none")
    for path in (Path("hive"), Path("hive/day=*/model=*/*t.parquet")):
        rows = [row.values for row in Source(path).rows()]
        assert [(row["day"], row["model"]) for row in rows[::3]] == [("2024-05-06", 7), ("2024-05-07", 8), (None, 8)]
        assert [row["text"] for row in rows[:3]] == [row["text"] for row in ROWS[:3]]
    code, _, shown = run("score", "hive", *BLEU, "--text-key", "text", "--id-key", "model", "--out", "out.parquet")
    assert code == 0, shown
    assert "3 files, 9 rows" in shown
    assert [(row["model"], len(row["text"])) for row in read_data(Path("out.parquet"))] == [(7, 3), (8, 6)]


LISTS = pa.list_(pa.string())
# Of two files: the types of a column, or None if a file lacks it, and the values of both.
SCHEMAS = {
    "null": (pa.string(), pa.null(), ["x", None]),
    "large": (pa.string(), pa.large_string(), ["x", "y"]),
    "lists": (LISTS, pa.large_list(pa.large_string()), [["x"], ["y"]]),
    "empty lists": (pa.list_(pa.null()), LISTS, [[], ["y"]]),
    "int32": (pa.int32(), pa.int64(), [1, 2**40]),
    "float": (pa.int64(), pa.float64(), [1.0, 0.5]),
    "categories": (pa.dictionary(pa.int32(), pa.string()), pa.string(), ["x", "y"]),
    "missing": (pa.string(), None, ["x", None]),
    "one more": (None, pa.string(), [None, "x"]),
}


@pytest.mark.parametrize("case", SCHEMAS)
@pytest.mark.parametrize("nullable", [True, False])
def test_shards_of_different_schemas_are_one_table(run, case, nullable):
    Path("shards").mkdir()
    *kinds, values = SCHEMAS[case]
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        columns = {"text": pa.array([["a dog", "a cat"]]), "n": pa.array([number])}
        fields = {"text": columns["text"].type, "n": columns["n"].type}
        if kind is not None:
            columns["x"] = pa.array([value], kind)
            fields["x"] = kind
        names = list(fields)[:: 1 if number else -1]
        schema = pa.schema([pa.field(name, fields[name], nullable or name != "x" or value is None) for name in names])
        pq.write_table(pa.table({name: columns[name] for name in names}, schema=schema), f"shards/{number}.parquet")
    rows = [row.values for row in Source(Path("shards")).rows()]
    assert [(row["n"], row["x"]) for row in rows] == list(enumerate(values))
    assert all(type(row["x"]) is type(value) for row, value in zip(rows, values, strict=True))
    assert [row.values["x"] for row in Source(Path("shards")).rows("x")] == values
    code, _, shown = run("score", "shards", *BLEU, "--text-key", "text", "--out", "out.parquet")
    assert code == 0, shown
    assert [row["x"] for row in read_data(Path("out.parquet"))] == values


def test_columns_that_cannot_be_one_are_named(run):
    Path("shards").mkdir()
    for number, value in enumerate(("x", 1)):
        write_data(Path(f"shards/{number}.parquet"), [{"text": ["a", "b"], "ok": 1, "mark": value}])
    code, _, shown = run("score", "shards", *BLEU, "--text-key", "text")
    assert code == 2
    assert all(part in shown for part in ("'mark'", "string", "int64", "0.parquet", "1.parquet"))
