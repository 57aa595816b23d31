"""How rows become sets in `score` and `choose`: keys that come back, and bad rows, in every kind of file."""

import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.commands import choose, results_of, score
from tests.files import write_data, write_jsonl
from text_metrics.console import EXIT_BAD_ROWS, EXIT_USAGE
from text_metrics.files import sets
from text_metrics.files.columns import read_key
from text_metrics.files.rows import Row, Source

KINDS = ["data.jsonl", "data.json", "data.csv", "data.parquet", "data"]
WORDS = ["a", "dog", "cat", "park", "sea", "house", "runs", "walks", "sleeps", "old", "red", "small"]
GROUPINGS = [("--set-size", 4), ("--id-key", "prompt")]
SCORED = {"key": "text", "size": 6}


def score_sets(data, *more, **named):
    keys = SCORED | named
    return score(data, "--set", "max_order=2", *more, **keys)


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_a_key_may_be_anywhere(tmp_path, capsys, monkeypatch, name):
    """In a file of few rows; in a larger one, a key that comes back is an error before anything is scored."""
    rows = [{"prompt": f"p{i % 12}", "text": f"text {i % 5}"} for i in range(48)]
    (tmp_path / "sorted").mkdir()
    ordered = write_data(tmp_path / "sorted" / name, sorted(rows, key=lambda row: int(row["prompt"][1:])))
    data = write_data(tmp_path / name, rows)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(sets, "LARGEST_SET", 40)
    shift = name == "data.csv"
    for run, more in ((score_sets, []), (choose, ["--keep", 2])):
        assert run(data, "--id-key", "prompt", *more, **SCORED) == EXIT_USAGE
        assert f"row {13 + shift} has the 'prompt' of row {1 + shift}" in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == before
    monkeypatch.setattr(sets, "LARGEST_SET", 48)
    results = []
    for each in (ordered, data):
        assert score_sets(each, "--id-key", "prompt") == 0
        written, bad, summary = results_of(each)
        results.append((written, bad, {name: value for name, value in summary.items() if name != "command"}))
    assert results[0] == results[1]


def test_keys_are_texts():
    values = [1, 2.5, True, [1, "é"], {"b": 1, "a": 2}, "1"]
    assert [read_key({"p": value}, "p") for value in values] == ["1", "2.5", "true", '[1,"é"]', '{"a":2,"b":1}', "1"]
    assert [read_key(row, "p") for row in (None, {}, {"p": None}, {"p": ""}, {"p": float("nan")})] == [None] * 5


NOON = datetime(2024, 5, 6, 12)
SAME_KEYS = [
    (1, 1.0, "1", "1.0", Decimal("1.00")),
    (-20, -20.0, "-20", "-20.0"),
    (10**16, 1e16, "10000000000000000", "1e+16"),
    (2.5, "2.5", Decimal("2.50")),
    (1e-05, "1e-05", Decimal("0.00001")),
    (True, "true", "True"),
    (date(2024, 5, 6), datetime(2024, 5, 6), "2024-05-06", "2024-05-06 00:00:00", "2024-05-06T00:00:00.000"),
    (NOON, "2024-05-06 12:00:00", "2024-05-06T12:00", pd.Timestamp(NOON)),
    (NOON.replace(tzinfo=UTC), "2024-05-06T12:00:00Z", "2024-05-06 14:00:00+02:00"),
]


@pytest.mark.parametrize("same", SAME_KEYS)
def test_one_key_is_read_alike_whatever_its_type(same):
    assert len({read_key({"p": value}, "p") for value in same}) == 1


def test_other_keys_stay_apart():
    texts = [
        "01",
        "01.0",
        "1_0.0",
        "1.10",
        "1e1",
        "a.0",
        "0x1",
        "1_0",
        "2024",
        "2024-05",
        "20240506",
        "nan",
        "inf",
        "rue",
    ]
    values = [1, 1.1, " 1", float("inf"), float("-inf"), *texts]
    values += [same[0] for same in SAME_KEYS[1:]]
    assert len({read_key({"p": value}, "p") for value in values}) == len(values)


def test_keys_meet_between_formats(tmp_path):
    """Numbers, dates and times as pandas and pyarrow write them to CSV, JSON and Parquet."""
    frame = pd.DataFrame({"number": [1.0, 2.0, None], "day": [date(2024, 1, i) for i in (1, 2, 3)]})
    frame["time"] = [datetime(2024, 1, 1), datetime(2024, 1, 2, 12, 30), datetime(2024, 1, 3, 1, 2, 3, 500_000)]
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.astype({"day": str}).to_json(tmp_path / "a.jsonl", orient="records", lines=True, date_format="iso")
    keys = []
    for kind in ("csv", "parquet", "jsonl"):
        keys.append([[read_key(row.values, name) for name in frame] for row in Source(tmp_path / f"a.{kind}").rows()])
    assert keys[0] == keys[1] == keys[2]
    assert (keys[0][0], keys[0][2][0]) == (["1", "2024-01-01", "2024-01-01"], None)


# Bad rows.


def rows_of_equal_texts(n_sets, bad, size=4):
    """Make sets of equal texts, one wording a set; a set that mixes two prompts would be seen in its score."""
    rows = [{"prompt": f"p{i}", "text": f"{WORDS[i % 12]} number {i}"} for i in range(n_sets) for _ in range(size)]
    for i in bad:
        rows[i]["text"] = None
    return rows


def rows_of_texts(n_sets, bad):
    """Make sets of four different texts."""
    rows = rows_of_equal_texts(n_sets, bad)
    return [{**row, "text": row["text"] and f"{row['text']} {WORDS[i % 4]}"} for i, row in enumerate(rows)]


KINDS_GROUPED = [(name, GROUPINGS[1]) for name in KINDS]
KINDS_GROUPED += [(name, GROUPINGS[0]) for name in ("data.jsonl", "data.csv")]


@pytest.mark.parametrize(("name", "grouping"), KINDS_GROUPED)
def test_a_bad_row_makes_its_own_set_bad(tmp_path, name, grouping):
    rows = rows_of_equal_texts(20, bad=[1, 31, 33])
    if name == "data.csv" and "--id-key" in grouping:
        # Without a key, the row at the end of a set may be one of the next set.
        rows[31]["text"] = rows[30]["text"]
        rows[30]["text"] = None
    data = write_data(tmp_path / name, rows)
    assert score_sets(data, *grouping) == EXIT_BAD_ROWS
    scored, bad, summary = results_of(data)
    assert [row["self_bleu"] for row in scored] == pytest.approx([1.0] * 17)
    whole = [rows[4 * i : 4 * i + 4] for i in range(20) if i not in (0, 7, 8)]
    for row, members in zip(scored, whole, strict=True):
        assert row["text"] == [member["text"] for member in members]
    shift = name == "data.csv"
    bad_numbers = [*range(1, 5), *range(29, 37)]
    assert [row["row"] for row in bad] == [number + shift for number in bad_numbers]
    assert (summary["n_bad"], summary["n_incomplete"], summary["n_texts"]) == (12, 3, 68)
    assert summary["self_bleu_2"] == pytest.approx(1)
    assert re.findall(r"\d+", bad[0]["error"])[:3] == [str(number + shift) for number in (1, 4, 2)]


MISSING = [(options, None) for options in (*GROUPINGS, ("--one-set",))]
MISSING += [(GROUPINGS[1], value) for value in ("good", 1.5, True, "")]


@pytest.mark.parametrize(("options", "value"), MISSING)
def test_a_missing_quality_is_that_of_its_row_only(tmp_path, options, value):
    rows = [{**row, "id": i, "q": 0.5} for i, row in enumerate(rows_of_texts(5, bad=[]))]
    rows[6]["q"] = value
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose(data, *options, "--keep", 20, "--column", "quality=q", **SCORED) == EXIT_BAD_ROWS
    chosen, bad, summary = results_of(data)
    assert chosen == [row for row in rows if row["id"] != 6]
    assert [row["row"] for row in bad] == [7]
    assert "'q'" in bad[0]["error"]
    assert (summary["n_texts"], summary["n_bad"]) == (19, 1)
    assert summary["n_incomplete"] == (options != ("--one-set",))


def test_rows_of_groups_hold_one_text(tmp_path):
    rows = [{"p": 0, "text": text} for text in ("a dog", ["a cat", "the sea"], "a red house")]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose(data, "--id-key", "p", "--keep", 3, **SCORED) == EXIT_BAD_ROWS
    chosen, bad, _ = results_of(data)
    assert chosen == [rows[0], rows[2]]
    assert "['a cat', 'the sea']" in bad[0]["error"]


def test_one_set_is_not_read_beyond_what_memory_holds(monkeypatch):
    monkeypatch.setattr(sets, "LARGEST_SET", 5)
    rows = iter([Row(number, {"text": ["a", "b", "c"]}) for number in (1, 2, 3)])
    source = SimpleNamespace(path="data", has_cells=False, rows=lambda: rows)
    with pytest.raises(ValueError, match="at most 5"):
        next(sets.Reader(sets.Keys("text", is_one_set=True), True).units(source))
    assert [row.number for row in rows] == [3]


def test_lines_of_csv_that_cannot_be_counted_end_set_size(tmp_path, capsys):
    rows = [f"p{i // 4},text {i // 4}" for i in range(40)]
    rows[5:9] = ['p1,"text', "p1,text 1", "p1,text 1", 'p2,te"xt']
    data = tmp_path / "data.csv"
    data.write_text("prompt,text\n" + "\n".join(rows))
    assert score_sets(data, "--set-size", 4) == EXIT_USAGE
    assert "data.csv, lines 7 to 10 " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
    assert score_sets(data, "--id-key", "prompt", "--restart") == EXIT_BAD_ROWS
    scored, bad, _ = results_of(data)
    assert [row["prompt"] for row in scored] == ["p0", *(f"p{i}" for i in range(3, 10))]
    assert [row["row"] for row in bad] == [6, 7, 11, 12, 13]


def test_a_set_that_cannot_be_scored_is_named_with_all_its_rows(tmp_path):
    matrix = []
    for i in range(4):
        matrix.append([float(i == j) for j in range(4)])
    rows = [{**row, "similar": matrix[i % 4]} for i, row in enumerate(rows_of_equal_texts(4, bad=[]))]
    rows[6]["similar"] = [0, 0, 7, 0]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = ["--id-key", "prompt", "--column", "similarity=similar"]
    assert score(data, *words, metric="vendi_embed", key="text") == EXIT_BAD_ROWS
    scored, bad, summary = results_of(data)
    assert [row["vendi_embed"] for row in scored] == pytest.approx([4] * 3)
    assert [row["row"] for row in bad] == [5, 6, 7, 8]
    assert all("rows 5 to 8" in row["error"] for row in bad)
    assert (summary["n_bad"], summary["n_texts"]) == (4, 12)


def test_one_row_of_a_set_has_its_reference(load, tmp_path):
    """A set is bad if the references of its rows differ, or if none has one."""
    people = [["a dog", "a dog", "a cat"], ["the sea", "rain", "rain"]]
    rows = [{"q": i, "text": text, "people": people[i % 2]} for i in range(4) for text in ("a dog", "rain", "rain")]
    rows[0]["people"] = rows[9]["people"] = rows[10]["people"] = rows[11]["people"] = None
    rows[7]["people"] = people[1]
    del rows[4]["people"]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = ["--reference-key", "people", "--id-key", "q"]
    assert score(data, *words, metric="probeval", key="text") == EXIT_BAD_ROWS
    written, bad, _ = results_of(data)
    expected = load("probeval").compute(predictions=[["a dog", "rain", "rain"]] * 2, references=people)["scores"]
    assert [row["probeval"] for row in written] == pytest.approx(expected)
    assert [row["row"] for row in bad] == list(range(7, 13))
    assert all("'people'" in row["error"] for row in bad)


# Any order of good, bad, blank and keyless rows.


def drawn_rows(rng, n_rows):
    rows = []
    key = 0
    for number in range(1, n_rows + 1):
        key += rng.random() < 0.4
        kind = rng.choices(["good", "bad", "keyless", "unreadable"], [12, 2, 1, 1])[0]
        values = {"p": None if kind == "keyless" else key, "text": None if kind == "bad" else f"text {number}"}
        rows.append(Row(number, None, "is not valid JSON") if kind == "unreadable" else Row(number, values))
    return rows


def expected_sets(rows, mode):
    """Find the sets and whether each is whole, by an obvious rule: each row without a key marks both its neighbours."""
    if mode == "size":
        sets = [rows[i : i + 3] for i in range(0, len(rows), 3)]
        expected = []
        for members in sets:
            is_good = all(row.values and row.values["text"] for row in members)
            expected.append((members, len(members) == 3 and is_good))
        return expected
    keyed = [row for row in rows if row.values and row.values["p"] is not None]
    expected = []
    for key in dict.fromkeys(row.values["p"] for row in keyed):
        members = [row for row in keyed if row.values["p"] == key]
        first = rows.index(members[0])
        last = rows.index(members[-1])
        span = rows[max(0, first - 1) : last + 2]
        is_whole = all(row.values and row.values["p"] is not None for row in span)
        expected.append((members, is_whole and all(row.values["text"] for row in members)))
    return expected


@pytest.mark.parametrize("mode", ["size", "key"])
@pytest.mark.parametrize("chooses", [False, True])
def test_every_row_has_one_place(mode, chooses):
    keys = sets.Keys("text", size=3) if mode == "size" else sets.Keys("text", id="p")
    reader = sets.Reader(keys, True, chooses=chooses)
    n_whole = n_short = 0
    for seed in range(80):
        rows = drawn_rows(random.Random(seed), 25)
        units = list(reader.units(SimpleNamespace(path="data", has_cells=False, rows=lambda rows=rows: iter(rows))))
        expected = expected_sets(rows, mode)
        whole = [[row.number for row in members] for members, is_whole in expected if is_whole]
        assert [[row.number for row in unit.rows] for unit in units if unit.rows and not unit.is_incomplete] == whole
        n_whole += len(whole)
        n_short += len(expected) - len(whole)
        # Each set that lacks a row is counted once.
        assert sum(unit.is_incomplete for unit in units) == len(expected) - len(whole)
        # Each row is scored, or bad: once; a choice goes on with all good rows.
        good = {row.number for row in rows if row.values and row.values["text"]}
        if mode == "key":
            good = {row.number for row in rows if row.number in good and row.values["p"] is not None}
        named = [row.number for unit in units for row in unit.rows]
        bad = [row.number for unit in units for row in unit.bad]
        assert sorted(named + bad) == [row.number for row in rows]
        assert set(named) == good if chooses else set(named) <= good
    assert min(n_whole, n_short) > 80
