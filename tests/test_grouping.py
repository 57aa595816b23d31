"""How rows become sets in `score` and `choose`: keys that come back, and bad rows, in every kind of file."""

import csv
import json
import random
import shlex

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files import compress, read_jsonl, write_jsonl
from text_metrics.commands.choose import main as choose
from text_metrics.commands.jobs.grouping import Reader
from text_metrics.commands.jobs.rows import Row, Source
from text_metrics.commands.score import main as score
from text_metrics.commands.score.main import parse_command

KINDS = ["jsonl", "json", "csv", "parquet", "folder"]
WORDS = ["a", "dog", "cat", "park", "sea", "house", "runs", "walks", "sleeps", "old", "red", "small"]


def write_data(folder, kind, rows):
    if kind == "json":
        (folder / "data.json").write_text(json.dumps(rows))
    elif kind == "csv":
        # A row without a text lacks the field, so that its key cannot be read either.
        lines = [[value for value in row.values() if value is not None] for row in rows]
        with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(rows[0]), *lines])
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "data.parquet", row_group_size=7)
    elif kind == "folder":
        datasets.Dataset.from_list(rows).save_to_disk(folder / "data")
    else:
        write_jsonl(folder / "data.jsonl", rows)
    return folder / ("data" if kind == "folder" else f"data.{kind}")


def score_words(data, *more, size=6):
    words = [data, "--metric", "self_bleu", "--text-key", "text", "--out", data.parent / "out.jsonl"]
    return [str(word) for word in [*words, "--batch-size", size, "--set", "max_order=2", "--quiet", *more]]


def choose_words(data, *more, size=6):
    words = [data, "--text-key", "text", "--out", data.parent / "out.jsonl", "--batch-size", size, "--quiet", *more]
    return [str(word) for word in words]


def results_of(data):
    bad = data.parent / "out.jsonl.bad.jsonl"
    summary = json.loads((data.parent / "out.jsonl.summary.json").read_text())
    return read_jsonl(data.parent / "out.jsonl"), read_jsonl(bad) if bad.exists() else [], summary


# Keys that come back.


def sampled(n_prompts, n_samples):
    rng = random.Random(0)
    return {f"p{i}": [" ".join(rng.choices(WORDS, k=5)) for _ in range(n_samples)] for i in range(n_prompts)}


def in_rounds(sets):
    return [{"prompt": prompt, "text": own[i]} for i in range(4) for prompt, own in sets.items()]


def in_shards(sets):
    return [
        {"prompt": prompt, "text": text}
        for half in (slice(2), slice(2, None))
        for prompt, own in sets.items()
        for text in own[half]
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [in_rounds, in_shards])
def test_a_key_that_comes_back_is_refused_and_the_advice_helps(load, tmp_path, capsys, kind, order):
    sets = sampled(12, 4)
    data = write_data(tmp_path, kind, order(sets))
    before = sorted(tmp_path.iterdir())
    choosing = choose_words(data, "--group-key", "prompt", "--keep", 4)
    again = (13 if order is in_rounds else 25) + (kind == "csv")
    for main, words in ((score.main, score_words(data, "--group-key", "prompt")), (choose.main, choosing)):
        assert main(words) == score.EXIT_USAGE
        message = capsys.readouterr().err
        assert f"'prompt' is 'p0' in row {1 + (kind == 'csv')}, and again in row {again}, after other rows" in message
        # Nothing was scored, and nothing stands in the way of the next command.
        assert sorted(tmp_path.iterdir()) == before
    code = shlex.split(message.splitlines()[-1])
    assert code[:2] == ["python", "-c"]
    if kind == "jsonl":
        # The last line need not end.
        data.write_text(data.read_text().rstrip())
    exec(code[2])
    (ordered,) = set(tmp_path.iterdir()) - set(before)
    assert score.main(score_words(ordered, "--group-key", "prompt")) == 0
    rows, _, summary = results_of(ordered)
    expected = load("self_bleu").compute(predictions=list(sets.values()), max_order=2)
    assert {row["prompt"]: set(row["text"]) for row in rows} == {name: set(own) for name, own in sets.items()}
    assert summary["self_bleu_2"] == pytest.approx(expected["self_bleu_2"])
    assert summary["signature"] == expected["signature"]
    for name in ("out.jsonl", "out.jsonl.summary.json"):
        (tmp_path / name).unlink()
    assert choose.main(choose_words(ordered, "--group-key", "prompt", "--keep", 1)) == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 12


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
def test_the_advice_changes_no_cell_of_csv(tmp_path, capsys, compression):
    cells = ["007", "", "NA", "null", "1.50", 'a "quoted"\nline', "True", "é, x"]
    rows = [{"prompt": f"0{i % 2}", "text": cell} for i, cell in enumerate(cells)]
    data = write_data(tmp_path, "csv", rows)
    if compression:
        data = compress(data, compression)
    assert score.main(score_words(data, "--group-key", "prompt")) == score.EXIT_USAGE
    exec(shlex.split(capsys.readouterr().err.splitlines()[-1])[2])
    with (tmp_path / "data.sorted.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == sorted(rows, key=lambda row: row["prompt"])


@pytest.mark.parametrize("value", ["1", 1, 1.0])
def test_keys_of_several_types_are_one_key(tmp_path, capsys, value):
    rows = [{"p": key, "text": "a dog"} for key in (1, value, "2", "2")]
    assert score.main(score_words(write_jsonl(tmp_path / "data.jsonl", rows), "--group-key", "p")) == 0
    assert [len(row["text"]) for row in results_of(tmp_path / "data.jsonl")[0]] == [2, 2]
    data = write_jsonl(tmp_path / "again.jsonl", [*rows, {"p": value, "text": "a cat"}])
    assert score.main([*score_words(data, "--group-key", "p"), "--restart"]) == score.EXIT_USAGE
    assert "'p' is '1' in row 1, and again in row 5" in capsys.readouterr().err


def test_keys_are_texts():
    values = [1, 2.5, True, [1, "é"], {"b": 1, "a": 2}, "", "1"]
    found = [keys.read_key({"p": value}, "p") for value in values]
    assert found == ["1", "2.5", "true", '[1, "é"]', '{"a": 2, "b": 1}', "", "1"]
    assert [keys.read_key(row, "p") for row in (None, {}, {"p": None}, {"p": float("nan")})] == [None] * 4


@pytest.mark.parametrize("first_look", [1, 2, 1000])
def test_equal_digests_are_not_yet_equal_keys(tmp_path, monkeypatch, first_look):
    monkeypatch.setattr(keys, "_FIRST_LOOK", first_look)
    monkeypatch.setattr(keys, "_digest", lambda key: len(key))
    rows = [{"p": f"{i:03d}", "text": "a"} for i in range(9) for _ in range(2)]
    source = Source(write_jsonl(tmp_path / "data.jsonl", rows), None)
    keys.check_adjacent(source, "p", quiet=True)
    source = Source(write_jsonl(tmp_path / "data.jsonl", [*rows, rows[4]]), None)
    with pytest.raises(keys.UsageError, match="'p' is '002' in row 5, and again in row 19"):
        keys.check_adjacent(source, "p", quiet=True)


def test_keys_are_read_once_for_a_job_that_is_resumed(tmp_path, monkeypatch):
    rows = [{"p": i // 3, "text": f"a {WORDS[i % 12]} dog"} for i in range(36)]
    rows[4]["text"] = None
    for name in ("once", "stopped"):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "data.jsonl", rows)
    once, stopped = (tmp_path / name / "data.jsonl" for name in ("once", "stopped"))
    assert score.main(score_words(once, "--group-key", "p")) == score.EXIT_BAD_ROWS
    append, check = Store.append, keys.check_adjacent
    calls = []

    def stop(self, *more):
        append(self, *more)
        raise KeyboardInterrupt

    monkeypatch.setattr(job_files, "check_adjacent", lambda *more: (calls.append(more), check(*more)))
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", stop)
        for _ in range(3):
            assert score.main(score_words(stopped, "--group-key", "p")) == score.EXIT_INTERRUPTED
    assert score.main(score_words(stopped, "--group-key", "p")) == score.EXIT_BAD_ROWS
    assert len(calls) == 1
    expected, found = results_of(once), results_of(stopped)
    assert [summary.pop("command") for *_, summary in (expected, found)]
    assert found == expected


# Bad rows.


def rows_of_equal_texts(n_sets, bad, size=4):
    """Make sets of equal texts, one wording a set; a set that mixes two prompts would be seen in its score."""
    rows = [{"prompt": f"p{i}", "text": f"{WORDS[i % 12]} number {i}"} for i in range(n_sets) for _ in range(size)]
    for i in bad:
        rows[i]["text"] = None
    return rows


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", [("--set-size", 4), ("--group-key", "prompt")])
@pytest.mark.parametrize("drop", [False, True])
def test_a_bad_row_makes_its_own_set_bad(tmp_path, kind, grouping, drop):
    rows = rows_of_equal_texts(20, bad=[1, 31, 33])
    data = write_data(tmp_path, kind, rows)
    more = ["--drop-incomplete"] if drop else []
    assert score.main(score_words(data, *grouping, *more)) == score.EXIT_BAD_ROWS
    scored, bad, summary = results_of(data)
    assert [row["self_bleu"] for row in scored] == pytest.approx([1.0] * 17)
    assert [row["text"] for row in scored] == [
        [row["text"] for row in rows[4 * i : 4 * i + 4]] for i in range(20) if i not in (0, 7, 8)
    ]
    own = [2, 32, 34] if drop else [*range(1, 5), *range(29, 37)]
    shift = kind == "csv"
    assert [row["row"] for row in bad] == [number + shift for number in own]
    assert (summary["n_bad"], summary["n_incomplete"], summary["n_dropped"]) == (len(own), 3, 9 if drop else 0)
    assert summary["n_texts"] + summary["n_bad"] + summary["n_dropped"] == len(rows)
    assert summary["self_bleu_2"] == pytest.approx(1)
    if not drop:
        assert f"rows {1 + shift} to {4 + shift}, because of row {2 + shift}: " in bad[0]["error"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grouping", [("--set-size", 4), ("--group-key", "prompt")])
@pytest.mark.parametrize("drop", [False, True])
def test_a_choice_goes_on_without_a_bad_row(tmp_path, kind, grouping, drop):
    rows = [
        {"id": str(i), **row, "q": "0.9" if i % 4 else "1"} for i, row in enumerate(rows_of_equal_texts(10, bad=[1]))
    ]
    data = write_data(tmp_path, kind, rows)
    words = choose_words(
        data, *grouping, "--keep", 3, "--column", "quality=q", *(["--drop-incomplete"] if drop else [])
    )
    assert choose.main(words) == score.EXIT_BAD_ROWS
    chosen, bad, summary = results_of(data)
    assert [row["row"] for row in bad] == [2 + (kind == "csv")]
    first = [] if drop else ["0", "2", "3"]
    assert [row["id"] for row in chosen] == first + [str(i) for i in range(4, 40) if i % 4 < 3]
    counts = {"n_groups": 9 if drop else 10, "n_bad": 1, "n_incomplete": 1, "n_dropped": 3 if drop else 0}
    assert {name: summary[name] for name in counts} == counts
    assert summary["n_texts"] + summary["n_bad"] + summary["n_dropped"] == len(rows)


@pytest.mark.parametrize("value", [None, "good", 1.5, True, ""])
@pytest.mark.parametrize("options", [("--group-key", "prompt"), ("--set-size", 4), ("--one-set",)])
def test_a_missing_quality_is_that_of_its_row_only(tmp_path, options, value):
    rows = [{**row, "id": i, "q": 0.5} for i, row in enumerate(rows_of_equal_texts(5, bad=[]))]
    rows[6]["q"] = value
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose.main(choose_words(data, *options, "--share", 1, "--column", "quality=q")) == score.EXIT_BAD_ROWS
    chosen, bad, summary = results_of(data)
    assert chosen == [row for row in rows if row["id"] != 6]
    assert [row["row"] for row in bad] == [7]
    problem = (
        "has no 'q', the column of quality" if value in (None, "") else "'q' must be a number in [0, 1], for quality"
    )
    assert problem in bad[0]["error"]
    assert (summary["n_texts"], summary["n_bad"]) == (19, 1)
    assert summary["n_incomplete"] == (options != ("--one-set",))


def test_rows_of_groups_hold_one_text(tmp_path):
    rows = [{"p": 0, "text": text} for text in ("a dog", ["a cat", "the sea"], "a red house")]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose.main(choose_words(data, "--group-key", "p", "--keep", 3)) == score.EXIT_BAD_ROWS
    chosen, bad, _ = results_of(data)
    assert chosen == [rows[0], rows[2]]
    assert bad[0]["error"] == "'text' must be one text in a row of a group. Got list ['a cat', 'the sea']"


@pytest.mark.parametrize("main", ["score", "choose"])
@pytest.mark.parametrize("drop", [False, True])
def test_rows_that_are_left_over(tmp_path, main, drop):
    data = write_jsonl(tmp_path / "data.jsonl", rows_of_equal_texts(6, bad=[])[:22])
    more = ["--set-size", 4, *(["--drop-incomplete"] if drop else [])]
    if main == "score":
        code = score.main(score_words(data, *more))
    else:
        code = choose.main(choose_words(data, *more, "--keep", 3))
    written, bad, summary = results_of(data)
    assert code == (0 if drop else score.EXIT_BAD_ROWS)
    assert (summary["n_incomplete"], summary["n_dropped"]) == (1, 2 if drop else 0)
    assert [row["row"] for row in bad] == ([21, 22] if main == "score" and not drop else [])
    assert len(written) == (5 if main == "score" else 15 if drop else 17)


def test_a_row_without_a_key_may_belong_to_both_sets_beside_it(tmp_path):
    rows = rows_of_equal_texts(8, bad=[])
    lines = [json.dumps(row) for row in rows]
    lines[3] = '{"text": "a key is missing"}'
    lines[9] = "no JSON"
    lines[31] = '{"prompt": null, "text": "a key is null"}'
    data = tmp_path / "data.jsonl"
    data.write_text("\n\n".join(lines))
    # Each row is on an odd line.
    assert score.main(score_words(data, "--group-key", "prompt")) == score.EXIT_BAD_ROWS
    scored, bad, summary = results_of(data)
    assert [row["prompt"] for row in scored] == ["p3", "p4", "p5", "p6"]
    assert [row["row"] for row in bad] == [2 * i + 1 for i in [*range(12), *range(28, 32)]]
    assert bad[4]["error"] == "is set aside with its set, rows 9 to 15, because of row 7: has no 'prompt': it has text"
    assert (summary["n_incomplete"], summary["n_bad"]) == (4, 16)


def test_lines_of_csv_that_cannot_be_counted_end_set_size(tmp_path, capsys):
    rows = [f"p{i // 4},text {i // 4}" for i in range(40)]
    rows[5:9] = ['p1,"text', "p1,text 1", "p1,text 1", 'p2,te"xt']
    data = tmp_path / "data.csv"
    data.write_text("prompt,text\n" + "\n".join(rows))
    assert score.main(score_words(data, "--set-size", 4)) == score.EXIT_USAGE
    message = capsys.readouterr().err
    assert "data.csv, lines 7 to 10 cannot be read: the first is not valid CSV" in message
    assert not (tmp_path / "out.jsonl").exists()
    assert score.main(score_words(data, "--group-key", "prompt", "--restart")) == score.EXIT_BAD_ROWS
    scored, bad, _ = results_of(data)
    assert [row["prompt"] for row in scored] == ["p0", *(f"p{i}" for i in range(3, 10))]
    assert [row["row"] for row in bad] == [6, 7, 11, 12, 13]


def test_a_set_that_cannot_be_scored_is_named_with_all_its_rows(tmp_path):
    rows = rows_of_equal_texts(4, bad=[])
    matrix = [[float(i == j) for j in range(4)] for i in range(4)]
    rows = [{**row, "similar": matrix[i % 4]} for i, row in enumerate(rows)]
    rows[6]["similar"] = [0, 0, 7, 0]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = [*score_words(data, "--group-key", "prompt", "--column", "similarity=similar"), "--metric", "vendi_embed"]
    del words[words.index("max_order=2") - 1 : words.index("max_order=2") + 1]
    assert score.main(words) == score.EXIT_BAD_ROWS
    scored, bad, summary = results_of(data)
    assert [row["vendi_embed"] for row in scored] == pytest.approx([4] * 3)
    assert [row["row"] for row in bad] == [5, 6, 7, 8]
    assert all("its set, rows 5 to 8, cannot be scored: " in row["error"] for row in bad)
    assert (summary["n_bad"], summary["n_incomplete"]) == (4, 0)


def test_good_rows_of_a_bad_set_are_no_sign_of_wrong_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_HOPELESS_ROWS", 20)
    data = write_jsonl(tmp_path / "data.jsonl", rows_of_equal_texts(3, bad=[7], size=30))
    assert score.main(score_words(data, "--group-key", "prompt")) == score.EXIT_BAD_ROWS
    assert results_of(data)[2]["n_bad"] == 30


@pytest.mark.parametrize("main", [score.main, choose.main])
def test_drop_incomplete_needs_sets_of_rows(tmp_path, capsys, main):
    data = write_jsonl(tmp_path / "data.jsonl", [{"text": ["a", "b"]}])
    words = score_words(data) if main is score.main else choose_words(data, "--keep", 1)
    assert main([*words, "--drop-incomplete"]) == score.EXIT_USAGE
    assert "--drop-incomplete requires --group-key or --set-size" in capsys.readouterr().err


# References.

PEOPLE = [["a dog", "a dog", "a cat"], ["the sea", "rain", "rain"]]


def probeval_words(data, *more):
    words = [data, "--metric", "probeval", "--text-key", "text", "--reference-key", "people", "--quiet", *more]
    return [str(word) for word in words]


def test_one_row_of_a_set_has_its_reference(load, tmp_path):
    rows = [{"q": i, "text": text, "people": PEOPLE[i]} for i in range(2) for text in ("a dog", "rain", "rain")]
    rows[0]["people"] = None
    rows[4] = {"q": 1, "text": "rain"}
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score.main(probeval_words(data, "--group-key", "q", "--out", tmp_path / "out.jsonl")) == 0
    expected = load("probeval").compute(predictions=[["a dog", "rain", "rain"]] * 2, references=PEOPLE)["scores"]
    assert [row["probeval"] for row in results_of(data)[0]] == pytest.approx(expected)


def test_references_of_a_set_that_differ_or_are_missing(tmp_path):
    rows = [{"q": i, "text": text, "people": PEOPLE[0]} for i in range(3) for text in ("a dog", "rain")]
    rows[1]["people"] = PEOPLE[1]
    rows[4]["people"] = rows[5]["people"] = None
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = probeval_words(data, "--group-key", "q", "--out", tmp_path / "out.jsonl")
    assert score.main(words) == score.EXIT_BAD_ROWS
    scored, bad, _ = results_of(data)
    assert [row["q"] for row in scored] == [1]
    errors = {row["row"]: row["error"] for row in bad}
    assert list(errors) == [1, 2, 5, 6]
    assert errors[2] == "'people' is not that of row 1, in the same set"
    assert errors[5] == "has no 'people'"


# Any order of good, bad, blank and keyless rows.


def drawn_rows(rng, n_rows):
    rows, key = [], 0
    for number in range(1, n_rows + 1):
        key += rng.random() < 0.4
        kind = rng.choices(["good", "bad", "keyless", "unreadable", "blank"], [12, 2, 1, 1, 1])[0]
        values = {"p": None if kind == "keyless" else key, "text": None if kind == "bad" else f"text {number}"}
        if kind in ("unreadable", "blank"):
            rows.append(Row(number, None, "is not valid JSON" if kind == "unreadable" else "", ""))
        else:
            rows.append(Row(number, values, "", ""))
    return rows


def expected_sets(rows, mode):
    """Find the sets and whether each is whole, by an obvious rule: each row without a key marks both its neighbours."""
    rows = [row for row in rows if not row.is_blank]
    if mode == "size":
        sets = [rows[i : i + 3] for i in range(0, len(rows), 3)]
        return [(own, len(own) == 3 and all(row.values and row.values["text"] for row in own)) for own in sets]
    keyed = [row for row in rows if row.values and row.values["p"] is not None]
    found = []
    for key in dict.fromkeys(row.values["p"] for row in keyed):
        own = [row for row in keyed if row.values["p"] == key]
        first, last = rows.index(own[0]), rows.index(own[-1])
        span = rows[max(0, first - 1) : last + 2]
        is_whole = all(row.values and row.values["p"] is not None for row in span)
        found.append((own, is_whole and all(row.values["text"] for row in own)))
    return found


@pytest.mark.parametrize("mode", ["size", "key"])
@pytest.mark.parametrize("policy", ["bad", "drop", "keep"])
def test_every_row_has_one_place_and_a_restart_changes_nothing(mode, policy):
    words = ["data.jsonl", "--metric", "self_bleu", "--text-key", "text"]
    words += ["--set-size", "3"] if mode == "size" else ["--group-key", "p"]
    words += ["--drop-incomplete"] * (policy == "drop")
    reader = Reader(parse_command(words), "sets", keeps_incomplete=policy == "keep")
    n_whole = n_short = 0
    for seed in range(300):
        rows = drawn_rows(random.Random(seed), 25)
        units = list(reader.units(iter(rows), 0))
        sets = expected_sets(rows, mode)
        whole = [[row.number for row in own] for own, is_whole in sets if is_whole]
        assert [unit.numbers for unit in units if unit.rows and not unit.is_incomplete] == whole
        assert sum(unit.is_incomplete for unit in units) == len(sets) - len(whole)
        n_whole, n_short = n_whole + len(whole), n_short + len(sets) - len(whole)
        # Each row is scored, bad, set aside with its set, or dropped with it: once.
        good = {row.number for row in rows if row.values and row.values["text"] and row.values["p"] is not None}
        if mode == "size":
            good |= {row.number for row in rows if row.values and row.values["text"]}
        named = [number for unit in units for number in unit.numbers]
        spoiled = [row.number for unit in units for row in unit.excluded]
        bad = [row.number for unit in units for row in unit.bad]
        assert sorted(bad) == [row.number for row in rows if not row.is_blank and row.number not in good]
        assert len(set(named + spoiled)) == len(named + spoiled)
        assert set(named + spoiled) <= good
        assert len(named) + len(spoiled) + sum(unit.n_dropped for unit in units) == len(good)
        # A job that is resumed after any unit goes on with the next.
        for i, unit in enumerate(units):
            assert list(reader.units(iter(rows[unit.end :]), unit.end)) == units[i + 1 :]
    assert min(n_whole, n_short) > 300
