"""text-metrics score: every kind of file, bad rows, and what a summary holds."""

import json
import math
import os
import random
import re
import sys

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scripts.tooling.fill import help_list, read_help
from tests.commands import results_of, score, words_of
from tests.conftest import SETS, approx, metrics_of
from tests.files import compress, read_data, read_jsonl, write_data, write_jsonl
from text_metrics import METRICS
from text_metrics.commands.score import main
from text_metrics.console import EXIT_BAD_ROWS, EXIT_IN_USE, EXIT_LIMIT, EXIT_USAGE
from text_metrics.jobs import job, scoring
from text_metrics.metrics._core.core_results import result_values

WORDS = ["the", "a", "dog", "cat", "park", "sea", "house", "runs", "walks", "sleeps", "old", "red", "small"]


def make_rows(n_rows, n_texts=3, seed=0):
    rng = random.Random(seed)
    rows = []
    for i in range(n_rows):
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(2, 6))) for _ in range(n_texts)]
        rows.append({"id": i, "texts": texts, "note": None if i % 3 else f"é{i}"})
    return rows


def outputs(folder):
    """Return the contents of what was written into a folder; of a summary, without the command."""
    contents = {path.name: path.read_bytes() for path in folder.glob("out.*") if path.is_file()}
    for name, content in contents.items():
        if "summary" in name or name.endswith(".json"):
            contents[name] = {key: value for key, value in json.loads(content).items() if key != "command"}
    return contents


def test_scores_are_those_of_one_call(load, tmp_path, capsys):
    rows = make_rows(50)
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score(data, "--set", "max_order=2") == 0
    expected = load("self_bleu").compute(predictions=[row["texts"] for row in rows], max_order=2, confidence=0.95)
    written, bad, summary = results_of(data)
    assert [row.pop("self_bleu") for row in written] == pytest.approx(expected["scores"], abs=1e-9)
    assert (written, bad) == (rows, [])
    shown = capsys.readouterr()
    assert json.loads(shown.out) == summary
    # The tests' runs are quiet.
    assert shown.err == ""
    for name, value in expected.items():
        if isinstance(value, float):
            assert summary[name] == pytest.approx(value)
    assert summary["confidence_interval"] == pytest.approx(expected["confidence_interval"])
    # The interval belongs to the summary alone, and so does not appear in the signature.
    assert summary["signature"] == load("self_bleu").compute(predictions=[rows[0]["texts"]], max_order=2)["signature"]
    counts = {"n_scores": 50, "n_texts": 150, "n_bad": 0, "n_incomplete": 0, "n_units": 50, "confidence": 0.95}
    assert {name: summary[name] for name in counts} == counts
    assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "out.jsonl", "out.jsonl.summary.json"]
    # For another level of confidence, nothing is scored again.
    before = (tmp_path / "out.jsonl").stat().st_mtime_ns
    assert score(data, "--set", "max_order=2", "--confidence", 0.5) == 0
    assert results_of(data)[2]["confidence_interval"] != summary["confidence_interval"]
    assert (tmp_path / "out.jsonl").stat().st_mtime_ns == before


@pytest.mark.parametrize("metric", metrics_of())
def test_every_metric(load, tmp_path, metric):
    rows = [{"texts": members, "people": ["a dog barks", "rain", "rain"]} for members in SETS]
    more = ["--reference-key", "people"] if metric == "probeval" else []
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score(data, *more, "--confidence", 0.8, metric=metric, size=2) == 0
    settings = {"references": [row["people"] for row in rows]} if metric == "probeval" else {}
    texts = [text for members in SETS for text in members] if metric == "gruen" else SETS
    expected = load(metric).compute(predictions=texts, **settings)
    written, _, summary = results_of(data)
    scores = [row[metric] for row in written]
    if metric == "gruen":
        assert list(map(len, scores)) == list(map(len, SETS))
        scores = [score for of_row in scores for score in of_row]
        # The texts of a row belong together.
        settings["confidence_by"] = [i for i, members in enumerate(SETS) for _ in members]
    assert scores == pytest.approx(expected["scores"], abs=1e-5)
    assert summary["signature"] == expected["signature"]
    for name, value in expected.items():
        if isinstance(value, (int, float)):
            assert summary[name] == pytest.approx(value, abs=1e-5)
    interval = load(metric).compute(predictions=texts, **settings, confidence=0.8)["confidence_interval"]
    assert (summary["confidence"], summary["n_units"]) == (0.8, len(SETS))
    assert summary["confidence_interval"] == pytest.approx(interval, abs=1e-5)


# Of each metric, calls in which each of its results occurs: settings, and columns of what is given for texts.
OF_ONE_SET = {
    "vendi_embed": [
        ({}, ()),
        ({"q": [1, 0, 2, "inf"], "pairs": True, "details": True}, ()),
        ({"kernel": "ngram", "q": [0, 1], "pairs": True, "details": True}, ()),
        ({"pairs": True}, ("quality",)),
        ({"similarity": "pairs:"}, ()),
    ],
    "chamfer_diversity": [({"details": True, "singletons": "skip"}, ("quality",)), ({"similarity": "pairs:"}, ())],
    "semantic_entropy": [({"details": True, "min_quality": 0.5}, ("quality",)), ({"estimator": "chao_shen"}, ())],
    "self_bleu": [
        ({"repetition": True, "homogenization": True, "vocabulary_size": 99}, ()),
        ({"aggregate": "sentence", "details": True, "singletons": "skip"}, ()),
        ({"aggregate": "corpus"}, ()),
    ],
    "probeval": [({"details": True}, ()), ({"unknown": "skip"}, ())],
}


def results_in_help(metric):
    """Name the results that the help of a metric promises; of a numbered series, the first."""
    heads = [line.partition("): ")[0] for line in help_list(read_help(metric), "Returns").splitlines()]
    return {name for head in heads for name in re.findall(r"(?:^- |\), )`(\w+)`", head)}


@pytest.mark.parametrize("metric", metrics_of("sets", "questions"))
def test_one_set_has_every_result_of_compute(load, tmp_path, nli_model, metric):
    texts = [f"{first} {second}" for first in WORDS[:5] for second in WORDS[4:8]]
    people = ["the dog", "a dog", "a cat runs", "the park"]
    quality = [round(0.04 * i, 2) for i in range(len(texts))]
    rows = [{"text": text, "quality": value, "people": people} for text, value in zip(texts, quality, strict=True)]
    # A row may hold several texts.
    rows[5:9] = [{"text": texts[5:9], "quality": quality[5:9], "people": people}]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    is_question = load(metric).items == "questions"
    seen = set()
    for settings, columns in OF_ONE_SET[metric]:
        given = dict(settings)
        if given.get("similarity") == "pairs:":
            given["similarity"] += nli_model
        words = [f"--setting={name}={json.dumps(value)}" for name, value in given.items()]
        words += [f"--column={name}={name}" for name in columns]
        words += ["--reference-key", "people"] if is_question else []
        assert score(data, "--one-set", "--restart", *words, metric=metric, key="text", out="out.json", size=1) == 0
        _, _, summary = results_of(data, "out.json")
        given |= {key: [quality] for key in columns}
        references = {"references": [people]} if is_question else {}
        expected = load(metric).compute(predictions=[texts], **references, **given)
        seen |= expected.keys()
        for name, value in result_values(expected):
            assert summary[name] == approx(value), (settings, name)
        assert summary["signature"] == expected["signature"]
        assert (summary["n_scores"], summary["n_texts"], summary["n_bad"]) == (1, 20, 0)
        # One score has no interval.
        assert not [name for name in summary if "confidence" in name]
        assert sorted(os.listdir(tmp_path)) == ["data.jsonl", "out.json"]
    assert results_in_help(metric) - {name for name in results_in_help(metric) if "interval" in name} <= seen


def test_the_largest_change_of_a_file_is_that_of_all_its_pieces(load, tmp_path, pair_models):
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    sets = []
    for _ in range(8):
        sets.append([" ".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(4)])
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": members} for members in sets])
    similarity = f"pairs:{pair_models['score'][0]}"
    assert score(data, "--set", f"similarity={similarity}", metric="vendi_embed", size=8) == 0
    expected = load("vendi_embed").compute(predictions=sets, similarity=similarity)
    summary = results_of(data)[2]
    # The nearest matrix of a model's similarities is found to about 1e-6.
    for name in ("similarity_change", "vendi_embed"):
        assert summary[name] == pytest.approx(expected[name], abs=1e-4)
    alone = [load("vendi_embed").compute(predictions=[members], similarity=similarity) for members in sets]
    changes = [result["similarity_change"] for result in alone]
    assert max(changes) > np.mean(changes) + 0.01


@pytest.mark.parametrize(
    ("name", "out"),
    [("data.jsonl", "out.csv"), ("data.csv", "out.parquet"), ("data.parquet", "out.parquet"), ("data", "out.jsonl")],
)
def test_rows_with_one_key_are_a_set(load, tmp_path, name, out):
    sets = [row["texts"] for row in make_rows(20, 4)]
    rows = [
        {"prompt": f"p{i}", "text": text, "n": str(j)} for i, texts in enumerate(sets) for j, text in enumerate(texts)
    ]
    data = write_data(tmp_path / name, rows)
    assert score(data, "--id-key", "prompt", key="text", out=out, size=9) == 0
    expected = load("self_bleu").compute(predictions=sets)["scores"]
    written, *_ = results_of(data, out)
    assert [row.pop("self_bleu") for row in written] == pytest.approx(expected)
    assert written == [{"prompt": f"p{i}", "text": texts, "n": list("0123")} for i, texts in enumerate(sets)]
    if out == "out.parquet":
        schema = pq.read_schema(tmp_path / out)
        assert (schema.field("text").type, schema.field("self_bleu").type) == (pa.list_(pa.string()), pa.float64())


def test_types_of_columns_are_kept(tmp_path):
    columns = {"when": pa.array([1, 2], pa.timestamp("us")), "code": pa.array(["x", "y"]).dictionary_encode()}
    table = pa.table({"texts": [["a dog", "a cat"], ["the sea", "the sea"]], **columns})
    pq.write_table(table, tmp_path / "data.parquet")
    assert score(tmp_path / "data.parquet", out="out.parquet") == 0
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.drop_columns(["self_bleu"]).to_pylist() == table.to_pylist()
    assert written.schema.field("when").type == table.schema.field("when").type


# Values of columns of JSON, in pieces of two rows, and what they are in Parquet.
COLUMNS = {
    "nothing in an object": ([{}, {}, {}], ["{}"] * 3),
    "nothing in a list of objects": ([[{}], [], [{}, {}]], ["[{}]", "[]", "[{},{}]"]),
    "an empty object between others": ([{"a": 1}, {}, {"a": 2}], [{"a": 1}, {"a": None}, {"a": 2}]),
    "an integer beyond floats, and a float": ([2**53 + 1, 1, 0.5], [str(2**53 + 1), "1", "0.5"]),
    "a float, and an integer beyond floats": ([0.5, 1, 2**53 + 1], ["0.5", "1", str(2**53 + 1)]),
    "an integer beyond any type": ([2**70, "two", None], [str(2**70), "two", None]),
    "integers and floats": ([1, 2, 0.5], [1.0, 2.0, 0.5]),
    "lists of several types": ([[1], [2], ["x"]], ["[1]", "[2]", '["x"]']),
    "nulls": ([None, None, None], [None] * 3),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_every_column_of_json_can_be_parquet(tmp_path, column):
    values, expected = COLUMNS[column]
    rows = [{**row, "mixed": value} for row, value in zip(make_rows(3), values, strict=True)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score(data, out="out.parquet", size=6) == 0
    assert [row["mixed"] for row in read_data(tmp_path / "out.parquet")] == expected


def test_lines_of_json_from_parquet_are_strict(tmp_path):
    rows = [{**row, "x": x, "in": {"y": [x]}} for row, x in zip(make_rows(3), (math.nan, math.inf, 0.5), strict=True)]
    rows[1]["texts"] = None
    assert score(write_data(tmp_path / "data.parquet", rows)) == EXIT_BAD_ROWS
    lines = [(tmp_path / name).read_text() for name in ("out.jsonl", "out.jsonl.bad.jsonl")]
    assert not any(word in text for text in lines for word in ("NaN", "Infinity"))
    assert [(row["x"], row["in"]["y"]) for row in read_jsonl(tmp_path / "out.jsonl")] == [(None, [None]), (0.5, [0.5])]


# Bad rows: the line, and a part of the error that names what was got.
BAD = {
    3: ('{"id": 3, "texts": ["a", "b"]', "JSON"),
    4: ("[1, 2]", "Got [1, 2]"),
    9: ('{"id": 9}', "'texts'"),
    10: ('{"texts": []}', "'texts'"),
    11: ('{"texts": ["a", 3]}', "Got 3"),
    12: ('{"texts": "one text"}', "--id-key"),
    13: ('{"texts": ["a", "\\ud800"]}', "JSON"),
    14: ('{"texts": ["only one"]}', "one text"),
    15: ('{"texts": 5}', "Got 5"),
    30: ("\xff not UTF-8", "JSON"),
}


def test_bad_rows_are_named_and_set_aside(load, tmp_path, capsys):
    rows = make_rows(40)
    lines = [json.dumps(row) for row in rows]
    for number, (line, _) in BAD.items():
        lines[number - 1] = line
    lines[19] = ""
    data = tmp_path / "data.jsonl"
    data.write_bytes("\n".join(lines).encode("latin-1"))
    assert score(data) == EXIT_BAD_ROWS
    written, bad, summary = results_of(data)
    assert [row["row"] for row in bad] == list(BAD)
    assert all(BAD[row["row"]][1] in row["error"] for row in bad)
    printed = capsys.readouterr().err
    assert all(f"data.jsonl, row {number}: " in printed for number in BAD)
    good = [row for i, row in enumerate(rows, 1) if i not in BAD and i != 20]
    assert [row["id"] for row in written] == [row["id"] for row in good]
    expected = load("self_bleu").compute(predictions=[row["texts"] for row in good])
    assert summary["self_bleu"] == pytest.approx(expected["self_bleu"])
    assert summary["n_bad"] == len(BAD)
    # A finished job is not repeated.
    before = (tmp_path / "out.jsonl").stat().st_mtime_ns
    assert score(data) == EXIT_BAD_ROWS
    assert (tmp_path / "out.jsonl").stat().st_mtime_ns == before


def nested(levels):
    return json.dumps({"texts": ["a", "b"]})[:-1] + ', "x": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize("kind", ["jsonl", "json"])
@pytest.mark.parametrize("levels", [99, 700, 900, 5000])
def test_a_row_that_is_nested_deeply_is_one_bad_row(tmp_path, kind, levels):
    data = tmp_path / f"data.{kind}"
    lines = [json.dumps(row) for row in make_rows(4)]
    lines[2] = nested(levels)
    data.write_text(f"[{','.join(lines)}]" if kind == "json" else "\n".join(lines))
    for out in ("out.jsonl", "out.parquet", "out.csv"):
        code = score(data, out=out)
        is_usage = (kind, levels) == ("json", 5000) and sys.version_info < (3, 13)  # the parser reads less deep
        assert code == (0 if levels < 100 else EXIT_USAGE if is_usage else 3)
        if code == EXIT_BAD_ROWS:
            _, bad, summary = results_of(data, out)
            assert ([row["row"] for row in bad], summary["n_scores"]) == ([3], 3)


@pytest.mark.parametrize("size", [2, 100])
@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ({"embeddings": [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0, 0], [0, 1.0, 0]], [[1.0], [1.0]]]}, []),
        ({"embeddings": [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0], [0, 1.0, 0]], [["x"], [None]]]}, [2, 3]),
        ({"quality": [[0.5, 10**400], [1e300, 0.5], [0.5, 0.5]]}, [1, 2]),
        ({"weights": [[0.5, 0.5], [1e300, -1e300], [0.5, {}]]}, [2, 3]),
    ],
)
def test_a_bad_value_is_a_bad_row_whatever_is_wrong(tmp_path, column, bad, size):
    """And what can be scored alone is scored, whatever is beside it: embeddings of other dimensions, too."""
    ((argument, values),) = column.items()
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": ["a", "b"], "v": value} for value in values])
    code = score(data, "--column", f"{argument}=v", metric="vendi_embed", size=size)
    assert code == (EXIT_BAD_ROWS if bad else 0)
    _, skipped, summary = results_of(data)
    assert [row["row"] for row in skipped] == bad
    assert summary["n_scores"] == len(values) - len(bad)


ODD = '["a", "b"]'


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "csv"])
def test_a_text_that_is_a_json_list_is_a_text(load, tmp_path, kind):
    """A string is parsed as a list in CSV only, and there only if the first cell is a list of texts."""
    sets = [["[1, 2]", ODD, '{"a": 1}'], [ODD, ODD, "the sea"], [ODD, "x y", "the sea"]]
    rows = [{"p": i, "text": text} for i, members in enumerate(sets) for text in members]
    data = write_data(tmp_path / f"data.{kind}", rows)
    assert score(data, "--id-key", "p", key="text") == 0
    expected = load("self_bleu").compute(predictions=sets)["scores"]
    assert [row["self_bleu"] for row in results_of(data)[0]] == pytest.approx(expected)
    if kind != "csv":
        # Without a key, it is no set either.
        assert score(data, key="text", out="sets.jsonl") == EXIT_USAGE


def test_repeated_messages_are_counted(tmp_path, capsys, monkeypatch):
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": ["a", "b"]}, *[{"texts": 5}] * 1200])
    assert score(data, size=100) == EXIT_BAD_ROWS
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) < 20
    assert any("1,190" in line for line in shown)
    assert len(results_of(data)[1]) == 1200
    # A warning of each batch, whose numbers change.
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": ["a b c", *["x"] * i]} for i in range(1, 40)])
    assert score(data, "--restart", metric="gruen", size=10) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "texts have no sentence" in line]
    # All of them are added up; pytest records the first one.
    assert len(lines) == 1
    assert "780 of 819 texts" in lines[0]
    # The numbers of batches may be the same.
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": ["x"] * 10}] * 5)
    assert score(data, "--restart", metric="gruen", size=10) == 0
    assert "50 of 50 texts" in capsys.readouterr().err


def test_bad_rows_of_csv(tmp_path, capsys):
    data = tmp_path / "data.csv"
    data.write_bytes(
        b'p,text\n1,a dog\n1,"two\nlines"\n1,b,c\n1,a cat\n2,\xff\n2,the sea\n\n2,the park\n'
        b'3,a bus\n\n3,"a\ncar"\n4,a hat\n4,a cap\n4,"open\n'
    )
    assert score(data, "--id-key", "p", key="text", size=3) == EXIT_BAD_ROWS
    # What cannot be read between the first two sets may belong to either.
    written, bad, _ = results_of(data)
    assert [row["text"] for row in written] == [["a bus", "a\ncar"]]
    errors = {row["row"]: row["error"] for row in bad}
    assert list(errors) == [2, 3, 5, 6, 7, 8, 10, 15, 16, 17]
    assert all(cause in errors[number] for number, cause in ((5, "3 fields"), (7, "UTF-8"), (17, "CSV"), (8, "row 7")))
    data.write_bytes(b"p\xff,text\n1,a\n")
    assert score(data, "--restart", key="text") == EXIT_USAGE
    assert "data.csv, line 1 " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--set", "orders=2"], "did you mean 'max_order'?"),
        (["--set", "max_order"], "--setting"),
        (["--set", "aggregate=corpus"], "aggregate"),
        (["--set", "set_size=2"], "--set-size"),
        (["--text-key", "generations"], "'generations'"),
        (["--confidence", "95"], "--confidence"),
        (["--batch-size", "0"], "--batch-size"),
        (["--out", "scores.txt"], "--out"),
        (["--reference-key", "note"], "--reference-key"),
        (["--column", "quality"], "--column"),
        (["--fail-under", "vendi=1"], "vendi: the summary has self_bleu"),
        (["--metric", "vendi_embed", "--one-set", "--out", "x.json", "--fail-over", "vendi=1"], "the summary has"),
        (["--column", "confidence_by=id"], "--cluster-key id"),
        (["--system-key", "note"], "--system-key requires --id-key"),
        (["--quality-scale", "0"], "--quality-scale"),
        (["--metric", "vendi_embed", "--set", "weights=[1]"], "--column weights=COLUMN"),
        (["--metric", "gruen", "--one-set", "--out", "x.json"], "--one-set"),
        (["--metric", "vendi_embed", "--one-set"], "--out"),
        (["--metric", "vendi_embed", "--one-set", "--out", "x.json", "--set", "q=-1"], "q must be"),
        (["--metric", "probeval"], "--reference-key"),
        (["--metric", "vendi"], "vendi_embed"),
        (["--metric", "vendi_embed", "--set", "batch_size=x"], "batch_size must be"),
    ],
)
def test_commands_that_are_wrong(tmp_path, capsys, change, message):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    assert score(data, *change) == EXIT_USAGE
    assert message in capsys.readouterr().err
    # Nothing stands in the way of the next command.
    assert os.listdir(tmp_path) == ["data.jsonl"]


def test_limits_of_the_summary(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": members} for members in SETS])
    assert score(data, "--fail-over", "self_bleu=0.99", "--fail-under", "distinct_1=0.01") == 0
    # A finished job is not repeated for other limits.
    assert score(data, "--fail-over", "distinct_1=0.01", "--fail-under", "n_texts=9") == EXIT_LIMIT == 5
    assert "--fail-over 0.01." in capsys.readouterr().err
    # A name that the summary does not have, also if the job is finished.
    assert score(data, "--fail-under", "vendi=1") == EXIT_USAGE
    assert "vendi: the summary has self_bleu" in capsys.readouterr().err
    assert score(data, "--fail-under", "self_bleu=nan") == EXIT_LIMIT
    # A number that is not there is none within the limits.
    lone = write_jsonl(tmp_path / "lone.jsonl", [{"texts": ["a b"]}])
    assert score(lone, "--set", "singletons=skip", "--fail-over", "self_bleu=0.5", out="lone.parquet") == EXIT_LIMIT
    assert pq.read_schema(tmp_path / "lone.parquet").field("self_bleu").type == pa.float64()
    with pytest.raises(SystemExit) as stop:
        score(data, "--fail-under", "self_bleu")
    assert stop.value.code == 2


def test_files_that_are_wrong(tmp_path, capsys):
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    (tmp_path / "no.csv").write_text("a,a\n1,2\n")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "old.jsonl").write_bytes(b'{"texts": ["a", "b"]}\r{"texts": ["a", "b"]}\r')
    (tmp_path / "no.json").write_text('[{"texts": ["a", "b"]},\n{"texts": ["a", ]}]')
    (tmp_path / "folder").mkdir()
    datasets.DatasetDict({"holdout": datasets.Dataset.from_list(make_rows(5))}).save_to_disk(tmp_path / "splits")
    (write_data(tmp_path / "data", make_rows(5)) / "data-00000-of-00001.arrow").write_text("{")
    write_data(tmp_path / "other.parquet", make_rows(3))
    for name, message in {
        "missing.jsonl": "does not exist",
        "no.parquet": "Parquet",
        "no.csv": "column names",
        "empty.jsonl": "no rows",
        "old.jsonl": "row 1",
        "no.json": "line 2",
        "folder": "`datasets`",
        "data": "Arrow",
        "splits": "holdout",
        "other.parquet --text-key nowhere": "'nowhere'",
    }.items():
        name, *more = name.split()
        assert score(tmp_path / name, *more) == EXIT_USAGE
        shown = capsys.readouterr().err
        assert message in shown
        assert str(tmp_path / name) in shown
    assert score(tmp_path / "splits" / "holdout") == 0
    for n in (3, 2):
        datasets.Dataset.from_list(make_rows(6)).save_to_disk(tmp_path / "again", num_shards=n)
    assert score(tmp_path / "again", "--restart") == 0
    assert len(results_of(tmp_path / "again")[0]) == 6


def test_batches_must_be_scored_alike(tmp_path, capsys):
    people = [[{"text": "a dog", "cluster": "1"}, {"text": "a cat", "cluster": "2"}], ["a dog", "a cat"]]
    rows = [{"texts": ["a dog", "the dog"], "people": people[i // 5]} for i in range(10)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = ["--reference-key", "people", "--metric", "probeval"]
    assert score(data, *words, size=5) == EXIT_USAGE
    assert "clustering" in capsys.readouterr().err
    assert score(data, *words, "--restart", "--set", "clustering=none", size=5) == 0


def test_two_processes_do_not_share_a_job(tmp_path, capsys, monkeypatch):
    data = write_jsonl(tmp_path / "data.jsonl", make_rows(5))
    done = job.Job.score_piece
    codes = []

    def meanwhile(*piece):
        monkeypatch.setattr(job.Job, "score_piece", done)
        if not codes:
            codes.extend([score(data), score(data, "--restart")])
        return done(*piece)

    monkeypatch.setattr(job.Job, "score_piece", meanwhile)
    assert score(data) == 0
    assert codes == [EXIT_IN_USE] * 2
    assert "is in use by another process" in capsys.readouterr().err


def test_a_failed_job_leaves_no_lock(tmp_path):
    """Though its traceback is kept, as Python 3.13 keeps it until the next garbage collection."""
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": 5}] * 3)
    for _ in range(2):
        with pytest.raises(ValueError, match="none of 3 rows"):
            main.__wrapped__(words_of(data, "--metric", "self_bleu"))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files(tmp_path, capsys, suffix):
    plain = write_jsonl(tmp_path / "data.jsonl", make_rows(30))
    assert score(plain, out="plain.jsonl") == 0
    data = compress(plain, suffix)
    whole = data.read_bytes()
    # Files that were compressed one by one and concatenated are one file.
    data.write_bytes(whole + whole)
    assert score(data) == 0
    assert read_jsonl(tmp_path / "out.jsonl") == read_jsonl(tmp_path / "plain.jsonl") * 2
    capsys.readouterr()
    for damaged in (whole[:-9], b"id,texts"):
        data.write_bytes(damaged)
        assert score(data, "--restart") == EXIT_USAGE
        assert f"{data} cannot be read: " in capsys.readouterr().err


def test_damaged_tables_are_named(tmp_path, capsys):
    rows = [{**row, "texts": row["texts"] * 20} for row in make_rows(40)]
    data = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pylist(rows), data, row_group_size=10)
    content = bytearray(data.read_bytes())
    # Of each damaged group one column, so that the first damage by rows is not the first by columns.
    groups = pq.ParquetFile(data).metadata
    for group, column in ((3, 0), (2, groups.num_columns - 1)):
        place = groups.row_group(group).column(column).data_page_offset
        content[place : place + 40] = bytes(40)
    data.write_bytes(content)
    for size in (7, 1000):
        assert score(data, size=size, out=f"groups{size}.jsonl") == EXIT_USAGE
        message = capsys.readouterr().err.splitlines()[-1]
        assert message.startswith(f"{data} is damaged after row 20: ")


@pytest.mark.parametrize(("n_bad", "code"), [(999, 3), (1000, 2)])
def test_many_bad_rows_and_none_that_is_good_end_the_job(tmp_path, capsys, n_bad, code):
    data = tmp_path / "data.jsonl"
    data.write_text('{"texts": []}\n' * n_bad + '{"texts": ["a", "b"]}\n' * 3)
    assert score(data, size=100) == code
    if code == EXIT_USAGE:
        assert "row 1: 'texts' is an empty list" in capsys.readouterr().err
        assert not (tmp_path / "out.jsonl.parts").exists()
    else:
        assert results_of(data)[2]["n_bad"] == n_bad


@pytest.mark.parametrize("more", [[], ["--fail-under", "n_texts=1"], ["--one-set", "--out", "x.json"]])
def test_the_metric_is_loaded_once(tmp_path, monkeypatch, more):
    loaded = []
    load_metric = scoring.load_metric
    monkeypatch.setattr(scoring, "load_metric", lambda name, **more: loaded.append(name) or load_metric(name))
    monkeypatch.chdir(tmp_path)
    assert score(write_jsonl(tmp_path / "data.jsonl", make_rows(5)), *more) == 0
    assert loaded == ["self_bleu"]


@pytest.mark.parametrize("metric", METRICS)
def test_the_settings_of_a_metric_are_listed(load, tmp_path, capsys, metric):
    with pytest.raises(SystemExit) as stop:
        score(tmp_path / "data.jsonl", "--setting", "help", metric=metric)
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"{name} (" in shown or f"`{name}`" in shown for name in load(metric).settings.declared())
