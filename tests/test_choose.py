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
from text_metrics.commands.choose import greedy
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


@pytest.mark.discrete
@pytest.mark.parametrize("kind", ["ones", "random", "copies", "few directions"])
@pytest.mark.parametrize("min_distance", [0.0, 0.5])
def test_a_large_group_is_chosen_from_as_a_small_one(rng, monkeypatch, kind, min_distance):
    """By bounds, where not all sums are computed at each step: the same choices, in the same order."""
    n, keep = 900, 200
    vectors = rng.standard_normal((n, 6)) + 0.4
    vectors = vectors[rng.integers(100, size=n)] if kind == "copies" else vectors
    vectors = np.eye(6)[rng.integers(6, size=n)] if kind == "few directions" else vectors
    quality = rng.integers(5, size=n) / 4 if kind in ("random", "few directions") else np.ones(n)
    arguments = (vectors, quality, np.array([n]), np.array([keep]), rng.permutation(n), min_distance)
    found = []
    for rows in (n, 8, 100):
        monkeypatch.setattr(greedy, "_LAZY_ROWS", rows)
        found.append(choose_greedily(*arguments)[0].tolist())
    assert found[0] == found[1] == found[2]
    cosines = diversity.cosines(vectors[found[0]]) - 2 * np.eye(len(found[0]))
    if min_distance:
        assert cosines.max() <= 1 - min_distance + 1e-6
        # Only what is too near is left.
        left = np.setdiff1d(np.arange(n), found[0])
        nearest = diversity.cosines(vectors)[np.ix_(left, found[0])].max(axis=1)
        assert len(found[0]) == keep or nearest.min() > 1 - min_distance - 1e-6
    else:
        assert len(found[0]) == keep


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
    # Of equal texts, one is a candidate.
    assert [row["answers"] for row in found[1:3]] == [SETS[1], SETS[2][1:]]


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


def test_equal_texts_are_merged(tmp_path):
    """Of equal ones, the first of the best quality is a candidate, whatever else is in the row."""
    texts = ["a dog", "the sea", "a dog", "a dog", "the sea"]
    rows = [{"t": text, "q": q, "i": i} for i, (text, q) in enumerate(zip(texts, [0.5, 1, 0.9, 0.9, 1], strict=True))]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    for keep in ("all", 4):
        words = ["--one-set", "--keep", keep, "--column", "quality=q", "--restart"]
        assert run(data, *words, key="t") == 0
        assert [row["i"] for row in read_jsonl(tmp_path / "out.jsonl")] == [1, 2]
        summary = summary_of(data)
        assert (summary["n_texts"], summary["n_merged"], summary["n_chosen"]) == (5, 3, 2)


def test_near_duplicates_are_removed(load, tmp_path):
    texts = [*SETS[0], "The couple take their dog to a park.", "Cats sleep on the sofa.", *SETS[1], "A DOG BARKS."]
    data = write_jsonl(tmp_path / "data.jsonl", [{"t": text, "q": i / 10} for i, text in enumerate(texts)])
    words = ["--one-set", "--keep", "all", "--min-distance", 0.3, "--column", "quality=q"]
    assert run(data, *words, key="t") == 0
    stay = [row["t"] for row in read_jsonl(tmp_path / "out.jsonl")]
    details = load("chamfer_diversity").compute(predictions=[stay], details=True)["details"][0]
    assert min(details["distances"]) >= 0.3
    # Of two that are near, the one of higher quality stays; what is removed is near to one that stays.
    assert texts[0] not in stay
    assert texts[4] in stay
    for text in set(texts) - set(stay):
        assert load("chamfer_diversity").compute(predictions=[[text, other] for other in stay])["scores"]
        assert min(load("chamfer_diversity").compute(predictions=[[text, other] for other in stay])["scores"]) < 0.3


def test_what_texts_share_with_their_prompt_is_no_diversity(load, tmp_path):
    contexts = ["Describe a dog in a park.", None, "", "What do you like?", "Say something about doors."]
    rows = [{"t": members, "c": context} for members, context in zip(SETS, contexts, strict=True)]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert run(data, "--keep", 2, "--context-key", "c", key="t") == 0
    summary = summary_of(data)
    chosen = [row["t"] for row in read_jsonl(tmp_path / "out.jsonl")]
    expected = load("vendi_embed").compute(predictions=chosen, contexts=contexts, q=2)
    assert summary["chosen_score"] == pytest.approx(expected["vendi_embed"], abs=1e-5)
    assert summary["contexts"] == "projected"


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
        (("--keep", 1, "--min-distance", 3), "--min-distance"),
        (("--keep", 1, "--column", "weights=reward"), "--column weights"),
        (("--keep", 1, "--set", "q=2"), "'q'"),
        (("--keep", 1, "--batch-size", 0), "--batch-size"),
    ],
)
def test_errors_name_the_option(tmp_path, capsys, options, message):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert run(data, "--id-key", "prompt", *options) == 2
    assert message in capsys.readouterr().err
