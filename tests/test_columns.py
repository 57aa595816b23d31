"""--column of score, compare and choose: arguments that are given for sets or texts, from columns of files."""

import json
import os
from itertools import chain, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import results_of, run_command, score
from tests.conftest import SETS
from tests.files import write_data, write_jsonl
from text_metrics import METRICS
from text_metrics.console import EXIT_BAD_ROWS, EXIT_USAGE
from text_metrics.files.columns import OPTIONS
from text_metrics.metrics._core.core_settings import CALL
from text_metrics.scorer import Scorer
from text_metrics.training.common import read_metric

PEOPLE = [[{"text": "a dog", "cluster": "c0"}, {"text": "the sea", "cluster": "c1"}]] * len(SETS)


def pytest_generate_tests(metafunc):
    if "argument" in metafunc.fixturenames:
        from text_metrics import load

        pairs = [
            (name, argument)
            for name in METRICS
            for argument, declared in load(name).settings.declared().items()
            if declared.given != CALL
            and argument not in ("confidence_by", "contexts", "context_embeddings", "quality", "labels")
        ]
        metafunc.parametrize(("name", "argument"), pairs, ids=["-".join(pair) for pair in pairs])


def values_for(argument, declared, sets):
    """Valid values of an argument for each set, as its declaration says."""
    rng = np.random.default_rng(0)
    if declared.given == "item":
        return ["abba" if i % 2 else "cab" for i in range(len(sets))]
    if declared.given == "pair of texts":
        return [np.eye(len(members)).tolist() for members in sets]
    if argument == "embeddings":
        return [rng.normal(size=(len(members), 3)).tolist() for members in sets]
    if declared.numbers:
        sign = 1 if declared.numbers[1] > 0 else -1
        return [[sign / len(members)] * len(members) for members in sets]
    labels = {text: f"c{i % 2}" for i, text in enumerate(dict.fromkeys(chain.from_iterable(sets)))}
    values = []
    for members in sets:
        values.append([labels[text] for text in members])
    return values


def as_words(settings, columns):
    words = [f"--setting={name}={json.dumps(value)}" for name, value in settings.items()]
    return words + [f"{OPTIONS.get(name, f'--column={name}')}={column}" for name, column in columns.items()]


def of_single_texts(rows, keys):
    """One row for each text of a set, with the key of its set."""
    singles = []
    for i, row in enumerate(rows):
        for j in range(len(row["texts"])):
            values = {name: value[j] if name in keys else value for name, value in row.items()}
            singles.append({"key": f"k{i}", **values})
    return singles


@pytest.mark.filterwarnings("ignore:people's clusters are not used")
@pytest.mark.parametrize("kind", ["csv", "parquet", "single.csv"])
def test_a_column_is_the_argument(load, tmp_path, name, argument, kind):
    metric = load(name)
    declared = metric.settings.declared()[argument]
    sets = [members for members in SETS if len(members) > 2]
    values = values_for(argument, declared, sets)
    settings = {"same": 0.5} if name == "semantic_entropy" and argument == "embeddings" else {}
    given = {argument: list(chain.from_iterable(values)) if argument == "embeddings" else values}
    rows = [{"texts": members, "v": value} for members, value in zip(sets, values, strict=True)]
    more = []
    if metric.items == "questions":
        given["references"] = PEOPLE[: len(sets)]
        rows = [{**row, "people": people} for row, people in zip(rows, PEOPLE, strict=False)]
        more = ["--reference-key", "people"]
    expected = metric.compute(predictions=sets, **given, **settings)
    if kind.startswith("single"):
        rows = of_single_texts(rows, {"texts"} if declared.given == "item" else {"texts", "v"})
        more += ["--id-key", "key"]
    data = write_data(tmp_path / f"data.{kind}", rows)
    assert score(data, *more, *as_words(settings, {argument: "v"}), metric=name, size=5) == 0
    written, _, summary = results_of(data)
    assert [row[name] for row in written] == pytest.approx(expected["scores"], abs=1e-9)
    assert summary["signature"] == expected["signature"]
    for key, value in expected.items():
        if isinstance(value, float):
            assert summary[key] == pytest.approx(value, abs=1e-9)
    for result in metric.item_results:
        if result.name in expected:
            assert [row[result.name] for row in written] == expected[result.name]


CLASSES = {"patience": 0.8}


@pytest.mark.parametrize(("source", "out"), [("data.jsonl", "out.parquet"), ("data.parquet", "out.csv")])
def test_all_results_of_items_are_columns(load, tmp_path, source, out):
    rows = []
    for i, members in enumerate(SETS + SETS[::-1]):
        rewards = [round(0.9 - 0.2 * j, 3) for j in range(len(members))]
        rows.append({"prompt": f"p{i // 2}", "texts": members, "reward": rewards})
    data = write_data(tmp_path / source, rows)
    columns = {"quality": "reward", "confidence_by": "prompt"}
    assert score(data, *as_words(CLASSES, columns), metric="semantic_entropy", out=out, size=5) == 0
    metric = load("semantic_entropy")
    given = {"quality": [row["reward"] for row in rows], "predictions": [row["texts"] for row in rows]}
    by_prompt = {"confidence": 0.95, "confidence_by": [row["prompt"] for row in rows]}
    expected = metric.compute(**(given | CLASSES | by_prompt))
    written, _, summary = results_of(data, out)
    intervals = [f"{name}confidence_interval" for name in ("", "n_classes_", "utility_")]
    for key in ("utility", "n_classes", "semantic_entropy", *intervals):
        assert summary[key] == pytest.approx(expected[key])
    assert summary["n_units"] == 5
    for name in ("n_classes_scores", "utility_scores"):
        assert [row[name] for row in written] == expected[name]
    if out.endswith("parquet"):
        assert pq.read_schema(tmp_path / out).field("utility_scores").type == pa.float64()


# What is changed in a good row, and a part of the error that says what was got.
BAD = [
    ({"reward": None}, "has no 'reward'"),
    ({"reward": [0.5]}, "Got 1 of them"),
    ({"reward": 0.5}, "Got 0.5"),
    ({"reward": [0.5, 2, 0.5, 0.5]}, "--quality-scale 5"),
    ({"reward": [0.5, 99, 0.5, 0.5]}, "--quality-scale 100"),
    ({"reward": [0.5, 101, 0.5, 0.5]}, "Got 101"),
    ({"reward": [0.5, -1, 0.5, 0.5]}, "Got -1"),
    ({"reward": "[0.5, 0.5, 0.5, 0.5]"}, "Got '[0.5, 0.5, 0.5, 0.5]'"),
    ({"reward": [0.5, None, 0.5, 0.5]}, "Got None"),
    ({"share": [0.5] * 4}, "weights must sum to 1"),
    ({"label": ["a", "b", True, "a"]}, "Got True"),
    ({"prompt": None}, "has no 'prompt'"),
]


def test_rows_without_a_valid_value_are_set_aside(tmp_path, capsys):
    good = {"texts": SETS[0], "reward": [0.5] * 4, "share": [0.25] * 4, "label": list("abab"), "prompt": "p"}
    rows = [good]
    rows += [good | change for change, _ in BAD]
    rows.append(good | {"prompt": 3})
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    columns = {"quality": "reward", "weights": "share", "classes": "label", "confidence_by": "prompt"}
    assert score(data, *as_words(CLASSES, columns), metric="semantic_entropy", size=8) == EXIT_BAD_ROWS
    written, bad, _ = results_of(data)
    assert [row["row"] for row in bad] == list(range(2, len(BAD) + 2))
    for row, (_, message) in zip(bad, BAD, strict=True):
        assert message in row["error"]
    assert f"data.jsonl, row 2: {BAD[0][1]}" in capsys.readouterr().err
    assert len(written) == 2


def test_a_column_that_is_a_result_is_an_error(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": members, "n_code": "mine"} for members in SETS[:2]])
    assert score(data, metric="gruen") == EXIT_USAGE
    assert "row 1 has a column 'n_code' already" in capsys.readouterr().err


def test_quality_of_another_scale(load, tmp_path):
    rows = []
    for i, members in enumerate(SETS):
        rows.append({"texts": members, "q": [(i + j) % 10 for j in range(len(members))]})
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score(data, "--column", "quality=q", metric="vendi_embed") == EXIT_USAGE
    assert score(data, "--column", "quality=q", "--quality-scale", 10, metric="vendi_embed") == 0
    quality = []
    for row in rows:
        quality.append([value / 10 for value in row["q"]])
    expected = load("vendi_embed").compute(predictions=SETS, quality=quality)
    written, *_ = results_of(data)
    assert [row["quality_scores"] for row in written] == pytest.approx(expected["quality_scores"])
    # The column itself stays what it was.
    assert [row["q"] for row in written] == [row["q"] for row in rows]


CONTEXTS = ["Describe a dog in a park.", None, "", "What do you like?", "Say something about doors."]


@pytest.mark.parametrize(
    ("name", "kind"), [("vendi_embed", "jsonl"), ("chamfer_diversity", "csv"), ("semantic_entropy", "single.parquet")]
)
def test_contexts_are_those_of_sets(load, tmp_path, name, kind):
    rows = [{"texts": members, "c": context or ""} for members, context in zip(SETS, CONTEXTS, strict=True)]
    more = ["--context-key", "c"]
    if kind.startswith("single"):
        rows = of_single_texts(rows, {"texts"})
        more = [*more, "--id-key", "key"]
    data = write_data(tmp_path / f"data.{kind}", rows)
    assert score(data, *more, metric=name, size=6) == 0
    expected = load(name).compute(predictions=SETS, contexts=CONTEXTS)
    written, _, summary = results_of(data)
    assert [row[name] for row in written] == pytest.approx(expected["scores"], abs=1e-5)
    assert summary["signature"] == expected["signature"]


# What names a column, by the commands that have it.
NAMING = {
    "score data --metric vendi_embed": "context-key cluster-key id-key column=quality column=weights",
    "score data --metric vendi_embed --id-key id": "context-key cluster-key system-key",
    "choose data --keep 1": "context-key id-key column=quality",
    "choose data --keep 1 --id-key id": "system-key",
    "compare data data --metric vendi_embed --id-key id": "context-key cluster-key id-key column=quality",
    "report data --id-key id": "context-key id-key system-key",
}


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("command", NAMING)
def test_a_name_that_no_row_has_is_an_error(tmp_path, monkeypatch, capsys, command, kind):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"p{i}", "texts": members, "m": {"c": "a"}} for i, members in enumerate(SETS)]
    data = write_data(Path(f"data.{kind}"), rows)
    words = [data if word == "data" else word for word in f"{command} --text-key texts".split()]
    for option, key in product(NAMING[command].split(), ("kye", "m.kye")):
        assert run_command(monkeypatch, *words, f"--{option}={key}") == EXIT_USAGE
        shown = capsys.readouterr().err
        assert all(part in shown for part in (option.removeprefix("column="), repr(key), "id, texts, m")), shown
        assert os.listdir() == [data.name]


def test_context_embeddings_are_a_column(load, tmp_path):
    rng = np.random.default_rng(0)
    embeddings = [rng.normal(size=(len(members), 3)).tolist() for members in SETS]
    vectors = rng.normal(size=(len(SETS), 3)).tolist()
    rows = [{"texts": texts, "e": e, "v": v} for texts, e, v in zip(SETS, embeddings, vectors, strict=True)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert score(data, *as_words({}, {"embeddings": "e", "context_embeddings": "v"}), metric="vendi_embed", size=5) == 0
    expected = load("vendi_embed").compute(predictions=SETS, embeddings=embeddings, context_embeddings=vectors)
    assert [row["vendi_embed"] for row in results_of(data)[0]] == pytest.approx(expected["scores"])


@pytest.mark.parametrize("value", ["a:b", "nli:", "reward"])
def test_what_names_no_model_of_pairs_is_a_value_of_texts_for_all(value, tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": ["a", "b"]}])
    assert score(data, "--setting", f"similarity={value}", metric="vendi_embed") == EXIT_USAGE
    assert "similarity is per pair of texts" in capsys.readouterr().err
    with pytest.raises(ValueError, match=f"has no {value!r}"):
        Scorer("vendi_embed", "texts", similarity=value)({"texts": [["a", "b"]]})
    with pytest.raises(ValueError, match=r"^similarity must be matrices"):
        read_metric("vendi_embed", {"similarity": value}, "a trainer")


def test_a_model_of_pairs_is_one_for_all():
    settings = {"similarity": "nli:some/model"}
    assert Scorer("vendi_embed", "texts", **settings)({"texts": [[]]})["vendi_embed"].tolist() == pytest.approx(
        [np.nan], nan_ok=True
    )
    read_metric("vendi_embed", settings, "a trainer")
