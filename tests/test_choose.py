"""text-metrics choose: the greedy choice, the files, and going on after a kill."""

import json
import tracemalloc
import warnings
from unittest.mock import ANY

import numpy as np
import pytest

import text_metrics
from tests.commands import choose, results_of
from tests.conftest import SETS
from tests.files import read_data, write_data, write_jsonl
from tests.references import diversity
from text_metrics.choosing import greedy
from text_metrics.choosing.greedy import choose_greedily, subset_score
from text_metrics.metrics._core.core_numbers import unit_vectors


def plain_greedy(cosines, quality, keep, ranks, min_distance):
    """Add the eligible text with the highest score of the whole subset, one after the other."""
    chosen = []
    for _ in range(keep):
        eligible = []
        for i in np.argsort(ranks, kind="stable").tolist():
            if i not in chosen and (cosines[i, chosen] <= 1 - min_distance + 1e-6).all():
                eligible.append(i)
        if not eligible:
            break
        scores = []
        for i in eligible:
            subset = [*chosen, i]
            squares = np.square(cosines[np.ix_(subset, subset)])
            scores.append(round(quality[subset].mean() * len(subset) ** 2 / squares.sum(), 12))
        chosen.append(eligible[int(np.argmax(scores))])
    return chosen


@pytest.mark.parametrize("min_distance", [0.0, 0.4])
@pytest.mark.parametrize("form", ["small groups", "large groups", "classes"])
def test_the_choice_equals_the_plain_loop(rng, monkeypatch, form, min_distance):
    sizes = np.array([6, 1, 6, 9, 3, 0, *rng.integers(1, 12, size=40)])
    n = int(sizes.sum())
    keep = np.minimum(sizes, [3, 1, 3, 4, 0, 0] + [5] * 40)
    vectors = rng.standard_normal((n, 4))
    vectors[1] = vectors[0]
    classes = rng.integers(3, size=n)
    quality = rng.integers(3, size=n) / 2
    ranks = rng.permutation(n)
    if form == "classes":
        vectors = np.eye(3)[classes]
    if form == "large groups":
        monkeypatch.setattr(greedy, "_SMALL", 0)
    chosen = choose_greedily(classes if form == "classes" else vectors, quality, sizes, keep, ranks, min_distance)
    for start, size, k, places in zip(np.cumsum(sizes) - sizes, sizes, keep, chosen, strict=True):
        part = slice(start, start + size)
        expected = plain_greedy(diversity.cosines(vectors[part]), quality[part], k, ranks[part], min_distance)
        assert places.tolist() == expected


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
    choices = []
    for rows in (n, 8, 100):
        monkeypatch.setattr(greedy, "_LAZY_ROWS", rows)
        choices.append(choose_greedily(*arguments)[0].tolist())
    chosen = choices[0]
    assert chosen == choices[1] == choices[2]
    cosines = diversity.cosines(vectors[chosen]) - 2 * np.eye(len(chosen))
    if min_distance:
        assert cosines.max() <= 1 - min_distance + 1e-6
        # Only what is too near is left.
        left = np.setdiff1d(np.arange(n), chosen)
        nearest = diversity.cosines(vectors)[np.ix_(left, chosen)].max(axis=1)
        assert len(chosen) == keep or nearest.min() > 1 - min_distance - 1e-6
    else:
        assert len(chosen) == keep


def test_the_score_is_quality_times_vendi(rng):
    for n in (2, 5):
        vectors = rng.standard_normal((n, 3))
        quality = rng.random(n)
        expected = quality.mean() * diversity.vendi(vectors, 2)
        assert subset_score(unit_vectors(vectors), quality) == pytest.approx(expected)


def test_memory_does_not_grow_with_the_square_of_what_is_chosen(rng):
    vectors = unit_vectors(rng.standard_normal((20_000, 4)))
    tracemalloc.start()
    try:
        score = subset_score(vectors, np.ones(20_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert score == pytest.approx(4, abs=0.1)
    assert peak < 10_000_000


ROWS = [
    {"prompt": i, "answer": text, "reward": (3 * i + j) % 4 / 4}
    for i, members in enumerate(SETS)
    for j, text in enumerate(members)
]


def test_rows_of_groups(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert choose(data, "--id-key", "prompt", "--keep", 2, key="answer") == 0
    rows, _, summary = results_of(data)
    assert [row["prompt"] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert all(row in ROWS for row in rows)
    assert [ROWS.index(row) for row in rows] == sorted(ROWS.index(row) for row in rows)
    assert len({row["answer"] for row in rows if row["prompt"] == 2}) == 2  # "She sings." comes twice
    assert summary == json.loads(capsys.readouterr().out)
    assert (summary["n_groups"], summary["n_texts"], summary["n_chosen"]) == (5, 15, 10)
    assert 1 < summary["random_score"] < summary["chosen_score"] <= 2
    assert summary["model"].startswith("all-MiniLM-L6-v2@")
    assert not (tmp_path / "out.jsonl.parts").exists()


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_columns_that_are_parallel_to_the_texts_are_shortened(tmp_path, kind):
    rows = []
    for i, members in enumerate(SETS):
        row = {"id": i, "answers": members, "more": ["x"] * 9, "text": '["a", "b", "c"]'}
        row["label"] = [f"{i}.{j}" for j in range(len(members))]
        row["nested"] = [[j] for j in range(len(members))]
        # The first text is the worst.
        row["q"] = [0.0, *[0.9] * (len(members) - 1)]
        rows.append(row)
    data = write_data(tmp_path / f"data.{kind}", rows)
    assert choose(data, "--keep", 2, "--column", "quality=q", key="answers", out=f"out.{kind}") == 0
    for row, original in zip(read_data(tmp_path / f"out.{kind}"), rows, strict=True):
        places = [original["label"].index(label) for label in row["label"]]
        assert len(places) == 2
        assert row["q"] == [original["q"][i] for i in places]
        assert places[0] > 0 or len(set(original["answers"])) == 2
        assert row["answers"] == [original["answers"][i] for i in places]
        assert row["nested"] == [[i] for i in places]
        assert row["more"] == original["more"]
        if kind != "csv":
            # A string that is a JSON list is a string.
            assert row["text"] == original["text"]


def test_equal_texts_are_merged(tmp_path):
    """Of equal ones, the first of the best quality is a candidate, whatever else is in the row."""
    texts = ["a dog", "the sea", "a dog", "a dog", "the sea"]
    rows = [{"t": text, "q": q, "i": i} for i, (text, q) in enumerate(zip(texts, [0.5, 1, 0.9, 0.9, 1], strict=True))]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    for keep in ("all", 4):
        words = ["--one-set", "--keep", keep, "--column", "quality=q", "--restart"]
        assert choose(data, *words, key="t") == 0
        written, _, summary = results_of(data)
        assert [row["i"] for row in written] == [1, 2]
        assert (summary["n_texts"], summary["n_merged"], summary["n_chosen"]) == (5, 3, 2)


def test_near_duplicates_are_removed(load, tmp_path):
    texts = [*SETS[0], "The couple take their dog to a park.", "Cats sleep on the sofa."]
    texts += SETS[1]
    texts.append("A DOG BARKS.")
    data = write_jsonl(tmp_path / "data.jsonl", [{"t": text, "q": i / 10} for i, text in enumerate(texts)])
    words = ["--one-set", "--keep", "all", "--min-distance", 0.3, "--column", "quality=q"]
    assert choose(data, *words, key="t") == 0
    stay = [row["t"] for row in results_of(data)[0]]
    details = load("chamfer_diversity").compute(predictions=[stay], details=True)["details"][0]
    assert min(details["distances"]) >= 0.3
    # Of two that are near, the one of higher quality stays; what is removed is near to one that stays.
    assert texts[0] not in stay
    assert texts[4] in stay
    for text in set(texts) - set(stay):
        assert min(load("chamfer_diversity").compute(predictions=[[text, other] for other in stay])["scores"]) < 0.3


def test_what_texts_share_with_their_prompt_is_no_diversity(load, tmp_path):
    contexts = ["Describe a dog in a park.", None, "", "What do you like?", "Say something about doors."]
    rows = [{"t": members, "m": {"c": context}} for members, context in zip(SETS, contexts, strict=True)]
    # A null is no context, and a row that lacks it is invalid.
    data = write_jsonl(tmp_path / "data.jsonl", [*rows, {"t": SETS[0], "m": {}}, {"t": SETS[0]}])
    assert choose(data, "--keep", 2, "--context-key", "m.c", key="t") == 3
    written, bad, summary = results_of(data)
    assert [row["row"] for row in bad] == [6, 7]
    chosen = [row["t"] for row in written]
    expected = load("vendi_embed").compute(predictions=chosen, contexts=contexts, q=2)
    assert summary["chosen_score"] == pytest.approx(expected["vendi_embed"], abs=1e-5)
    assert summary["contexts"] == "projected"


def test_a_choice_in_python_is_that_of_the_command(tmp_path, load):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    words = ["--id-key", "prompt", "--keep", 2, "--column", "quality=reward"]
    assert choose(data, *words, key="answer") == 0
    written, _, summary = results_of(data)
    quality = [[(3 * i + j) % 4 / 4 for j in range(len(members))] for i, members in enumerate(SETS)]
    result = text_metrics.choose(SETS, keep=2, quality=quality)
    texts = [SETS[i][j] for i, places in enumerate(result["chosen"]) for j in sorted(places)]
    assert [row["answer"] for row in written] == texts
    assert summary["chosen_score"] == pytest.approx(result["chosen_score"])
    assert summary["random_score"] == pytest.approx(result["random_score"])
    assert (summary["n_merged"], summary["signature"]) == (result["n_merged"], result["signature"]) == (1, ANY)
    # A flat list is one set, and its indices are in the order of choice.
    places = text_metrics.choose(SETS[0], keep=3)["chosen"]
    assert places[:2] == text_metrics.choose(SETS[0], keep=2)["chosen"]
    assert text_metrics.choose(SETS[0] + SETS[0], set_size=4, keep=3)["chosen"] == [places, places]
    assert sorted(text_metrics.choose(SETS[0])["chosen"]) == [0, 1, 2, 3]
    with pytest.raises(TypeError, match=r"'kep'.*'keep'"):
        text_metrics.choose(SETS[0], kep=1)
    with pytest.raises(TypeError, match=r"texts\[1\]\[0\]"):
        text_metrics.choose([["a"], [5]])
    with pytest.raises(ValueError, match="texts is empty"):
        text_metrics.choose([])


@pytest.mark.parametrize(("kind", "nested"), [("jsonl", False), ("csv", True), ("parquet", False), ("parquet", True)])
def test_vectors_that_one_has_need_no_encoder(rng, tmp_path, kind, nested):
    vectors = [rng.standard_normal((len(members), 3)).round(3) for members in SETS]
    rows = [
        {"id": i, "t": texts, "v": rows.tolist()} for i, (texts, rows) in enumerate(zip(SETS, vectors, strict=True))
    ]
    if not nested:
        rows = [{"id": row["id"], "t": t, "v": v} for row in rows for t, v in zip(row["t"], row["v"], strict=True)]
    data = write_data(tmp_path / f"data.{kind}", rows)
    words = ["--keep", 2, "--column", "embeddings=v", "--setting", "model=nowhere"]
    words += [] if nested else ["--id-key", "id"]
    assert choose(data, *words, key="t", out=f"out.{kind}") == 0
    summary = results_of(data, f"out.{kind}")[2]
    assert (summary["embeddings"], "model" in summary) == ("given", False)
    expected = text_metrics.choose(SETS, keep=2, embeddings=vectors)
    assert summary["chosen_score"] == pytest.approx(expected["chosen_score"])
    for rows_of_set, places, score in zip(vectors, expected["chosen"], expected["scores"], strict=True):
        assert score == pytest.approx(diversity.vendi(rows_of_set[places], 2))
    chosen = []
    for members, places in zip(SETS, expected["chosen"], strict=True):
        texts = [members[i] for i in sorted(places)]
        chosen += [texts] if nested else texts
    written = read_data(tmp_path / f"out.{kind}")
    assert [row["t"] for row in written] == chosen
    if nested:
        assert [np.shape(row["v"]) for row in written] == [(2, 3)] * 5


def test_classes_are_equal_or_have_nothing_in_common():
    """The choice is that of their one-hot vectors, and so are the scores."""
    texts = [["a", "b", "c", "d", "e"], ["f", "g", "h"]]
    classes = [["x", "x", 1, "y", "y"], [2, 2, 2]]
    quality = [[0.1, 0.9, 0.5, 0.8, 0.7], [0.3, 0.2, 1.0]]
    vectors = np.eye(4)[[0, 0, 1, 2, 2, 3, 3, 3]]
    for settings in ({"keep": 4}, {"min_distance": 0.5}, {"keep": 2, "quality": quality}):
        result = text_metrics.choose(texts, classes=classes, **settings)
        expected = text_metrics.choose(texts, embeddings=vectors, **settings)
        assert "|classes:given|" in result.pop("signature")
        assert expected.pop("signature")
        assert result == expected


def test_a_choice_among_many_texts_of_few_classes_holds_no_dense_matrix(rng):
    n = 20_000
    classes = rng.integers(200, size=n)
    tracemalloc.start()
    try:
        (chosen,) = choose_greedily(classes, np.ones(n), np.array([n]), np.array([n]), np.arange(n), min_distance=0.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sorted(classes[chosen]) == list(range(200))
    # One-hot vectors would take 16 MB in float32.
    assert peak < 8_000_000


def test_what_is_not_an_answer_is_said_or_stripped():
    """As the command does: reasoning counts unless it is stripped, and an empty text is no candidate."""
    texts = ["<think>one way</think>Yes.", "<think>another</think>Yes.", "", "No.", " "]
    vectors = np.eye(5)
    with pytest.warns(UserWarning, match=r"2 of 5 texts hold reasoning.*strip='reasoning'"):
        result = text_metrics.choose(texts, embeddings=vectors)
    assert (sorted(result["chosen"]), result["n_empty"], result["n_merged"]) == ([0, 1, 3], 2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = text_metrics.choose(texts, embeddings=vectors, strip="reasoning")
    assert (sorted(result["chosen"]), result["n_empty"], result["n_merged"]) == ([0, 3], 2, 1)
    assert "|strip:reasoning|" in result["signature"]
    with pytest.warns(UserWarning, match="1 of 2 texts are empty without what was stripped"):
        assert text_metrics.choose(["<think>cut", "b"], embeddings=np.eye(2), strip="reasoning")["chosen"] == [1]
    # The prompt is one for each set.
    echoed = [["Name an animal of the sea. Whale.", "Whale."], ["Whale.", "Eel."]]
    settings = {"contexts": ["Name an animal of the sea.", None], "strip": ["prompt"]}
    assert list(map(len, text_metrics.choose(echoed, **settings)["chosen"])) == [1, 2]
    with pytest.raises(ValueError, match="requires contexts"):
        text_metrics.choose(echoed, strip="prompt")


def test_the_command_chooses_no_empty_text(tmp_path):
    rows = [{"t": ["a dog", "", "<think>the sea"]}, {"t": ["", " "]}]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose(data, "--keep", "all", "--strip", "reasoning", key="t") == 0
    written, _, summary = results_of(data)
    assert [row["t"] for row in written] == [["a dog"], []]
    assert (summary["n_empty"], summary["n_chosen"], summary["n_merged"]) == (4, 1, 0)


def test_a_vector_that_is_wrong_is_a_bad_row(tmp_path):
    rows = [{"t": members, "v": [[1.0, i] for i in range(len(members))]} for members in SETS]
    rows[1]["v"][0] = [0.0, 0.0]
    rows[2]["v"].pop()
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    assert choose(data, "--keep", 1, "--column", "embeddings=v", key="t") == 3
    written, bad, _ = results_of(data)
    assert [row["row"] for row in bad] == [2, 3]
    assert len(written) == 3


def test_texts_of_low_quality_are_not_chosen(tmp_path):
    rows = [{"t": ["a dog", "the sea", "a dog"], "q": [0.2, 0.9, 0.5]}, {"t": ["a cat", "rain"], "q": [0.1, 0.4]}]
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = ["--keep", "all", "--column", "quality=q", "--min-quality", 0.5]
    assert choose(data, *words, key="t") == 0
    written, _, summary = results_of(data)
    assert [row["q"] for row in written] == [[0.9, 0.5], []]
    assert (summary["n_chosen"], summary["n_below"], summary["n_merged"]) == (2, 3, 1)
    result = text_metrics.choose([row["t"] for row in rows], quality=[row["q"] for row in rows], min_quality=0.5)
    assert result["scores"][1] == 0
    assert summary["chosen_score"] == pytest.approx(result["scores"][0] / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", 0), "--keep"),
        (("--keep", 1, "--min-distance", 3), "--min-distance"),
        (("--keep", 1, "--min-quality", 3), "--min-quality"),
        (("--keep", 1, "--min-quality", 0.5), "min_quality needs quality"),
        (("--keep", 1, "--column", "classes=reward", "--column", "embeddings=reward"), "classes and embeddings"),
        (("--keep", 1, "--set", "confidence=0.9"), "'confidence'"),
        (("--keep", 1, "--set", "keep=2"), "pass --keep"),
        (("--keep", 1, "--column", "weights=reward"), "--column weights"),
        (("--keep", 1, "--set", "q=2"), "'q'"),
        (("--keep", 1, "--batch-size", 0), "--batch-size"),
    ],
)
def test_errors_name_the_option(tmp_path, capsys, options, message):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    assert choose(data, "--id-key", "prompt", *options, key="answer") == 2
    assert message in capsys.readouterr().err
