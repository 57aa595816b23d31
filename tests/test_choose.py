"""text-metrics choose: the greedy choice, the files, and going on after a kill."""

import csv
import itertools
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.conftest import SETS
from tests.files import read_jsonl, write_jsonl
from tests.references import diversity
from text_metrics.commands.choose import main as choose
from text_metrics.commands.choose.greedy import choose as choose_greedily
from text_metrics.commands.choose.greedy import subset_score
from text_metrics.metrics._core.core_inputs import content_ranks


def plain_greedy(similarities, quality, keep, ranks):
    """Add the text with the highest score of the whole subset, one after the other."""
    chosen = []
    for _ in range(keep):
        rest = [i for i in np.argsort(ranks, kind="stable").tolist() if i not in chosen]
        scores = [
            round(subset_score(similarities[np.ix_(own, own)], quality[own]), 12)
            for own in ([*chosen, i] for i in rest)
        ]
        chosen.append(rest[int(np.argmax(scores))])
    return chosen


@pytest.mark.parametrize("with_quality", [False, True])
def test_the_choice_equals_the_plain_loop(rng, with_quality):
    sizes = np.array([6, 1, 6, 9, 3])
    keep = np.array([3, 1, 3, 4, 0])
    vectors = rng.standard_normal((25, 4))
    vectors[1] = vectors[0]
    quality = rng.random(25) if with_quality else np.ones(25)
    ranks = rng.permutation(25)
    found = choose_greedily(vectors, quality, sizes, keep, ranks)
    for start, size, k, places in zip(np.cumsum(sizes) - sizes, sizes, keep, found, strict=True):
        part = slice(start, start + size)
        assert places.tolist() == plain_greedy(diversity.cosines(vectors[part]), quality[part], k, ranks[part])


def test_the_score_is_quality_times_vendi(rng):
    vectors, quality = rng.standard_normal((5, 3)), rng.random(5)
    expected = quality.mean() * diversity.vendi(vectors, 2)
    assert subset_score(diversity.cosines(vectors), quality) == pytest.approx(expected)


def test_the_choice_is_near_the_best_on_small_groups(rng):
    shares = []
    for _ in range(40):
        vectors, quality = rng.standard_normal((9, 4)) + 0.7, rng.random(9)
        similarities = diversity.cosines(vectors)
        (own,) = choose_greedily(vectors, quality, np.array([9]), np.array([4]), np.arange(9))
        parts = [list(own), *map(list, itertools.combinations(range(9), 4))]
        scores = [subset_score(similarities[np.ix_(part, part)], quality[part]) for part in parts]
        shares.append(scores[0] / max(scores[1:]))
    assert max(shares) <= 1 + 1e-12
    assert np.mean(shares) > 0.95
    assert min(shares) > 0.8


def test_of_equal_texts_one_is_chosen():
    texts = ["a", "a", "b", "b"]
    vectors = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    (own,) = choose_greedily(vectors, np.ones(4), np.array([4]), np.array([2]), content_ranks(texts))
    assert [texts[i] for i in own] == ["a", "b"]


ROWS = [
    {"prompt": i, "answer": text, "reward": (3 * i + j) % 4 / 4}
    for i, members in enumerate(SETS)
    for j, text in enumerate(members)
]


def run(data, *more, key="answer", out="out.jsonl"):
    words = [data, "--text-key", key, "--out", data.parent / out, "--quiet", *more]
    return choose.main([str(word) for word in words])


def summary_of(data, out="out.jsonl"):
    return json.loads((data.parent / f"{out}.summary.json").read_text())


def test_rows_of_groups(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert run(data, "--id-key", "prompt", "--keep", 2) == 0
    rows = read_jsonl(tmp_path / "out.jsonl")
    assert [row["prompt"] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert all(row in ROWS for row in rows)
    assert [ROWS.index(row) for row in rows] == sorted(ROWS.index(row) for row in rows)
    assert len({row["answer"] for row in rows if row["prompt"] == 2}) == 2  # "She sings." comes twice
    summary = summary_of(data)
    assert summary == json.loads(capsys.readouterr().out)
    assert (summary["n_groups"], summary["n_texts"], summary["n_chosen"]) == (5, 15, 10)
    assert 1 < summary["random_score"] < summary["chosen_score"] <= 2
    assert summary["model"].startswith("all-MiniLM-L6-v2@")
    assert not (tmp_path / "out.jsonl.parts").exists()


def test_rows_of_lists(tmp_path):
    rows = [{"answers": members, "q": [0.9] * len(members), "id": i} for i, members in enumerate(SETS)]
    rows[0]["q"] = [0.9, 0.9, 0.0, 0.9]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert run(data, "--keep", 3, "--column", "quality=q", key="answers") == 0
    found = read_jsonl(tmp_path / "out.jsonl")
    assert found[0] == {"answers": [SETS[0][0], SETS[0][1], SETS[0][3]], "q": [0.9, 0.9, 0.9], "id": 0}
    assert [row["answers"] for row in found[1:3]] == SETS[1:3]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_columns_that_are_parallel_to_the_texts_are_shortened(tmp_path, kind):
    rows = [
        {
            "answers": members,
            "label": [f"{i}.{j}" for j in range(len(members))],
            "nested": [[j] for j in range(len(members))],
        }
        for i, members in enumerate(SETS)
    ]
    rows = [{**row, "more": ["x"] * 9, "one": '["a", "b", "c"]', "id": i} for i, row in enumerate(rows)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    if kind != "jsonl":
        import pandas as pd

        frame = pd.DataFrame(rows)
        if kind == "csv":
            lists = ["answers", "label", "nested", "more"]
            frame[lists] = frame[lists].map(json.dumps)
            frame.to_csv(data.with_suffix(".csv"), index=False)
        else:
            frame.to_parquet(data.with_suffix(".parquet"))
        data = data.with_suffix(f".{kind}")
    assert run(data, "--keep", 2, key="answers") == 0
    for row, original in zip(read_jsonl(tmp_path / "out.jsonl"), rows, strict=True):
        row = {name: json.loads(cell) if kind == "csv" and name != "one" else cell for name, cell in row.items()}
        places = [original["label"].index(label) for label in row["label"]]
        assert len(places) == 2
        assert row["answers"] == [original["answers"][i] for i in places]
        assert row["nested"] == [[i] for i in places]
        assert row["more"] == original["more"]
        if kind != "csv":
            # A string that is a JSON list is a string.
            assert row["one"] == original["one"]


def test_all_rows_are_one_group(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert run(data, "--one-set", "--keep", 5, "--column", "quality=reward", out="out.csv") == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert summary_of(data, "out.csv")["n_groups"] == 1
    assert np.mean([float(row["reward"]) for row in rows]) > np.mean([row["reward"] for row in ROWS])


def test_other_files_give_the_same(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    run(data, "--set-size", 5, "--keep", 2, "--column", "quality=reward")
    expected = read_jsonl(tmp_path / "out.jsonl")
    import pyarrow as pa

    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "data.parquet")
    run(tmp_path / "data.parquet", "--set-size", 5, "--keep", 2, "--column", "quality=reward", out="out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected
    with (tmp_path / "data.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    run(tmp_path / "data.csv", "--set-size", 5, "--keep", 2, "--column", "quality=reward", out="from_csv.jsonl")
    assert [row["answer"] for row in read_jsonl(tmp_path / "from_csv.jsonl")] == [row["answer"] for row in expected]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", 0), "--keep"),
        (("--keep", 1, "--column", "weights=reward"), "--column weights"),
        (("--keep", 1, "--set", "q=2"), "'q'"),
        (("--keep", 1, "--batch-size", 0), "--batch-size"),
    ],
)
def test_errors_name_the_option(tmp_path, capsys, options, message):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert run(data, "--id-key", "prompt", *options) == 2
    assert message in capsys.readouterr().err
